// The built page in a real Chromium, served from disk. Nothing else can be reached.

import { createReadStream, existsSync } from "node:fs";
import { createServer } from "node:http";
import { extname, join, normalize } from "node:path";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";

const SITE = fileURLToPath(new URL("../../out/web/", import.meta.url));
const TYPES = { ".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".wasm": "application/wasm" };
const BROWSERS = ["chromium", "chromium-browser", "google-chrome"].map((name) => join("/usr/bin", name));

export async function served() {
  const server = createServer((asked, answer) => {
    const path = normalize(new URL(asked.url, "http://site").pathname);
    const file = join(SITE, path.endsWith("/") ? `${path}index.html` : path);
    if (!file.startsWith(SITE) || !existsSync(file)) return void answer.writeHead(404).end();
    answer.writeHead(200, { "content-type": TYPES[extname(file)] ?? "application/octet-stream" });
    createReadStream(file).pipe(answer);
  });
  await new Promise((begun) => server.listen(0, "127.0.0.1", begun));
  const executablePath = process.env.VCPULAB_BROWSER ?? BROWSERS.find(existsSync);
  const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
  const address = `http://127.0.0.1:${server.address().port}/`;
  return {
    address,
    /** A page; what goes wrong in it, and what it asks others for, is in `faults`. */
    async page(options = {}) {
      const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
      const page = await context.newPage();
      const faults = [];
      page.on("console", (message) => message.type() === "error" && faults.push(message.text()));
      page.on("pageerror", (error) => faults.push(String(error)));
      page.on("request", (request) => {
        if (!/^(data|blob):/.test(request.url()) && !request.url().startsWith(address)) faults.push(`asked for ${request.url()}`);
      });
      return Object.assign(page, { faults });
    },
    async close() {
      await browser.close();
      server.close();
      server.closeAllConnections();
    },
  };
}

/** Waits until all replications of what the page shows are there; after `act`, those of a run that it began. */
export async function done(page, act = null) {
  const runs = act === null ? 0 : await page.evaluate(() => Number(document.body.dataset.run));
  await act?.();
  const there = (before) => document.body.dataset.ready === "true" && document.body.dataset.done === "true" && Number(document.body.dataset.run) > before;
  await page.waitForFunction(there, runs, { timeout: 120_000 });
}

/** What the page hands to Perfetto: a page in its place answers as https://perfetto.dev/docs/visualization/deep-linking-to-perfetto-ui has it. */
export async function handed(page) {
  await page.context().route("https://ui.perfetto.dev/**", (route) => route.fulfill({
    contentType: "text/html",
    body: `<script>
      let isReady = false;
      setTimeout(() => (isReady = true), 500);
      addEventListener("message", ({ data, source, origin }) => {
        if (data === "PING") isReady && source.postMessage("PONG", origin);
        else if (data.perfetto) window.got = { title: data.perfetto.title, text: new TextDecoder().decode(data.perfetto.buffer), origin };
      });
    </script>`,
  }));
  const [perfetto] = await Promise.all([page.waitForEvent("popup"), page.click("#perfetto")]);
  await perfetto.waitForFunction(() => window.got !== undefined);
  return perfetto.evaluate(() => window.got);
}
