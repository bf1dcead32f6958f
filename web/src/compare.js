// Runs side by side: the samples themselves, then the verdict in words.

import * as api from "./api.js";
import { h, replace } from "./dom.js";
import { Figures } from "./figure.js";
import { parsed } from "./files.js";
import { keyOf, quantity } from "./format.js";
import { figures, paretoFront, stripRows } from "./measures.js";
import { table } from "./queue.js";
import { format } from "./route.js";

const TONES = { faster: "better", smaller: "better", slower: "worse", larger: "worse" };
const MOST = 12;

// How runs are called beside each other: without what they have in common.
export function shortNames(keys) {
  const parts = keys.map((key) => key.split("/"));
  const same = (i) => parts.every((p) => p[i] === parts[0][i]);
  return parts.map(([resource, namespace, name]) => [!same(0) && resource, !same(1) && namespace, name].filter(Boolean).join("/"));
}

/*
 * The figures of several runs as one of each sort. ENTRIES: [{key, run, object, files}]; PAIRS: what the server says of them, by
 * the names that the strips have.
 */
export function together(entries, pairs = [], baseline = undefined) {
  const names = shortNames(entries.map((one) => one.key));
  const rows = entries.flatMap(({ object, files = {} }, i) =>
    (object?.spec?.algorithms || object?.spec?.algorithmName ? stripRows(object, files["result.json"], files["checkpoint.json"], files["samples.json"]) : []).map((row) => ({
      ...row, note: entries.length > 1 ? "" : row.note, tone: entries.length > 1 ? "" : row.tone, entry: i, name: entries.length > 1 ? `${names[i]}: ${row.name}` : row.name })));
  for (const row of rows) {
    const pair = pairs.find((p) => entries.length > 1 && p.of === "time" && p.b === baseline && sameRun(p.a, entries[row.entry].key) && p.size === row.size);
    if (pair) row.tone = TONES[pair.verdict] || "";
  }
  rows.sort((a, b) => (a.size ?? 0) - (b.size ?? 0));
  const list = [];
  if (rows.length) list.push({ id: "samples", title: "Every single run", kind: "strip", unit: "s", rows, log: spreadOut(rows) });
  const costs = entries.flatMap(({ files = {} }, i) => (files["result.json"]?.algorithms || []).filter((a) => a.statistics?.memory).map((a) => ({ i, a })));
  if (costs.length > 1)
    list.push({ id: "memory", title: "Time against memory: what is lower left is better in both", kind: "xy", x: { label: "median time", unit: "s", zero: true }, y: { label: "memory", unit: "MB" },
      series: costSeries(costs, names) });
  for (const id of ["pareto", "roofline"]) {
    const of = entries.map(({ run, object, files }, i) => [names[i], figures(run.kind, { object, files }).find((f) => f.id === id)]).filter(([, f]) => f);
    if (!of.length) continue;
    const series = of.map(([name, f]) => ({ name, points: f.series.flatMap((one) => one.points).sort((a, b) => a.x - b.x).map((p) => ({ ...p, note: `${name}: ${p.note}` })) }));
    list.push({ ...of[0][1], limit: null, series, front: id === "pareto" ? paretoFront(series.flatMap((one) => one.points)) : undefined });
  }
  return list;
}

function costSeries(costs, names) {
  const all = new Map();
  for (const { i, a } of costs) {
    const name = names.length > 1 ? `${names[i]}: ${a.name}` : a.name;
    const point = { x: a.statistics.time?.median, y: a.statistics.memory.median, note: `${name}, n = ${a.size}` };
    all.set(name, [...(all.get(name) || []), point]);
  }
  return [...all].map(([name, points]) => ({ name, points: points.filter((p) => Number.isFinite(p.x)).sort((p, q) => p.x - q.x) }));
}

// "ap/default/x" is also called "ap/x", and "ap/x#quick_sort@1000" where one algorithm and size of it is meant.
function sameRun(text, key) {
  const said = text.replace(/[#@].*$/, "").split("/"), [resource, namespace, name] = key.split("/");
  return said.at(-1) === name && (said.length < 2 || said[0] === resource) && (said.length < 3 || said[1] === namespace);
}

function spreadOut(rows) {
  const all = rows.map((row) => row.median).filter((v) => v > 0);
  return all.length > 1 && Math.max(...all) / Math.min(...all) > 50;
}

export class ComparePage {
  title = "Compare";
  #live;
  #abort = new AbortController();
  #figures = new Figures("compare");

  constructor(live, place) {
    this.#live = live;
    this.keys = [...new Set(place.query.getAll("run"))].slice(0, MOST);
    this.input = h("input", { id: "another", list: "known", placeholder: "ap/default/quick-sort", autocomplete: "off", spellcheck: "false" });
    this.known = h("datalist", { id: "known" });
    this.chosen = h("ul", { class: "chosen" }, this.keys.map((key) => h("li", {}, h("a", { href: format("run", key.split("/")) }, key),
      h("button", { type: "button", class: "small", "aria-label": `leave out ${key}`, on: { click: () => this.#go(this.keys.filter((one) => one !== key)) } }, "×"))));
    this.words = h("div", { class: "verdicts", role: "status" });
    this.trouble = h("div", { role: "alert" });
    const add = (event) => {
      event.preventDefault();
      const key = this.input.value.trim();
      if (key.split("/").length === 3) this.#go([...new Set([...this.keys, key])]);
    };
    this.element = h("section", { class: "compare" }, h("h1", {}, "Compare"), this.chosen,
      h("form", { class: "add", on: { submit: add } }, h("label", { for: "another" }, "Another run "), this.input, this.known, h("button", {}, "Add")),
      !this.keys.length && h("p", { class: "empty" }, "Choose runs here, or tick them in the list."), this.trouble,
      h("section", { "aria-labelledby": "side-title", hidden: !this.keys.length }, h("h2", { id: "side-title" }, "Side by side"), this.#figures.element), this.words);
  }

  #go(keys) {
    location.hash = format("compare", [], { run: keys });
  }

  start() {
    this.onChange = () => this.#offer();
    this.#live.addEventListener("change", this.onChange);
    this.#offer();
    if (this.keys.length) this.#fetch();
  }

  stop() {
    this.#live.removeEventListener("change", this.onChange);
    this.#abort.abort();
    this.#figures.destroy();
  }

  #offer() {
    const keys = [...this.#live.runs.values()].filter((run) => run.kind !== "WorkloadProfile").map(keyOf).filter((key) => !this.keys.includes(key)).sort().slice(0, 1000);
    if (keys.join() === this.offered) return;
    this.offered = keys.join();
    replace(this.known, keys.map((key) => h("option", { value: key })));
  }

  async #fetch() {
    const { signal } = this.#abort, troubles = [];
    const entries = (await Promise.all(this.keys.map(async (key) => {
      const path = api.runPath(...key.split("/"));
      try {
        const [detail, data] = await Promise.all([api.get(path, signal), api.get(`${path}/data`, signal)]);
        return { key, ...detail, files: parsed(data.files) };
      } catch (error) {
        if (error.name !== "AbortError") troubles.push(`${key}: ${error.message}`);
        return null;
      }
    }))).filter(Boolean);
    if (signal.aborted) return;
    let said = null;
    if (entries.length > 1)
      said = await api.get(api.query("/api/v1/compare", { run: entries.map((one) => one.key) }), signal).catch((error) => (troubles.push(error.message), null));
    else if (entries.length) said = entries[0].object?.status?.comparison || null;
    if (signal.aborted) return;
    replace(this.trouble, troubles.map((text) => h("p", { class: "trouble" }, text)));
    this.#figures.update(together(entries, said?.pairs, said?.baseline));
    this.#verdict(said, entries);
  }

  #verdict(said, entries) {
    const pairs = said?.pairs || [];
    replace(this.words, said && h("h2", {}, "Verdict"), said?.summary && h("p", { class: "summary" }, said.summary),
      pairs.length > 0 && h("ul", {}, pairs.filter((p) => p.of !== "cpu").map((p) => h("li", { class: TONES[p.verdict] || "" },
        `${p.a} against ${p.b}${p.of ? ` in ${p.of}` : ""}: `, h("b", {}, p.verdict || "not said"), p.why ? `; ${p.why}` : Number.isFinite(p.ratio) ? `; ${quantity(p.ratio, "")} times` : ""))),
      (said?.notes || []).map((note) => h("p", { class: "note" }, note)), this.#choices(entries));
  }

  // Of DynamoGraphDeploymentRequests what each has chosen.
  #choices(entries) {
    const of = entries.filter((one) => one.files["result.json"]?.decode);
    if (!of.length) return null;
    return table("What each has chosen", ["Run", "Prefill", "TTFT", "Decode", "ITL", "tokens/s/GPU", "GPUs"], of.map(({ key, files }) => {
      const { prefill, decode, replicas, simulated } = files["result.json"];
      return h("tr", {}, [[key, simulated && h("span", { class: "badge" }, "simulated")], prefill.label, quantity(prefill.ttft, "ms"), decode.label, quantity(decode.itl, "ms"), quantity(decode.throughputPerGpu, ""), replicas?.gpus ?? ""].map((cell) => h("td", {}, cell)));
    }));
  }
}
