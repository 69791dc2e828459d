// The page as people use it.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { done, served } from "./browser.mjs";

let site;
before(async () => (site = await served()));
after(() => site.close());

async function opened(hash = "", options = {}) {
  const page = await site.page(options);
  await page.goto(`${site.address}${hash}`);
  await done(page);
  return page;
}

const typed = async (page, text) => {
  await page.click("#tab-text");
  await page.click(".cm-content");
  await page.keyboard.press("Control+a");
  await page.keyboard.insertText(text);
};

const scenario = (more = "") => `[run]\nduration = "300ms"\nreplications = 3\n[host]\nprofile = "exact"\nscheduler = "credit"\npcpus = 1\n\
[domain.a]\napp = [{ kind = "hog" }]\n[domain.b]\n${more}\napp = [{ kind = "hog" }]\n`;

test("every lesson is shown, and every link of it changes the scenario and tells what that changes", async () => {
  const page = await opened();
  const count = await page.locator("#lessons option").count();
  assert.ok(count >= 9);
  for (let lesson = 0; lesson < count; lesson++) {
    await done(page, () => page.selectOption("#lessons", String(lesson)));
    const links = await page.locator("#lesson a").count();
    assert.ok(links >= 2);
    for (let link = 0; link < links; link++) {
      await done(page, () => page.selectOption("#lessons", String(lesson)));
      assert.equal(await page.locator(".words").count(), 0);
      await done(page, () => page.locator("#lesson a").nth(link).click());
      assert.equal(await page.locator("#problems .error").count(), 0);
      assert.notEqual(await page.locator(".words li").first().textContent(), "");
      assert.equal(await page.locator("canvas").count(), 2);
    }
  }
  assert.deepEqual(page.faults, []);
});

test("what is wrong is said as the engine says it, and the form waits until it is mended", async () => {
  const page = await opened();
  await typed(page, scenario("weight = 70000"));
  await page.waitForSelector("#problems li");
  assert.equal(await page.textContent("#problems li"), "line 11: domain.b.weight: found `70000`; allowed: 0 or an integer from 1 to 65535");
  assert.equal(await page.locator("#form[inert]").count(), 1);
  assert.equal(await page.locator(".cm-lintRange-error").count(), 1);
  await page.click("#problems button");
  await page.keyboard.press("Shift+End");
  await page.keyboard.type("700");
  await page.waitForFunction(() => document.querySelectorAll("#problems li").length === 0);
  await done(page);
  assert.equal(await page.locator("#form[inert]").count(), 0);
});

test("form and text are in step", async () => {
  const page = await opened();
  await typed(page, scenario("weight = 300 # ours"));
  await page.waitForFunction(() => document.querySelector("#f-domain-b-weight")?.parentElement.querySelector("[type=number]").value === "300");
  await page.click("#tab-form");
  const weight = page.locator("#f-domain-b-weight + input");
  await weight.fill("768");
  await weight.press("Enter");
  await page.waitForFunction(() => document.querySelector(".cm-content").textContent.includes("weight = 768 # ours"));
  await page.focus("#f-domain-b-weight");
  await page.keyboard.press("ArrowRight");
  await page.waitForFunction(() => !document.querySelector(".cm-content").textContent.includes("weight = 768 # ours"));
  assert.equal(await page.evaluate(() => document.activeElement.id), "f-domain-b-weight");
  await page.selectOption("#f-host-scheduler", "round-robin");
  await page.waitForFunction(() => document.querySelector(".cm-content").textContent.includes('scheduler = "round-robin"'));
  await done(page);
  assert.equal(await page.locator("#problems li").count(), 0);
  assert.doesNotMatch(await page.textContent(".cm-content"), /weight/);
});

test("fields, values and the scheduler's parameters are completed", async () => {
  const page = await opened();
  await typed(page, scenario());
  await page.keyboard.press("Control+End");
  const offered = async (text) => {
    await page.keyboard.insertText(text);
    await page.waitForTimeout(500);
    await page.keyboard.press("Control+Space");
    await page.waitForSelector(".cm-completionLabel");
    const labels = await page.locator(".cm-completionLabel").allTextContents();
    await page.keyboard.press("Escape");
    return labels;
  };
  assert.ok((await offered("wei")).includes("weight"));
  assert.ok((await offered("ght = 4\napp = [{ kind = ")).includes('"periodic"'));
  assert.ok((await offered('"hog" }]\n[run]\nwar')).includes("warmup"));
});

test("a link holds the whole scenario, and a broken one is said to be", async () => {
  const page = await opened();
  await done(page, () => typed(page, scenario("weight = 513")));
  const other = await opened(new URL(page.url()).hash);
  assert.match(await other.textContent(".cm-content"), /weight = 513/);
  const broken = await opened("#s=%%%");
  assert.match(await broken.textContent("h2"), /weight/);
  assert.deepEqual(other.faults, []);
});

test("tables and the scenario are downloaded", async () => {
  const page = await opened();
  const [file] = await Promise.all([page.waitForEvent("download"), page.selectOption("#csv", "domains")]);
  const lines = (await (await file.createReadStream()).toArray()).join("").trim().split("\n");
  assert.match(lines[0], /^replication,domain,number/);
  assert.equal(lines.length, 1 + 5 * 3);
});

test("Perfetto is opened on a click, and only then, and gets the trace", async () => {
  const page = await opened();
  await page.evaluate(() => {
    window.told = [];
    window.open = (address) => {
      window.told.push(address);
      return { closed: false, postMessage: (message, origin) => window.told.push([message, origin]) };
    };
  });
  await page.click("#perfetto");
  await page.waitForFunction(() => window.told.length > 1);
  assert.deepEqual(await page.evaluate(() => window.told.slice(0, 2)), ["https://ui.perfetto.dev", ["PING", "https://ui.perfetto.dev"]]);
  const trace = await page.evaluate(async () => {
    dispatchEvent(new MessageEvent("message", { data: "PONG", origin: "https://ui.perfetto.dev" }));
    const { perfetto } = window.told.findLast(([message]) => message.perfetto)[0];
    return JSON.parse(new TextDecoder().decode(perfetto.buffer));
  });
  assert.ok(trace.traceEvents.some(({ name, dur }) => name === "gold.0" && dur > 0));
  assert.deepEqual(page.faults, []);
});

test("everything can be reached and done with the keyboard alone", async () => {
  const page = await opened();
  const reached = new Set();
  for (let i = 0; i < 80; i++) {
    await page.keyboard.press("Tab");
    reached.add(await page.evaluate(() => document.activeElement.id || document.activeElement.tagName));
  }
  for (const id of ["lessons", "share", "perfetto", "tab-form", "f-domain-gold-weight", "keep", "CANVAS"]) assert.ok(reached.has(id), id);
  await page.focus("canvas");
  for (const key of ["+", "+", "ArrowRight"]) await page.keyboard.press(key);
  await page.waitForTimeout(400);
  assert.match(await page.textContent(".told"), /^from .* to .*/);
  await page.focus("#tab-form");
  await page.keyboard.press("ArrowRight");
  assert.equal(await page.locator("#panel-text").isVisible(), true);
});

test("those who do not see it are told the same", async () => {
  const page = await opened();
  const unnamed = await page.evaluate(() => [...document.querySelectorAll("button, select, input, canvas, svg[role], progress")]
    .filter((one) => !(one.ariaLabel ?? one.getAttribute("aria-label") ?? "") && !one.textContent.trim() && !(one.labels?.length))
    .map((one) => one.outerHTML));
  assert.deepEqual(unnamed, []);
  assert.match(await page.getAttribute("canvas", "aria-label"), /1 pCPUs?, \d+ slices/);
  assert.equal(await page.locator(".timeline details table tbody tr").count(), 1);
  assert.equal(await page.getAttribute("#status", "role"), "status");
});

for (const colorScheme of ["light", "dark"]) {
  test(`on a phone nothing is cut off, ${colorScheme}`, async () => {
    const page = await opened("#lesson=8", { viewport: { width: 360, height: 740 }, colorScheme, isMobile: true, hasTouch: true });
    await page.locator("#lesson a").first().click();
    await page.waitForSelector(".words");
    assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), 360);
    const [ink, ground] = await page.evaluate(() => {
      const light = (colour) => (colour.match(/\d+/g) ?? []).slice(0, 3).reduce((sum, part) => sum + Number(part), 0);
      const style = getComputedStyle(document.documentElement);
      return [light(style.color), light(style.backgroundColor)];
    });
    assert.equal(ink > ground, colorScheme === "dark");
  });
}

test("64 pCPUs with 400 vCPUs, and a million slices, are drawn while one drags", async (context) => {
  const page = await opened();
  await typed(page, '[run]\nduration = "16s"\nreplications = 1\n[host]\nprofile = "generic"\nscheduler = "round-robin"\npcpus = 64\nslice_ms = 1\n\
[domain.few]\ncount = 50\nvcpus = 4\napp = [{ kind = "hog", instance = 2 }, { kind = "periodic", run = "100us", period = "250us", instance = 2 }]\n\
[domain.many]\ncount = 50\nvcpus = 4\napp = [{ kind = "periodic", run = "70us", period = "300us", instance = 4 }]\n');
  await page.waitForFunction(() => /64 pCPUs/.test(document.querySelector("canvas")?.getAttribute("aria-label") ?? ""), null, { timeout: 120_000 });
  await done(page);
  const slices = Number(/(\d+) slices/.exec(await page.getAttribute("canvas", "aria-label"))[1]);
  const box = await page.locator("canvas").boundingBox();
  await page.mouse.move(box.x + box.width / 2, box.y + 40);
  const frames = await page.evaluate(async () => {
    const canvas = document.querySelector("canvas");
    const { left, top, width } = canvas.getBoundingClientRect();
    const took = [];
    const ask = window.requestAnimationFrame;
    window.requestAnimationFrame = (draw) => ask((now) => {
      const begun = performance.now();
      draw(now);
      took.push(performance.now() - begun);
    });
    for (let step = 0; step < 90; step++) {
      const deltaY = step < 45 ? -120 : 120;
      canvas.dispatchEvent(new WheelEvent("wheel", { deltaY, clientX: left + width / 3, clientY: top + 20, bubbles: true, cancelable: true }));
      await new Promise((next) => ask(next));
    }
    window.requestAnimationFrame = ask;
    return took.sort((a, b) => a - b);
  });
  const [median, most] = [frames[Math.floor(frames.length / 2)], frames.at(-1)];
  context.diagnostic(`${slices} slices: a picture takes ${median.toFixed(1)} ms, at most ${most.toFixed(1)} ms`);
  assert.ok(slices >= 1e6, `${slices}`);
  assert.ok(frames.length >= 60);
  // 60 pictures a second, if nothing else runs; on any machine it is no slide show.
  assert.ok(median < 250, `${median} ms`);
});
