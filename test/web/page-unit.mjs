#!/usr/bin/node
// The page's pure functions: what is said, filtered, drawn and saved, of data as runs really leave it.

import assert from "node:assert/strict";
import { test } from "node:test";
import { csv } from "../../web/src/csv.js";
import { parsed } from "../../web/src/files.js";
import * as filter from "../../web/src/filter.js";
import * as format from "../../web/src/format.js";
import { figures, found, isEmpty, median, paretoFront, samplesOf, slaPoints } from "../../web/src/measures.js";
import { limitWords } from "../../web/src/queue.js";
import * as route from "../../web/src/route.js";
import { ends, logTicks, scale, spread, ticks } from "../../web/src/scale.js";
import { timeline } from "../../web/src/timeline.js";
import { changeWords, trendFigure } from "../../web/src/trend.js";
import { against, configuration, controls, howFar, standing, whenDone } from "../../web/src/words.js";
import { readable, yaml } from "../../web/src/yaml.js";

const NOW = Date.parse("2026-11-16T14:37:00Z") / 1000;
const at = (seconds) => new Date((NOW + seconds) * 1000).toISOString();
const run = (more) => ({ kind: "AlgorithmProfiling", resource: "ap", namespace: "default", name: "a", uid: "1", life: "running", state: "Running", phase: "Measuring", ...more });

test("durations have the units that people say", () => {
  assert.deepEqual([0, 0.004, 3.25, 59.6, 680, 7500, 273600].map(format.duration), ["0 s", "4 ms", "3.3 s", "1 m 00 s", "11 m 20 s", "2 h 05 m", "3 d 4 h"]);
  assert.equal(format.duration(NaN), "");
  assert.deepEqual([3, 61, 3700, 49 * 3600].map(format.age), ["3 s", "1 m", "1 h", "2 d"]);
});

test("quantities keep three digits and their unit", () => {
  assert.equal(format.quantity(0.4126, "s"), "413 ms");
  assert.equal(format.quantity(0.000002353, "s"), "2.35 µs");
  assert.equal(format.quantity(0, "s"), "0 s");
  assert.equal(format.quantity(1912.4, "tok/s/GPU", 4), "1 912 tok/s/GPU");
  assert.equal(format.quantity(1536 * 1024 * 1024, "B"), "1.5 GiB");
  assert.equal(format.digits(-0.00012345), "-0.000123");
  assert.equal(format.digits(100), "100");
  assert.equal(format.quantity(NaN, "s"), "");
});

test("what waits says when it begins, and nothing where that is not known", () => {
  const queued = run({ life: "pending", queuePosition: "1", expectedStart: at(1320) });
  assert.equal(format.start(queued, NOW), "starts in about 22 m");
  assert.equal(whenDone(queued, NOW), "Starts in about 22 m");
  assert.equal(format.start({ ...queued, expectedStart: at(-3) }, NOW), "starts any moment");
  assert.equal(format.start(run({ life: "pending" }), NOW), "");
  assert.equal(whenDone(run({ life: "pending" }), NOW), "Not begun yet");
});

test("phases of a run that has ended have their durations, which the history has without times", () => {
  const track = { startedAt: at(-60), endedAt: at(0), phases: [{ name: "Measuring", seconds: 58.5, steps: 9, totalSteps: 9 }] };
  const [row] = timeline({ run: run({ life: "succeeded" }), track, now: NOW });
  assert.deepEqual([row.name, row.state, row.seconds, row.done, row.steps], ["Measuring", "over", 58.5, 9, 9]);
});

test("a verdict reads as a sentence", () => {
  assert.deepEqual(["faster", "larger", "no detectable difference", "inconclusive", "not comparable"].map((v) => against(v, "a")),
    ["faster than a", "larger than a", "no detectable difference from a", "inconclusive against a", "not comparable with a"]);
});

test("a percentage is not rounded up to what it has not reached", () => {
  assert.equal(format.percent(99.9), "99 %");
  assert.equal(format.percent(undefined), "");
});

test("the end is a range, and said to be unknown rather than wrong", () => {
  const running = run({ eta: { low: at(1080), mid: at(1320), high: at(1860) } });
  assert.equal(format.eta(running, NOW), "22 m (18–31 m)");
  assert.equal(format.eta(run({ eta: { low: at(50), mid: at(70), high: at(100) } }), NOW), "1 m (50 s – 1 m)");
  assert.equal(format.eta(run({ eta: { low: at(-50), mid: at(-20), high: at(100) } }), NOW), "within 1 m");
  assert.equal(format.eta(run({ eta: { low: at(-50), mid: at(-20), high: at(-10) } }), NOW), "any moment");
  assert.equal(format.eta(run({}), NOW), "");
  assert.equal(whenDone(run({}), NOW), "When it ends is not known yet");
  assert.match(whenDone(running, NOW), /^Ends in 22 m \(18–31 m\), between \d\d:\d\d:\d\d and \d\d:\d\d:\d\d$/);
});

test("a filter finds words anywhere, and in one place where that is said", () => {
  const passes = (text, one) => filter.matches(filter.parse(text), one);
  const failed = run({ life: "failed", reason: "OutOfMemory", sentence: "it needs more", resource: "dgdr", kind: "DynamoGraphDeploymentRequest" });
  assert.ok(passes("kind:dgdr failed", failed) && passes("", failed) && passes("KIND:DynamoGraphDeploymentRequest memory", failed));
  assert.ok(!passes("kind:dgd", failed) && !passes("kind:ap", failed) && !passes("-failed", failed) && passes("-kind:ap", failed));
  assert.ok(passes("reason:outof", failed) && !passes("reason:other", failed));
  assert.ok(passes("completed", run({ life: "succeeded" })) && !passes("failed", run({ message: "10 runs, 0 failed" })));
  assert.ok(passes("kind:", failed), "what is not written yet filters nothing");
  assert.equal(filter.withKind("kind:ap failed", "dgdr"), "kind:dgdr failed");
  assert.equal(filter.withKind("kind:ap failed", "ap"), "failed");
});

test("what is under way comes first, then the newest", () => {
  const list = [run({ name: "old", life: "succeeded", endedAt: at(-100) }), run({ name: "new", life: "failed", endedAt: at(-10) }), run({ name: "waits", life: "pending" }), run({ name: "runs" })];
  assert.deepEqual(list.sort(filter.order).map((one) => one.name), ["runs", "waits", "new", "old"]);
});

test("places are read back as they were written", () => {
  const place = route.parse(route.format("run", ["ap", "team/a", "v1.2?x"], { q: "a b&c" }));
  assert.deepEqual([place.page, place.parts, place.query.get("q")], ["run", ["ap", "team/a", "v1.2?x"], "a b&c"]);
  assert.deepEqual(route.parse("").page, "runs");
  assert.deepEqual(route.parse("#/compare?run=ap/a/b&run=ap/a/c").query.getAll("run"), ["ap/a/b", "ap/a/c"]);
  assert.equal(route.token("#t=abc.def"), "abc.def");
  assert.equal(route.token("#/runs?t=1"), null);
  assert.equal(route.parse("#/run/%zz").parts[0], "%zz");
});

test("how a run stands is said in words, with what can be done", () => {
  assert.deepEqual(standing(run({ notMoving: true, sentence: "for 9 m" })), { word: "Not moving", tone: "worse", detail: "for 9 m" });
  assert.equal(standing(run({ life: "failed", reason: "X", sentence: "y" })).detail, "X: y");
  assert.match(standing(run({ life: "pending", queuePosition: "2" })).word, /place 2/);
  assert.equal(howFar(run({ phaseNumber: 3, totalPhases: 7, currentStep: 5, totalSteps: 12, attempt: 2 })), "phase 3 of 7 · step 5 of 12 · attempt 2");
  assert.deepEqual(["running", "suspended", "succeeded"].map((life) => controls(run({ life }))), [["suspend", "cancel"], ["resume", "cancel"], ["rerun"]]);
  assert.deepEqual(controls({ kind: "WorkloadProfile", life: "succeeded" }), []);
});

test("what is being measured is said as far as it is known", () => {
  const said = (gpuConfig, place = "progress") => configuration({ status: { [place]: { gpuConfig } } });
  assert.equal(said({ currentGpus: 4, parallelMapping: "TP=2/DP=2" }, "profilingProgress"), "TP=2/DP=2 on 4 GPUs");
  assert.deepEqual([said({ currentGpus: 1 }), said({ currentGpus: 0, parallelMapping: "TP=1" })], ["1 GPU", "TP=1"]);
  assert.deepEqual([undefined, {}, { status: { progress: {} } }].map(configuration), ["", "", ""]);
});

test("a timeline has what was, what is and what is to come", () => {
  const track = { startedAt: at(-900), phases: [{ name: "Initializing", beganAt: at(-900), endedAt: at(-896), seconds: 4 }, { name: "PrefillSweep", beganAt: at(-896), seconds: 800, steps: 3, totalSteps: 8 }] };
  const rows = timeline({ run: run({ resource: "dgdr" }), track, now: NOW });
  assert.deepEqual(rows.slice(0, 3).map((row) => [row.name, row.state]), [["Initializing", "over"], ["PrefillSweep", "now"], ["DecodeSweep", "planned"]]);
  assert.equal(rows.length, 7);
  assert.equal(Math.round(rows[1].seconds), 896);
  assert.deepEqual([rows[1].done, rows[1].steps], [3, 8]);
  const failed = timeline({ run: run({ resource: "dgdr", life: "failed" }), track, now: NOW });
  assert.deepEqual(failed.map((row) => row.state), ["over", "failed"]);
  const past = timeline({ run: run({ life: "succeeded" }), past: [{ phase: "Measuring", seconds: 4 }], now: NOW });
  assert.deepEqual(past.map((row) => [row.name, row.state, row.seconds]), [["Measuring", "over", 4]]);
  const plain = timeline({ run: run({ startedAt: at(-30) }), plan: ["Measuring", { phase: "Analysing", steps: 3 }], now: NOW });
  assert.deepEqual(plain.map((row) => row.state), ["now", "planned"]);
  assert.deepEqual(timeline({ run: run({ life: "succeeded" }), now: NOW }), []);
  const done = timeline({ run: run({ resource: "dgdr", life: "succeeded" }), track, now: NOW });
  assert.deepEqual([done.length, done.every((row) => row.state === "over"), done[1].done], [7, true, 8], "what ended after the last look has ended");
});

const CHECKPOINT = { points: {
  "PrefillSweep/TP=1/1000/1": [42.7, 42.7, 4.1, 84.5, 0.05, 1, 0], "PrefillSweep/TP=2/1000/1": [23.5, 23.5, 4.1, 124.8, 0.04, 1, 0],
  "DecodeSweep/TP=1/1000/1": [2, 2, 4.3, 234.9, 0.2, 1, 0], "DecodeSweep/TP=1/1000/28": [28.9, 57.9, 10.7, 2523.3, 0.5, 28, 0],
  "DecodeSweep/TP=2/1000/57": [57.5, 112.9, 12.9, 4129.5, 0.6, 57, 0], "DecodeInterpolation/TP=1/100/200": [258, 455, 48.8, 3752, 2.6, 200, 0], bad: 1 } };
const DGDR = { spec: { profilingConfig: { config: { sla: { isl: 1000, osl: 50, ttft: 40, itl: 12 } } } } };

test("an SLA run's points are drawn as they are measured", () => {
  const list = figures("DynamoGraphDeploymentRequest", { object: DGDR, files: { "checkpoint.json": CHECKPOINT } });
  const [ttft, itl, context, pareto] = list;
  assert.deepEqual(ttft.series.map((one) => [one.name, one.points[0].x, one.points[0].y, one.points[0].tone]), [["TP=1 (sweep)", 1000, 42.7, "worse"], ["TP=2 (sweep)", 1000, 23.5, "better"]]);
  assert.deepEqual(itl.series[0].points.map((p) => [p.x, p.y, p.tone]), [[1, 4.3, "better"], [28, 10.7, "better"]]);
  assert.equal(itl.limit.y, 12);
  assert.deepEqual(context.series.map((one) => one.name), ["context 125"]);
  assert.equal(pareto.series[1].points[0].y, 4129.5 / 2, "throughput is for each GPU");
  assert.match(found("DynamoGraphDeploymentRequest", { run: run({}), object: DGDR, files: { "checkpoint.json": CHECKPOINT } }), /^Best so far: prefill TP=2 TTFT 23.5 ms; decode TP=1 ITL 10.7 ms/);
  assert.equal(found("DynamoGraphDeploymentRequest", { run: run({ bestSoFar: "TP=2" }), object: DGDR, files: { "checkpoint.json": CHECKPOINT } }), "", "what its status says is not said twice");
  assert.equal(slaPoints(undefined).length, 0);
  for (const one of figures("DynamoGraphDeploymentRequest", { object: {}, files: {} })) assert.ok(isEmpty(one));
});

test("a Pareto front has what nothing beats in both", () => {
  assert.deepEqual(paretoFront([{ x: 1, y: 5 }, { x: 2, y: 4 }, { x: 1.5, y: 4 }, { x: 3, y: 1 }, { x: 3, y: 0 }]).map((p) => [p.x, p.y]), [[1, 5], [2, 4], [3, 1]]);
});

test("a profiled program has its bars and the place of each kernel", () => {
  const kernel = (sm, mem, share) => ({ kernel: `k${sm}`, share, metrics: { smThroughput: sm, memThroughput: mem } });
  const [light, roofline] = figures("CUDAExperiment", { object: {}, files: { "result.json": { metrics: { smThroughput: 23.8, memThroughput: 80.8 }, byKernel: [kernel(12, 91, 0.8), kernel(70, 40, 0.2)] } } });
  assert.deepEqual(light.rows.map((row) => [row.name, row.value, row.low, row.high]), [["Compute (SM)", 23.8, 12, 70], ["Memory", 80.8, 40, 91]]);
  assert.deepEqual(roofline.series.map((one) => [one.points[0].x, one.points[0].y, one.points[0].big]), [[91, 12, true], [40, 70, false]]);
});

test("a profile has its kernels in its status, and values that are texts", () => {
  const kernel = (name, sm, mem, share, more) => ({ kernel: name, launches: 1, share, metrics: { smThroughput: sm, memThroughput: mem }, ...more });
  const object = { status: { boundType: "memory-bound", metrics: { smThroughput: "23.8", memThroughput: "80.8", l2Throughput: "30.22", dominantKernel: "triad(double*)" },
    details: { byKernel: [kernel("triad(double*)", 12, 91, 0.8, { min: { smThroughput: 10 }, max: { smThroughput: 14 } }), kernel("check", 70, 40, 0.2)] } } };
  const [light, roofline] = figures("WorkloadProfile", { object, files: {} });
  assert.deepEqual(light.rows.map((row) => [row.name, row.value, row.low, row.high]), [["Compute (SM)", 23.8, 10, 70], ["Memory", 80.8, 40, 91], ["L2 cache", 30.22, undefined, undefined]]);
  assert.deepEqual(roofline.series.map((one) => [one.name, one.points[0].x, one.points[0].y]), [["triad(double*)", 91, 12], ["check", 40, 70]]);
  assert.equal(found("WorkloadProfile", { run: run({ kind: "WorkloadProfile", life: "succeeded", sentence: "memory-bound" }), object }), "memory-bound; most of the time is in triad(double*)");
  const [, alone] = figures("WorkloadProfile", { object: { status: { metrics: { smThroughput: "12.56", memThroughput: "30.22" } } }, files: {} });
  assert.deepEqual(alone.series.map((one) => one.name), ["all launches"], "what upstream wrote has no kernels");
});

test("limits that are not known are no limits that are not there", () => {
  assert.deepEqual(limitWords(undefined), []);
  assert.deepEqual(limitWords({ maxConcurrentRuns: 2, maxConcurrentRunsPerNamespace: null }), [["max concurrent runs", "2"], ["max concurrent runs per namespace", "no limit"]]);
});

test("a trend shows each change, for the worse and for the better", () => {
  const points = Array.from({ length: 6 }, (_, i) => ({ name: `r${i}`, finishedAt: at(i * 60), value: [1, 1, 2, 2, 1.6, 1.6][i] }));
  const changes = [{ degraded: true, index: 2, goodFrom: 0, before: 1, after: 2, ratio: 2, low: 1.9, high: 2.1 }, { degraded: false, index: 4, goodFrom: 2, before: 2, after: 1.6, ratio: 0.8, low: 0.5, high: 1 }];
  const figure = trendFigure({ series: "s", points, changes });
  assert.deepEqual(figure.limits, [{ x: 2.5, label: "worse", tone: "worse" }, { x: 4.5, label: "better", tone: "better" }]);
  assert.deepEqual(figure.series[0].points.map((p) => p.tone), ["", "", "worse", "worse", "better", "better"]);
  assert.match(changeWords(changes[0], points), /^Worse from r2 \(.*\) on: 2 s in place of 1 s, 2 times as long \(95 % interval 1\.9 to 2\.1\)\.$/);
  assert.match(changeWords(changes[1], points), /^Better from r4 \(.*\) on: 1\.6 s in place of 2 s, 1\.25 times as fast \(95 % interval 1 to 2\)\.$/);
});

const SORTS = { spec: { algorithms: [{ name: "quick" }, { name: "merge" }], inputSize: 100, inputSizes: [50], iterations: 3 } };

test("samples come from the checkpoint while it runs, warm-up and failures left out", () => {
  const checkpoint = { columns: ["entry", "pod", "block", "reason", "time"], rows: [[0, 0, 0, 0, 9], [0, 0, 1, 0, 1], [1, 0, 1, 0, 2], [3, 0, 2, 0, 4], [2, 0, 1, 1, 7], [2, 0, 1, 0, null]] };
  assert.deepEqual(samplesOf(SORTS, checkpoint), [{ algorithm: "quick", size: 50, seconds: 1 }, { algorithm: "quick", size: 100, seconds: 2 }, { algorithm: "merge", size: 100, seconds: 4 }]);
  const [strip, scaling] = figures("AlgorithmComparison", { object: SORTS, files: { "checkpoint.json": checkpoint } });
  assert.deepEqual(strip.rows.map((row) => [row.name, row.values, row.median]), [["quick, n = 50", [1], 1], ["quick, n = 100", [2], 2], ["merge, n = 50", [], NaN], ["merge, n = 100", [4], 4]]);
  assert.deepEqual(scaling.series.map((one) => one.name), ["quick"]);
});

test("samples come from their own file in the end, with median, interval and verdict", () => {
  const samples = { columns: ["algorithm", "size", "pod", "iteration", "failure", "time"], rows: [["quick", 100, 0, -1, null, 9], ["quick", 100, 0, 0, null, 1], ["merge", 100, 0, 0, null, 4], ["merge", 100, 0, 1, "ExitCode", 8]] };
  const result = { algorithms: [{ name: "quick", size: 100, statistics: { time: { median: 1, ciLow: 0.9, ciHigh: 1.1 } } }, { name: "merge", size: 100, statistics: { time: { median: 4 } } }],
    comparison: { baseline: "merge", pairs: [{ a: "quick", b: "merge", of: "time", size: 100, verdict: "faster" }] } };
  const [strip] = figures("AlgorithmComparison", { object: { spec: { algorithms: SORTS.spec.algorithms, inputSize: 100 } }, files: { "samples.json": samples, "result.json": result } });
  assert.deepEqual(strip.rows.map((row) => [row.values, row.median, row.low, row.tone]), [[[1], 1, 0.9, "better"], [[4], 4, undefined, ""]]);
});

test("a median of none is none", () => {
  assert.ok(Number.isNaN(median([])));
  assert.equal(median([3, 1, 2]), 2);
  assert.equal(median([4, 1, 2, 3]), 2.5);
});

test("axes have round numbers and some air", () => {
  assert.deepEqual(ticks(0, 10, 5), [0, 2, 4, 6, 8, 10]);
  assert.deepEqual(ticks(0.03, 0.09, 3), [0.04, 0.06, 0.08]);
  assert.deepEqual(logTicks(1, 100), [1, 2, 5, 10, 20, 50, 100]);
  assert.deepEqual(ends([5, 10], { zero: true })[0], 0);
  assert.deepEqual(ends([], {}).every(Number.isFinite), true);
  assert.ok(ends([3], { log: true })[0] > 0);
  assert.equal(scale([1, 100], [0, 10], true)(10), 5);
  const lanes = spread([0, 0, 0, 50], 5);
  assert.equal(new Set(lanes.slice(0, 3)).size, 3, "dots at one place lie beside each other");
});

test("CSV is quoted, and no cell is a formula", () => {
  const text = csv({ kind: "strip", unit: "s", rows: [{ name: 'a,"b"', values: [0.5] }, { name: "=1+1", values: [-2] }] });
  assert.equal(text, 'name,value [s]\r\n"a,""b""",0.5\r\n\'=1+1,-2\r\n');
  assert.match(csv({ kind: "xy", x: { label: "x", unit: "ms" }, y: { label: "y", unit: "" }, series: [{ name: "s", points: [{ x: 1, y: NaN }] }] }), /^series,x \[ms\],y,low,high,note\r\ns,1,,,,\r\n$/);
});

test("YAML can be read back, and has no field managers", () => {
  const text = yaml(readable({ kind: "A", metadata: { name: "x", managedFields: [1] }, spec: { on: "yes", count: 1, list: [{ a: 1, b: [] }, "two: 2"], none: {}, text: "a\nb\n", v: "1.5", time: "12:30" } }));
  assert.equal(text, 'kind: A\nmetadata:\n  name: x\nspec:\n  "on": "yes"\n  count: 1\n  list:\n  - a: 1\n    b: []\n  - "two: 2"\n  none: {}\n  text: |\n    a\n    b\n  v: "1.5"\n  time: "12:30"\n');
});

test("a file that is not what it says is as if not there", () => {
  assert.deepEqual(parsed({ "a.json": "{", "b.json": { x: 1 }, "c.json.gz": '{"y":2}', "d.yaml": "z" }), { "a.json": undefined, "b.json": { x: 1 }, "c.json": { y: 2 }, "d.yaml": "z" });
  assert.deepEqual(parsed(undefined), {});
});
