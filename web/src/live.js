// All runs, kept up to date by one event stream. It is closed while the page is hidden; lost, it is tried again after
// 1 s, 2 s, ... up to 30 s. Changes are told once a frame, all together.

import { signedIn, signedOut } from "./api.js";
import { keyOf } from "./format.js";

const PAUSE_LEAST = 1000, PAUSE_MOST = 30000;

export class Live extends EventTarget {
  runs = new Map();
  state = "connecting"; // "open", "lost", "hidden", "out"
  synced = false;
  retryAt = 0;
  #source = null;
  #pause = PAUSE_LEAST;
  #timer = 0;
  #changed = new Set();
  #frame = 0;

  constructor() {
    super();
    document.addEventListener("visibilitychange", () => (document.hidden ? this.#hide() : this.start()));
    addEventListener("online", () => this.state === "lost" && this.start());
  }

  start() {
    clearTimeout(this.#timer);
    if (this.#source || document.hidden) return;
    this.#become(this.state === "lost" ? "lost" : "connecting");
    const source = (this.#source = new EventSource("/api/v1/runs/stream"));
    source.addEventListener("sync", (event) => this.#sync(JSON.parse(event.data).items));
    source.addEventListener("run", (event) => this.#run(JSON.parse(event.data)));
    source.addEventListener("gone", (event) => this.#gone(JSON.parse(event.data)));
    source.onerror = () => this.#lost();
  }

  stop() {
    clearTimeout(this.#timer);
    this.#source?.close();
    this.#source = null;
    this.#become("out");
  }

  #hide() {
    clearTimeout(this.#timer);
    this.#source?.close();
    this.#source = null;
    if (this.state !== "out") this.#become("hidden");
  }

  async #lost() {
    this.#source?.close();
    this.#source = null;
    if (this.state === "out" || document.hidden) return;
    const pause = this.#pause * (0.75 + Math.random() / 2);
    this.#pause = Math.min(this.#pause * 2, PAUSE_MOST);
    this.retryAt = Date.now() + pause;
    this.#timer = setTimeout(() => this.start(), pause);
    this.#become("lost");
    const out = await signedIn().then((yes) => !yes, () => false);
    if (out && !this.#source) {
      this.stop();
      signedOut();
    }
  }

  #become(state) {
    if (state === this.state && state !== "lost") return;
    this.state = state;
    this.dispatchEvent(new Event("state"));
  }

  #sync(items) {
    const old = this.runs;
    this.runs = new Map(items.map((run) => [keyOf(run), run]));
    for (const key of [...old.keys(), ...this.runs.keys()]) this.#changed.add(key);
    this.synced = true;
    this.#pause = PAUSE_LEAST;
    this.#become("open");
    this.#tell();
  }

  #run(run) {
    const key = keyOf(run), before = this.runs.get(key);
    this.runs.set(key, run);
    this.#changed.add(key);
    if (before && before.life !== run.life) this.dispatchEvent(new CustomEvent("turn", { detail: { run, before } }));
    this.#tell();
  }

  #gone(what) {
    const key = keyOf(what);
    if (this.runs.get(key)?.uid !== what.uid) return;
    this.runs.delete(key);
    this.#changed.add(key);
    this.#tell();
  }

  #tell() {
    this.#frame ||= requestAnimationFrame(() => {
      const changed = this.#changed;
      this.#frame = 0;
      this.#changed = new Set();
      this.dispatchEvent(new CustomEvent("change", { detail: changed }));
    });
  }
}
