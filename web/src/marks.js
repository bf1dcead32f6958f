// How series are told apart: by shape and dashes, in one colour. Colour is for better and worse.

import { s } from "./dom.js";

export const SHAPES = ["circle", "square", "triangle", "diamond", "down", "cross"];
export const DASHES = [[], [6, 4], [2, 3], [9, 3, 2, 3], [12, 4], [4, 2, 4, 6]];

const CORNERS = {
  square: [[-0.9, -0.9], [0.9, -0.9], [0.9, 0.9], [-0.9, 0.9]],
  triangle: [[0, -1.15], [1.1, 0.85], [-1.1, 0.85]],
  diamond: [[0, -1.25], [1.1, 0], [0, 1.25], [-1.1, 0]],
  down: [[0, 1.15], [1.1, -0.85], [-1.1, -0.85]],
  cross: [[-0.35, -1.1], [0.35, -1.1], [0.35, -0.35], [1.1, -0.35], [1.1, 0.35], [0.35, 0.35], [0.35, 1.1], [-0.35, 1.1], [-0.35, 0.35],
    [-1.1, 0.35], [-1.1, -0.35], [-0.35, -0.35]],
};

export const shapeOf = (i) => SHAPES[i % SHAPES.length];
export const dashOf = (i) => DASHES[i % DASHES.length];

export function path(shape, x, y, r) {
  const p = new Path2D();
  if (shape === "circle") p.arc(x, y, r, 0, 7);
  else {
    CORNERS[shape].forEach(([dx, dy], i) => (i ? p.lineTo(x + dx * r, y + dy * r) : p.moveTo(x + dx * r, y + dy * r)));
    p.closePath();
  }
  return p;
}

// The same in a legend.
export function sample(i, line) {
  const shape = shapeOf(i), r = 4;
  const mark = shape === "circle" ? s("circle", { cx: 14, cy: 7, r }) : s("polygon", { points: CORNERS[shape].map(([x, y]) => `${14 + x * r},${7 + y * r}`).join(" ") });
  return s("svg", { class: "sample", width: 28, height: 14, "aria-hidden": "true" },
    line && s("line", { x1: 1, x2: 27, y1: 7, y2: 7, "stroke-dasharray": dashOf(i).join(" ") }), mark);
}
