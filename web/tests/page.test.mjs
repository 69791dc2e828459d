// The page as people use it.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { done, handed, served } from "./browser.mjs";

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
  assert.ok(count >= 10);
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

test("what one is about to press stays where it is when a shorter answer comes", async () => {
  const page = await opened();
  const top = () => page.evaluate(() => document.getElementById("tab-form").getBoundingClientRect().top);
  await typed(page, scenario());
  await page.evaluate(() => scrollTo(0, document.documentElement.scrollHeight));
  const [before, scrolled] = [await top(), await page.evaluate(() => scrollY)];
  await done(page, () => page.keyboard.type(" "));
  assert.ok(scrolled > 20);
  assert.equal(await top(), before);
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

test("the link that is copied is that of the address, with the policies in Python that the scenario names", async () => {
  const page = await opened();
  await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
  const last = await page.locator("#lessons option").count() - 1;
  for (const lesson of [0, last]) {
    await done(page, () => page.selectOption("#lessons", String(lesson)));
    await page.click("#share");
    await page.waitForFunction(() => document.getElementById("status").textContent.startsWith("the link is copied"));
    const copied = await page.evaluate(() => navigator.clipboard.readText());
    assert.equal(copied, page.url());
    assert.equal(copied.includes("&py="), (await page.locator("#tab-python").getAttribute("hidden")) === null);
  }
});

test("tables and the scenario are downloaded", async () => {
  const page = await opened();
  const [file] = await Promise.all([page.waitForEvent("download"), page.selectOption("#csv", "domains")]);
  const lines = (await (await file.createReadStream()).toArray()).join("").trim().split("\n");
  assert.match(lines[0], /^replication,domain,number/);
  assert.equal(lines.length, 1 + 5 * 3);
});

const lines = (page) => page.evaluate(() => [...document.querySelectorAll("#editor .cm-line")].map((line) => line.textContent).join("\n"));
/** Waits for a run of a text that has this in it. */
const ran = async (page, act, what) => {
  await done(page, act);
  assert.match(await lines(page), what);
  assert.equal(await page.locator("#problems .error").count(), 0);
};

test("pools of pCPUs are made, changed and taken away in the form, which knows each pool's parameters", async () => {
  const page = await opened();
  await done(page, () => typed(page, scenario("weight = 300").replace("pcpus = 1", "pcpus = 4")));
  await page.click("#tab-form");
  await ran(page, () => page.click("text=Add a CPU pool"), /\[pool\.rt\]\npcpus = "3"\nscheduler = "credit"/);
  await ran(page, () => page.selectOption("#f-domain-b-pool", "rt"), /pool = "rt"/);
  await ran(page, () => page.selectOption("#f-pool-rt-scheduler", "rtds"), /scheduler = "rtds"/);
  assert.doesNotMatch(await lines(page), /weight/);
  assert.equal(await page.locator("#f-domain-b-budget_us").count(), 1);
  assert.equal(await page.locator("#f-domain-a-budget_us").count(), 0);
  const pcpus = page.locator("#f-pool-rt-pcpus");
  await pcpus.fill("2-3");
  await ran(page, () => pcpus.press("Enter"), /pcpus = "2-3"/);
  await done(page, () => page.click("text=Remove pool rt"));
  assert.doesNotMatch(await lines(page), /pool|budget/);
  assert.equal(await page.locator("#problems li").count(), 0);
});

test("a host of Xen becomes one of KVM, whose groups have weights, and undoing takes it back", async () => {
  const page = await opened("#lesson=7");
  const before = await lines(page);
  assert.match(before, /driver_domain = true/);
  await ran(page, () => page.selectOption("#f-host-hypervisor", "kvm"), /hypervisor = "kvm"/);
  assert.match(await lines(page), /scheduler = "linux-eevdf"/);
  assert.doesNotMatch(await lines(page), /driver_domain|cap =/);
  await done(page, () => page.click("#undo"));
  assert.equal(await lines(page), before);
  const groups = `${scenario('cgroup = "machine.slice/shop"').replace('"credit"', '"linux-eevdf"\nhypervisor = "kvm"')}[cgroup."machine.slice/shop"]\nweight = 300\n`;
  await done(page, () => typed(page, groups));
  await page.click("#tab-form");
  await page.click("text=group machine.slice/shop");
  const weight = page.locator('[aria-label="machine.slice/shop weight, exactly"]');
  assert.equal(await weight.inputValue(), "300");
  await weight.fill("50");
  await ran(page, () => weight.press("Enter"), /\[cgroup\."machine\.slice\/shop"\]\nweight = 50/);
});

test("each of 200 domains with 400 vCPUs is found and changed in the form, and it stays quick", async (context) => {
  const page = await opened();
  await done(page, () => typed(page, scenario("count = 199\nvcpus = 2").replace("[domain.a]", "[domain.a]\nvcpus = 2").replace("pcpus = 1", "pcpus = 64")));
  await page.click("#tab-form");
  assert.equal(await page.locator(".many > details").count(), 200);
  await page.fill("#f-find", "b199");
  assert.equal(await page.locator(".many > details:visible").count(), 1);
  assert.equal(await page.textContent("#form .row [role=status]"), "1 of 200 domains");
  const took = await page.evaluate(async () => {
    const begun = performance.now();
    document.querySelector(".many > details:not([hidden]) > summary").click();
    await new Promise((next) => requestAnimationFrame(() => setTimeout(next)));
    return performance.now() - begun;
  });
  context.diagnostic(`a domain is opened in ${took.toFixed(0)} ms`);
  assert.ok(took < 1000, `${took} ms`);
  const weight = page.locator('[aria-label="b199 weight, exactly"]');
  await weight.fill("777");
  await ran(page, () => weight.press("Enter"), /\[domain\.b199\]\nweight = 777/);
  assert.equal(await page.inputValue("#f-find"), "b199");
});

test("a policy in Python is written: fetched for it alone, run as one types, told when it fails", async () => {
  const page = await site.page();
  const asked = [];
  page.context().on("request", (request) => asked.push(request.url()));
  await page.goto(site.address);
  await done(page);
  assert.ok(!asked.some((address) => /pyodide|python/.test(address)), asked.join(" "));
  assert.equal(await page.locator("#tab-python:visible").count(), 0);
  await done(page, () => page.selectOption("#lessons", "9"));
  assert.ok(asked.some((address) => /pyodide/.test(address)));
  assert.equal(await page.locator("#f-host-generation").count(), 0);
  assert.equal(await page.inputValue('[aria-label="gold weight, exactly"]'), "512");
  const shares = () => page.locator("section", { hasText: "Domains" }).locator("td").first().textContent();
  const before = await shares();
  await page.click("#tab-python");
  await page.click("#python .cm-content");
  await page.keyboard.press("Control+End");
  await done(page, () => page.keyboard.insertText("    # the seed is another\n\n\nclass Other(Lottery):\n    def __init__(self, params, seed):\n        super().__init__(params, seed + 1)\n"));
  assert.equal(await shares(), before);
  await done(page, () => page.click("#tab-text").then(() => typed(page, `${scenario("weight = 9").replace('"credit"', '"lottery.py:Other"')}`)));
  assert.notEqual(await shares(), before);
  await page.click("#tab-python");
  await page.click("#python .cm-content");
  await page.keyboard.press("Control+End");
  await page.keyboard.insertText("\n    def wake(self, ctx, v):\n        ctx.raise_reschedule(99)\n");
  await page.waitForFunction(() => /there is no pCPU 99.*lottery\.py:\d+/.test(document.querySelector("#status").textContent));
  await page.keyboard.insertText("x = = 1\n");
  await page.waitForFunction(() => /SyntaxError/.test(document.querySelector("#problems li")?.textContent ?? ""));
  assert.deepEqual(page.faults, []);
});

test("code that a link brings runs when its reader says so", async () => {
  const page = await opened("#lesson=10");
  await page.click("#tab-python");
  await page.click("#python .cm-content");
  // At the top: of a long text the editor has only what is in sight.
  await page.keyboard.press("Control+Home");
  const before = page.url();
  await done(page, () => page.keyboard.insertText("# mine\n"));
  await page.waitForURL((url) => url.href !== before);
  const address = page.url();
  const other = await site.page();
  await other.goto(address);
  await other.waitForSelector("#problems button");
  assert.match(await other.textContent("#problems"), /brings Python code/);
  assert.equal(await other.evaluate(() => document.body.dataset.run), undefined);
  await other.click("#problems button");
  await done(other);
  await other.click("#tab-python");
  assert.match(await other.textContent("#python .cm-content"), /# mine/);
});

test("Perfetto is opened on a click, and only then, and gets the trace once it answers", async () => {
  const page = await opened();
  const { title, text, origin } = await handed(page);
  assert.equal(title, "what is a weight");
  assert.equal(`${origin}/`, site.address);
  const { traceEvents } = JSON.parse(text);
  const slices = traceEvents.filter(({ ph }) => ph === "X");
  assert.equal(slices.length, Number(/(\d+) slices/.exec(await page.getAttribute("canvas", "aria-label"))[1]));
  // One after the other on each pCPU, each of a vCPU.
  const ends = new Map();
  for (const { name, ts, dur, tid, pid } of slices) {
    assert.match(name, /^(gold|silver|office)\.0$/);
    assert.equal(pid, 1);
    assert.ok(dur > 0 && ts >= (ends.get(tid) ?? 0) - 1e-6);
    ends.set(tid, ts + dur);
  }
  assert.deepEqual(page.faults, []);
});

test("everything can be reached and done with the keyboard alone", async () => {
  const page = await opened();
  const reached = new Set();
  for (let i = 0; i < 80; i++) {
    await page.keyboard.press("Tab");
    reached.add(await page.evaluate(() => document.activeElement.id || document.activeElement.tagName));
  }
  for (const id of ["lessons", "share", "perfetto", "tab-form", "undo", "f-domain-gold-weight", "keep", "CANVAS"]) assert.ok(reached.has(id), id);
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
