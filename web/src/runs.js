/*
 * The list of all runs. Only the rows that can be seen are there, whatever the number of runs; each is changed in place, and only
 * where something has changed.
 */

import { Bar } from "./bar.js";
import { css, h, replace, setText, toggle } from "./dom.js";
import * as filter from "./filter.js";
import { age, eta, keyOf, seconds, start, step, took } from "./format.js";
import { format, ofRun } from "./route.js";
import { MARKS } from "./words.js";

const SPARE = 8; // rows above and below those that can be seen
const COLUMNS = ["", "Kind", "Name", "Phase", "Step", "Progress", "Ends", "Age", "What it says"];

function ends(run, now) {
  if (run.notMoving) return "not moving";
  if (run.life === "running") return eta(run, now);
  if (run.queuePosition) return start(run, now) || `place ${run.queuePosition}`;
  const time = took(run.startedAt, run.endedAt);
  return time && `took ${time}`;
}

class Row {
  constructor(list) {
    const cell = (name, ...children) => h("span", { role: "cell", class: name }, ...children);
    this.list = list;
    this.key = null;
    this.check = h("input", { type: "checkbox", on: { change: () => list.pick(this.key, this.check.checked) } });
    this.mark = h("span", { class: "mark", "aria-hidden": "true" });
    this.link = h("a", { on: { focus: () => list.focused(this.key) } });
    this.kind = cell("kind");
    this.space = h("span", { class: "space" });
    this.label = h("span", { class: "badge" }, "simulated");
    this.name = cell("name", this.link, this.label, this.space);
    this.phaseText = h("span");
    this.phase = cell("phase", this.mark, this.phaseText);
    this.step = cell("step");
    this.bar = new Bar();
    this.eta = cell("eta");
    this.age = cell("age");
    this.says = cell("says");
    this.element = h("div", { role: "row", class: "row" }, cell("check", h("label", { class: "hit" }, this.check)), this.kind, this.name,
      this.phase, this.step, cell("progress-cell", this.bar.element), this.eta, this.age, this.says);
    this.element.addEventListener("click", (event) => {
      if (!event.target.closest("a, input, label") && !String(getSelection())) location.hash = this.link.hash;
    });
  }

  place(index, height) {
    this.element.style.transform = `translateY(${index * height}px)`;
    this.element.setAttribute("aria-rowindex", index + 2);
  }

  update(run, now) {
    this.key = keyOf(run);
    this.run = run;
    this.element.dataset.life = run.life;
    this.element.dataset.key = this.key;
    setText(this.kind, run.resource);
    setText(this.link, run.name);
    if (this.link.getAttribute("href") !== ofRun(run)) this.link.setAttribute("href", ofRun(run));
    setText(this.space, run.namespace);
    this.label.hidden = !run.simulated;
    setText(this.mark, MARKS[run.life] || "");
    setText(this.phaseText, run.phase);
    toggle(this.phase, "worse", run.life === "failed" || run.notMoving);
    setText(this.step, step(run));
    this.bar.update(run);
    const says = run.reason ? `${run.reason}${run.sentence ? `: ${run.sentence}` : ""}` : run.sentence || (run.life === "running" && run.message) || "";
    setText(this.says, says);
    if (this.says.title !== says) this.says.title = says;
    this.check.checked = this.list.picked.has(this.key);
    this.check.setAttribute("aria-label", `compare ${run.resource}/${run.name}`);
    this.tick(now);
  }

  tick(now) {
    setText(this.eta, ends(this.run, now));
    setText(this.age, age(now - seconds(this.run.createdAt)));
  }
}

export class RunsPage {
  title = "Runs";
  picked = new Set();
  #live;
  #shown = []; // the runs that pass the filter, in order
  #rows = new Map(); // what is drawn, by key
  #spare = [];
  #height = 40;
  #active = null;
  #terms = [];
  #frame = 0;

  constructor(live, place) {
    const cell = (text) => h("span", { role: "columnheader", class: text === "Step" || text === "Age" ? "right" : null }, text || h("span", { class: "hidden" }, "Compare"));
    this.#live = live;
    this.picked = new Set(place.query.getAll("run"));
    this.input = h("input", { type: "search", id: "filter", placeholder: "kind:dgdr failed", value: place.query.get("q") || "", autocomplete: "off",
      spellcheck: "false", "aria-describedby": "filter-help", on: { input: () => this.#filtered(), keydown: (event) => this.#inFilter(event) } });
    this.kinds = h("span", { class: "kinds", role: "group", "aria-label": "Kinds" });
    this.count = h("span", { class: "count", role: "status" });
    this.compare = h("a", { class: "button", hidden: true }, "Compare");
    this.body = h("div", { role: "rowgroup", class: "rows" });
    this.empty = h("div", { class: "empty" });
    this.table = h("div", { role: "table", class: "table", "aria-label": "Runs" },
      h("div", { role: "rowgroup" }, h("div", { role: "row", class: "row head", "aria-rowindex": 1 }, COLUMNS.map(cell))), this.body);
    this.element = h("section", { class: "runs" },
      h("h1", { class: "hidden" }, "Runs"),
      h("div", { class: "bar-line" }, h("label", { for: "filter", class: "hidden" }, "Filter"), this.input, this.kinds, this.compare, this.count),
      h("p", { id: "filter-help", class: "help" }, "Words, kind: ns: name: life: phase: reason:, - before what must not be. ", h("kbd", {}, "/"), " filter, ", h("kbd", {}, "j"), " ", h("kbd", {}, "k"), " move, ", h("kbd", {}, "Enter"), " open."),
      this.table, this.empty);
    this.#terms = filter.parse(this.input.value);
    this.onScroll = () => (this.#frame ||= requestAnimationFrame(() => ((this.#frame = 0), this.#draw())));
    this.onChange = () => this.#gather();
    this.onKey = (event) => this.#key(event);
  }

  start() {
    addEventListener("scroll", this.onScroll, { passive: true });
    addEventListener("resize", this.onScroll);
    document.addEventListener("keydown", this.onKey);
    this.#live.addEventListener("change", this.onChange);
    this.timer = setInterval(() => this.#tick(), 1000);
    this.#gather();
  }

  stop() {
    removeEventListener("scroll", this.onScroll);
    removeEventListener("resize", this.onScroll);
    document.removeEventListener("keydown", this.onKey);
    this.#live.removeEventListener("change", this.onChange);
    clearInterval(this.timer);
    cancelAnimationFrame(this.#frame);
  }

  pick(key, on) {
    if (on) this.picked.add(key);
    else this.picked.delete(key);
    this.#remember();
    this.#head();
  }

  focused(key) {
    this.#active = key;
  }

  // ---- which

  #filtered() {
    this.#terms = filter.parse(this.input.value);
    this.#remember();
    this.#gather();
  }

  #remember() {
    history.replaceState(null, "", format("runs", [], { q: this.input.value.trim(), run: [...this.picked] }));
  }

  #gather() {
    const all = [...this.#live.runs.values()];
    this.#shown = all.filter((run) => filter.matches(this.#terms, run)).sort(filter.order);
    this.#head(all);
    this.#draw();
  }

  #head(all = [...this.#live.runs.values()]) {
    const kinds = new Map();
    for (const run of all) kinds.set(run.resource, (kinds.get(run.resource) || 0) + 1);
    const pressed = (name) => this.#terms.some((t) => t.field === "kind" && !t.not && t.value === name);
    const signature = JSON.stringify([[...kinds].sort(), [...kinds.keys()].map(pressed)]);
    if (signature !== this.signature) {
      this.signature = signature;
      replace(this.kinds, [...kinds].sort().map(([name, n]) => h("button", { type: "button", class: "chip", "aria-pressed": String(pressed(name)),
        on: { click: () => ((this.input.value = filter.withKind(this.input.value, name)), this.#filtered()) } }, name, h("span", { class: "n" }, n))));
    }
    const n = (life) => this.#shown.filter((run) => run.life === life).length;
    const parts = [`${this.#shown.length}${this.#shown.length === all.length ? "" : ` of ${all.length}`} runs`,
      ...["running", "pending", "failed"].filter(n).map((life) => `${n(life)} ${life}`)];
    setText(this.count, this.#live.synced ? parts.join(" · ") : "");
    const runs = [...this.picked].filter((key) => this.#live.runs.has(key));
    this.compare.hidden = !runs.length;
    setText(this.compare, runs.length < 2 ? "Choose another to compare" : `Compare ${runs.length}`);
    if (runs.length < 2) this.compare.removeAttribute("href");
    else this.compare.setAttribute("href", format("compare", [], { run: runs }));
  }

  // ---- drawing

  #window() {
    const top = this.body.getBoundingClientRect().top;
    this.#height = parseFloat(css("--row")) || 40;
    const first = Math.max(0, Math.floor(-top / this.#height) - SPARE);
    const last = Math.min(this.#shown.length, Math.ceil((innerHeight - top) / this.#height) + SPARE);
    return [first, Math.max(first, last)];
  }

  #draw() {
    const now = Date.now() / 1000, [first, last] = this.#window(), wanted = new Map();
    this.#shown.slice(first, last).forEach((run, i) => wanted.set(keyOf(run), first + i));
    // What has the focus stays, also outside of what can be seen.
    const held = [...this.#rows].find(([, row]) => row.element.contains(document.activeElement))?.[0];
    if (held && !wanted.has(held)) {
      const at = this.#shown.findIndex((run) => keyOf(run) === held);
      if (at >= 0) wanted.set(held, at);
    }
    for (const [key, row] of this.#rows)
      if (!wanted.has(key)) {
        row.element.remove();
        this.#rows.delete(key);
        this.#spare.push(row);
      }
    for (const [key, index] of wanted) this.#put(key, index, now);
    this.body.style.height = `${this.#shown.length * this.#height}px`;
    this.table.setAttribute("aria-rowcount", this.#shown.length + 1);
    this.table.hidden = !this.#shown.length;
    this.#nothing();
  }

  #put(key, index, now) {
    let row = this.#rows.get(key);
    if (!row) {
      row = this.#spare.pop() || new Row(this);
      this.#rows.set(key, row);
      row.run = null;
      row.index = -1;
    }
    if (row.index !== index || row.height !== this.#height) {
      row.place(index, this.#height);
      // In the order that they are seen in, for those who go through them with Tab.
      const after = [...this.#rows.values()].filter((other) => other !== row && other.element.isConnected && other.index > index).sort((a, b) => a.index - b.index)[0];
      row.index = index;
      row.height = this.#height;
      if (!row.element.contains(document.activeElement)) this.body.insertBefore(row.element, after?.element || null);
    }
    const run = this.#shown[index];
    if (row.run !== run) row.update(run, now);
  }

  #nothing() {
    const { synced } = this.#live, none = synced && !this.#shown.length;
    this.empty.hidden = synced && !none;
    const text = !synced ? "Looking…" : this.#live.runs.size ? "No run is like that." : "There are no runs yet.";
    if (this.says === text) return;
    this.says = text;
    replace(this.empty, h("p", {}, text), synced && !this.#live.runs.size && h("pre", {}, "kubectl apply -f examples/algorithmcomparison.yaml\nkubectl apply -f examples/dgdr.yaml"));
  }

  #tick() {
    const now = Date.now() / 1000;
    for (const row of this.#rows.values()) row.tick(now);
  }

  // ---- keys

  #inFilter(event) {
    if (event.key === "Enter" || event.key === "ArrowDown") {
      event.preventDefault();
      this.#active = null;
      this.#go(1);
    }
    if (event.key === "Escape") this.input.blur();
  }

  #key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
    if (event.target.matches("input[type=search], input[type=password], textarea")) return;
    const by = { j: 1, ArrowDown: 1, k: -1, ArrowUp: -1 }[event.key];
    if (event.key === "/") {
      event.preventDefault();
      this.input.focus();
      this.input.select();
    } else if (by && (event.key.length === 1 || this.body.contains(event.target) || event.target === document.body)) {
      event.preventDefault();
      this.#go(by);
    }
  }

  #go(by) {
    const at = this.#shown.findIndex((run) => keyOf(run) === this.#active);
    const next = at < 0 ? 0 : Math.max(0, Math.min(this.#shown.length - 1, at + by));
    const run = this.#shown[next];
    if (!run) return;
    const top = this.body.getBoundingClientRect().top + next * this.#height, bottom = top + this.#height;
    if (top < 120) scrollBy(0, top - 120);
    else if (bottom > innerHeight - 20) scrollBy(0, bottom - innerHeight + 20);
    this.#active = keyOf(run);
    this.#draw();
    this.#rows.get(this.#active)?.link.focus({ preventScroll: true });
  }
}
