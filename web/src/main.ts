// The playground: the scenario on one side, as form and as text in step, and what the engine answers on the other.

import "./style.css";
import { completer } from "./completion";
import { after, byId, element } from "./dom";
import { Editor, said } from "./editor";
import { ask, load } from "./engine";
import { csv, download, openInPerfetto, perfettoJson } from "./files";
import { Form } from "./form";
import { LESSONS, POLICIES } from "./gallery";
import { judge, type Run } from "./judge";
import { Python } from "./python";
import { resultsOf } from "./results";
import { Running } from "./runs";
import { check, edit, type Checked, type Edit, type Facts, type Json, type Policies, type Scenario } from "./scenario";
import { isLink, linkTo, read } from "./share";
import { Timeline } from "./slices";
import { TimelineView } from "./timeline";

const TABS = ["form", "text", "python"] as const;

async function start(): Promise<void> {
  const module = await load();
  const facts = await ask<Facts>(module, ["facts"]);
  let scenario: Scenario | null = null;
  let running: Running | null = null;
  let run: Run | null = null;
  let kept: (Run & { view: HTMLElement | null }) | null = null;
  let view: HTMLElement | null = null;
  let checks = 0;
  let draws = 0;
  let runs = 0;
  const python = new Python();
  /** The policies that scenarios named and that are not built in. */
  const declared: Policies = {};
  /** Code that came in a link runs when its reader says so. */
  let isTrusted = true;

  const form = new Form(byId("form"), facts.schedulers, (edits) => void change(edits));
  const typed = after(250, () => void checked());
  const editor = new Editor(byId("editor"), "toml", "The scenario in TOML.", completer(facts.schema, () => form.params(scenario)), typed);
  const code = new Editor(byId("python"), "python", `Policies in Python, the file ${POLICIES.file}.`, null, after(600, () => void checked()));
  code.open(POLICIES.text);
  const source = () => ({ file: POLICIES.file, text: code.text });

  /** What the engine says about the text, and Python about the policies that it names. */
  async function answered(): Promise<Checked | null> {
    const found = await check(module, editor.text, {});
    const names = found.asked.filter(Python.isFile);
    byId("tab-python").hidden = names.length === 0 && byId("panel-python").hidden;
    if (names.length === 0) return found;
    if (!isTrusted) {
      const run = element("button", { type: "button", class: "warning" }, "This link brings Python code. Read it; then run it here.");
      run.addEventListener("click", () => {
        isTrusted = true;
        void checked();
      });
      byId("problems").replaceChildren(element("li", {}, run));
      say("waits for you: the link brings code");
      return null;
    }
    if (!python.isLoaded) say("fetching Python …");
    return check(module, editor.text, await python.declared(source(), names));
  }

  /** Shows what the engine says about the text, and runs it. */
  async function checked(): Promise<void> {
    const number = ++checks;
    let found: Checked | null;
    try {
      found = await answered();
    } catch (error) {
      say(error instanceof Error ? error.message : String(error));
      return;
    }
    if (number !== checks || found === null) return;
    editor.show(found);
    const problem = (kind: string) => (one: (typeof found.problems)[number]): HTMLElement => {
      const go = element("button", { type: "button", class: kind }, `${one.line === null ? "" : `line ${one.line}: `}${said(one)}`);
      go.addEventListener("click", () => {
        show("text");
        editor.go(one);
      });
      return element("li", {}, go);
    };
    byId("problems").replaceChildren(...found.problems.map(problem("error")), ...found.warnings.map(problem("warning")));
    form.disable(found.scenario === null);
    scenario = found.scenario;
    if (scenario === null) {
      running?.stop();
      say(found.problems.length === 1 ? "one problem" : `${found.problems.length} problems`);
      return;
    }
    Object.assign(declared, scenario.policies);
    form.show(scenario, found.schedulers);
    begin(scenario);
    const fragment = await link(found);
    if (number === checks && fragment !== null) history.replaceState(null, "", fragment);
  }

  /** The fragment of a link to what is shown; none: it is too long. */
  function link({ asked }: Checked): Promise<string | null> {
    return linkTo({ text: editor.text, policies: asked.some(Python.isFile) ? code.text : null });
  }

  function begin(what: Scenario): void {
    running?.stop();
    const started = performance.now();
    let shown = 0;
    say("running …");
    byId("stop").hidden = false;
    // Were the page shorter afterwards, a button that is being pressed would move away.
    byId("answer").style.minHeight = `${byId("answer").offsetHeight}px`;
    const own = Object.keys(what.policies).length === 0 ? null : { of: python, source: source() };
    running = new Running(module, what, own, {
      went(results, done) {
        byId<HTMLProgressElement>("progress").value = done;
        if (results.length === shown) return;
        const isFirst = shown === 0;
        shown = results.length;
        run = { scenario: what, results };
        const isDone = shown === what.replications;
        byId("stop").hidden = isDone;
        const took = ((performance.now() - started) / 1000).toFixed(1);
        say(isDone ? `${shown} replication${shown === 1 ? "" : "s"}, ${took} s` : `${shown} of ${what.replications} replications`);
        if (isFirst) drawTimeline();
        void draw();
      },
      failed(message) {
        byId("stop").hidden = true;
        say(`failed: ${message}`);
      },
    });
    draws++;
    document.body.dataset["done"] = "false";
    document.body.dataset["run"] = String(++runs);
  }

  /** Shows the results, once they are judged, unless others are shown meanwhile. */
  async function draw(): Promise<void> {
    if (run === null) return;
    byId("kept").textContent = kept === null ? "" : `A: ${kept.scenario.name || "kept"}, as it was · B: now`;
    byId("forget").hidden = kept === null;
    const number = ++draws;
    const [now, before] = [run, kept];
    try {
      const judgement = await judge((args, input) => ask(module, args, input), before, now);
      if (number !== draws) return;
      byId("results").replaceChildren(...resultsOf(now, before, judgement));
      document.body.dataset["done"] = String(now.results.length === now.scenario.replications);
    } catch (error) {
      say(error instanceof Error ? error.message : String(error));
    }
  }

  function drawTimeline(): void {
    const traced = run?.results[0];
    const timeline = run && traced ? Timeline.of(traced, run.scenario) : null;
    const isBeside = kept !== null && kept.view !== null;
    view = timeline && new TimelineView(timeline, isBeside ? "Timeline of B" : "Timeline").node;
    byId("timelines").replaceChildren(...[kept?.view, view].filter((one) => one != null));
  }

  function keep(): void {
    if (run === null || run.results.length === 0) return;
    kept = { ...run, view };
    view?.querySelector("h3")?.replaceChildren("Timeline of A");
    void draw();
  }

  async function change(edits: readonly Edit[]): Promise<void> {
    try {
      editor.text = await edit(module, editor.text, declared, edits);
      later();
    } catch (error) {
      say(error instanceof Error ? error.message : String(error));
    }
  }
  const later = after(150, () => void checked());

  async function open(text: string): Promise<void> {
    kept = run = null;
    byId("kept").textContent = "";
    byId("forget").hidden = true;
    byId("answer").style.minHeight = "";
    editor.open(text);
    await checked();
  }

  function lesson(index: number): void {
    const one = LESSONS[index];
    if (one === undefined) return;
    byId("lesson").innerHTML = one.text;
    code.open(POLICIES.text);
    isTrusted = true;
    byId<HTMLSelectElement>("lessons").value = String(index);
    byId("back").toggleAttribute("disabled", index === 0);
    byId("forth").toggleAttribute("disabled", index === LESSONS.length - 1);
    void open(one.scenario);
  }

  function show(name: (typeof TABS)[number]): void {
    for (const tab of TABS) {
      byId(`tab-${tab}`).setAttribute("aria-selected", String(tab === name));
      byId(`tab-${tab}`).tabIndex = tab === name ? 0 : -1;
      byId(`panel-${tab}`).hidden = tab !== name;
    }
  }

  byId<HTMLSelectElement>("lessons").append(...LESSONS.map(({ title }, index) => element("option", { value: String(index) }, `${index + 1}. ${title}`)));
  const chosen = (): number => Number(byId<HTMLSelectElement>("lessons").value);
  byId("lessons").addEventListener("change", () => lesson(chosen()));
  byId("back").addEventListener("click", () => lesson(chosen() - 1));
  byId("forth").addEventListener("click", () => lesson(chosen() + 1));
  byId("lesson").addEventListener("click", (event) => {
    const link = event.target instanceof Element ? event.target.closest("a") : null;
    const address = link?.getAttribute("href") ?? "";
    const [, old, now] = /^#python:(.*)=(.*)$/.exec(address) ?? [];
    if (old !== undefined && now !== undefined) {
      event.preventDefault();
      keep();
      code.text = code.text.replace(decodeURI(old), decodeURI(now));
      show("python");
      later();
    }
    const asked = /^#set:(.*)$/.exec(address)?.[1];
    if (asked === undefined) return;
    event.preventDefault();
    const edits = decodeURI(asked).split("&").map((one): Edit => {
      const [path = "", value = ""] = one.split("=");
      return [path.split("."), value === "" ? null : (JSON.parse(/^[\d"[{-]/.test(value) ? value : JSON.stringify(value)) as Json)];
    });
    keep();
    void change(edits);
  });
  for (const name of TABS) byId(`tab-${name}`).addEventListener("click", () => show(name));
  byId("tabs").addEventListener("keydown", (event) => {
    if (!/^Arrow(Left|Right)$/.test(event.key)) return;
    const there = TABS.filter((tab) => !byId(`tab-${tab}`).hidden);
    const at = there.findIndex((tab) => !byId(`panel-${tab}`).hidden);
    const other = there.at((at + (event.key === "ArrowLeft" ? -1 : 1)) % there.length) ?? "form";
    show(other);
    byId(`tab-${other}`).focus();
  });
  byId("undo").addEventListener("click", () => (byId("panel-python").hidden ? editor : code).undo());
  byId("keep").addEventListener("click", () => {
    keep();
    drawTimeline();
    say("kept as A: what you change now is B");
  });
  byId("forget").addEventListener("click", () => {
    kept = null;
    drawTimeline();
    void draw();
  });
  byId("stop").addEventListener("click", () => {
    running?.stop();
    byId("stop").hidden = true;
    say(`stopped: ${run?.results.length ?? 0} replications`);
  });
  byId("share").addEventListener("click", async () => {
    const fragment = await link(await check(module, editor.text, {}));
    if (fragment === null) {
      say("too long for a link: download the scenario instead");
      return;
    }
    const address = `${location.origin}${location.pathname}${fragment}`;
    try {
      await navigator.clipboard.writeText(address);
      say("the link is copied: it holds the whole scenario");
    } catch {
      prompt("The link holds the whole scenario:", address);
    }
  });
  byId("csv").addEventListener("change", () => {
    const select = byId<HTMLSelectElement>("csv");
    if (run !== null && select.value) download(csv(run.results, select.value), `${select.value}.csv`, "text/csv");
    select.value = "";
  });
  const tables = ["domains", "vcpus", "pcpus", "apps", "io", "waits", "wakeups", "samples", "trace"];
  byId("csv").append(...tables.map((name) => element("option", { value: name }, name)));
  byId("toml").addEventListener("click", () => download(editor.text, "scenario.toml", "application/toml"));
  byId("perfetto").addEventListener("click", () => {
    const traced = run?.results[0];
    const timeline = run && traced ? Timeline.of(traced, run.scenario) : null;
    if (run === null || timeline === null) return;
    try {
      openInPerfetto(perfettoJson(timeline), run.scenario.name || "vcpulab");
    } catch (error) {
      say(error instanceof Error ? error.message : String(error));
    }
  });

  byId("version").textContent = facts.version;
  const shared = await read(location.hash);
  if (shared?.policies != null && shared.policies !== POLICIES.text) {
    code.open(shared.policies);
    isTrusted = false;
  }
  const asked = Number(/^#lesson=(\d+)$/.exec(location.hash)?.[1] ?? 1) - 1;
  if (shared === null) {
    const isBroken = isLink(location.hash);
    lesson(LESSONS[asked] === undefined ? 0 : asked);
    if (isBroken) say("the link is broken, or holds more than 1 MB: here is the first lesson instead");
  } else {
    byId("lesson").replaceChildren(element("p", {}, "A scenario from a link. The lessons are above."));
    await open(shared.text);
  }
  document.body.dataset["ready"] = "true";
}

function say(text: string): void {
  byId("status").textContent = text;
}

start().catch((error: unknown) => say(`the playground cannot start: ${error instanceof Error ? error.message : String(error)}`));
