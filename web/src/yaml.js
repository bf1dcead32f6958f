// An object as YAML, to be read. Pure functions.

const PLAIN = /^[A-Za-z_/.][\w/.:=+@%, ()-]*$/;
const WORDS = /^(true|false|null|yes|no|on|off|y|n|~)$/i;

function scalar(value) {
  if (typeof value !== "string") return value === null || value === undefined ? "null" : String(value);
  const plain = PLAIN.test(value) && !WORDS.test(value) && !/: |:$| #|\s$|^\.?\d|^\.(inf|nan)$/i.test(value);
  return plain ? value : JSON.stringify(value);
}

const isBlock = (value) => typeof value === "object" && value !== null && Object.keys(value).length > 0;
const empty = (value) => (Array.isArray(value) ? "[]" : "{}");

function lines(value, indent, out) {
  if (Array.isArray(value)) {
    for (const item of value) {
      if (!isBlock(item)) out.push(`${indent}- ${typeof item === "object" && item ? empty(item) : scalar(item)}`);
      else {
        const inner = [];
        lines(item, indent + "  ", inner);
        out.push(`${indent}- ${inner[0].slice(indent.length + 2)}`, ...inner.slice(1));
      }
    }
    return;
  }
  for (const [key, item] of Object.entries(value)) {
    const name = `${indent}${scalar(key)}:`;
    if (isBlock(item)) {
      out.push(name);
      lines(item, Array.isArray(item) ? indent : indent + "  ", out);
    } else if (typeof item === "string" && item.includes("\n") && !/\r|^\s/.test(item)) {
      out.push(`${name} |${item.endsWith("\n") ? "" : "-"}`, ...item.replace(/\n$/, "").split("\n").map((line) => (line ? `${indent}  ${line}` : "")));
    } else out.push(`${name} ${typeof item === "object" && item ? empty(item) : scalar(item)}`);
  }
}

export function yaml(object) {
  const out = [];
  lines(object, "", out);
  return out.join("\n") + "\n";
}

// Without what only the API server needs.
export function readable(object) {
  const { managedFields, ...metadata } = object.metadata || {};
  return { ...object, metadata };
}
