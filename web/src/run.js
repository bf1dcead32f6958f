// One run: is it all right, how far, when done, what is it doing, what has it found.

import * as api from "./api.js";
import { Bar } from "./bar.js";
import { confirm } from "./dialog.js";
import { h, replace, setText, toggle } from "./dom.js";
import { Figures } from "./figure.js";
import { duration, keyOf, left, moment, seconds, title } from "./format.js";
import { figures, found } from "./measures.js";
import { parsed } from "./files.js";
import { format } from "./route.js";
import { timeline } from "./timeline.js";
import { CONSEQUENCE, MARKS, configuration, controls, howFar, standing, whenDone } from "./words.js";
import { readable, yaml } from "./yaml.js";

const PAUSE = 1500; // at least, between two looks at what changes
const LOG_LINES = 300;
const STATES = { over: "✓", now: "▸", planned: "·", failed: "✗" };
const SAID = { over: "done", now: "under way", planned: "to come", failed: "failed here" };

export class RunPage {
  #live;
  #key;
  #path;
  #run = null;
  #detail = {};
  #files = {};
  #status = {};
  #track = null;
  #past = null;
  #looked = 0;
  #timer = 0;
  #abort = new AbortController();
  #figures;
  #open = new Set();

  constructor(live, place) {
    const [resource, namespace, name] = place.parts;
    this.#live = live;
    this.#key = `${resource}/${namespace}/${name}`;
    this.#path = api.runPath(resource, namespace, name);
    this.title = `${resource}/${name}`;
    this.#figures = new Figures(name || "run");
    this.bar = new Bar();
    this.head = h("h1", {}, `${resource}/${name}`, h("span", { class: "space" }, namespace));
    this.badge = h("span", { class: "badge", hidden: true }, "simulated");
    this.head.append(this.badge);
    this.buttons = h("div", { class: "buttons" });
    this.word = h("p", { class: "standing", role: "status" });
    this.detail = h("p", { class: "detail" });
    this.far = h("p", { class: "far" });
    this.when = h("p", { class: "when" });
    this.window = h("div", { class: "window", "aria-hidden": "true" }, h("span", { class: "gone" }), h("span", { class: "span" }), h("span", { class: "mid" }));
    this.doing = h("p", { class: "doing" });
    this.best = h("p", { class: "doing" });
    this.found = h("p", { class: "found" });
    this.trouble = h("p", { class: "trouble", role: "alert", hidden: true });
    this.phases = h("ol", { class: "phases" });
    this.events = h("div", { class: "events" });
    this.log = h("pre", { class: "log", tabindex: 0, role: "region", "aria-label": "Log" });
    this.yaml = h("pre", { class: "yaml", tabindex: 0, role: "region", "aria-label": "YAML" });
    this.element = h("section", { class: "run" },
      h("div", { class: "run-head" }, this.head, this.buttons), this.trouble,
      h("div", { class: "answers" }, this.word, this.detail, this.bar.element, this.far, this.window, this.when, this.doing, this.best, this.found),
      (this.halves = h("div", { class: "halves one" },
        h("section", { "aria-labelledby": "phases-title", class: "left" }, h("h2", { id: "phases-title" }, "Phases"), this.phases),
        h("section", { "aria-labelledby": "measured-title", class: "right" }, h("h2", { id: "measured-title" }, "Measured"), this.#figures.element))),
      this.#section("events", "Events", this.events, true), this.#section("log", "Log", this.log), this.#section("yaml", "YAML", this.yaml));
  }

  #section(name, text, content, open) {
    if (open) this.#open.add(name);
    const box = h("details", { open }, h("summary", {}, h("h2", {}, text)), content);
    box.addEventListener("toggle", () => {
      this.#open[box.open ? "add" : "delete"](name);
      if (box.open) this.#look(true);
    });
    return box;
  }

  start() {
    this.onChange = (event) => event.detail.has(this.#key) && this.#changed();
    this.#live.addEventListener("change", this.onChange);
    this.ticker = setInterval(() => this.#tick(), 1000);
    this.#changed();
    if (!this.#run) this.#look(true);
  }

  stop() {
    this.#live.removeEventListener("change", this.onChange);
    clearInterval(this.ticker);
    clearTimeout(this.#timer);
    this.#abort.abort();
    this.#figures.destroy();
  }

  // ---- what is known

  #changed() {
    const run = this.#live.runs.get(this.#key);
    if (run) {
      this.#run = run;
      this.#say();
      this.#look();
    } else if (this.#run && this.#live.synced) {
      this.#fail("It has been deleted.");
      replace(this.buttons);
    }
  }

  // Looks soon, but not more often than needed.
  #look(now) {
    if (this.#timer) return;
    const wait = now ? 0 : Math.max(0, this.#looked + PAUSE - Date.now());
    this.#timer = setTimeout(() => this.#fetch().finally(() => (this.#timer = 0)), wait);
  }

  async #fetch() {
    const { signal } = this.#abort, before = this.#run?.updatedAt + this.#run?.life;
    this.#looked = Date.now();
    const part = (path, take) => api.get(`${this.#path}${path}`, signal).then(take, (error) => this.#part(path, error));
    try {
      this.#detail = await api.get(this.#path, signal);
      this.#run ??= this.#detail.run;
      this.#fail("");
    } catch (error) {
      if (error.name === "AbortError") return;
      if (!this.#run) return this.#fail(error.status === 404 ? `There is no ${this.title}.` : error.message);
    }
    await Promise.all([
      part("/data", (data) => this.#take(data)),
      this.#open.has("events") && part("/events", (list) => this.#showEvents(list.items || [])),
      this.#open.has("log") && this.#fetchLog(signal),
      this.#fetchPast(signal),
    ]);
    if (signal.aborted) return;
    this.#show();
    const after = this.#run?.updatedAt + this.#run?.life;
    if (before !== after && before !== "undefinedundefined") setTimeout(() => this.#look(), 0);
    else if (this.#run?.life === "running" && this.#open.has("log")) setTimeout(() => signal.aborted || this.#look(), 3000);
  }

  // How its phases went is told while it runs; what was told last stays.
  #take(data) {
    this.#files = parsed(data.files);
    this.#status = data.status || this.#status;
    this.#track = data.track || this.#track;
  }

  #part(path, error) {
    if (error.name !== "AbortError" && path === "/events") replace(this.events, h("p", { class: "empty" }, error.message));
  }

  async #fetchLog(signal) {
    const bottom = this.log.scrollTop + this.log.clientHeight >= this.log.scrollHeight - 4;
    try {
      setText(this.log, (await api.text(api.query(`${this.#path}/log`, { tailLines: LOG_LINES }), signal)) || "It has written nothing.");
    } catch (error) {
      if (error.name !== "AbortError") setText(this.log, `There is no log: ${error.message}`);
    }
    if (bottom) this.log.scrollTop = this.log.scrollHeight;
  }

  // Of what has ended the history knows how long its phases took.
  async #fetchPast(signal) {
    if (this.#past || !this.#run?.endedAt || this.#run.kind === "WorkloadProfile") return;
    const { namespace, name, uid } = this.#run;
    const list = await api.get(api.query("/api/v1/history", { namespace, name, uid, limit: 20 }), signal).catch(() => null);
    this.#past = (list?.items || list?.runs || []).find((one) => one.uid === uid) || null;
  }

  // ---- what is said

  #fail(text) {
    setText(this.trouble, text);
    this.trouble.hidden = !text;
  }

  #say() {
    const run = this.#run, now = Date.now() / 1000, { word, tone, detail } = standing(run);
    setText(this.word, `${MARKS[run.life] || ""} ${word}`);
    this.word.className = `standing ${tone}`;
    setText(this.detail, run.life === "succeeded" ? "" : detail);
    this.detail.hidden = !this.detail.textContent;
    this.badge.hidden = !run.simulated;
    this.bar.update(run);
    setText(this.far, howFar(run));
    this.#sayDoing();
    setText(this.best, run.bestSoFar ? `Best so far: ${run.bestSoFar}` : "");
    this.#sayFound();
    this.#window(run, now);
    setText(this.when, whenDone(run, now));
    this.#showButtons(run);
    this.#showPhases(now);
  }

  #sayDoing() {
    const run = this.#run, doing = run.life === "running" ? [configuration(this.#detail.object), run.message].filter(Boolean).join(" · ") : "";
    setText(this.doing, doing && `Now: ${doing}`);
  }

  // Together with the best so far, which it leaves out when that is said.
  #sayFound() {
    const run = this.#run;
    setText(this.found, found(run.kind, { run, object: this.#detail.object, files: this.#files }) || "");
  }

  #tick() {
    if (!this.#run) return;
    const now = Date.now() / 1000;
    this.#window(this.#run, now);
    setText(this.when, whenDone(this.#run, now));
    if (this.#run.life === "running") this.#showPhases(now);
  }

  // From its begin to the latest end that is likely: what is past, and the range of its end.
  #window(run, now) {
    const began = seconds(run.startedAt), rest = run.life === "running" ? left(run, now) : null;
    this.window.hidden = !rest || !Number.isFinite(began);
    if (this.window.hidden) return;
    const whole = Math.max(1, now + Math.max(rest.high, 0) - began) * 1.02, at = (t) => `${Math.max(0, Math.min(100, ((t - began) / whole) * 100))}%`;
    const [gone, span, mid] = this.window.children;
    gone.style.width = at(now);
    span.style.left = at(now + Math.max(0, rest.low));
    span.style.right = `calc(100% - ${at(now + Math.max(0, rest.high))})`;
    mid.style.left = at(now + Math.max(0, rest.mid));
  }

  #showButtons(run) {
    const verbs = controls(run).join();
    if (this.verbs === verbs) return;
    this.verbs = verbs;
    replace(this.buttons, controls(run).map((verb) => h("button", { type: "button", on: { click: () => this.#do(verb) } }, verb[0].toUpperCase() + verb.slice(1))),
      run.kind !== "WorkloadProfile" && h("a", { class: "button", href: format("compare", [], { run: this.#key }) }, "Compare"));
  }

  async #do(verb) {
    if (!(await confirm(`${verb[0].toUpperCase() + verb.slice(1)} ${title(this.#run)}?`, CONSEQUENCE[verb], verb[0].toUpperCase() + verb.slice(1)))) return;
    try {
      const answer = await api.post(`${this.#path}/${verb}`);
      this.#fail("");
      const made = answer?.run || answer;
      if (verb === "rerun" && made?.name && made.resource && keyOf(made) !== this.#key) location.hash = format("run", [made.resource, made.namespace, made.name]);
      else this.#look(true);
    } catch (error) {
      this.#fail(`It could not be done: ${error.message}`);
    }
  }

  #showPhases(now) {
    const rows = timeline({ run: this.#run, plan: this.#status.plan, track: this.#track, past: this.#past?.phases, now });
    const longest = Math.max(...rows.map((row) => row.seconds || 0), 0);
    this.halves.classList.toggle("one", !rows.length);
    const signature = JSON.stringify(rows.map((row) => [row.name, row.state]));
    if (this.phaseSignature !== signature) {
      this.phaseSignature = signature;
      replace(this.phases, rows.map((row) => h("li", { class: row.state, "aria-current": row.state === "now" && "step" }, h("span", { class: "mark", "aria-hidden": "true" }, STATES[row.state]),
        h("span", { class: "name" }, row.name), h("span", { class: "hidden" }, `, ${SAID[row.state]}`), h("span", { class: "steps" }), h("span", { class: "took" }), h("span", { class: "length", "aria-hidden": "true" }))));
    }
    rows.forEach((row, i) => {
      const [, , , steps, took, length] = this.phases.children[i].children;
      setText(steps, row.steps ? (row.state === "planned" ? `${row.steps} steps` : `${row.done ?? 0}/${row.steps}`) : "");
      setText(took, row.seconds !== undefined ? duration(row.seconds) + (row.state === "now" ? " so far" : "") : "");
      length.style.transform = `scaleX(${longest > 0 ? (row.seconds || 0) / longest : 0})`;
      toggle(length, "none", !row.seconds);
    });
  }

  #show() {
    const { object } = this.#detail, run = this.#run;
    if (!run) return;
    if (!this.word.textContent) this.#say();
    this.#showPhases(Date.now() / 1000);
    this.#sayDoing();
    this.#sayFound();
    this.#figures.update(figures(run.kind, { object, files: this.#files }));
    if (this.#open.has("yaml") && object) setText(this.yaml, yaml(readable(object)));
  }

  #showEvents(items) {
    if (!items.length) return replace(this.events, h("p", { class: "empty" }, "Nothing has happened that anybody said."));
    replace(this.events, h("ul", {}, [...items].sort((a, b) => (a.time < b.time ? 1 : -1)).slice(0, 100).map((e) =>
      h("li", {}, h("time", { datetime: e.time }, moment(e.time)), h("span", { class: e.type === "Warning" ? "worse" : "" }, `${e.type === "Warning" ? "✗ " : ""}${e.reason}`),
        h("span", { class: "message" }, e.message, e.count > 1 && ` (${e.count} times)`)))));
  }
}
