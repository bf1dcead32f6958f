// A figure with its title, legend, and its values as CSV.

import { Chart } from "./chart.js";
import { csv } from "./csv.js";
import { h, replace, setText } from "./dom.js";
import { quantity } from "./format.js";
import { sample } from "./marks.js";
import { isEmpty } from "./measures.js";
import { Strip } from "./strip.js";

// For those who cannot see it.
export function described(figure) {
  if (isEmpty(figure)) return `${figure.title}: nothing measured yet`;
  if (figure.kind === "xy")
    return `${figure.title}. ` + figure.series.filter((one) => one.points.length).map((one) =>
      `${one.name}: ${one.points.slice(0, 12).map((p) => `${quantity(p.x, figure.x.unit)} ${quantity(p.y, figure.y.unit)}`).join(", ")}${one.points.length > 12 ? ` and ${one.points.length - 12} more` : ""}`).join("; ");
  return `${figure.title}. ` + figure.rows.map((row) => `${row.name}: ${quantity(row.value ?? row.median, figure.unit) || "nothing yet"}${row.values?.length ? ` of ${row.values.length}` : ""}${row.note ? `, ${row.note}` : ""}`).join("; ");
}

function save(figure, name) {
  const url = URL.createObjectURL(new Blob([csv(figure)], { type: "text/csv" }));
  const link = h("a", { href: url, download: `${name}-${figure.id}.csv` });
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
}

export class Figure {
  #figure = null;
  #drawn = "";
  #painter = null;
  #title = h("h3", {});
  #canvas = h("div", { class: "canvas", role: "img" });
  #legend = h("ul", { class: "legend" });
  #empty = h("p", { class: "empty" }, "Nothing measured yet");
  #save;

  constructor(name) {
    this.#save = h("button", { type: "button", class: "small", on: { click: () => save(this.#figure, name) } }, "as CSV");
    this.element = h("figure", {}, h("figcaption", {}, this.#title, this.#save), this.#canvas, this.#empty, this.#legend);
  }

  update(figure) {
    const drawn = JSON.stringify(figure);
    if (drawn === this.#drawn) return;
    this.#drawn = drawn;
    this.#figure = figure;
    const none = isEmpty(figure);
    setText(this.#title, figure.title);
    this.#save.setAttribute("aria-label", `${figure.title}, as CSV`);
    this.#canvas.hidden = this.#save.hidden = none;
    this.#empty.hidden = !none;
    this.#canvas.setAttribute("aria-label", described(figure));
    this.#tell(figure);
    if (none) return;
    this.#painter ||= new (figure.kind === "xy" ? Chart : Strip)(this.#canvas);
    this.#painter.update(figure);
  }

  #tell(figure) {
    if (figure.kind !== "xy") {
      const notes = figure.rows.filter((row) => row.note);
      this.#legend.hidden = !notes.length;
      replace(this.#legend, notes.map((row) => h("li", { class: row.tone || "" }, `${row.name}: ${row.note}`)));
      return;
    }
    const shown = figure.series.map((one, i) => [one, i]).filter(([one]) => one.points.length);
    this.#legend.hidden = shown.length < 2 && !figure.front;
    replace(this.#legend, shown.map(([one, i]) => h("li", {}, sample(i, one.line), one.name)));
  }

  destroy() {
    this.#painter?.destroy();
  }
}

// A row of figures that keeps those that stay.
export class Figures {
  #name;
  #figures = new Map();
  element = h("div", { class: "figures" });

  constructor(name) {
    this.#name = name;
  }

  update(list) {
    for (const [id, figure] of this.#figures)
      if (!list.some((one) => one.id === id)) {
        figure.destroy();
        figure.element.remove();
        this.#figures.delete(id);
      }
    for (const one of list) {
      let figure = this.#figures.get(one.id);
      if (!figure) {
        this.#figures.set(one.id, (figure = new Figure(this.#name)));
        this.element.append(figure.element);
      }
      figure.update(one);
    }
  }

  destroy() {
    for (const figure of this.#figures.values()) figure.destroy();
  }
}
