/*
 * What has been measured, as figures to draw. Pure functions of what is in the run's files and its object.
 *
 * A figure is {id, title, kind, ...}:
 *   "xy"     x and y {label, unit, log}, series [{name, points: [{x, y, low, high, tone, note}], line}], limit {y, label} or limits [{x, label, tone}], front
 *   "strip"  unit, rows [{name, values, median, low, high, tone, note}]
 *   "bars"   unit, most, rows [{name, value, low, high, note}]
 * A tone is "better", "worse" or "": colours mean nothing else.
 */

import { digits, quantity } from "./format.js";
import { against } from "./words.js";

const finite = (...values) => values.every(Number.isFinite);
const number = (value) => (value === null || value === undefined || value === "" ? NaN : Number(value));

export function figures(kind, { object, files = {} }) {
  const result = files["result.json"], checkpoint = files["checkpoint.json"], samples = files["samples.json"];
  if (kind === "DynamoGraphDeploymentRequest") return dgdr(object, result, checkpoint);
  if (kind === "CUDAExperiment" || kind === "WorkloadProfile") return cuda(object, result);
  return algorithms(object, result, checkpoint, samples);
}

// ---- DynamoGraphDeploymentRequest

const gpusOf = (label) => (label.match(/\d+/g) || ["1"]).reduce((a, b) => a * Number(b), 1);

// The checkpoint has each point as soon as it is measured; the result has them when all is over.
export function slaPoints(checkpoint) {
  return Object.entries(checkpoint?.points || {}).flatMap(([key, value]) => {
    const match = key.match(/^(\w+)\/(.*)\/(\d+)\/(\d+)$/);
    if (!match || !Array.isArray(value)) return [];
    const [, phase, label, isl, concurrency] = match;
    const [ttft, , itl, throughput] = value.map(number);
    const gpus = gpusOf(label);
    return [{ phase, label, gpus, isl: Number(isl), concurrency: Number(concurrency), ttft, itl, perGpu: throughput / gpus }];
  });
}

function slaOf(object, result) {
  const config = object?.spec?.profilingConfig?.config || {};
  const sla = { ...(config.sla || object?.spec?.sla || {}), ...(result?.sla || {}) };
  return { isl: number(sla.isl), osl: number(sla.osl), ttft: number(sla.ttft), itl: number(sla.itl) };
}

const within = (value, limit) => (finite(value, limit) ? (value <= limit ? "better" : "worse") : "");

function grouped(points, keyOf) {
  const groups = new Map();
  for (const point of points) groups.set(keyOf(point), [...(groups.get(keyOf(point)) || []), point]);
  return [...groups];
}

const byX = (a, b) => a.x - b.x;

function fromResult(result) {
  const sweep = result?.sweep || {};
  const rows = (list, phase) => (list || []).map((row) => ({
    phase, label: row.label, gpus: row.gpus, isl: result.sla?.isl, concurrency: row.concurrency, ttft: number(row.ttft), itl: number(row.itl),
    perGpu: number(row.throughputPerGpu), estimated: row.measured === false }));
  const p = result?.prefillCurve || {}, d = result?.decodeCurve || {};
  const guessed = (curve, i) => (curve.estimated || []).includes(i);
  return [
    ...rows(sweep.prefill, "PrefillSweep"), ...rows(sweep.decode, "DecodeSweep"),
    ...(p.prefill_isl || []).map((isl, i) => ({ phase: "PrefillInterpolation", label: result.prefill?.label || "", isl, ttft: number(p.prefill_ttft?.[i]),
      perGpu: number(p.prefill_thpt_per_gpu?.[i]), estimated: guessed(p, i) })),
    ...(d.y_context_length || []).map((context, i) => ({ phase: "DecodeInterpolation", label: result.decode?.label || "", context,
      usage: number(d.x_kv_usage?.[i]), itl: number(d.z_itl?.[i]), perGpu: number(d.z_thpt_per_gpu?.[i]), estimated: guessed(d, i),
      concurrency: Math.round(number(d.x_kv_usage?.[i]) * number(d.max_kv_tokens) / context) || undefined })),
  ];
}

function ttftOverIsl(points, sla) {
  const of = (phase) => points.filter((p) => p.phase === phase && finite(p.isl, p.ttft));
  const point = (p) => ({ x: p.isl, y: p.ttft, tone: p.phase === "PrefillSweep" ? within(p.ttft, sla.ttft) : "", note: p.label, hollow: p.estimated });
  const series = [
    ...grouped(of("PrefillSweep"), (p) => p.label).map(([label, list]) => ({ name: `${label} (sweep)`, points: list.map(point).sort(byX) })),
    ...grouped(of("PrefillInterpolation"), (p) => p.label).map(([label, list]) => ({ name: label ? `${label} (curve)` : "curve", line: true, points: list.map(point).sort(byX) })),
  ];
  return { id: "ttft", title: "Time to first token over input length", kind: "xy", x: { label: "input length", unit: "tokens" },
    y: { label: "TTFT", unit: "ms", zero: true }, series, limit: finite(sla.ttft) ? { y: sla.ttft, label: `target ${quantity(sla.ttft, "ms")}` } : null };
}

function itlOverBatch(points, sla) {
  const of = points.filter((p) => p.phase === "DecodeSweep" && finite(p.concurrency, p.itl));
  const series = grouped(of, (p) => p.label).map(([label, list]) => ({ name: label, line: true,
    points: list.map((p) => ({ x: p.concurrency, y: p.itl, tone: within(p.itl, sla.itl), note: `${label}, ${quantity(p.perGpu, "tok/s/GPU")}` })).sort(byX) }));
  return { id: "itl", title: "Inter-token latency over batch", kind: "xy", x: { label: "requests at once", unit: "", log: true },
    y: { label: "ITL", unit: "ms", zero: true }, series, limit: finite(sla.itl) ? { y: sla.itl, label: `target ${quantity(sla.itl, "ms")}` } : null };
}

function itlOverContext(points, sla) {
  const of = points.filter((p) => p.phase === "DecodeInterpolation" && finite(p.itl))
    .map((p) => ({ ...p, context: p.context ?? p.isl + sla.osl / 2 })).filter((p) => finite(p.context, p.concurrency));
  const series = grouped(of, (p) => Math.round(p.context)).sort(([a], [b]) => a - b).map(([context, list]) => ({ name: `context ${digits(context, 4)}`, line: true,
    points: list.map((p) => ({ x: p.concurrency, y: p.itl, tone: "", hollow: p.estimated,
      note: `context ${digits(context, 4)} tokens, ${quantity(p.perGpu, "tok/s/GPU")}` })).sort(byX) }));
  return { id: "context", title: "Inter-token latency over batch and context", kind: "xy", x: { label: "requests at once", unit: "", log: true },
    y: { label: "ITL", unit: "ms", zero: true }, series, limit: finite(sla.itl) ? { y: sla.itl, label: `target ${quantity(sla.itl, "ms")}` } : null };
}

// Those that no other beats in both; larger is better.
export function paretoFront(points) {
  const front = [];
  for (const point of [...points].sort((a, b) => b.x - a.x || b.y - a.y)) if (!front.length || point.y > front.at(-1).y) front.push(point);
  return front.reverse();
}

function slaPareto(points, sla, chosen) {
  const of = points.filter((p) => p.phase === "DecodeSweep" && finite(p.itl, p.perGpu) && p.itl > 0);
  const isChosen = (p) => chosen && p.label === chosen.label && p.concurrency === chosen.concurrency;
  const series = grouped(of, (p) => p.label).map(([label, list]) => ({ name: label,
    points: list.map((p) => ({ x: 1000 / p.itl, y: p.perGpu, tone: within(p.itl, sla.itl), big: isChosen(p),
      note: `${label}, ${p.concurrency} at once, ITL ${quantity(p.itl, "ms")}${isChosen(p) ? ", chosen" : ""}` })).sort(byX) }));
  const front = paretoFront(series.flatMap((one) => one.points));
  return { id: "pareto", title: "Speed for one against throughput for all", kind: "xy", x: { label: "speed for one", unit: "tok/s", zero: true },
    y: { label: "throughput", unit: "tok/s/GPU", zero: true }, series, front, limit: finite(sla.itl) ? { x: 1000 / sla.itl, label: "target" } : null };
}

function dgdr(object, result, checkpoint) {
  const live = slaPoints(checkpoint);
  const points = live.length ? live : fromResult(result);
  const sla = slaOf(object, result);
  return [ttftOverIsl(points, sla), itlOverBatch(points, sla), itlOverContext(points, sla), slaPareto(points, sla, result?.decode)];
}

// What has it found? One sentence, also half-way.
export function found(kind, { run, object, files = {} }) {
  if (run.life === "succeeded" && run.sentence && kind !== "DynamoGraphDeploymentRequest" && kind !== "WorkloadProfile") return run.sentence;
  if (kind === "DynamoGraphDeploymentRequest") return foundSla(object, files["result.json"], run.bestSoFar ? [] : slaPoints(files["checkpoint.json"])); // which is said already
  if (kind === "CUDAExperiment" || kind === "WorkloadProfile") return foundCuda(object, files["result.json"]);
  const rows = stripRows(object, files["result.json"], files["checkpoint.json"], files["samples.json"]).filter((row) => row.values.length);
  return rows.slice(0, 4).map((row) => `${row.name} ${quantity(row.median, "s")} (${row.values.length} so far)`).join(", ");
}

function foundSla(object, result, points) {
  const sla = slaOf(object, result);
  if (result?.prefill && result.decode) {
    const { prefill, decode, replicas } = result;
    return `${result.feasible === false ? "The targets cannot be met; closest: p" : "P"}refill ${prefill.label} with TTFT ${quantity(prefill.ttft, "ms")}, decode ${decode.label} with ITL `
      + `${quantity(decode.itl, "ms")} and ${quantity(decode.throughputPerGpu, "tok/s/GPU")} at ${decode.concurrency} requests`
      + (replicas ? `; ${replicas.prefill} + ${replicas.decode} engines on ${replicas.gpus} GPUs` : "");
  }
  const best = (list, better) => list.reduce((a, b) => (a && !better(b, a) ? a : b), null);
  const decode = best(points.filter((p) => p.phase === "DecodeSweep" && p.itl <= sla.itl), (a, b) => a.perGpu > b.perGpu);
  const prefill = best(points.filter((p) => p.phase === "PrefillSweep" && finite(p.ttft)), (a, b) => a.ttft < b.ttft);
  return [prefill && `prefill ${prefill.label} TTFT ${quantity(prefill.ttft, "ms")}`,
    decode && `decode ${decode.label} ITL ${quantity(decode.itl, "ms")}, ${quantity(decode.perGpu, "tok/s/GPU")}`].filter(Boolean).join("; ")
    .replace(/^(?=.)/, "Best so far: ");
}

// ---- CUDAExperiment, WorkloadProfile

const LIGHT = [["smThroughput", "Compute (SM)"], ["memThroughput", "Memory"], ["dramThroughput", "DRAM"], ["l2Throughput", "L2 cache"],
  ["l1Throughput", "L1 cache"], ["achievedOccupancy", "Occupancy, achieved"], ["theoreticalOccupancy", "Occupancy, possible"]];

const shortKernel = (name) => (name.length > 40 ? name.slice(0, 37) + "…" : name);

function foundCuda(object, result) {
  const bound = result?.boundType || object?.status?.boundType;
  if (!bound) return "";
  const kernel = result?.dominantKernel || object?.status?.metrics?.dominantKernel;
  return bound + (kernel ? `; most of the time is in ${shortKernel(kernel)}` : "");
}

function cuda(object, result) {
  const metrics = result?.metrics || object?.status?.metrics || {};
  const kernels = result?.byKernel || object?.status?.details?.byKernel || [];
  const spread = (key) => kernels.map((k) => [number(k.min?.[key] ?? k.metrics?.[key]), number(k.max?.[key] ?? k.metrics?.[key])]).filter(([a, b]) => finite(a, b));
  const rows = LIGHT.filter(([key]) => finite(number(metrics[key]))).map(([key, name]) => {
    const all = spread(key);
    return { name, value: number(metrics[key]), low: all.length ? Math.min(...all.map(([a]) => a)) : undefined,
      high: all.length ? Math.max(...all.map(([, b]) => b)) : undefined };
  });
  const place = (m) => ({ x: number(m?.memThroughput ?? m?.dramThroughput), y: number(m?.smThroughput) });
  const each = (kernels.length ? kernels : [{ kernel: "all launches", metrics, share: 1 }])
    .map((k) => ({ name: shortKernel(k.kernel), points: [{ ...place(k.metrics), big: k.share > 0.5,
      note: `${shortKernel(k.kernel)}${k.share < 1 ? `, ${digits(k.share * 100, 2)} % of the time` : ""}` }] }))
    .filter((one) => finite(one.points[0].x, one.points[0].y));
  return [
    { id: "light", title: "Speed of light: how much of the peak is used", kind: "bars", unit: "%", most: 100, rows },
    { id: "roofline", title: "Position under the roofline: compute against memory", kind: "xy", x: { label: "memory, of its peak", unit: "%", from: 0, to: 100 },
      y: { label: "compute, of its peak", unit: "%", from: 0, to: 100 }, series: each, diagonal: true },
  ];
}

// ---- algorithms

export function median(values) {
  const sorted = [...values].sort((a, b) => a - b), n = sorted.length;
  return n ? (sorted[(n - 1) >> 1] + sorted[n >> 1]) / 2 : NaN;
}

const specAlgorithms = (spec) => spec?.algorithms?.map((a) => a.name) || (spec?.algorithmName ? [spec.algorithmName] : []);

function specSizes(spec) {
  return [...new Set([spec?.inputSize, ...(spec?.inputSizes || [])].map(Number))].filter(Number.isFinite).sort((a, b) => a - b);
}

// {algorithm, size, seconds}, warm-up and failures left out.
export function samplesOf(object, checkpoint, samples) {
  const table = samples?.rows ? samples : checkpoint?.rows ? checkpoint : null;
  if (!table) return [];
  const at = Object.fromEntries(table.columns.map((name, i) => [name, i]));
  const spec = object?.spec, names = specAlgorithms(spec), sizes = specSizes(spec);
  const warmup = spec?.warmup ?? ((spec?.iterations ?? 1) > 1 ? 1 : 0);
  return table.rows.flatMap((row) => {
    const seconds = number(row[at.time]);
    if (!finite(seconds)) return [];
    if (at.algorithm !== undefined)
      return row[at.iteration] < 0 || row[at.failure] ? [] : [{ algorithm: row[at.algorithm], size: row[at.size], seconds }];
    if (row[at.block] < warmup || row[at.reason]) return [];
    const entry = row[at.entry];
    return [{ algorithm: names[Math.floor(entry / sizes.length)] ?? `#${entry}`, size: sizes[entry % sizes.length], seconds }];
  });
}

const TONES = { faster: "better", smaller: "better", slower: "worse", larger: "worse" };

export function stripRows(object, result, checkpoint, samples) {
  const spec = object?.spec, sizes = specSizes(spec), taken = samplesOf(object, checkpoint, samples);
  const pairs = object?.status?.comparison?.pairs || result?.comparison?.pairs || [], baseline = object?.status?.comparison?.baseline || result?.comparison?.baseline;
  const named = (name, size) => (sizes.length > 1 ? `${name}, n = ${digits(size, 7)}` : name);
  const entries = result?.algorithms?.map((a) => ({ ...a, stats: a.statistics?.time }))
    || specAlgorithms(spec).flatMap((name) => sizes.map((size) => ({ name, size })));
  return entries.map((entry) => {
    const values = taken.filter((t) => t.algorithm === entry.name && t.size === entry.size).map((t) => t.seconds);
    const pair = pairs.find((p) => p.of === "time" && p.a === entry.name && p.b === baseline && p.size === entry.size);
    return { name: named(entry.name, entry.size), algorithm: entry.name, size: entry.size, values, median: entry.stats?.median ?? median(values),
      low: entry.stats?.ciLow, high: entry.stats?.ciHigh, tone: TONES[pair?.verdict] || "",
      note: [pair && against(pair.verdict, baseline), entry.name === baseline && "what the others are compared with", entry.error].filter(Boolean).join("; ") };
  });
}

function scaling(rows) {
  const series = grouped(rows.filter((row) => finite(row.median, row.size)), (row) => row.algorithm).filter(([, list]) => list.length > 1)
    .map(([name, list]) => ({ name, line: true, points: list.map((row) => ({ x: row.size, y: row.median, low: row.low, high: row.high, note: row.name })).sort(byX) }));
  return { id: "scaling", title: "How the time grows with the input", kind: "xy", x: { label: "input size", unit: "", log: true },
    y: { label: "median time", unit: "s", log: true }, series };
}

function algorithms(object, result, checkpoint, samples) {
  const rows = stripRows(object, result, checkpoint, samples);
  const list = [{ id: "samples", title: "Every single run", kind: "strip", unit: "s", rows, log: wide(rows) }];
  if (specSizes(object?.spec).length > 1) list.push(scaling(rows));
  const memory = (result?.algorithms || []).filter((a) => finite(a.statistics?.time?.median, a.statistics?.memory?.median));
  if (new Set(memory.map((a) => a.name)).size > 1)
    list.push({ id: "memory", title: "Time against memory", kind: "xy", x: { label: "median time", unit: "s", zero: true }, y: { label: "memory", unit: "MB" },
      series: memory.map((a) => ({ name: a.name, points: [{ x: a.statistics.time.median, y: a.statistics.memory.median, note: a.name }] })) });
  return list;
}

// Whether a line with equal steps would press most of it into a corner.
function wide(rows) {
  const all = rows.flatMap((row) => (row.values.length ? row.values : [row.median])).filter((v) => v > 0);
  return all.length > 1 && Math.max(...all) / Math.min(...all) > 50;
}

export const isEmpty = (figure) =>
  figure.kind === "xy" ? !figure.series.some((one) => one.points.length) : !figure.rows.some((row) => row.values?.length || Number.isFinite(row.value ?? row.median));
