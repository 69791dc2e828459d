// Links, without a browser: the page's own module.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { deflateRawSync } from "node:zlib";
import { createServer } from "vite";

let vite, share;
before(async () => {
  vite = await createServer({ configFile: false, root: new URL("..", import.meta.url).pathname, logLevel: "error", server: { middlewareMode: true, watch: null }, optimizeDeps: { noDiscovery: true } });
  share = await vite.ssrLoadModule("/src/share.ts");
});
after(() => vite.close());

const packed = (bytes) => deflateRawSync(bytes).toString("base64url");

test("a link holds the scenario and the policies that it names", async () => {
  for (const shared of [
    { text: "name = \"ü\"\n", policies: null },
    { text: "x", policies: "class Lottery: ...\n" },
    { text: "a".repeat(999_999), policies: "" },
    { text: "", policies: null },
  ]) {
    const fragment = await share.linkTo(shared);
    assert.ok(share.isLink(fragment));
    assert.deepEqual(await share.read(fragment), shared);
  }
});

test("a text that is too long makes no link", async () => {
  assert.equal(await share.linkTo({ text: "a".repeat(1_000_001), policies: null }), null);
  assert.equal(await share.linkTo({ text: "", policies: "a".repeat(1_000_001) }), null);
});

test("a small link that holds very much is broken, and takes little memory", async () => {
  const bomb = packed(Buffer.alloc(300_000_000));
  assert.ok(bomb.length < 500_000);
  const before = process.memoryUsage.rss();
  for (const fragment of [`#s=${bomb}`, `#s=${packed("x")}&py=${bomb}`]) assert.equal(await share.read(fragment), null);
  assert.ok(process.memoryUsage.rss() - before < 100_000_000);
});

test("a broken link is said to be, and what is none is none", async () => {
  for (const fragment of ["#s=%%%", "#s=", "#s=AAAA", `#s=${packed("x")}&py=%%%`, `#s=${packed("x").slice(0, -1)}`, `#s=${packed(Buffer.from([0xff]))}`, "", "#lesson=3"]) {
    assert.equal(await share.read(fragment), null, fragment);
  }
  assert.ok(!share.isLink("#lesson=3"));
});
