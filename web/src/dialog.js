// A question before something is done.

import { h } from "./dom.js";

export function confirm(title, text, yes) {
  return new Promise((resolve) => {
    const box = h("dialog", { "aria-labelledby": "dialog-title" },
      h("form", { method: "dialog" }, h("h2", { id: "dialog-title" }, title), h("p", {}, text),
        h("div", { class: "buttons" }, h("button", { value: "no" }, "No, leave it"), h("button", { value: "yes", class: "main" }, yes))));
    box.addEventListener("close", () => {
      resolve(box.returnValue === "yes");
      box.remove();
    });
    document.body.append(box);
    box.showModal();
  });
}
