// What has ended: runs, and how a series of them went.

import * as api from "./api.js";
import { h, replace } from "./dom.js";
import { Figures } from "./figure.js";
import { moment, quantity, took } from "./format.js";
import { table } from "./queue.js";
import { format } from "./route.js";
import { changeWords, isWorse, trendFigure } from "./trend.js";

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

// The first few medians, none of them broken in the middle.
function measured(measures) {
  const one = (m) => `${m.algorithm}${measures.length > 1 && (m.inputSize ?? 0) > 0 ? ` (n = ${quantity(m.inputSize, "", 7)})` : ""} ${quantity(m.seconds, "s")}`;
  return [...measures.slice(0, 3).map((m, i) => [i ? ", " : "", h("span", { class: "whole" }, one(m))]), measures.length > 3 && ", …"];
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
      replace(this.words, trend.changes?.length ? trend.changes.map((ch) => h("p", { class: isWorse(ch) ? "worse" : "better" }, changeWords(ch, trend.points)))
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
      return h("tr", {}, h("td", { class: "whole" }, moment(run.finishedAt)), h("td", {}, link ? h("a", { href: link }, `${RESOURCES[run.kind]}/${run.name}`) : run.name, h("span", { class: "space" }, run.namespace)),
        h("td", { class: bad ? "whole worse" : "whole" }, bad ? "✗ " : "✓ ", h("span", { class: "word" }, run.outcome)), h("td", { class: "whole" }, took(run.startedAt, run.finishedAt)),
        h("td", {}, measured(run.measures || [])));
    })));
  }
}
