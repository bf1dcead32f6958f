// What is read where the pointer is: one small box for the whole page.

import { h, setText } from "./dom.js";

let box = null;

export function show(text, x, y) {
  box ||= document.body.appendChild(h("div", { class: "tip", "aria-hidden": "true" }));
  setText(box, text);
  box.hidden = false;
  const { width, height } = box.getBoundingClientRect();
  box.style.left = `${Math.max(4, Math.min(x + 12, innerWidth - width - 8))}px`;
  box.style.top = `${y - height - 10 < 0 ? y + 16 : y - height - 10}px`;
}

export function hide() {
  if (box) box.hidden = true;
}
