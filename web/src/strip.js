// "strip" and "bars" figures as SVG: every sample a dot, the median a line, its interval a band.

import { s } from "./dom.js";
import { digits, quantity } from "./format.js";
import { ends, logTicks, scale, spread, ticks } from "./scale.js";
import * as tip from "./tip.js";

const ROW = 46, AXIS = 26, DOT = 3.5, SIDE = 10, DOTS_MOST = 2000;

// Like this many of them are drawn; all of them are in the CSV.
const thin = (values) => (values.length <= DOTS_MOST ? values : values.filter((_, i) => i % Math.ceil(values.length / DOTS_MOST) === 0));

const span = (low, high, unit) => (Number.isFinite(low) && Number.isFinite(high) ? ` (${quantity(low, unit)} to ${quantity(high, unit)})` : "");

export class Strip {
  #host;
  #figure = null;
  #dots = [];
  #size = 0;
  #watch;

  constructor(host) {
    this.#host = host;
    this.#watch = new ResizeObserver(() => host.clientWidth && host.clientWidth !== this.#size && this.#make());
    this.#watch.observe(host);
    host.addEventListener("mousemove", (event) => this.#hover(event));
    host.addEventListener("mouseleave", tip.hide);
  }

  update(figure) {
    this.#figure = figure;
    if (this.#host.clientWidth) this.#make();
  }

  destroy() {
    this.#watch.disconnect();
    tip.hide();
  }

  #make() {
    const figure = this.#figure;
    if (!figure) return;
    const width = (this.#size = this.#host.clientWidth), height = figure.rows.length * ROW + AXIS;
    const of = figure.kind === "bars" ? { from: 0, to: figure.most } : { log: figure.log };
    const all = figure.rows.flatMap((row) => [...(row.values || []), row.value ?? row.median, row.low, row.high]);
    const [low, high] = ends(all, of), X = scale([low, high], [SIDE, width - SIDE], figure.log);
    const marks = (figure.log ? logTicks : ticks)(low, high, Math.max(3, Math.floor(width / 75)));
    this.#dots = [];
    this.#host.replaceChildren(s("svg", { class: "strip", width, height, "aria-hidden": "true" },
      marks.map((v) => [
        s("line", { class: "grid", x1: X(v), x2: X(v), y1: 0, y2: height - AXIS }),
        s("text", { class: "tick", x: Math.max(18, Math.min(X(v), width - 22)), y: height - 8 }, figure.kind === "bars" ? `${digits(v)} ${figure.unit}` : quantity(v, figure.unit, 3)),
      ]),
      figure.rows.map((row, i) => (figure.kind === "bars" ? this.#bar(row, i, X, width) : this.#row(row, i, X, width)))));
  }

  #title(row, y, width, value) {
    return [s("text", { class: "name", x: SIDE, y: y + 13 }, fitted(row.name, width - 2 * SIDE - 6.8 * (value.length + 1))), s("text", { class: "value", x: width - SIDE, y: y + 13 }, value)];
  }

  #row(row, i, X, width) {
    const { unit } = this.#figure, y = i * ROW, middle = y + 30, values = thin(row.values), places = values.map(X), lanes = spread(places, DOT * 2);
    values.forEach((value, k) => this.#dots.push({ x: places[k], y: middle + lanes[k] * 9, text: `${row.name} · ${quantity(value, unit, 4)}` }));
    const known = Number.isFinite(row.median);
    const value = known ? `${quantity(row.median, unit)}${width > 420 ? span(row.low, row.high, unit) : ""}` : "nothing yet";
    return s("g", { class: row.tone || "plain" }, this.#title(row, y, width, value),
      Number.isFinite(row.low) && s("rect", { class: "interval", x: X(row.low), y: middle - 11, width: Math.max(1, X(row.high) - X(row.low)), height: 22 }),
      places.map((x, k) => s("circle", { class: "dot", cx: x, cy: middle + lanes[k] * 9, r: DOT })),
      known && s("line", { class: "median", x1: X(row.median), x2: X(row.median), y1: middle - 12, y2: middle + 12 }));
  }

  #bar(row, i, X, width) {
    const { unit } = this.#figure, y = i * ROW, middle = y + 28;
    this.#dots.push({ x: X(row.value), y: middle, text: `${row.name} · ${quantity(row.value, unit)}${span(row.low, row.high, unit)}` });
    return s("g", { class: row.tone || "plain" }, this.#title(row, y, width, quantity(row.value, unit)),
      s("rect", { class: "whole", x: X(0), y: middle - 7, width: X(this.#figure.most) - X(0), height: 14 }),
      s("rect", { class: "bar", x: X(0), y: middle - 7, width: Math.max(0, X(row.value) - X(0)), height: 14 }),
      Number.isFinite(row.low) && row.high > row.low && ["halo", "whisker"].map((name) => s("line", { class: name, x1: X(row.low), x2: X(row.high), y1: middle, y2: middle })));
  }

  #hover(event) {
    const box = this.#host.getBoundingClientRect(), x = event.clientX - box.left, y = event.clientY - box.top;
    let best = null, distance = this.#figure?.kind === "bars" ? Infinity : 30 * 30;
    for (const dot of this.#dots) {
      const d = this.#figure.kind === "bars" ? Math.abs(dot.y - y) : (dot.x - x) ** 2 + (dot.y - y) ** 2;
      if (d < distance) [best, distance] = [dot, d];
    }
    if (best) tip.show(best.text, box.left + best.x, box.top + best.y);
    else tip.hide();
  }
}

// As much of a name as fits, at 7.2 pixels a letter.
function fitted(name, width) {
  const most = Math.max(8, Math.floor(width / 7.2));
  return name.length > most ? name.slice(0, most - 1) + "…" : name;
}
