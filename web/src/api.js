// The REST API. Errors are one sentence, as the server says it.

export class ApiError extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

const listeners = new Set();
export const onSignedOut = (listener) => listeners.add(listener);
export const signedOut = () => listeners.forEach((listener) => listener());

async function sentence(answer) {
  const text = (await answer.text().catch(() => "")).slice(0, 10000);
  try {
    const { detail } = JSON.parse(text);
    if (typeof detail === "string") return detail;
    if (Array.isArray(detail)) return detail.map((d) => `${(d.loc || []).slice(1).join(".")}: ${d.msg}`).join("; ");
  } catch {
    // not JSON: its status says enough
  }
  return `the server answered ${answer.status} ${answer.statusText}`.trim();
}

async function call(path, options) {
  let answer;
  try {
    answer = await fetch(path, { credentials: "same-origin", cache: "no-store", ...options });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ApiError(0, "the server cannot be reached");
  }
  if (answer.ok) return answer;
  if (answer.status === 401 && path !== "/api/v1/session") signedOut();
  throw new ApiError(answer.status, await sentence(answer));
}

export const get = async (path, signal) => (await call(path, { signal })).json();
export const text = async (path, signal) => (await call(path, { signal })).text();

export async function post(path, body) {
  const answer = await call(path, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(body ?? {}),
  });
  return answer.status === 204 ? null : answer.json().catch(() => null);
}

export const signIn = (token) => post("/api/v1/session", { token });
export const signedIn = async () => (await get("/api/v1/session")).authenticated;

export const runPath = (resource, namespace, name) =>
  "/api/v1/runs/" + [resource, namespace, name].map(encodeURIComponent).join("/");

export function query(path, parameters) {
  const q = new URLSearchParams();
  for (const [key, value] of Object.entries(parameters))
    for (const one of [value].flat()) if (one !== undefined && one !== null && one !== "") q.append(key, one);
  return q.size ? `${path}?${q}` : path;
}
