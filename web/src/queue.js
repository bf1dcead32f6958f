// Who waits for what: places, limits and quotas.

import * as api from "./api.js";
import { h, replace } from "./dom.js";
import { age, seconds, start } from "./format.js";
import { format } from "./route.js";

const PAUSE = 1000;

const cells = (...list) => list.map((one) => h("td", {}, one));

export function table(caption, heads, rows) {
  return h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": caption }, h("table", {}, h("caption", {}, caption), h("thead", {}, h("tr", {}, heads.map((text) => h("th", { scope: "col" }, text)))), h("tbody", {}, rows)));
}

// {"maxConcurrentRuns": {used, limit}} or plain values, as words; nothing where they are not known.
export function limitWords(limits) {
  return Object.entries(limits || {}).map(([name, value]) => [name.replace(/([A-Z])/g, " $1").toLowerCase(),
    value && typeof value === "object" ? `${value.used ?? value.running ?? "?"} of ${value.limit ?? value.hard ?? "no limit"}` : value === null || value === 0 ? "no limit" : String(value)]);
}

export class QueuePage {
  title = "Queue";
  #live;
  #abort = new AbortController();
  #timer = 0;

  constructor(live) {
    this.#live = live;
    this.body = h("div", {});
    this.element = h("section", { class: "queue" }, h("h1", {}, "Queue"), this.body);
    this.onChange = () => (this.#timer ||= setTimeout(() => this.#fetch().finally(() => (this.#timer = 0)), PAUSE));
  }

  start() {
    this.#live.addEventListener("change", this.onChange);
    this.#fetch();
  }

  stop() {
    this.#live.removeEventListener("change", this.onChange);
    clearTimeout(this.#timer);
    this.#abort.abort();
  }

  async #fetch() {
    try {
      this.#show(await api.get("/api/v1/queue", this.#abort.signal));
    } catch (error) {
      if (error.name !== "AbortError") replace(this.body, h("p", { class: "trouble", role: "alert" }, error.message));
    }
  }

  #show({ items = [], limits, quotas = [] }) {
    const now = Date.now() / 1000;
    replace(this.body,
      items.length
        ? table("Waiting", ["Place", "Run", "Priority", "For", "Begins", "Why"], items.map((one) => h("tr", {}, cells(one.position, h("a", { href: format("run", [one.resource, one.namespace, one.name]) }, `${one.resource}/${one.name}`, h("span", { class: "space" }, one.namespace)), one.priority ?? "", age(now - seconds(one.since)), start(one, now).replace("starts ", "") || "not known", one.reason || ""))))
        : h("p", { class: "empty" }, "Nothing waits."),
      this.#limits(limits), this.#quotas(quotas));
  }

  #limits(limits) {
    const words = limitWords(limits);
    return words.length ? table("Limits", ["What", "At most"], words.map(([name, text]) => h("tr", {}, cells(name, text)))) : h("p", { class: "empty" }, "How many may run at once is not known here.");
  }

  #quotas(quotas) {
    if (!quotas.length) return null;
    return table("Quotas", ["Namespace", "Name", "What", "Used", "Of"], quotas.flatMap((q) => {
      const hard = q.hard || q.status?.hard || {}, used = q.used || q.status?.used || {};
      return Object.keys(hard).sort().map((what) => h("tr", { class: String(used[what]) === String(hard[what]) ? "full" : "" }, cells(q.namespace || q.metadata?.namespace || "", q.name || q.metadata?.name || "", what, used[what] ?? "", hard[what])));
    }));
  }
}
