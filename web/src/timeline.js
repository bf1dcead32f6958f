// The phases of a run: what was, what is, what is to come. Pure functions.

import { seconds } from "./format.js";

// Phases of a DynamoGraphDeploymentRequest's profiler when it declares none.
const DESIGN = ["Initializing", "PrefillSweep", "DecodeSweep", "ConfigSelection", "PrefillInterpolation", "DecodeInterpolation",
  "PlannerGeneration"];

const number = (value) => (Number.isFinite(value) ? value : undefined);

function fromTrack(track, now) {
  return track.phases.map((p) => ({
    name: p.name,
    seconds: number(p.endedAt || !p.beganAt ? p.seconds : Math.max(p.seconds || 0, now - seconds(p.beganAt))),
    steps: number(p.totalSteps),
    done: number(p.steps),
    over: !!p.endedAt,
  }));
}

function fromHistory(phases) {
  return phases.map((p) => ({ name: p.phase || p.name, seconds: number(p.seconds), steps: number(p.total), done: number(p.steps), over: true }));
}

function planned(plan, run) {
  const names = (plan || []).map((p) => (typeof p === "string" ? { phase: p } : p));
  if (names.length) return names.map((p) => ({ name: p.phase, steps: number(p.steps) }));
  return run.resource === "dgdr" ? DESIGN.map((name) => ({ name })) : [];
}

/*
 * [{name, state: "over"|"now"|"planned"|"failed", seconds, steps, done}] in their order. PLAN is the status file's, TRACK what the
 * relay has kept of its events, PAST the phases that the history has of a run that has ended.
 */
export function timeline({ run, plan, track, past, now }) {
  const seen = track?.phases?.length ? fromTrack(track, now) : past?.length ? fromHistory(past) : [];
  const under = run.life === "running" || run.life === "suspended";
  const rows = seen.map((p) => ({ ...p, state: p.over || !under ? "over" : "now" }));
  for (const p of planned(plan, run)) {
    const known = rows.find((row) => row.name === p.name);
    if (known) known.steps ??= p.steps;
    else if (under || run.life === "pending") rows.push({ ...p, state: "planned" });
    else if (run.life === "succeeded") rows.push({ ...p, state: "over" });
  }
  if (run.life === "succeeded") for (const row of rows) row.done = row.steps;
  if (!seen.length) mark(rows, run, now);
  if (run.life === "failed" && rows.length) {
    const last = rows.findLast((row) => row.state !== "planned");
    if (last) last.state = "failed";
  }
  return rows;
}

// Without a track: from the row alone.
function mark(rows, run, now) {
  if (run.life !== "running") return;
  let at = rows.findIndex((row) => row.name === run.phase);
  if (at < 0) at = rows.push({ name: run.phase }) - 1;
  rows.forEach((row, i) => (row.state = i < at ? "over" : i === at ? "now" : "planned"));
  rows[at].done = run.currentStep ? run.currentStep - 1 : undefined;
  rows[at].steps ??= run.totalSteps;
  if (rows.length === 1) rows[0].seconds = number(now - seconds(run.startedAt));
}
