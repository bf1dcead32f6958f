// Elements by function. Whatever comes from outside goes in as text; there is no way here to put in HTML.

const SVG = "http://www.w3.org/2000/svg";

function set(element, name, value) {
  if (value === undefined || value === null || value === false) return;
  if (name === "on") for (const [event, handler] of Object.entries(value)) element.addEventListener(event, handler);
  else if (name === "style") for (const [key, text] of Object.entries(value)) element.style.setProperty(key, text);
  else if (name === "value" || name === "checked") element[name] = value;
  else element.setAttribute(name, value === true ? "" : String(value));
}

function fill(element, children) {
  for (const child of children.flat(Infinity)) {
    if (child === undefined || child === null || child === false || child === "") continue;
    element.append(child instanceof Node ? child : String(child));
  }
  return element;
}

// h("a", {href: "#/runs", on: {click}}, "text", element, [more])
export function h(name, props, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(props || {})) set(element, key, value);
  return fill(element, children);
}

// The same for SVG.
export function s(name, props, ...children) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(props || {})) set(element, key, value);
  return fill(element, children);
}

export function replace(element, ...children) {
  element.replaceChildren();
  return fill(element, children);
}

// Changes a text only if it is another: what has not changed is not laid out again, nor read out again.
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

export function toggle(element, name, on) {
  if (element.classList.contains(name) !== !!on) element.classList.toggle(name, !!on);
}

export const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
