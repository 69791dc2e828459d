// What the page tells of two scenarios, one kept and then the other: `node told.mjs < {"before": …, "after": …}`.

import { text } from "node:stream/consumers";
import { done, handed, served } from "./browser.mjs";

const { before, after } = JSON.parse(await text(process.stdin));
const site = await served();
try {
  const page = await site.page();
  await page.goto(site.address);
  await done(page);
  for (const scenario of [before, after]) {
    await page.click("#tab-text");
    await page.click(".cm-content");
    await page.keyboard.press("Control+a");
    await done(page, () => page.keyboard.insertText(scenario));
    if (scenario === before) await page.click("#keep");
  }
  await page.click("#results > details > summary");
  await page.waitForSelector("#results > details table");
  const said = await page.evaluate(() => {
    const [metrics, verdicts] = [{}, {}];
    for (const table of document.querySelectorAll("#results > details table")) {
      const names = [...table.querySelectorAll("thead th")].slice(1).map((one) => one.firstChild.textContent);
      for (const row of table.querySelectorAll("tbody tr")) {
        [...row.querySelectorAll("td")].forEach((cell, index) => {
          const name = `${row.querySelector("th").textContent}.${names[index]}`;
          const value = [...cell.childNodes].find((one) => one.nodeType === Node.TEXT_NODE)?.textContent;
          if (value !== undefined && value !== "–") metrics[name] = value;
          const verdict = cell.querySelector(".verdict")?.title;
          if (verdict) verdicts[name] = verdict;
        });
      }
    }
    return { metrics, verdicts, words: [...document.querySelectorAll(".words li")].map((one) => one.textContent) };
  });
  said.slices = JSON.parse((await handed(page)).text).traceEvents.filter(({ ph }) => ph === "X");
  console.log(JSON.stringify(said));
} finally {
  await site.close();
}
