// The picture of the playground in the documentation: `node tests/screenshot.mjs FILE.png`. A lesson, before and after a link of it.

import { writeFileSync } from "node:fs";
import { crc32, deflateSync } from "node:zlib";
import { done, served } from "./browser.mjs";

const [width, height] = [1280, 860];

/** A picture of at most 256 colours, its most frequent ones: a third of the bytes. */
function png({ palette, indices }) {
  const chunk = (name, data) => {
    const body = Buffer.concat([Buffer.from(name), data]);
    const [length, check] = [Buffer.alloc(4), Buffer.alloc(4)];
    length.writeUInt32BE(data.length);
    check.writeUInt32BE(crc32(body));
    return Buffer.concat([length, body, check]);
  };
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  header.set([8, 3], 8);
  const rows = Array.from({ length: height }, (_, y) => Buffer.concat([Buffer.alloc(1), Buffer.from(indices.slice(y * width, (y + 1) * width))]));
  return Buffer.concat([
    Buffer.from("\x89PNG\r\n\x1a\n", "latin1"), chunk("IHDR", header), chunk("PLTE", Buffer.from(palette.flat())),
    chunk("IDAT", deflateSync(Buffer.concat(rows), { level: 9 })), chunk("IEND", Buffer.alloc(0)),
  ]);
}

const site = await served();
try {
  const page = await site.page({ viewport: { width, height }, colorScheme: "light" });
  await page.goto(`${site.address}#lesson=4`);
  await done(page);
  await done(page, () => page.locator("#lesson a").first().click());
  for (const canvas of await page.locator("canvas").all()) {
    await canvas.focus();
    for (let times = 0; times < 4; times++) await canvas.press("+");
  }
  await page.evaluate(() => document.activeElement.blur());
  await page.waitForTimeout(500);
  const shot = (await page.screenshot()).toString("base64");
  const picture = await page.evaluate(async (shot) => {
    const bitmap = await createImageBitmap(new Blob([Uint8Array.from(atob(shot), (byte) => byte.charCodeAt(0))]));
    const context = new OffscreenCanvas(bitmap.width, bitmap.height).getContext("2d");
    context.drawImage(bitmap, 0, 0);
    const { data } = context.getImageData(0, 0, bitmap.width, bitmap.height);
    const counts = new Map();
    const colour = (at) => (data[at] << 16) | (data[at + 1] << 8) | data[at + 2];
    for (let at = 0; at < data.length; at += 4) counts.set(colour(at), (counts.get(colour(at)) ?? 0) + 1);
    const palette = [...counts].sort((a, b) => b[1] - a[1]).slice(0, 256).map(([one]) => [one >> 16, (one >> 8) & 255, one & 255]);
    const nearest = (one) => {
      const far = ([r, g, b]) => (r - (one >> 16)) ** 2 + (g - ((one >> 8) & 255)) ** 2 + (b - (one & 255)) ** 2;
      return palette.reduce((best, each, index) => (far(each) < far(palette[best]) ? index : best), 0);
    };
    const places = new Map([...counts.keys()].map((one) => [one, nearest(one)]));
    return { palette, indices: Array.from({ length: data.length / 4 }, (_, pixel) => places.get(colour(4 * pixel))) };
  }, shot);
  writeFileSync(process.argv[2], png(picture));
} finally {
  await site.close();
}
