#!/usr/bin/python3
"""The run protocol from one end to the other: requests, their Jobs as pods on a node, and what their status says meanwhile.

    e2e.py [NAME...]            on the embedded engine
    e2e.py cluster [NAME...]    on a real node, which needs root
"""

import contextlib
import json
import os
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
from sonde_test import ROOT, SOAK, ControlPlane, Engine, Process, diag, main, program, wait

PATIENCE = 400  # a kubelet of 1.20 under load takes minutes
GROUP = "/apis/test.sonde.dev/v1alpha1"
REPORT = "/sonde/sonde-pod report"
ENDED = ("Succeeded", "Failed")


def ok(answer, *codes):
    status, body = answer
    assert status in (codes or (200, 201)), (status, body)
    return body


# --- what a test needs -------------------------------------------------------------------------------------------------


class Operator:
    """run-operator, which can be killed and started again; its history stays."""

    def __init__(self, *arguments):
        self.history = os.path.join(folder, f"history-{time.monotonic_ns()}.db")
        self.start(*arguments)

    def start(self, *arguments):
        self.process = Process(program("test/run-operator"), "--kubeconfig", server.kubeconfig, "--pod-image", pod_image,
                               "--history", self.history, "--log-level", "info", *arguments)
        if not arguments:
            self.process.expect("^synced", PATIENCE)

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        code = self.process.stop(PATIENCE)
        if kind:
            diag("the operator:\n" + "\n".join(self.process.lines[-40:]))
        else:
            assert code == 0, (code, self.process.lines[-40:])

    def rows(self):
        with contextlib.closing(sqlite3.connect(self.history)) as db:
            return db.execute("SELECT name, attempt, outcome FROM run ORDER BY name, attempt").fetchall()


class Seen:
    """Every state of the namespace's TestRuns and Jobs, in order, as a watch shows them."""

    def __init__(self, ns):
        self.ns = ns
        self.runs, self.jobs, self.most_active = {}, {}, {}
        self._active = {}
        self._changed = threading.Condition()
        for path, take in (f"{GROUP}/namespaces/{ns}/testruns", self._run), (f"/apis/batch/v1/namespaces/{ns}/jobs", self._job):
            version = ok(api.get(path))["metadata"]["resourceVersion"]
            threading.Thread(target=self._follow, args=(path, version, take), daemon=True).start()

    def _follow(self, path, version, take):
        with contextlib.suppress(OSError, ValueError):
            while True:
                with contextlib.suppress(TimeoutError):  # nothing came for a minute: go on from there
                    for event in server.api().watch(f"{path}?watch=1&allowWatchBookmarks=true&resourceVersion={version}"):
                        version = event["object"]["metadata"]["resourceVersion"]
                        if event["type"] != "BOOKMARK":
                            with self._changed:
                                take(event)
                                self._changed.notify_all()

    def _run(self, event):
        run = event["object"]
        self.runs.setdefault(run["metadata"]["name"], []).append(run.get("status", {}))

    def _job(self, event):
        meta, status = event["object"]["metadata"], event["object"].get("status", {})
        over = event["type"] == "DELETED" or any(c["status"] == "True" and c["type"] in ("Complete", "Failed")
                                                 for c in status.get("conditions", []))
        for owner in meta.get("ownerReferences", []):
            name = owner["name"]
            self.jobs.setdefault(name, {}).setdefault(meta["name"], set()).add(meta["uid"])
            active = self._active.setdefault(name, set())
            (active.discard if over else active.add)(meta["uid"])
            self.most_active[name] = max(self.most_active.get(name, 0), len(active))

    def until(self, name, condition, what, seconds=PATIENCE):
        """The first state of run NAME that CONDITION is true of."""
        deadline = time.monotonic() + seconds
        at = 0
        with self._changed:
            while True:
                states = self.runs.get(name, [])
                for status in states[at:]:
                    if condition(status):
                        return status
                at = len(states)
                left = deadline - time.monotonic()
                assert left > 0, f"{name}: not within {seconds} s: {what}; last: {json.dumps(states[-1:], indent=1)}"
                self._changed.wait(left)

    def ended(self, name, seconds=PATIENCE):
        return self.until(name, lambda s: s.get("phase") in ENDED, "its end", seconds)


def script(*lines):
    return {"image": image, "command": ["/bin/sh", "-c"], "args": ["\n".join(lines)]}


def run(ns, name, spec, **more):
    return ok(api.post(f"{GROUP}/namespaces/{ns}/testruns", {"apiVersion": "test.sonde.dev/v1alpha1", "kind": "TestRun",
                                                             "metadata": {"name": name}, "spec": {**spec, **more}}))


def progress(status):
    return status.get("progress", {})


def condition(status, kind):
    return next((c for c in status.get("conditions", []) if c["type"] == kind), {})


def events(ns, name):
    items = ok(api.get(f"/apis/events.k8s.io/v1/namespaces/{ns}/events"))["items"]
    return [e for e in items if e["regarding"].get("kind") == "TestRun" and e["regarding"].get("name") == name]


def processes(variables, word):
    """Processes with VARIABLES in their environment and WORD in their command line."""
    wanted = {f"{name}={value}".encode() for name, value in variables.items()}
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            with open(f"/proc/{pid}/environ", "rb") as f, open(f"/proc/{pid}/cmdline", "rb") as g:
                if wanted <= set(f.read().split(b"\0")) and word.encode() in g.read().split(b"\0"):
                    found.append(int(pid))
    return found


def pods(ns, job):
    return ok(api.get(f"/api/v1/namespaces/{ns}/pods?labelSelector=job-name%3D{job}"))["items"]


def with_operator(test):
    def wrapped():
        with server.namespace("e2e") as ns, Operator() as operator:
            seen = Seen(ns)
            test(ns, operator, seen)
            twice = {job: uids for jobs in seen.jobs.values() for job, uids in jobs.items() if len(uids) != 1}
            assert not twice, f"Jobs were made twice: {twice}"
            together = {name: most for name, most in seen.most_active.items() if most > 1}
            assert not together, f"Jobs of one run were there at once: {together}"
    wrapped.__name__, wrapped.__doc__ = test.__name__, test.__doc__
    return wrapped


# With HOLD each phase lasts until the test has seen it: on a slow machine the next one overtakes what lasts a moment.
WORK = ("R='" + REPORT + "'",
        """hold() { while [ "$HOLD" ] && [ ! -e "$SONDE_RUN_DIR/$1" ]; do sleep 0.1; done; }""",
        "echo the profiler speaks",
        "while [ ! -e /sonde/ctl/claim ]; do sleep 0.05; done",  # the relay listens: what comes before that may be overtaken
        """$R --phase Warm --message "$NAME warms" --step 1 --of 2 --plan '[{"phase":"Warm","steps":2},{"phase":"Work","steps":4}]'""",
        "sleep 0.4; $R --phase Warm --message \"$NAME warms\" --step 2 --of 2; sleep 0.4; hold Warm",
        "for i in 1 2 3 4; do $R --phase Work --message \"$NAME works\" --step $i --of 4 --sub-phase \"part $i\"; sleep 0.4; done; hold Work",
        "echo \"{\\\"of\\\": \\\"$NAME\\\"}\" > $SONDE_RUN_DIR/result.json",
        "$R --complete")


def work(name):
    return {**script(*WORK), "env": [{"name": "NAME", "value": name}]}


def held_work(ns, name):
    made = work(name)
    return {**made, "env": [*made["env"], {"name": "HOLD", "value": f"{ns}/{name}"}]}


def let_go(variable, value, file):
    """Makes FILE in the run directory of the run whose environment has that."""
    shell, *_ = processes({variable: value}, "/bin/sh")
    with open(os.path.join(f"/proc/{shell}", "root", "sonde/run", file), "w", encoding="utf-8"):
        pass


def see_each_phase(ns, seen, name):
    for phase in "Warm", "Work":
        seen.until(name, lambda s, phase=phase: progress(s).get("phase") == phase, phase)
        let_go("HOLD", f"{ns}/{name}", phase)


# What is begun again goes on from where it was: the first attempt waits to be ended, the second one is done at once.
RESUMABLE = ("R='" + REPORT + "'", "cd $SONDE_RUN_DIR",
             "if test -e checkpoint.json; then $R --phase Second --message again; cp checkpoint.json result.json; exit 0; fi",
             "echo '{\"points\": [1, 2]}' > checkpoint.json", "$R --phase First --message begun",
             "trap 'exit 143' TERM; sleep 1000 & wait")


def begun(ns, seen, name, **more):
    """A run of RESUMABLE that has reported its first state, and its pod."""
    run(ns, name, script(*RESUMABLE), graceSeconds=20, **more)
    first = seen.until(name, lambda s: progress(s).get("phase") == "First", "its first state")
    # A kubelet that is told of a deletion before it has told of the start may take a minute to notice.
    [pod] = wait(lambda: [p for p in pods(ns, first["run"]["job"]) if p["status"].get("phase") == "Running"], PATIENCE, "a running pod")
    return first, pod


def edit(ns, name, **members):
    return ok(api.request("PATCH", f"{GROUP}/namespaces/{ns}/testruns/{name}", json.dumps({"spec": members}), "application/merge-patch+json"))


def gone(ns, job):
    wait(lambda: api.get(f"/apis/batch/v1/namespaces/{ns}/jobs/{job}")[0] == 404, PATIENCE, f"Job {job} is gone")


# --- the tests -----------------------------------------------------------------------------------------------------------


@with_operator
def a_run_goes_through_its_phases(ns, operator, seen):
    """A run is followed live: every step in order, percent never down, then success, its result, and access gone"""
    run(ns, "a", held_work(ns, "a"), shape="phases")
    see_each_phase(ns, seen, "a")
    status = seen.ended("a")
    assert status["phase"] == "Succeeded" and status["result"] == {"of": "a"}, status
    states = [s for s in seen.runs["a"] if s]
    assert states[0]["run"]["job"] == "a-run" and "progress" not in states[0], states[0]  # before the Job is made
    steps = [(p["phase"], p["step"]) for p in map(progress, states) if "step" in p]
    wanted = [("Warm", "1/2"), ("Warm", "2/2")] + [("Work", f"{i}/4") for i in (1, 2, 3, 4)]
    told = list(dict.fromkeys(steps))  # a step may be overtaken by the next, on a machine that is slow enough
    assert told == [step for step in wanted if step in told] and {phase for phase, _ in told} == {"Warm", "Work"}, steps
    percents = [progress(s)["percent"] for s in states if "percent" in progress(s)]
    assert percents == sorted(percents) and percents[-1] == 100, percents
    assert all(progress(s)["percent"] < 100 for s in states if progress(s).get("phase") in ("Warm", "Work")), percents
    assert len({progress(s)["startedAt"] for s in states if "startedAt" in progress(s)}) == 1
    for kind, value in ("Ready", "True"), ("Progressing", "False"), ("Stalled", "False"), ("Reporting", "True"):
        assert condition(status, kind)["status"] == value, status["conditions"]
    assert operator.rows() == [("a", 1, "Succeeded")]
    for what in "serviceaccounts", "roles", "rolebindings":
        base = "/api/v1" if what == "serviceaccounts" else "/apis/rbac.authorization.k8s.io/v1"
        assert api.get(f"{base}/namespaces/{ns}/{what}/a-run")[0] == 404, what
    for name in "a-run-status", "a-run-results":
        ok(api.get(f"/api/v1/namespaces/{ns}/configmaps/{name}"))
    diag(f"{len(states)} states, percent {percents}")
    assert "the profiler speaks" in api.job_log(ns, "a-run").splitlines()


@with_operator
def the_second_run_of_a_shape_knows_its_end(ns, _operator, seen):
    """The second run of a shape has an ETA from its first state on, from the history"""
    run(ns, "one", held_work(ns, "one"), shape="again")
    see_each_phase(ns, seen, "one")
    seen.ended("one")
    run(ns, "two", held_work(ns, "two"), shape="again")
    first = seen.until("two", lambda s: "step" in progress(s), "its first step")
    see_each_phase(ns, seen, "two")
    assert progress(first)["estimatedCompletion"]["basis"] == "history", first
    assert seen.ended("two")["phase"] == "Succeeded"
    assert "estimatedCompletion" not in progress(seen.runs["two"][-1])


@with_operator
def failures_say_why(ns, operator, seen):
    """A failing command, a reported failure, a command that is not there, a deadline: one sentence each"""
    run(ns, "status", script("echo working", "echo 'disk on fire' >&2", "exit 3"))
    run(ns, "told", script(f"{REPORT} --fail 'no GPU answers'"))
    run(ns, "absent", {"image": image, "command": ["/no/such/program"]})
    run(ns, "empty", {"image": image})
    run(ns, "slow", script("sleep 1000"), deadlineSeconds=3, graceSeconds=1)
    wanted = {"status": ("WorkloadFailed", "exited with status 3", "disk on fire"), "told": ("WorkloadFailed", "no GPU answers"),
              "absent": ("WorkloadNotStarted", "/no/such/program"), "slow": ("DeadlineExceeded", "3 s")}
    for name, (reason, *words) in wanted.items():
        status = seen.ended(name)
        assert status["phase"] == "Failed" and status["reason"] == reason, status
        assert all(word in status["message"] for word in words) and len(status["message"]) <= 500, status["message"]
        assert condition(status, "Stalled") == {**condition(status, "Stalled"), "status": "True", "reason": reason}, status
        wait(lambda: [e for e in events(ns, name) if e["type"] == "Warning" and e["reason"] == reason], PATIENCE,
             f"an event about {name}")
        diag(f"{name}: {status['message']}")
    assert condition(seen.ended("empty"), "Stalled")["reason"] == "Invalid"
    assert [(name, outcome) for name, _, outcome in operator.rows()] == [(name, "Failed") for name in sorted(wanted)]


@with_operator
def out_of_memory(ns, _operator, seen):
    """A workload that is killed for want of memory: the limit is named"""
    run(ns, "eater", script("tail /dev/zero"), resources={"limits": {"memory": "32Mi"}})
    status = seen.ended("eater")
    assert status["reason"] == "OutOfMemory" and "32Mi" in status["message"], status


@with_operator
def a_deleted_pod_is_another_attempt(ns, _operator, seen):
    """A pod deleted in mid-run: the Job makes another, which is attempt 2 and goes on from the checkpoint"""
    first, pod = begun(ns, seen, "d", backoffLimit=2)
    ok(api.delete(f"/api/v1/namespaces/{ns}/pods/{pod['metadata']['name']}"))
    status = seen.ended("d")
    assert status["phase"] == "Succeeded" and status["attempt"] == 2 and status["result"] == {"points": [1, 2]}, status
    assert progress(status)["startedAt"] == progress(first)["startedAt"]
    assert progress(status)["pod"] != pod["metadata"]["name"]


@with_operator
def a_deleted_pod_is_a_new_job(ns, operator, seen):
    """A pod that somebody deletes costs a retry: a new attempt with a Job of its own goes on from the checkpoint"""
    first, pod = begun(ns, seen, "e")
    ok(api.delete(f"/api/v1/namespaces/{ns}/pods/{pod['metadata']['name']}"))
    retrying = seen.until("e", lambda s: s.get("reason") == "Retrying", "another attempt")
    assert "attempt 1 failed: the pod was deleted" in retrying["message"], retrying
    status = seen.ended("e")
    attempt = status["run"]["attempt"]  # a server that makes a second pod in the Job may let it claim a number
    assert status["phase"] == "Succeeded" and attempt in (2, 3) and status["run"]["retries"] == 1, status
    assert status["run"]["job"] == f"e-run-{attempt}" == progress(status)["job"] and status["run"]["outcome"] == "Succeeded", status
    assert status["result"] == {"points": [1, 2]} and progress(status)["startedAt"] == progress(first)["startedAt"], status
    assert len(seen.jobs["e"]) == 2, seen.jobs
    assert operator.rows() == [("e", attempt, "Succeeded")]


@with_operator
def a_deleted_pod_without_retries(ns, _operator, seen):
    """With retries 0 a deleted pod is the end, and says so"""
    _, pod = begun(ns, seen, "z", retries=0)
    ok(api.delete(f"/api/v1/namespaces/{ns}/pods/{pod['metadata']['name']}"))
    status = seen.ended("z")
    assert status["phase"] == "Failed" and status["run"]["attempt"] == 1 and "deleted" in status["message"], status
    assert len(seen.jobs["z"]) == 1, seen.jobs


@with_operator
def suspended_and_resumed(ns, _operator, seen):
    """suspend deletes the Job and keeps the data; resuming is a new attempt that uses the checkpoint"""
    first, _ = begun(ns, seen, "s")
    edit(ns, "s", suspend=True)
    suspended = seen.until("s", lambda s: s.get("phase") == "Suspended", "its suspension")
    assert condition(suspended, "Suspended")["status"] == "True" and condition(suspended, "Stalled")["status"] == "False", suspended
    gone(ns, "s-run")
    ok(api.get(f"/api/v1/namespaces/{ns}/configmaps/s-run-results"))
    edit(ns, "s", suspend=False)
    status = seen.ended("s")
    assert status["phase"] == "Succeeded" and status["result"] == {"points": [1, 2]}, status
    assert status["run"]["attempt"] == 2 and status["run"]["job"] == "s-run-2" and status["run"]["retries"] == 0, status
    assert condition(status, "Suspended")["status"] == "False" and status["observedGeneration"] == 3, status
    assert progress(status)["startedAt"] == progress(first)["startedAt"]


@with_operator
def suspended_from_the_start(ns, _operator, seen):
    """A request that is made suspended has no Job before it is resumed"""
    run(ns, "w", work("w"), suspend=True)
    status = seen.until("w", lambda s: s.get("phase") == "Suspended", "its suspension")
    assert "run" not in status and ok(api.get(f"/apis/batch/v1/namespaces/{ns}/jobs"))["items"] == [], status
    edit(ns, "w", suspend=False)
    status = seen.ended("w")
    assert status["phase"] == "Succeeded" and status["run"]["attempt"] == 1, status


@with_operator
def cancelled(ns, operator, seen):
    """cancel ends a run as a failure, takes its Job away, and is not taken back"""
    begun(ns, seen, "c")
    edit(ns, "c", cancel=True)
    status = seen.ended("c")
    assert status["reason"] == "Cancelled" and status["run"]["outcome"] == "Failed" and progress(status)["phase"] == "First", status
    gone(ns, "c-run")
    edit(ns, "c", cancel=False)
    run(ns, "never", work("never"), cancel=True)
    assert seen.ended("never")["reason"] == "Cancelled"
    assert "never" not in seen.jobs
    assert [row for row in operator.rows() if row[0] == "c"] == [("c", 1, "Failed")]
    assert seen.runs["c"][-1]["reason"] == "Cancelled" and len(seen.jobs["c"]) == 1


@with_operator
def longer_than_its_timeout(ns, _operator, seen):
    """timeout counts from when the pod has a node, fails the run and frees the node"""
    run(ns, "t", script(f"{REPORT} --phase Work --message m", "sleep 1000"), timeout="4s", graceSeconds=1)
    status = seen.ended("t")
    assert status["reason"] == "DeadlineExceeded" and "(4s)" in status["message"] and status["run"]["reason"] == "DeadlineExceeded", status
    gone(ns, "t-run")


@with_operator
def edited_before_anything_ran(ns, _operator, seen):
    """A spec that is changed while its pod waits for a node begins again with the new one"""
    run(ns, "b", work("b"), resources={"requests": {"cpu": "5k"}})
    seen.until("b", lambda s: s.get("reason") == "Unschedulable", "a pod that no node takes")
    edit(ns, "b", resources=None)
    seen.until("b", lambda s: s.get("reason") == "Edited", "another attempt")
    status = seen.ended("b")
    assert status["phase"] == "Succeeded" and status["run"]["job"] == "b-run-2" and status["run"]["retries"] == 0, status
    assert status["observedGeneration"] == 2 and not condition(status, "SpecAccepted"), status


@with_operator
def edited_in_flight(ns, _operator, seen):
    """A spec that is changed in mid-run is refused, once a generation, and the run goes on; set back, it is accepted again"""
    run(ns, "f", script(f"{REPORT} --phase Work --message m", "while test ! -e $SONDE_RUN_DIR/go; do sleep 0.1; done"),
        env=[{"name": "MARK", "value": ns}])
    seen.until("f", lambda s: progress(s).get("phase") == "Work", "its first state")
    edit(ns, "f", runDir="/elsewhere")
    refused = seen.until("f", lambda s: condition(s, "SpecAccepted").get("status") == "False", "a refusal")
    assert refused["observedGeneration"] == 1 and refused["phase"] == "Running", refused
    [event] = wait(lambda: [e for e in events(ns, "f") if e["reason"] == "SpecChangeRejected"], PATIENCE, "an event")
    assert event["type"] == "Warning" and event["note"].startswith("Cannot modify spec in flight: "), event
    edit(ns, "f", runDir="/sonde/run", retries=1)
    accepted = seen.until("f", lambda s: s.get("observedGeneration") == 3, "an accepted spec")
    assert condition(accepted, "SpecAccepted")["status"] == "True", accepted
    let_go("MARK", ns, "go")
    status = seen.ended("f")
    assert status["phase"] == "Succeeded" and len(seen.jobs["f"]) == 1 and status["run"]["attempt"] == 1, status


@with_operator
def a_pod_that_is_not_made(ns, _operator, seen):
    """A quota that takes no pod: the request says why it waits, and does not change with every try"""
    ok(api.post(f"/api/v1/namespaces/{ns}/resourcequotas", {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "none"},
                                                            "spec": {"hard": {"pods": "0"}}}))
    wait(lambda: ok(api.get(f"/api/v1/namespaces/{ns}/resourcequotas/none")).get("status", {}).get("hard"), PATIENCE, "the quota counts")
    run(ns, "q", work("q"))
    status = seen.until("q", lambda s: s.get("reason") == "PodNotCreated", "a reason")
    assert status["phase"] == "Pending" and "asks for pods=1, and ResourceQuota none allows pods=0, of which pods=0 is used" in status["message"], status
    assert status["queue"] == {"reason": status["message"]}, status
    diag(status["message"])
    edit(ns, "q", cancel=True)
    status = seen.ended("q")
    assert status["reason"] == "Cancelled" and "queue" not in status, status


@with_operator
def a_job_deleted_by_somebody(ns, _operator, seen):
    """A Job deleted in mid-run fails the run, and is not made again"""
    run(ns, "j", script(f"{REPORT} --phase Work --message m", "sleep 1000"), graceSeconds=1)
    seen.until("j", lambda s: progress(s).get("phase") == "Work", "its first state")
    ok(api.delete(f"/apis/batch/v1/namespaces/{ns}/jobs/j-run", {"propagationPolicy": "Background"}))
    status = seen.ended("j")
    assert status["reason"] == "JobDeleted" and progress(status)["phase"] == "Work", status


@with_operator
def a_killed_relay_fails_nothing(ns, _operator, seen):
    """A relay that is killed does not turn a success into a failure, nor make the Job run again"""
    run(ns, "k", script(f"{REPORT} --phase Work --message m", "while test ! -e $SONDE_RUN_DIR/go; do sleep 0.1; done"),
        backoffLimit=3, env=[{"name": "MARK", "value": ns}])
    seen.until("k", lambda s: progress(s).get("phase") == "Work", "its first state")
    [relay] = processes({"SONDE_NAMESPACE": ns, "SONDE_STATUS_MAP": "k-run-status"}, "relay")
    os.kill(relay, signal.SIGKILL)
    let_go("MARK", ns, "go")
    status = seen.ended("k")
    assert status["phase"] == "Succeeded" and condition(status, "Ready")["status"] == "True", status
    assert condition(status, "Reporting")["reason"] == "RelayLost" and "result.json" in condition(status, "Reporting")["message"], status

    def halted():
        status, job = api.get(f"/apis/batch/v1/namespaces/{ns}/jobs/k-run")
        return status == 404 or any(c["status"] == "True" for c in job["status"].get("conditions", []))
    wait(halted, PATIENCE, "a Job that makes no further pod")


@with_operator
def nonsense_is_told_once(ns, _operator, seen):
    """A malformed status file: one Warning event, the last good state stays, and the run succeeds"""
    run(ns, "m", script("R='" + REPORT + "'", "while [ ! -e /sonde/ctl/claim ]; do sleep 0.05; done", "$R --phase Work --message good --step 1 --of 2",
                        "until [ -e $SONDE_RUN_DIR/good ]; do sleep 0.1; done",
                        "for i in 1 2 3 4 5; do echo nonsense $i > $SONDE_RUN_DIR/profiling_status.json; sleep 0.4; done",
                        "until [ -e $SONDE_RUN_DIR/told ]; do sleep 0.1; done",
                        "$R --phase Work --message better --step 2 --of 2", "sleep 1", "$R --complete"), env=[{"name": "MARK", "value": ns}])
    seen.until("m", lambda s: progress(s).get("message") == "good", "its good state")
    let_go("MARK", ns, "good")
    bad = seen.until("m", lambda s: condition(s, "Reporting").get("status") == "False", "Reporting=False")
    assert progress(bad)["step"] == "1/2" and progress(bad)["message"] == "good", bad
    let_go("MARK", ns, "told")
    assert seen.ended("m")["phase"] == "Succeeded"
    turns = [condition(s, "Reporting").get("status") for s in seen.runs["m"]]
    assert list(dict.fromkeys(turns))[-2:] == ["True", "False"] or turns[-1] == "True", turns
    warnings = wait(lambda: [e for e in events(ns, "m") if e["type"] == "Warning"], PATIENCE, "a warning")
    assert len(warnings) == 1 and "series" not in warnings[0], warnings


@with_operator
def the_status_map_goes_when_all_is_taken_over(ns, _operator, seen):
    """With deleteStatusMap the status ConfigMap goes after the end, also of a failure; the data stays"""
    run(ns, "good", work("good"), deleteStatusMap=True)
    run(ns, "bad", script(f"{REPORT} --phase Work --message m", "exit 1"), deleteStatusMap=True)
    for name in "good", "bad":
        status = seen.ended(name)
        wait(lambda: api.get(f"/api/v1/namespaces/{ns}/configmaps/{name}-run-status")[0] == 404, PATIENCE, "the ConfigMap is gone")
        ok(api.get(f"/api/v1/namespaces/{ns}/configmaps/{name}-run-results"))
        assert seen.runs[name][-1] == status and progress(status)["job"] == f"{name}-run", seen.runs[name][-1]


@with_operator
def a_used_volume_fools_nobody(ns, _operator, seen):
    """A volume with the terminal status and the result of an earlier use"""
    with tempfile.TemporaryDirectory(dir="/tmp") as used:
        os.chmod(used, 0o777)
        for name, text in ("profiling_status.json", '{"phase": "Complete", "message": "old"}'), ("result.json", '{"old": true}'):
            with open(os.path.join(used, name), "w", encoding="utf-8") as f:
                f.write(text)
        run(ns, "u", script("sleep 1", f"{REPORT} --phase Work --message new", "sleep 1", "exit 3"),
            volumes=[{"name": "run", "hostPath": {"path": used}}])
        status = seen.ended("u")
        assert status["phase"] == "Failed" and "result" not in status, status
        assert not [s for s in seen.runs["u"] if progress(s).get("message") == "old"]
        assert os.path.exists(os.path.join(used, ".previous")), os.listdir(used)


def killed_at_every_write():
    """The operator is killed before each of its writes in turn: one Job a run, and each comes to its end"""
    with server.namespace("e2e") as ns:
        seen = Seen(ns)
        operator, writes = Operator(), 0
        for n in range(1, 40):
            operator.process.stop(PATIENCE)
            operator.start("--kill-at", str(n))
            run(ns, f"n{n}", script(f"{REPORT} --phase Work --message n{n}", "sleep 0.3"))
            wait(lambda: operator.process.popen.poll() is not None or any(s.get("phase") in ENDED for s in seen.runs.get(f"n{n}", [])),
                 PATIENCE, "a killed operator")
            if operator.process.popen.poll() is None:
                break
            writes = n
            operator.start()
            assert seen.ended(f"n{n}")["phase"] == "Succeeded", seen.runs[f"n{n}"][-1]
        operator.process.stop(PATIENCE)  # it may have been about to die at its last event
        operator.start()
        with operator:
            names = [f"n{i}" for i in range(1, n + 1)]
            assert all([len(uids) for uids in seen.jobs[name].values()] == [1] for name in names), seen.jobs
            assert all(seen.runs[name][-1]["phase"] == "Succeeded" for name in names)
            assert sorted({name for name, _, _ in operator.rows()}) == sorted(names), operator.rows()
            diag(f"killed before each of {writes} writes")
            assert writes >= 9


@with_operator
def many_runs_at_once(ns, operator, seen):
    """Many runs in one namespace at once: no state of one is ever seen on another"""
    names = [f"r{i}" for i in range(50 if SOAK else 20)]
    for name in names:
        run(ns, name, work(name), shape="many")
    for name in names:
        status = seen.ended(name, 5 * PATIENCE)
        assert status["phase"] == "Succeeded" and status["result"] == {"of": name}, status
    states = 0
    for name in names:
        for status in seen.runs[name]:
            p = progress(status)
            assert not p.get("message", "").endswith((" warms", " works")) or p["message"].split()[0] == name, (name, p)
            assert p.get("job", f"{name}-run") == f"{name}-run" and p.get("pod", f"{name}-run-").startswith(f"{name}-run-"), (name, p)
            states += 1
    diag(f"{states} states of {len(names)} runs")
    assert len(operator.rows()) == len(names)


# --- where -----------------------------------------------------------------------------------------------------------------

TESTS = [a_run_goes_through_its_phases, the_second_run_of_a_shape_knows_its_end, failures_say_why, out_of_memory,
         a_deleted_pod_is_another_attempt, a_deleted_pod_is_a_new_job, a_deleted_pod_without_retries, suspended_and_resumed,
         suspended_from_the_start, cancelled, longer_than_its_timeout, edited_before_anything_ran, edited_in_flight,
         a_pod_that_is_not_made, a_job_deleted_by_somebody, a_killed_relay_fails_nothing, nonsense_is_told_once,
         the_status_map_goes_when_all_is_taken_over, a_used_volume_fools_nobody, killed_at_every_write, many_runs_at_once]


def begin():
    """The kind of the tests, as soon as it is served."""
    with open(os.path.join(ROOT, "test", "kinds", "crd.yaml"), encoding="utf-8") as f:
        ok(api.request("PATCH", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/testruns.test.sonde.dev?fieldManager=test&force=true",
                       f.read(), "application/apply-patch+yaml"))
    wait(lambda: api.get(f"{GROUP}/testruns")[0] == 200, PATIENCE, "TestRuns are served")


def the_image_is_made():
    subprocess.run([os.path.join(ROOT, "scripts", "image"), program("sonde-pod"), archive, "--name", pod_image], check=True,
                   stdout=subprocess.DEVNULL)


words = sys.argv[1:]
real = words[:1] == ["cluster"]
names = words[1:] if real else words
image, pod_image = ("localhost/busybox:1", "localhost/sonde-pod:1") if real else ("any", "sonde-pod")
with tempfile.TemporaryDirectory(prefix="sonde-e2e-") as folder:
    archive = os.path.join(folder, "sonde-pod.tar")
    if real and os.getuid() != 0:
        diag("not root: no node can be started, so no run goes from one end to the other")
        main(the_image_is_made)
    with ControlPlane.of("node") if real else Engine("--no-fsync") as server:
        api = server.api()
        if real:
            the_image_is_made()
            server.rig("load", archive)
        begin()
        main(*[t for t in TESTS if not names or t.__name__ in names])
