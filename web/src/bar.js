// How far it is, with how sure that is.

import { h, setText, toggle } from "./dom.js";
import { percent } from "./format.js";

export class Bar {
  #fill = h("span", { class: "fill" });
  #text = h("span", { class: "per" });
  #track = h("span", { class: "track", role: "progressbar", "aria-valuemin": 0, "aria-valuemax": 100 }, this.#fill);
  element = h("span", { class: "progress" }, this.#track, this.#text);

  update(run) {
    const known = Number.isFinite(run.percent), per = known ? Math.min(100, Math.max(0, run.percent)) : 0;
    this.#fill.style.transform = `scaleX(${per / 100})`;
    setText(this.#text, known ? percent(per) : "");
    toggle(this.#track, "stuck", run.notMoving);
    toggle(this.#track, "failed", run.life === "failed");
    toggle(this.#track, "unknown", !known);
    if (known) this.#track.setAttribute("aria-valuenow", Math.floor(per));
    else this.#track.removeAttribute("aria-valuenow");
    this.#track.setAttribute("aria-label", `progress of ${run.name}`);
  }
}
