// How a series of runs went, and where it changed. Pure functions of what /api/v1/history/trend answers.

import { moment, quantity } from "./format.js";

export const isWorse = (change) => change.degraded ?? change.ratio > 1;

// A trend as a figure: points after a change for the worse are "worse", after one for the better "better".
export function trendFigure({ series, points = [], changes = [] }) {
  const toneAt = (i) => {
    const last = changes.filter((ch) => ch.index <= i).at(-1);
    return last ? (isWorse(last) ? "worse" : "better") : "";
  };
  return {
    id: "trend", title: "Median of each run, the oldest first", kind: "xy", x: { label: "run", unit: "", whole: true }, y: { label: "median time", unit: "s" },
    series: [{ name: series, line: true, points: points.map((p, i) => ({ x: i + 1, y: p.value, low: p.low, high: p.high, tone: toneAt(i), note: `${p.name}, ${moment(p.finishedAt)}` })) }],
    limits: changes.map((ch) => ({ x: ch.index + 0.5, label: isWorse(ch) ? "worse" : "better", tone: isWorse(ch) ? "worse" : "better" })),
  };
}

export function changeWords(change, points) {
  const at = points[change.index], slower = change.ratio > 1;
  const times = [change.ratio, change.low, change.high].map((ratio) => (slower ? ratio : 1 / ratio));
  const [low, high] = times.slice(1).sort((a, b) => a - b);
  return `${isWorse(change) ? "Worse" : "Better"} from ${at ? `${at.name} (${moment(at.finishedAt)})` : `run ${change.index + 1}`} on: ${quantity(change.after, "s")} in place of ${quantity(change.before, "s")}, `
    + `${quantity(times[0], "")} times as ${slower ? "long" : "fast"}` + (Number.isFinite(low) && Number.isFinite(high) ? ` (95 % interval ${quantity(low, "")} to ${quantity(high, "")})` : "") + ".";
}
