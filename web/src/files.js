// The files that a run has left, as objects. Pure functions.

export function parsed(files) {
  const out = {};
  for (const [name, value] of Object.entries(files || {})) {
    out[name.replace(/\.gz$/, "")] = typeof value === "string" && name.replace(/\.gz$/, "").endsWith(".json") ? json(value) : value;
  }
  return out;
}

function json(text) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
