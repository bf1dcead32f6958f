// The filter of the list: "kind:dgdr failed -ns:test". Words must all be found; "-" before one says: not. Pure functions.

const FIELDS = {
  kind: (run) => [run.resource, run.kind],
  ns: (run) => [run.namespace],
  namespace: (run) => [run.namespace],
  name: (run) => [run.name],
  life: (run) => [run.life],
  phase: (run) => [run.phase],
  reason: (run) => [run.reason],
};
const WHOLE = new Set(["kind", "life"]); // the others match a part

export function parse(text) {
  return (text.toLowerCase().match(/\S+/g) || []).map((word) => {
    const not = word.length > 1 && word[0] === "-";
    const rest = not ? word.slice(1) : word;
    const [, field, value] = rest.match(/^([a-z]+):(.*)$/) || [];
    return field in FIELDS ? { not, field, value } : { not, field: null, value: rest };
  }).filter((term) => term.value !== "");
}

function says(run) {
  const marks = [run.simulated && "simulated", run.notMoving && "not moving"];
  return [run.resource, run.kind, run.namespace, run.name, run.life, run.state, run.phase, run.reason, run.sentence, run.message,
    ...marks].filter(Boolean).join("\n").toLowerCase();
}

// A word for how it stands is meant so, and not as one that some message has in it ("0 failed").
const LIVES = new Set(["pending", "running", "suspended", "scheduled", "succeeded", "completed", "failed", "cancelled"]);

function fits(term, run) {
  if (!term.field && LIVES.has(term.value)) return run.life === (term.value === "completed" ? "succeeded" : term.value);
  if (!term.field) return says(run).includes(term.value);
  return FIELDS[term.field](run).some((text) => {
    const lower = (text || "").toLowerCase();
    return WHOLE.has(term.field) ? lower === term.value : lower.includes(term.value);
  });
}

export const matches = (terms, run) => terms.every((term) => fits(term, run) !== term.not);

// TEXT with "kind:NAME" set, or taken away where it was.
export function withKind(text, name) {
  const words = text.match(/\S+/g) || [];
  const had = words.some((word) => word.toLowerCase() === `kind:${name}`);
  const rest = words.filter((word) => !/^kind:/i.test(word));
  return (had || !name ? rest : [`kind:${name}`, ...rest]).join(" ");
}

const ORDER = { running: 0, pending: 1, suspended: 2, scheduled: 3 };

// What is under way first, then the newest.
export function order(a, b) {
  const x = ORDER[a.life] ?? 4, y = ORDER[b.life] ?? 4;
  if (x !== y) return x - y;
  const when = (run) => (x === 4 && run.endedAt) || run.createdAt || "";
  const p = when(a), q = when(b);
  if (p !== q) return p < q ? 1 : -1;
  return a.name < b.name ? -1 : a.name > b.name ? 1 : 0;
}
