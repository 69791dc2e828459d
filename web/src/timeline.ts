// The timeline: who had which pCPU when, to zoom and drag, by wheel, finger or keys.

import { scaleLinear } from "d3-scale";
import { select } from "d3-selection";
import { zoom, zoomIdentity, type D3ZoomEvent, type ZoomBehavior, type ZoomTransform } from "d3-zoom";
import { element } from "./dom";
import { COLOURS, type Timeline } from "./slices";

/** Told apart by most eyes, on light and on dark ground. */
const PALETTE = [
  "#8a8f9822", "#3b82d0", "#e08a1e", "#2a9d72", "#c8507a", "#8a63d2", "#b0a01a", "#1aa7b8", "#d2593b", "#6c8f2f", "#9a6b4f", "#8a8f98",
];
const PIXELS = PALETTE.map((colour) => {
  const [red, green, blue, alpha = 255] = (colour.slice(1).match(/../g) ?? []).map((part) => parseInt(part, 16));
  return (((alpha << 24) | ((blue ?? 0) << 16) | ((green ?? 0) << 8) | (red ?? 0)) >>> 0);
});
const LEFT = 34;
const AXIS = 22;

/** A time with the unit that suits the distance of what is written beside it. */
export function time(ns: number, step: number): string {
  const [unit, size] = step >= 1e9 ? ["s", 1e9] : step >= 1e6 ? ["ms", 1e6] : step >= 1e3 ? ["µs", 1e3] : ["ns", 1];
  return `${(ns / size).toLocaleString("en", { maximumFractionDigits: 3 })} ${unit}`;
}

export class TimelineView {
  readonly node: HTMLElement;
  private readonly canvas = element("canvas", { tabindex: "0", role: "img" });
  private readonly told = element("p", { class: "told", "aria-live": "polite" });
  private readonly zoom: ZoomBehavior<HTMLCanvasElement, unknown>;
  private transform: ZoomTransform = zoomIdentity;
  private width = 0;
  private height = 0;
  private asked = 0;

  constructor(private readonly timeline: Timeline, title: string) {
    const legend = element("ul", { class: "legend" });
    timeline.legend.forEach((name, colour) => {
      if (colour === 0) return;
      legend.append(element("li", {}, element("span", { class: "swatch", style: `background:${PALETTE[colour] ?? ""}` }), name));
    });
    const button = (label: string, name: string, act: () => void): HTMLElement => {
      const made = element("button", { type: "button", "aria-label": name, title: name }, label);
      made.addEventListener("click", act);
      return made;
    };
    this.zoom = zoom<HTMLCanvasElement, unknown>()
      .on("zoom", ({ transform }: D3ZoomEvent<HTMLCanvasElement, unknown>) => {
        this.transform = transform;
        this.draw();
      });
    const by = (factor: number) => () => select(this.canvas).call(this.zoom.scaleBy, factor);
    const whole = (): void => void select(this.canvas).call(this.zoom.transform, zoomIdentity);
    const head = element("div", { class: "row" }, element("h3", {}, title), button("+", "closer", by(2)), button("−", "farther", by(0.5)), button("↔", "all of it", whole));
    this.node = element("figure", { class: "timeline" }, head, this.canvas, legend, this.told, this.inWords());
    this.canvas.setAttribute("aria-label", `Timeline of ${timeline.rows.length} pCPUs, ${timeline.slices} slices. Arrow keys move it, plus and minus zoom, Home shows all. A table below says the same in numbers.`);
    select(this.canvas).call(this.zoom).on("dblclick.zoom", null);
    this.canvas.addEventListener("keydown", (event) => {
      const move = (pixels: number) => () => select(this.canvas).call(this.zoom.translateBy, pixels / this.transform.k, 0);
      const acts: Record<string, () => void> = {
        "+": by(2), "=": by(2), "-": by(0.5), Home: whole, ArrowLeft: move(this.width / 5), ArrowRight: move(-this.width / 5),
      };
      const act = acts[event.key];
      if (act === undefined) return;
      event.preventDefault();
      act();
      this.tell();
    });
    this.canvas.addEventListener("pointermove", (event) => this.point(event));
    this.canvas.addEventListener("pointerleave", () => (this.told.textContent = ""));
    new ResizeObserver(() => this.resize()).observe(this.node);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw());
  }

  private resize(): void {
    this.width = Math.max(200, this.node.clientWidth);
    this.height = this.timeline.rows.length * this.rowHeight + AXIS;
    const ratio = devicePixelRatio;
    this.canvas.width = Math.round(this.width * ratio);
    this.canvas.height = Math.round(this.height * ratio);
    this.canvas.style.height = `${this.height}px`;
    const area: [[number, number], [number, number]] = [[LEFT, 0], [this.width, this.height]];
    // Until a nanosecond is as wide as a few pixels.
    this.zoom.extent(area).translateExtent(area).scaleExtent([1, Math.max(1, this.timeline.end - this.timeline.begin)]);
    this.draw();
  }

  private get rowHeight(): number {
    return Math.max(7, Math.min(28, Math.floor(420 / this.timeline.rows.length)));
  }

  private scale() {
    const { begin, end } = this.timeline;
    return this.transform.rescaleX(scaleLinear([begin, end], [LEFT, this.width]));
  }

  /** At most once for each picture of the screen. */
  private draw(): void {
    if (this.asked === 0) this.asked = requestAnimationFrame(() => this.drawNow());
  }

  drawNow(): void {
    this.asked = 0;
    const context = this.canvas.getContext("2d");
    if (context === null || this.width === 0) return;
    const { timeline } = this;
    const ratio = this.canvas.width / this.width;
    const scale = this.scale();
    const left = Math.round(LEFT * ratio);
    const pixels = Math.max(1, this.canvas.width - left);
    const from = scale.invert(LEFT);
    const perPixel = (scale.invert(this.width) - from) / pixels;
    const high = Math.max(1, Math.round(this.rowHeight * ratio));
    const bar = Math.max(1, high - Math.max(1, Math.round(ratio)));
    const image = context.createImageData(pixels, timeline.rows.length * high);
    const data = new Uint32Array(image.data.buffer);
    const shares = new Float32Array(pixels * COLOURS);
    timeline.rows.forEach((row, index) => {
      timeline.shares(row, from, perPixel, shares);
      for (let pixel = 0; pixel < pixels; pixel++) {
        const looked = shares[pixel * COLOURS] as number;
        let sum = 0;
        let done = 0;
        for (let colour = 1; colour < COLOURS && done < bar; colour++) {
          const share = shares[pixel * COLOURS + colour] as number;
          if (share === 0) continue;
          sum += share;
          // From the ground up: what is left above is idle.
          const until = Math.min(bar, Math.round((bar * sum) / looked));
          for (; done < until; done++) data[(index * high + bar - 1 - done) * pixels + pixel] = PIXELS[colour] as number;
        }
        for (; done < bar && looked > 0; done++) data[(index * high + bar - 1 - done) * pixels + pixel] = PIXELS[0] as number;
      }
    });
    const style = getComputedStyle(this.node);
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.clearRect(0, 0, this.canvas.width, this.canvas.height);
    context.putImageData(image, left, 0);
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.fillStyle = context.strokeStyle = style.color;
    context.font = `11px ${style.fontFamily}`;
    const every = Math.ceil(12 / this.rowHeight);
    timeline.rows.forEach((row, index) => {
      if (index % every === 0) context.fillText(`p${row.pcpu}`, 2, (index + 0.5) * this.rowHeight + 4);
    });
    const bottom = timeline.rows.length * this.rowHeight;
    const ticks = scale.ticks(Math.max(2, Math.floor(this.width / 130)));
    const [first, second] = ticks;
    // Where there is room for one, it is far from any other.
    const step = first === undefined || second === undefined ? 1e9 : second - first;
    for (const tick of ticks) {
      context.fillRect(scale(tick), bottom, 1, 5);
      context.fillText(time(tick, step), Math.min(scale(tick) + 3, this.width - 60), bottom + 15);
    }
  }

  private point(event: PointerEvent): void {
    const box = this.canvas.getBoundingClientRect();
    const row = this.timeline.rows[Math.floor((event.clientY - box.top) / this.rowHeight)];
    const at = this.scale().invert(event.clientX - box.left);
    if (row === undefined || at < this.timeline.begin || at > this.timeline.end) return;
    const slice = this.timeline.at(row, at);
    const [begin, end] = [row.begin[slice] as number, row.begin[slice + 1] as number];
    const what = this.timeline.things[row.thing[slice] as number];
    this.told.textContent = `pCPU ${row.pcpu}: ${what?.vcpu ?? ""} for ${time(end - begin, (end - begin) / 10)}, from ${time(begin, 1e6)}`;
  }

  private tell(): void {
    const scale = this.scale();
    const [from, to] = [scale.invert(LEFT), scale.invert(this.width)];
    this.told.textContent = `from ${time(from, to - from)} to ${time(to, to - from)}`;
  }

  /** The same for those who do not see it. */
  private inWords(): HTMLElement {
    const { timeline } = this;
    const elapsed = timeline.end - timeline.begin || 1;
    const names = timeline.legend.map((name, colour) => ({ name, colour })).filter(({ colour }) => colour > 0);
    const head = element("tr", {}, element("th", { scope: "col" }, "pCPU"), ...names.map(({ name }) => element("th", { scope: "col" }, `${name}, %`)));
    const rows = timeline.rows.map((row) => {
      const all = row.levels[0] ?? new Float32Array(COLOURS);
      const cells = names.map(({ colour }) => element("td", {}, ((100 * (all[colour] ?? 0)) / elapsed).toFixed(1)));
      return element("tr", {}, element("th", { scope: "row" }, String(row.pcpu)), ...cells);
    });
    const table = element("table", {}, element("thead", {}, head), element("tbody", {}, ...rows));
    return element("details", {}, element("summary", {}, "the shares in numbers"), element("div", { class: "wide" }, table));
  }
}

