// Places: "#/run/ap/default/quick-sort", "#/runs?q=failed". Pure functions.

export function parse(hash) {
  const [path, search = ""] = hash.replace(/^#\/?/, "").split(/\?(.*)/s);
  const parts = path.split("/").filter(Boolean).map(decode);
  return { page: parts[0] || "runs", parts: parts.slice(1), query: new URLSearchParams(search) };
}

function decode(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

export function format(page, parts = [], query = {}) {
  const q = new URLSearchParams();
  for (const [key, value] of Object.entries(query))
    for (const one of [value].flat()) if (one !== undefined && one !== null && one !== "") q.append(key, one);
  const path = "#/" + [page, ...parts].map(encodeURIComponent).join("/");
  return q.size ? `${path}?${q}` : path;
}

export const ofRun = (run) => format("run", [run.resource, run.namespace, run.name]);

// The token in "#t=TOKEN", or null.
export function token(hash) {
  const found = hash.match(/^#t=([^&]+)/);
  return found ? decode(found[1]) : null;
}
