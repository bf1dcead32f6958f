// What has ended: runs, and how a series of them went.

import * as api from "./api.js";
import { h, replace, setText } from "./dom.js";
import { Figures } from "./figure.js";
import { moment, quantity, took } from "./format.js";
import { table } from "./queue.js";
import { format } from "./route.js";

const RESOURCES = { DynamoGraphDeploymentRequest: "dgdr", CUDAExperiment: "cudaexp", AlgorithmProfiling: "ap", AlgorithmComparison: "ac", WorkloadProfile: "wprof" };

// The series of RUNS, those with the most points first: {series, algorithm, size, namespace, n}.
export function seriesOf(runs) {
  const all = new Map();
  for (const run of runs)
    for (const m of run.measures || []) {
      if (!m.series) continue;
      const one = all.get(m.series) || { series: m.series, algorithm: m.algorithm, size: m.inputSize ?? m.size, namespace: run.namespace, n: 0 };
      one.n++;
      all.set(m.series, one);
    }
  return [...all.values()].sort((a, b) => b.n - a.n || (a.series < b.series ? -1 : 1));
}

// A trend as a figure: points after a change for the worse are "worse", after one for the better "better".
export function trendFigure({ series, points = [], changes = [] }) {
  const toneAt = (i) => {
    const last = changes.filter((ch) => ch.index <= i).at(-1);
    return last ? (last.degraded ?? last.ratio > 1 ? "worse" : "better") : "";
  };
  return {
    id: "trend", title: "Median of each run, the oldest first", kind: "xy", x: { label: "run", unit: "", whole: true }, y: { label: "median time", unit: "s" },
    series: [{ name: series, line: true, points: points.map((p, i) => ({ x: i + 1, y: p.value, low: p.low, high: p.high, tone: toneAt(i), note: `${p.name}, ${moment(p.finishedAt)}` })) }],
    limit: changes.length ? { x: changes.at(-1).index + 0.5, label: "changed here" } : null,
  };
}

export function changeWords(change, points) {
  const at = points[change.index];
  const ratio = change.ratio > 1 ? `${quantity(change.ratio, "")} times as long` : `${quantity(1 / change.ratio, "")} times as fast`;
  return `Since ${at ? `${at.name} (${moment(at.finishedAt)})` : `run ${change.index + 1}`} it takes ${quantity(change.after, "s")} in place of ${quantity(change.before, "s")}: ${ratio}`
    + (Number.isFinite(change.low) && Number.isFinite(change.high) ? ` (95 % interval ${quantity(change.low, "")} to ${quantity(change.high, "")})` : "") + ".";
}

export class HistoryPage {
  title = "History";
  #abort = new AbortController();
  #figures = new Figures("trend");

  constructor(_live, place) {
    this.series = place.query.get("series") || "";
    this.pick = h("select", { id: "series", on: { change: () => (location.hash = format("history", [], { series: this.pick.value })) } });
    this.words = h("div", { role: "status" });
    this.list = h("div", {});
    this.trend = h("section", { "aria-labelledby": "trend-title", hidden: true }, h("h2", { id: "trend-title" }, "Trend"),
      h("p", {}, h("label", { for: "series" }, "Series "), this.pick), this.words, this.#figures.element);
    this.element = h("section", { class: "history" }, h("h1", {}, "History"), this.trend, h("section", {}, this.list));
  }

  start() {
    this.#fetch();
  }

  stop() {
    this.#abort.abort();
    this.#figures.destroy();
  }

  async #fetch() {
    const { signal } = this.#abort;
    try {
      const { items = [] } = await api.get(api.query("/api/v1/history", { limit: 300 }), signal);
      this.#show(items);
      const choices = seriesOf(items);
      if (this.series && !choices.some((one) => one.series === this.series)) choices.unshift({ series: this.series, algorithm: this.series, n: 0 });
      if (!choices.length) return;
      this.series ||= choices[0].series;
      this.trend.hidden = false;
      replace(this.pick, choices.map((one) => h("option", { value: one.series, selected: one.series === this.series },
        `${one.algorithm}${one.size ? `, n = ${quantity(one.size, "", 7)}` : ""}${one.namespace ? ` (${one.namespace})` : ""}${one.n ? ` · ${one.n} runs` : ""}`)));
      const trend = await api.get(api.query("/api/v1/history/trend", { series: this.series }), signal);
      replace(this.words, trend.changes?.length ? trend.changes.map((ch) => h("p", { class: (ch.degraded ?? ch.ratio > 1) ? "worse" : "better" }, changeWords(ch, trend.points)))
        : h("p", {}, trend.points?.length > 1 ? "No change that stayed." : "One run is no trend."));
      this.#figures.update([trendFigure(trend)]);
    } catch (error) {
      if (error.name === "AbortError") return;
      replace(this.list, h("p", { class: "trouble", role: "alert" }, error.message));
    }
  }

  #show(items) {
    if (!items.length) return replace(this.list, h("p", { class: "empty" }, "No run has ended yet."));
    replace(this.list, table("Finished runs, the newest first", ["Ended", "Run", "Outcome", "Took", "Measured"], items.map((run) => {
      const link = RESOURCES[run.kind] && format("run", [RESOURCES[run.kind], run.namespace, run.name]), bad = run.outcome !== "Succeeded";
      return h("tr", {}, h("td", {}, moment(run.finishedAt)), h("td", {}, link ? h("a", { href: link }, `${RESOURCES[run.kind]}/${run.name}`) : run.name, h("span", { class: "space" }, run.namespace)),
        h("td", { class: bad ? "worse" : "" }, `${bad ? "✗" : "✓"} ${run.outcome}`), h("td", {}, took(run.startedAt, run.finishedAt)),
        h("td", {}, (run.measures || []).slice(0, 3).map((m) => `${m.algorithm}${run.measures.length > 1 && (m.inputSize ?? 0) > 0 ? ` (n = ${quantity(m.inputSize, "", 7)})` : ""} ${quantity(m.seconds, "s")}`).join(", ") + ((run.measures || []).length > 3 ? ", …" : "")));
    })));
  }
}
