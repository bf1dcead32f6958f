// Numbers and times as people read them. Pure functions.

const DASH = "–";

export const seconds = (text) => (text ? Date.parse(text) / 1000 : NaN);

// "4 s", "11 m 20 s", "2 h 05 m", "3 d 4 h"; "" of what is not known.
export function duration(total) {
  if (!Number.isFinite(total)) return "";
  const t = Math.max(0, total);
  if (t < 1) return t === 0 ? "0 s" : `${Math.max(1, Math.round(t * 1000))} ms`;
  if (t < 10) return `${digits(t, 2)} s`;
  const whole = Math.round(t);
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)} m ${String(whole % 60).padStart(2, "0")} s`;
  const minutes = Math.round(t / 60);
  if (minutes < 24 * 60) return `${Math.floor(minutes / 60)} h ${String(minutes % 60).padStart(2, "0")} m`;
  const hours = Math.round(t / 3600);
  return `${Math.floor(hours / 24)} d ${hours % 24} h`;
}

// With one unit: "38 m".
export function age(total) {
  if (!Number.isFinite(total)) return "";
  const t = Math.max(0, total);
  if (t < 60) return `${Math.floor(t)} s`;
  if (t < 3600) return `${Math.floor(t / 60)} m`;
  if (t < 48 * 3600) return `${Math.floor(t / 3600)} h`;
  return `${Math.floor(t / 86400)} d`;
}

// N significant digits without an exponent, no zeros at the end.
export function digits(value, n = 3) {
  if (!Number.isFinite(value)) return "";
  if (value === 0) return "0";
  const power = Math.floor(Math.log10(Math.abs(value)));
  const text = value.toFixed(Math.min(12, Math.max(0, n - 1 - power)));
  const short = text.includes(".") ? text.replace(/\.?0+$/, "") : text;
  const [whole, rest] = short.split(".");
  return whole.replace(/\B(?=(\d{3})+$)/g, " ") + (rest ? "." + rest : "");
}

const SCALES = {
  s: [[1, "s"], [1e-3, "ms"], [1e-6, "µs"], [1e-9, "ns"]],
  ms: [[1000, "s"], [1, "ms"], [1e-3, "µs"]],
  ns: [[1e9, "s"], [1e6, "ms"], [1e3, "µs"], [1, "ns"]],
  B: [[2 ** 30, "GiB"], [2 ** 20, "MiB"], [1024, "KiB"], [1, "B"]],
};

// "412 ms", "1.5 GiB", "80.8 %", "1 912 tok/s/GPU"
export function quantity(value, unit = "", n = 3) {
  if (!Number.isFinite(value)) return "";
  const scales = SCALES[unit];
  if (!scales) return unit ? `${digits(value, n)} ${unit}` : digits(value, n);
  const [factor, name] = scales.find(([f]) => Math.abs(value) >= f * 0.9995) || (value === 0 ? scales[0] : scales.at(-1));
  return `${digits(value / factor, n)} ${name}`;
}

export const percent = (value) => (Number.isFinite(value) ? `${Math.floor(value + 1e-9)} %` : "");

export function step(run) {
  return run.totalSteps ? `${run.currentStep ?? 0}/${run.totalSteps}` : "";
}

// How long until it ends: {mid, low, high} in seconds from NOW, or null.
export function left(run, now) {
  const mid = seconds(run.eta?.mid);
  if (!Number.isFinite(mid)) return null;
  const low = seconds(run.eta.low), high = seconds(run.eta.high);
  return { mid: mid - now, low: (Number.isFinite(low) ? low : mid) - now, high: (Number.isFinite(high) ? high : mid) - now };
}

// "18–31 m": the unit is said once where it is the same.
export function range(low, high) {
  const a = age(low), b = age(high);
  if (a === b) return a;
  const [x, u] = a.split(" "), [, v] = b.split(" ");
  return u === v ? `${x}${DASH}${b}` : `${a} ${DASH} ${b}`;
}

// "22 m (18–31 m)"; a guess that is past says so.
export function eta(run, now) {
  const rest = left(run, now);
  if (!rest) return "";
  if (rest.high <= 0) return "any moment";
  if (rest.mid <= 0) return `within ${age(rest.high)}`;
  const span = range(Math.max(0, rest.low), rest.high);
  return span === age(rest.mid) ? span : `${age(rest.mid)} (${span})`;
}

// "starts in about 22 m", of what waits in a queue; "": not known.
export function start(run, now) {
  const rest = seconds(run.expectedStart) - now;
  if (!Number.isFinite(rest)) return "";
  return rest > 0 ? `starts in about ${age(rest)}` : "starts any moment";
}

export function clock(text) {
  const date = text ? new Date(text) : null;
  if (!date || Number.isNaN(date.getTime())) return "";
  const two = (n) => String(n).padStart(2, "0");
  return `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
}

// With the day, where it is not today's.
export function moment(text, now = Date.now()) {
  const date = text ? new Date(text) : null;
  if (!date || Number.isNaN(date.getTime())) return "";
  const today = new Date(now).toDateString() === date.toDateString();
  return today ? clock(text) : `${day(date)} ${clock(text)}`;
}

export function day(date) {
  const two = (n) => String(n).padStart(2, "0");
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
}

// Between two times that are known to the second: "6 s", "under 1 s".
export function took(from, to) {
  const t = seconds(to) - seconds(from);
  return !(t >= 0) ? "" : t < 1 ? "under 1 s" : duration(t);
}

export const title = (run) => `${run.resource}/${run.name}`;
export const keyOf = (run) => `${run.resource}/${run.namespace}/${run.name}`;
