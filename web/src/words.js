// What the page says of a run, in words. Pure functions.

import { clock, eta, moment, start, took } from "./format.js";

export const MARKS = {
  running: "▸", pending: "·", suspended: "‖", scheduled: "◷", succeeded: "✓", failed: "✗", cancelled: "–",
};

// Is it all right? {word, tone, detail}; a tone is "better", "worse" or "".
export function standing(run) {
  const because = [run.reason, run.sentence].filter(Boolean).join(": ");
  switch (run.life) {
    case "running":
      return run.notMoving
        ? { word: "Not moving", tone: "worse", detail: run.sentence || "" }
        : { word: "All right, it runs", tone: "", detail: because };
    case "pending":
      if (run.queuePosition) return { word: `Waiting, place ${run.queuePosition} in the queue`, tone: "", detail: run.sentence || "" };
      return { word: "Waiting", tone: "", detail: because };
    case "suspended": return { word: "Suspended", tone: "", detail: run.sentence || "" };
    case "scheduled": return { word: "Scheduled", tone: "", detail: because };
    case "succeeded": return { word: "Done", tone: "better", detail: run.sentence || "" };
    case "failed": return { word: "Failed", tone: "worse", detail: because };
    case "cancelled": return { word: "Cancelled", tone: "", detail: run.sentence || "" };
    default: return { word: run.life, tone: "", detail: because };
  }
}

// When is it done?
export function whenDone(run, now) {
  if (run.life === "running") {
    const rest = eta(run, now);
    if (!rest) return "When it ends is not known yet";
    if (rest === "any moment") return "Ends any moment";
    const at = (text) => (text ? clock(text) : "");
    const low = at(run.eta.low), high = at(run.eta.high);
    return `Ends in ${rest}` + (low && high && low !== high ? `, between ${low} and ${high}` : `, at ${at(run.eta.mid)}`);
  }
  const time = took(run.startedAt || run.createdAt, run.endedAt);
  if (run.endedAt) return `Ended ${moment(run.endedAt, now * 1000)}${time && `, after ${time}`}`;
  if (run.life === "pending") return start(run, now).replace(/^s/, "S") || "Not begun yet";
  return "";
}

export function howFar(run) {
  const parts = [];
  if (run.life === "running" || run.life === "suspended") {
    if (run.phaseNumber && run.totalPhases) parts.push(`phase ${Math.min(run.phaseNumber, run.totalPhases)} of ${run.totalPhases}`);
    if (run.totalSteps) parts.push(`step ${run.currentStep ?? 0} of ${run.totalSteps}`);
  }
  if (run.attempt > 1) parts.push(`attempt ${run.attempt}`);
  return parts.join(" · ");
}

// What is being measured at this moment, as its object tells it: "TP=2/DP=2 on 4 GPUs".
export function configuration(object) {
  const { status } = object || {}, { parallelMapping, currentGpus } = (status?.profilingProgress || status?.progress)?.gpuConfig || {};
  const gpus = currentGpus > 0 ? `${currentGpus} GPU${currentGpus === 1 ? "" : "s"}` : "";
  return [parallelMapping, gpus].filter(Boolean).join(" on ");
}

// What can be done with it: verbs of the API.
export function controls(run) {
  if (run.kind === "WorkloadProfile") return [];
  switch (run.life) {
    case "running":
    case "pending": return ["suspend", "cancel"];
    case "suspended": return ["resume", "cancel"];
    case "scheduled": return ["suspend", "cancel"];
    default: return ["rerun"];
  }
}

export const CONSEQUENCE = {
  cancel: "It ends, and what was measured so far is all there will be.",
  suspend: "Its pod is taken down. What was measured so far is kept, and it goes on from there when it is resumed.",
  resume: "It goes on from what was measured before.",
  rerun: "The same request is made anew and measured once more.",
};

const ENDED = { succeeded: "completed", failed: "failed", cancelled: "was cancelled", running: "runs", suspended: "is suspended", pending: "waits" };

// A verdict about a run beside the one that it is set against: "faster than a", "no detectable difference from a".
const AGAINST = { "no detectable difference": "from", inconclusive: "against", "not comparable": "with" };

export function against(verdict, baseline) {
  return `${verdict} ${AGAINST[verdict] || "than"} ${baseline}`;
}

// One sentence for those who do not look.
export function turned(run) {
  const word = ENDED[run.life];
  return word ? `${run.resource}/${run.name} ${word}` : "";
}
