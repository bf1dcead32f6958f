// From values to places on a line. Pure functions.

export function extent(values) {
  let low = Infinity, high = -Infinity;
  for (const v of values) {
    if (!Number.isFinite(v)) continue;
    if (v < low) low = v;
    if (v > high) high = v;
  }
  return low <= high ? [low, high] : [0, 1];
}

// The ends of an axis that shows VALUES with some air: {from, to} fixes an end, zero begins at 0, log multiplies.
export function ends(values, { zero, log, from, to } = {}) {
  let [low, high] = extent(log ? values.filter((v) => v > 0) : values);
  if (log) {
    low = low > 0 ? low : 0.1;
    high = Math.max(high, low);
    const air = high === low ? 2 : (high / low) ** 0.06;
    return [from ?? low / air, to ?? high * air];
  }
  if (zero) low = Math.min(0, low);
  const span = high - low || Math.abs(high) || 1;
  return [from ?? (zero && low === 0 ? 0 : low - span * 0.06), to ?? high + span * 0.08];
}

// About N round numbers between two.
export function ticks(low, high, n = 5) {
  const span = high - low;
  if (!(span > 0)) return [low];
  const rough = span / n, power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= rough * 0.999);
  const list = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9; i++) list.push(Number((i * step).toPrecision(12)));
  return list;
}

export function logTicks(low, high, n = 5) {
  const list = [];
  for (let p = Math.floor(Math.log10(low)); p <= Math.ceil(Math.log10(high)); p++)
    for (const m of [1, 2, 5]) {
      const v = Number((m * 10 ** p).toPrecision(12));
      if (v >= low * 0.999 && v <= high * 1.001) list.push(v);
    }
  if (list.length < 2) return ticks(low, high, n);
  const keep = Math.ceil(list.length / (n * 1.6));
  return list.filter((_, i) => i % keep === 0);
}

// A function from value to place.
export function scale([low, high], [a, b], log) {
  const f = log ? (v) => Math.log(Math.max(v, low * 1e-6)) : (v) => v;
  const x = f(low), span = f(high) - x || 1;
  return (v) => a + ((f(v) - x) / span) * (b - a);
}

// Where dots that would lie on each other go: the same for the same values, -1 ... 1.
export function spread(places, width) {
  const order = places.map((p, i) => [p, i]).sort((a, b) => a[0] - b[0]);
  const out = new Array(places.length).fill(0), lanes = [0, 1, -1, 2, -2, 3, -3], last = lanes.map(() => -Infinity);
  for (const [place, i] of order) {
    let lane = lanes.findIndex((_, k) => place - last[k] >= width);
    if (lane < 0) lane = last.indexOf(Math.min(...last));
    last[lane] = place;
    out[i] = lanes[lane] / 3;
  }
  return out;
}
