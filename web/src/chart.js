// An "xy" figure, drawn by uPlot: lines and axes are its own, points, intervals, limits and fronts are drawn on top.

import uPlot from "uplot";
import { css } from "./dom.js";
import { quantity } from "./format.js";
import { dashOf, path, shapeOf } from "./marks.js";
import { ends, logTicks, ticks } from "./scale.js";
import * as tip from "./tip.js";

const HEIGHT = 230;

function colours() {
  return { ink: css("--ink"), pale: css("--pale"), grid: css("--grid"), better: css("--better"), worse: css("--worse"), back: css("--back") };
}

// Two points of a series at one place would be one for uPlot.
function table(points) {
  const xs = [], ys = [];
  for (const p of points) {
    xs.push(xs.length && p.x <= xs.at(-1) ? xs.at(-1) * (1 + 1e-12) + 1e-12 : p.x);
    ys.push(p.y);
  }
  return [xs, ys];
}

const limitsOf = ({ limit, limits }) => limits || (limit ? [limit] : []);

function values(figure, axis) {
  const all = figure.series.flatMap((one) => one.points.flatMap((p) => (axis === "y" ? [p.y, p.low, p.high] : [p.x])));
  return [...all, ...limitsOf(figure).map((one) => one[axis]).filter(Number.isFinite)];
}

const label = (axis) => (axis.unit ? `${axis.label}, ${axis.unit}` : axis.label);

export class Chart {
  #host;
  #plot = null;
  #figure = null;
  #marks = [];
  #at = -1;
  #size = 0;
  #watch;
  #dark = matchMedia("(prefers-color-scheme: dark)");
  #redraw = () => this.#make();

  constructor(host) {
    this.#host = host;
    host.tabIndex = 0;
    this.#watch = new ResizeObserver(() => host.clientWidth && host.clientWidth !== this.#size && this.#make());
    this.#watch.observe(host);
    this.#dark.addEventListener("change", this.#redraw);
    host.addEventListener("mousemove", (event) => this.#hover(event));
    host.addEventListener("mouseleave", tip.hide);
    host.addEventListener("blur", tip.hide);
    host.addEventListener("keydown", (event) => this.#key(event));
  }

  update(figure) {
    this.#figure = figure;
    if (this.#host.clientWidth) this.#make();
  }

  destroy() {
    this.#watch.disconnect();
    this.#dark.removeEventListener("change", this.#redraw);
    this.#plot?.destroy();
    tip.hide();
  }

  #make() {
    const figure = this.#figure;
    if (!figure) return;
    this.#plot?.destroy();
    this.#size = this.#host.clientWidth;
    const c = colours(), filled = figure.series.filter((one) => one.points.length);
    const data = filled.length ? uPlot.join(filled.map((one) => table(one.points))) : [[], []];
    this.#plot = new uPlot({
      width: this.#size, height: HEIGHT, padding: [10, 14, 0, 0], legend: { show: false }, cursor: { show: false },
      scales: { x: this.#scale(figure, "x"), y: this.#scale(figure, "y") },
      axes: [this.#axis(figure.x, c, { size: 30, labelSize: 18, labelGap: 0 }), this.#axis(figure.y, c, { size: 58, labelSize: 18, side: 3 })],
      series: [{}, ...filled.map((one) => {
        const i = figure.series.indexOf(one);
        return { stroke: c.pale, width: one.line ? 1.5 : 0, dash: dashOf(i), spanGaps: true, points: { show: false }, ...(one.line ? {} : { paths: () => null }) };
      })],
      hooks: { drawClear: [(u) => this.#under(u, c)], draw: [(u) => this.#over(u, c)] },
    }, data, this.#host);
  }

  #scale(figure, axis) {
    const of = figure[axis];
    const range = ends(values(figure, axis), of);
    return { time: !!of.time, distr: of.log ? 3 : 1, range: () => range };
  }

  #axis(of, c, more) {
    const font = `12px ${css("--font")}`;
    const shown = of.time ? {} : {
      splits: (u, i) => {
        const { min, max } = i === 0 ? u.scales.x : u.scales.y;
        const n = i === 0 ? Math.max(3, Math.floor(u.width / 90)) : 5;
        const list = of.log ? logTicks(min, max, n) : ticks(min, max, n);
        return of.whole ? list.filter(Number.isInteger) : list;
      },
      filter: (_, list) => list,
      values: (_, list) => list.map((v) => (of.unit === "s" || of.unit === "ns" ? quantity(v, of.unit, 2) : quantity(v, "", 4))),
    };
    return { stroke: c.ink, grid: { stroke: c.grid, width: 1 }, ticks: { stroke: c.grid, width: 1 }, font, labelFont: font,
      label: of.unit === "s" || of.time ? of.label : label(of), ...shown, ...more };
  }

  #line(u, points, colour, dash) {
    const { ctx } = u;
    ctx.save();
    ctx.strokeStyle = colour;
    ctx.lineWidth = 1.5 * devicePixelRatio;
    ctx.setLineDash(dash.map((n) => n * devicePixelRatio));
    ctx.beginPath();
    points.forEach(([x, y], i) => (i ? ctx.lineTo(x, y) : ctx.moveTo(x, y)));
    ctx.stroke();
    ctx.restore();
  }

  #under(u, c) {
    const { diagonal, front } = this.#figure;
    const { left, top, width, height } = u.bbox, X = (v) => u.valToPos(v, "x", true), Y = (v) => u.valToPos(v, "y", true);
    if (diagonal) this.#line(u, [[left, top + height], [left + width, top]], c.grid, [4, 4]);
    if (front?.length > 1) this.#line(u, front.map((p) => [X(p.x), Y(p.y)]), c.pale, []);
    for (const limit of limitsOf(this.#figure)) {
      const across = Number.isFinite(limit.y), x = X(limit.x), y = Y(limit.y), d = devicePixelRatio;
      this.#line(u, across ? [[left, y], [left + width, y]] : [[x, top], [x, top + height]], c[limit.tone] || c.ink, [5, 4]);
      u.ctx.save();
      u.ctx.fillStyle = c[limit.tone] || c.ink;
      u.ctx.font = `${12 * d}px ${css("--font")}`;
      u.ctx.textAlign = "left";
      u.ctx.fillText(limit.label, across ? left + 6 * d : x + 5 * d, across ? y - 5 * d : top + height - 6 * d);
      u.ctx.restore();
    }
  }

  #over(u, c) {
    const { ctx } = u, d = devicePixelRatio;
    this.#marks = [];
    ctx.save();
    this.#figure.series.forEach((one, i) => one.points.forEach((p) => {
      const x = u.valToPos(p.x, "x", true), y = u.valToPos(p.y, "y", true), colour = c[p.tone] || c.ink;
      if (!Number.isFinite(x) || !Number.isFinite(y)) return;
      ctx.strokeStyle = ctx.fillStyle = colour;
      ctx.lineWidth = 1.5 * d;
      if (Number.isFinite(p.low) && Number.isFinite(p.high)) {
        ctx.beginPath();
        ctx.moveTo(x, u.valToPos(p.low, "y", true));
        ctx.lineTo(x, u.valToPos(p.high, "y", true));
        ctx.stroke();
      }
      const shape = path(shapeOf(i), x, y, (p.big ? 7 : 4) * d);
      if (p.hollow) {
        ctx.fillStyle = c.back;
        ctx.fill(shape);
        ctx.stroke(shape);
      } else ctx.fill(shape);
      this.#marks.push({ x: x / d, y: y / d, text: this.#words(one, p) });
    }));
    ctx.restore();
    this.#marks.sort((a, b) => a.x - b.x || a.y - b.y);
  }

  #words(one, p) {
    const { x, y } = this.#figure, at = x.time ? new Date(p.x * 1000).toLocaleString() : `${x.label} ${quantity(p.x, x.unit, 4)}`;
    const span = Number.isFinite(p.low) && Number.isFinite(p.high) ? ` (${quantity(p.low, y.unit)} to ${quantity(p.high, y.unit)})` : "";
    return [p.note || one.name, `${y.label} ${quantity(p.y, y.unit, 4)}${span}`, at, p.hollow ? "estimated" : ""].filter(Boolean).join(" · ");
  }

  #show(i) {
    const mark = this.#marks[i];
    if (!mark) return tip.hide();
    const box = this.#host.getBoundingClientRect();
    this.#at = i;
    tip.show(mark.text, box.left + mark.x, box.top + mark.y);
  }

  #hover(event) {
    const box = this.#host.getBoundingClientRect(), x = event.clientX - box.left, y = event.clientY - box.top;
    let best = -1, distance = 40 * 40;
    this.#marks.forEach((m, i) => {
      const d = (m.x - x) ** 2 + (m.y - y) ** 2;
      if (d < distance) [best, distance] = [i, d];
    });
    this.#show(best);
  }

  #key(event) {
    const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!by || !this.#marks.length) return;
    event.preventDefault();
    this.#show((this.#at + by + this.#marks.length) % this.#marks.length);
  }
}
