// The lessons: each a scenario and a text of one screen, in web/gallery. A link `#set:PATH=VALUE` in a text changes the scenario, a link
// `#python:OLD=NEW` the policy.

import lottery from "../../examples/lottery.py?raw";

const scenarios = import.meta.glob<string>("../gallery/*.toml", { query: "?raw", import: "default", eager: true });
const texts = import.meta.glob<string>("../gallery/*.html", { query: "?raw", import: "default", eager: true });

export interface Lesson {
  name: string;
  title: string;
  scenario: string;
  /** Our own markup. */
  text: string;
}

export const LESSONS: Lesson[] = Object.keys(scenarios).sort().map((path) => {
  const text = texts[path.replace(/toml$/, "html")] ?? "";
  return {
    name: /([^/]+)\.toml$/.exec(path)?.[1] ?? "",
    title: /<h2>(.*?)<\/h2>/.exec(text)?.[1] ?? "",
    scenario: scenarios[path] ?? "",
    text,
  };
});

/** What a scenario may name as `lottery.py:Lottery`: the guide's own example. */
export const POLICIES = { file: "lottery.py", text: lottery };
