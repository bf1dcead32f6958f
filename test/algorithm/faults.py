#!/usr/bin/python3
"""What goes wrong around an AlgorithmProfiling, beside the same request without a fault. A test plays kubelet, relay and probe.

    faults.py [NAME...]            on the embedded engine
    faults.py cluster [NAME...]    on a real control plane

The scenario: `pods: 2`. The first pod reports, measures and leaves more to do; the second one leaves the result.
"""

import calendar
import json
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
import fields
from algorithm_play import GROUP, PATIENCE, PROFILINGS, World, condition, measured, ok, result
from fault_stage import REST, Plan, side_by_side
from sonde_test import diag, main, wait

RBAC = "/apis/rbac.authorization.k8s.io/v1"
TYPES = {PROFILINGS: GROUP, "jobs": "/apis/batch/v1", "pods": "/api/v1", "configmaps": "/api/v1", "serviceaccounts": "/api/v1",
         "roles": RBAC, "rolebindings": RBAC, "events": "/apis/events.k8s.io/v1"}
KEYS = {"uid", "resourceVersion", "creationTimestamp", "managedFields", "selfLink", "sonde.dev/plan", "eta", "estimatedCompletion",
        "generation"}
TEXTS = (
    (r"\bdprofiler-a(-\d+)?-[a-z0-9]{5}\b", "<pod>"),
    (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "<uid>"),
    (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", "<time>"),
)
BACKGROUND = {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Background"}
MORE = json.dumps({"morePods": 1})
ONE = {"pods": 1}


def masked(trace):
    return fields.stripped(trace, (KEYS, TEXTS))


def tidy(kind, item):
    if kind == PROFILINGS:
        item["status"]["conditions"].sort(key=lambda c: c["type"])


def reports(play):
    play.pod_runs()
    play.report({"phase": "Measuring", "message": "m", "progress": {"currentStep": 1, "totalSteps": 5}})
    play.wait(lambda s: s.get("progress", {}).get("currentStep") == 1, "the first run of the algorithm")


def attempt(play, number):
    play.wait(lambda s: s.get("run", {}).get("attempt") == number and not s["run"].get("reason"), f"attempt {number}")


def first_pod(play):
    reports(play)
    play.succeed(MORE)
    attempt(play, 2)


def drive(play):
    first_pod(play)
    play.measures()
    play.phase("Completed")


def measures(play):
    """All that one pod does."""
    reports(play)
    play.succeed()
    play.phase("Completed")


def stalled(status):
    return condition(status, "Stalled").get("reason")


def names(play):
    return sorted(j["metadata"]["name"] for j in play.jobs())


# --- the operator ----------------------------------------------------------------------------------------------------------


def killed_at_every_write():
    """The operator is killed before every write, and its answer to each is lost in turn: the same end, nothing twice"""
    plan.killed_at_every_write(reference)


# --- pods and Jobs -----------------------------------------------------------------------------------------------------------


def pods_that_go():
    """Evicted or deleted: another attempt, in a Job of its own; no retry of what ran out of memory, nor when none is left"""
    def evicted():
        with plan.stage() as s:
            first_pod(s.play)
            reports(s.play)
            s.play.evict()
            attempt(s.play, 3)
            status = s.play.status()
            assert status["phase"] == "Running" and status["run"]["retries"] == 1, status
            measures(s.play)
            assert {"dprofiler-a", "dprofiler-a-3"} <= set(names(s.play)), names(s.play)
            assert s.play.status()["pods"] == {"done": 2, "total": 2, "attempt": 3}, s.play.status()
            s.never_both()
            s.relisted()
            s.goes()

    def deleted():
        with plan.stage(**ONE) as s:
            reports(s.play)
            pod = s.play.pod()["metadata"]["name"]
            ok(world.api.delete(f"/api/v1/namespaces/{s.ns}/pods/{pod}", {"gracePeriodSeconds": 0}))
            s.play.wait(lambda t: t.get("run", {}).get("attempt", 0) >= 2, "another attempt")
            measures(s.play)
            s.never_both()
            s.goes()

    def ends(reason, spec, end):
        with plan.stage(**ONE, **spec) as s:
            reports(s.play)
            end(s.play)
            status = s.play.phase("Failed")
            assert stalled(status) == reason and names(s.play) == ["dprofiler-a"] and "results" not in status, status
            s.relisted()
            s.goes()
    side_by_side([evicted, deleted,
                  lambda: ends("Evicted", {"retries": 0}, lambda p: p.evict()),
                  lambda: ends("OutOfMemory", {}, lambda p: p.pod_ends(137, reason="OOMKilled")),
                  lambda: ends("WorkloadFailed", {}, lambda p: p.fail())], lambda f: f())


def jobs_that_somebody_deletes():
    """The Job is taken away in mid-run: that is told, none is made in its place unasked, and a changed spec begins anew"""
    with plan.stage(**ONE) as s:
        reports(s.play)
        ok(world.api.delete(f"/apis/batch/v1/namespaces/{s.ns}/jobs/dprofiler-a", BACKGROUND))
        assert stalled(s.play.phase("Failed")) == "JobDeleted", s.play.status()
        s.relisted()
        assert not names(s.play), names(s.play)
        s.play.edit(iterations=6)
        attempt(s.play, 2)
        measures(s.play)
        s.never_both()
        s.relisted()
        s.goes()


def people():
    """Suspended between two pods and in the second one, cancelled, edited in flight: the operator dies right after"""
    def suspended():
        with plan.stage() as s:
            first_pod(s.play)
            reports(s.play)
            s.operator.kill()
            s.play.edit(suspend=True)
            s.operator.start()
            s.play.wait(lambda t: condition(t, "Suspended").get("status") == "True", "Suspended")
            wait(lambda: names(s.play) == ["dprofiler-a"], PATIENCE, "the Job to go")
            s.operator.kill()
            s.play.edit(suspend=False)
            s.operator.start()
            attempt(s.play, 3)
            measures(s.play)
            s.never_both()
            s.relisted()
            s.goes()

    def cancelled():
        with plan.stage() as s:
            first_pod(s.play)
            reports(s.play)
            s.operator.kill()
            s.play.edit(cancel=True)
            s.operator.start()
            status = s.play.phase("Cancelled")
            assert "results" not in status and status["completionTime"], status
            wait(lambda: not s.play.object("serviceaccounts/dprofiler-a"), PATIENCE, "the access to go")
            s.play.edit(cancel=False)
            s.quiet()
            assert s.play.status()["phase"] == "Cancelled", s.play.status()
            s.relisted()
            s.goes()

    def edited():
        with plan.stage(**ONE) as s:
            reports(s.play)
            s.operator.kill()
            s.play.edit(iterations=7)
            s.operator.start()
            s.play.wait(lambda t: condition(t, "SpecAccepted").get("reason") == "SpecChangeRejected", "a refusal")
            measures(s.play)
            assert names(s.play) == ["dprofiler-a"] and condition(s.play.status(), "SpecAccepted")["status"] == "False"
            s.relisted()
            s.goes()
    side_by_side([suspended, cancelled, edited], lambda f: f())


# --- what the probe leaves ---------------------------------------------------------------------------------------------------

RESULTS = {
    "an empty text": "",
    "no JSON": "{",
    "no object": "[]",
    "no list": json.dumps({"version": 1}),
    "too many": json.dumps(result(*[{"name": "x"}] * 1000)),
    "more pods than there are": json.dumps({"morePods": 7}),
}


def results_that_cannot_be_read():
    """A result that is missing or invalid is a failure that says so; a changed spec measures again"""
    def bad(what):
        with plan.stage(**ONE) as s:
            reports(s.play)
            s.play.succeed(RESULTS[what])
            status = s.play.phase("Failed")
            message = condition(status, "Stalled")["message"]
            assert stalled(status) == "ResultMissing" and "a-run-results" in message and "result.json" in message, status
            s.relisted()
            s.play.edit(iterations=6)
            attempt(s.play, 2)
            measures(s.play)
            assert s.play.status()["results"]["executionTime"] == 1.5, s.play.status()
            s.goes()

    def for_ever():
        with plan.stage() as s:  # each pod says that there is one more
            first_pod(s.play)
            reports(s.play)
            s.play.succeed(MORE)
            assert stalled(s.play.phase("Failed")) == "ResultMissing", s.play.status()
            s.relisted()
            s.goes()
    def forged():
        long = "x" * 3000
        ml = {"selectedFeatures": [long], "trials": [{"params": {"n": long}}], "bestParams": {long: 1}}
        with plan.stage(**ONE) as s:
            reports(s.play)
            s.play.succeed(json.dumps(result(measured("quick_sort", currency=long, costBasis=long, mlResults=ml, metrics={"a": [long]},
                                                      error={"reason": long, "message": long}), warnings=[long, 1], unit=long)))
            s.play.phase("Completed")
            s.goes()
    side_by_side([*RESULTS, for_ever, forged], lambda v: v() if callable(v) else bad(v))


# --- strangers -----------------------------------------------------------------------------------------------------------------

LABELS = {"app.kubernetes.io/managed-by": "sonde", "sonde.dev/controller": "algorithmprofiling"}
JOB = {"spec": {"parallelism": 0, "template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}}}


def names_that_strangers_have():
    """A stranger's ConfigMap is in the way: NameConflict until it goes, and it is never touched; a Job gets another name instead"""
    def config_map(name):
        def before(s):
            s.made_by_stranger = ok(world.api.post(f"/api/v1/namespaces/{s.ns}/configmaps", {"metadata": {"name": name, "labels": LABELS}}))
        with plan.stage(before=before, **ONE) as s:
            s.play.wait(lambda t: condition(t, "Stalled").get("reason") == "NameConflict", "NameConflict")
            assert s.play.object(f"configmaps/{name}") == s.made_by_stranger
            ok(world.api.delete(f"/api/v1/namespaces/{s.ns}/configmaps/{name}"))
            measures(s.play)
            s.never_both()
            s.goes()

    def job(name):
        def before(s):
            ok(world.api.post(f"/apis/batch/v1/namespaces/{s.ns}/jobs", {"metadata": {"name": name}, **JOB}))
        with plan.stage(before=before, **ONE) as s:
            measures(s.play)
            assert [n for n in names(s.play) if n.startswith(name + "-")], names(s.play)
            assert not s.play.object(f"jobs/{name}")["metadata"].get("ownerReferences")
    side_by_side([(config_map, "a-run-status"), (config_map, "a-run-results"), (job, "dprofiler-a")], lambda v: v[0](v[1]))


# --- what goes by itself, and what comes -----------------------------------------------------------------------------------------


def requests_that_go_by_themselves():
    """ttlSecondsAfterFinished: a request goes with all that it has made, also where the operator died at its end"""
    with plan.stage(ttlSecondsAfterFinished=1, **ONE) as s:
        reports(s.play)
        s.operator.kill()
        s.play.succeed()
        s.operator.start()
        wait(lambda: world.api.get(s.play.path)[0] == 404, PATIENCE, "the request to go")
        s.gone()


def schedules():
    """A template makes one request a minute, wherever the operator is killed; what it made goes with it"""
    def killed(k):
        with plan.stage(arguments=("--kill-at", str(k)), schedule={"cron": "* * * * *", "concurrencyPolicy": "Allow"}, **ONE) as s:
            def made():
                return sorted(n for _, n in s.there() if n.startswith("a-") and n[2:].isdigit())
            began = time.monotonic()
            with s.operator.kept_alive():
                first = wait(made, 2 * PATIENCE, "the first of them")[0]
                s.idle()
                s.play.wait(lambda t: t.get("lastScheduleTime"), "lastScheduleTime")
                s.play.edit(suspend=True)
                s.play.wait(lambda t: "nextScheduleTime" not in t, "a suspended schedule")
            most = (time.monotonic() - began) // 60 + 2  # minutes that began since, and the one in which it was made
            told = time.strptime(s.play.status()["lastScheduleTime"], "%Y-%m-%dT%H:%M:%SZ")
            there = made()
            created = [i["metadata"]["name"] for w, i in s.seen.seen[PROFILINGS] if w == "ADDED" and i["metadata"]["name"] != "a"]
            assert there[0] == first and sorted(created) == there and len(there) <= most, (there, created)
            assert not s.play.jobs() and f"{there[-1]}" == f"a-{calendar.timegm(told) // 60}", (there, told)
            child = world.play(s.ns, first)
            assert "schedule" not in child.get()["spec"], child.get()
            measures(child)
            time.sleep(REST)
            s.goes()
    side_by_side(range(1, 7), killed)


TESTS = [killed_at_every_write, pods_that_go, jobs_that_somebody_deletes, people, results_that_cannot_be_read,
         names_that_strangers_have, requests_that_go_by_themselves, schedules]

if __name__ == "__main__":
    chosen = [name for name in sys.argv[1:] if name != "cluster"]
    with World("cluster" if "cluster" in sys.argv[1:] else "engine") as world:
        plan = Plan(world, TYPES, drive, masked, tidy, pods=2)
        reference = plan.reference() if not chosen or "killed_at_every_write" in chosen else None
        if reference:
            diag(f"{reference.writes} writes; {reference.counts}")
        main(*[t for t in TESTS if not chosen or t.__name__ in chosen])
