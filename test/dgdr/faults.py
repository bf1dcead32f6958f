#!/usr/bin/python3
"""Faults that concern a controller, by their numbers in the catalogue, each beside the same scenario without the fault.

    faults.py [NAME...]            on the embedded engine
    faults.py cluster [NAME...]    on a real control plane

The scenario: a request is made, its pod runs, reports three states, succeeds with an output, the deployment is made and
becomes successful. Afterwards, in every case:

    I1  the end state is that of the run without faults (without uids, times, versions and what comes from them)
    I2  every object was created and deleted as often as there; never two live Jobs, none made twice
    I3  a restarted operator, which lists all anew, finds nothing to write
    I4  what belongs to strangers is untouched, though it has our labels
    I5  deleting the request leaves nothing but the deployment, which outlives it by design
    I6  every status on the way was true: see check_status() in dgdr_record.py

All cases run side by side, each in a namespace of its own with an operator of its own.
"""

import concurrent.futures
import contextlib
import datetime
import functools
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
from dgdr_play import DGDRS, DGDS, GROUP, PATIENCE, SPEC, World, condition, now, ok
from dgdr_record import Recorder
from dgdr_stage import (
    BACKGROUND, REASONS, REST, STRANGERS, Reference, Stage, drive, each_write, lambda_text, scene,
    side_by_side, succeeds_later)
from sonde_test import ControlPlane, Engine, diag, main, wait
import fault_objects


# --- F1, F2: writes that are not known to have happened ----------------------------------------------------------------------


def f01_killed_at_every_write():
    """F1: the operator is killed before every write, and after each took effect: the same end, nothing twice"""
    killed = []

    def run(stage, kill=lambda: False, again=None, at=None):
        with stage.kept_alive(kill, again) as deaths:
            drive(stage.play)
            stage.idle()  # the last one, before nobody looks after it any more
            stage.record.quiet(scene.world.api, 0.3)
        assert deaths or not at or stage.operator.sent() < at, f"{stage.operator.sent()} writes, and not killed at {at}"
        killed.append(len(deaths))
        stage.finish(reasons="some")

    def before(k):
        with Stage(arguments=("--kill-at", str(k))) as s:
            run(s, at=k)

    def after(k):
        with Stage(script=f"match WRITE * nth={k} -> delay-answer ms=60000\n") as s:
            # The proxy logs a write when the server has answered it.
            run(s, lambda: s.proxy.count("delay-answer") and sum(e["class"] == "write" and e["status"] >= 200 for e in s.proxy.log()) >= k)

    def before_each(_):  # every life makes four writes at most, which is what the longest way to a Job needs
        with Stage(arguments=("--kill-at", "5")) as s:
            run(s, again=("--kill-at", "5"))

    def after_each(_):
        with Stage(script="match WRITE * every=5 -> delay-answer ms=60000\n") as s:
            taken = [0]

            def kill():
                n = sum(e["fault"] == "delay-answer" and e["status"] >= 200 for e in s.proxy.log())
                more, taken[0] = n > taken[0], n
                return more
            run(s, kill, again=())

    side_by_side([(before_each, ""), (after_each, "")] + [(f, k) for k in each_write() for f in (before, after)], lambda v: v[0](v[1]))
    diag(f"{scene.reference.writes} writes, {sum(killed)} times killed")
    assert sum(killed) >= 1.5 * len(each_write()) + 2, killed  # fewer writes are needed where several things happen at once


def f02_answers_lost():
    """F2: the answer to every write is lost in turn: what was made is known as ours, and not made again"""
    def lost(k):
        with Stage(script=f"match WRITE * nth={k} -> lose\n") as s:
            drive(s.play)
            s.finish(reasons="some")
            assert s.proxy.count("lose") <= 1, s.proxy.faults()
    side_by_side(each_write(), lost)


# --- F3: strangers ---------------------------------------------------------------------------------------------------------

TAKEN = {  # names that a stranger may have
    "dgdr-status-a": ("configmaps", {}), "dgdr-output-a": ("configmaps", {}), "serviceaccount": ("serviceaccounts", {}),
    "role": ("roles", {"rules": []}),
    "rolebinding": ("rolebindings", {"roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "none"}}),
    "a-dgd": (DGDS, {"apiVersion": "nvidia.com/v1alpha1", "kind": "DynamoGraphDeployment", "spec": {"services": {}}}),
    "a-planner-data": ("configmaps", {}),
    "job": ("jobs", {"spec": {"parallelism": 0, "template": {"spec": {
        "restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}}}),
}


def f03_names_taken():
    """F3: a stranger has the name of each object in turn: NameConflict, told once, the stranger untouched, until it goes"""
    def taken(what):
        kind, body = TAKEN[what]
        name = what if "-" in what else "profile-a"
        made = []

        def before(stage):
            body_ = {**body, "metadata": {"name": name, "labels": {"sonde.dev/controller": "dgdr"}}}
            made.append(ok(scene.world.api.post(stage.path(kind), body_)))

        def go_away(stage):
            stage.stalls("NameConflict")
            stage.record.check_unchanged([(kind, made[0])])
            ok(scene.world.api.delete(stage.path(kind, name), BACKGROUND))
            stage.goes_on(stage.play)
        with Stage(before=before) as s:
            if kind == "jobs":  # another name is taken instead
                drive(s.play)
                s.converged()
                s.record.check_unchanged([(kind, made[0])])
                s.same_end(rename=(r"profile-a-[0-9a-z]{8}\b", "profile-a"))
                s.goes(but=("profile-a",))
            elif what == "a-planner-data":  # the profiler's own wish, which is refused
                drive(s.play)
                wait(lambda: s.play.events("DocumentRefused"), PATIENCE, "the refusal")
                s.converged()
                s.record.check_unchanged([(kind, made[0])])
                assert len(s.play.events("DocumentRefused")) == 1, s.reasons()
                s.goes(but=(name,))
            elif kind == DGDS:
                drive(s.play, stop=5)
                s.play.succeed()
                go_away(s)
                succeeds_later(s.play)
                s.finish(reasons=["NameConflict"])
            else:
                go_away(s)
                drive(s.play)
                s.finish(reasons=["NameConflict"])
    side_by_side(TAKEN, taken)


# --- F4 to F10: what the server may say --------------------------------------------------------------------------------------


def f04_conflicts():
    """F4: 409 Conflict once, at every second status write, and for ever: tried again with backoff, others unaffected"""
    def some(when):
        with Stage(script=f"match PATCH *deploymentrequests/a/status* {when} -> answer 409\n") as s:
            drive(s.play)
            s.finish()
            assert s.proxy.count("answer-409") > 0, s.proxy.faults()

    def for_ever(_):
        with Stage(script="match PATCH *deploymentrequests/a/status* always -> answer 409\n") as s:
            began = time.monotonic()
            s.neighbour()
            tries = s.proxy.count("answer-409")
            assert 2 <= tries <= 30, tries
            assert "status" not in s.play.get(), s.play.get()
            s.proxy.off()
            s.play.wait(lambda st: st, "another try", PATIENCE + 2 * (time.monotonic() - began))  # each comes after twice the time
            drive(s.play)
            s.finish()
    side_by_side([(some, "nth=1"), (some, "nth=4"), (some, "every=2"), (for_ever, "")], lambda v: v[0](v[1]))


def f05_other_managers():
    """F5: another manager has fields in status and children: ours are taken back, its own stay, and nobody fights"""
    with Stage() as s:
        drive(s.play, stop=3)
        body = {"apiVersion": "nvidia.com/v1alpha1", "kind": "DynamoGraphDeploymentRequest", "metadata": {"name": "a"}}
        mine = {"type": "example.com/Approved", "status": "True", "reason": "Asked", "message": "m", "lastTransitionTime": now()}
        path = f"{s.play.path}/status?fieldManager=other&force=true"
        apply = "application/apply-patch+yaml"
        ok(scene.world.api.patch(path, {**body, "status": {"state": "Pending", "profilingPhase": "Complete", "conditions": [mine]}}, apply))
        s.play.wait(lambda st: st["state"] == "Profiling" and st["profilingPhase"] == "Initializing", "what is ours")
        ok(scene.world.api.patch(s.path("configmaps", "dgdr-output-a"), {"metadata": {"labels": {"theirs": "stays"}}}))
        drive(s.play, start=3)
        s.rest()
        s.relist()
        assert condition(s.play.status(), "example.com/Approved") == mine, s.play.status()
        assert s.play.object("configmaps/dgdr-output-a")["metadata"]["labels"]["theirs"] == "stays"
        ok(scene.world.api.patch(path, {**body, "status": {"conditions": [{**mine, "status": "False"}]}}, apply))
        s.rest()
        assert condition(s.play.status(), "example.com/Approved")["status"] == "False", s.play.status()
        s.record.check_jobs(s.play.uid)
        s.goes()


def f06_too_many_requests():
    """F6: 429 with and without Retry-After, of 1 s and 32 s: waited for as asked, while the lease is renewed"""
    def some(script):
        with Stage(script=script, patient=True) as s:
            drive(s.play)
            s.finish()
            assert s.proxy.count("answer-429") > 0, s.proxy.faults()

    def posts(stage):
        return [datetime.datetime.fromisoformat(e["time"]).timestamp() for e in stage.proxy.log() if e["method"] == "POST" and "/jobs" in e["target"]]

    def long(_):
        with Stage(script="match POST *jobs* nth=1 -> answer 429 retry-after=32\n", patient=True,
                   arguments=("--lease", "dgdr", "--lease-duration", "36s")) as s:  # two thirds without an answer end it
            wait(lambda: s.proxy.count("answer-429"), PATIENCE, "a refusal")
            lease = f"/apis/coordination.k8s.io/v1/namespaces/{s.ns}/leases/dgdr"
            before = ok(scene.world.api.get(lease))["spec"]["renewTime"]
            s.play.job()
            refused, made = wait(lambda: posts(s)[1:] and posts(s), PATIENCE, "the Job's answer")
            assert made - refused > 30, f"after {made - refused} s"
            after = ok(scene.world.api.get(lease))["spec"]
            assert after["renewTime"] > before and after["leaseTransitions"] <= 1, (before, after)
            assert not any(line == "lost" for line in s.operator.process.lines)
            drive(s.play)
            s.rest()
            s.told()
            s.same_end()
            s.goes()
    side_by_side([(long, ""), (some, "match WRITE *namespaces/* every=5 -> answer 429 retry-after=1\n"),
                  (some, "match WRITE *namespaces/* every=5 -> answer 429\n"),
                  (some, "match GET *namespaces/* every=2 -> answer 429\n")], lambda v: v[0](v[1]))


def f07_server_errors():
    """F7: 500, 502, 503, 504 once, ten times and for ever, with HTML or no body: tried again with backoff"""
    def some(script):
        with Stage(script=script, patient=True) as s:
            drive(s.play)
            s.finish()
            assert s.proxy.stats()["total"] > 0

    def for_ever(what):
        with Stage(script=f"match WRITE * always -> answer {what}\n", patient=True) as s:
            wait(lambda: s.proxy.stats()["total"] >= 2, PATIENCE, "two tries")
            time.sleep(4)
            tries = s.proxy.stats()["total"]
            assert tries <= 60, tries
            s.proxy.off()
            drive(s.play)
            s.finish()
    ten = "".join(f"match POST *configmaps* nth={i} -> answer 500\n" for i in range(1, 11))
    side_by_side([(some, "match WRITE * every=5 -> answer 500\n"), (some, "match WRITE * every=5 -> answer 502 body=html\n"),
                  (some, "match WRITE * every=5 -> answer 503 body=empty\n"), (some, "match WRITE * every=5 -> answer 504\n"),
                  (some, "match * *namespaces/* every=7 -> answer 502 body=html\n"), (some, ten),
                  (for_ever, "500"), (for_ever, "503 body=html")], lambda v: v[0](v[1]))


def f08_refused_for_good():
    """F8: 413, 422 and etcd's 500 \"request is too large\": told on the request, not tried again until something changes"""
    def refused(variant):
        answer, reason, path = variant
        with Stage(script=f"match POST *{path}* always -> answer {answer}\n") as s:
            s.stalls(reason)
            tries = s.proxy.stats()["total"]
            time.sleep(2)
            assert tries <= 2 and s.proxy.stats()["total"] == tries, s.proxy.stats()  # to tell it is a change, too
            s.proxy.off()
            s.touch()
            drive(s.play)
            s.finish(reasons=[reason], mask=untouched)

    def document_refused(answer):
        with Stage(script="") as s:
            drive(s.play, stop=5)
            s.proxy.script(f"match POST *configmaps* always -> answer {answer}\n")
            s.play.succeed()
            s.stalls("Refused" if answer == "422" else "TooLarge")
            assert s.play.status()["state"] == "Profiling", s.play.status()
            s.proxy.off()
            s.touch()
            succeeds_later(s.play)
            s.finish(reasons="any", mask=untouched)

    def deployment_refused(answer):
        with Stage(script=f"match POST *dynamographdeployments* always -> answer {answer}\n") as s:
            drive(s.play, stop=5)
            s.play.succeed()
            status = s.play.state("Failed")
            assert condition(status, "DeploymentReady")["reason"] == "DeploymentRejected", status
            assert s.proxy.stats()["total"] <= 2, s.proxy.stats()
            s.converged()
            s.goes()

    def status_refused(variant):
        answer, k = variant
        with Stage(script=f"match PATCH *deploymentrequests/a/status* nth={k} -> answer {answer}\n") as s:
            drive(s.play)
            s.finish(reasons="any")
    side_by_side([(refused, ("413", "TooLarge", "jobs")), (refused, ("422", "Refused", "jobs")),
                  (refused, ("500 body=too-large", "TooLarge", "configmaps")),
                  (document_refused, "422"), (document_refused, "413"), (deployment_refused, "422"), (deployment_refused, "413")]
                 + [(status_refused, ("422" if k % 2 else "413", k)) for k in range(1, 14, 4 if scene.world.which == "cluster" else 1)], lambda v: v[0](v[1]))


def untouched(state):
    """Without the annotations of touch()."""
    for (kind, _), item in state.items():
        if kind == DGDRS:
            item["metadata"].pop("annotations", None)
    return state


def f09_unauthorized():
    """F9: 401 once: tried again; from the beginning and for ever: not ready, with backoff, until it is let in"""
    def once(k):
        with Stage(script=f"match WRITE * nth={k} -> answer 401\n") as s:
            drive(s.play)
            s.finish()

    def for_ever(_):
        with Stage(script="match * * always -> answer 401\n", operator=False, patient=True) as s:
            s.start(synced=False)
            wait(lambda: s.proxy.stats()["total"], PATIENCE, "a try")
            time.sleep(4)
            tries = s.proxy.stats()["total"]
            assert tries <= 80, tries
            assert "synced" not in s.operator.process.lines and s.operator.process.popen.poll() is None
            s.proxy.off()
            s.operator.process.expect("^synced", PATIENCE)
            drive(s.play)
            s.finish()
    side_by_side([(once, 1), (once, 5), (for_ever, "")], lambda v: v[0](v[1]))


def f10_forbidden():
    """F10: 403 on one kind alone: told with the server's sentence, others go on, and it recovers when it is granted"""
    def forbidden(variant):
        path, steps = variant
        rule = f"match POST *{path}* always -> answer 403\n"
        with Stage(script="" if steps else rule) as s:  # before the operator has anything to make
            if steps:
                drive(s.play, stop=steps)
                s.proxy.script(rule)
                s.play.succeed()
            message = s.stalls("Forbidden")
            assert "answered by the fault proxy" in message, message
            if steps and "deployments" in path:
                s.neighbour(autoApply=False)
            s.proxy.off()
            s.goes_on(s.play)
            if steps:
                succeeds_later(s.play)
            else:
                drive(s.play)
            s.finish(reasons=["Forbidden"])
    side_by_side([("roles?", 0), ("jobs?", 0), ("configmaps?", 5), ("dynamographdeployments?", 5)], forbidden)


def f12_namespace_terminating():
    """F12: the namespace is being deleted: nothing is made there any more, nothing holds it up, and it goes"""
    def ends(point):
        hold = {"metadata": {"name": "hold", "finalizers": ["example.com/hold"]}}
        with Stage(before=lambda stage: ok(scene.world.api.post(stage.path("configmaps"), hold))) as s:
            drive(s.play, stop=point)
            ok(scene.world.api.delete(f"/api/v1/namespaces/{s.ns}"))
            wait(lambda: set(s.record.now()) <= {("configmaps", "hold")}, 3 * PATIENCE, lambda_text(lambda: f"all to go, not {sorted(s.record.now())}"))
            s.rest()
            n = len(s.record.seen)
            s.operator.process.stop(PATIENCE)
            s.operator.start()
            time.sleep(REST)
            assert len(s.record.seen) == n, s.record.tail()
            s.record.check_jobs(s.play.uid)
            s.record.check_status(s.play.uid)
            assert s.record.of("configmaps", "") == []
            ok(scene.world.api.patch(s.path("configmaps", "hold"), {"metadata": {"finalizers": None}}))
            wait(lambda: scene.world.api.get(f"/api/v1/namespaces/{s.ns}")[0] == 404, 3 * PATIENCE, "the namespace to go")
    side_by_side([0, 1, 3, 7], ends)


# --- F11: kinds that come and go -----------------------------------------------------------------------------------------------


@contextlib.contextmanager
def own_server():
    """A server whose CRDs may be taken away."""
    with (ControlPlane() if scene.world.which == "cluster" else Engine("--no-node", "--no-fsync")) as server:
        yield server


def ready_once(play):
    drive(play)
    assert len(play.jobs()) == 1, play.jobs()
    meta = play.object(f"{DGDS}/a-dgd")["metadata"]
    assert meta["labels"]["sonde.dev/request"] == play.uid, meta
    ok(play.api.delete(f"{GROUP}/namespaces/{play.ns}/{DGDS}/a-dgd"))
    play.state("DeploymentDeleted")


def f11_kinds_not_installed():
    """F11: CRDs missing at the start, removed and installed again while it runs: it waits, lives on, and goes on"""
    crds = {DGDRS: "deploy/crds/dynamographdeploymentrequests.yaml", DGDS: "test/kinds/dgd-crd.yaml"}

    def remove(which, plural):
        ok(which.api.delete(f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{plural}.nvidia.com"))
        wait(lambda: which.api.get(f"{GROUP}/{plural}")[0] == 404, PATIENCE, f"{plural} to be gone")

    def install(which, plural):
        which.server.apply_crds(crds[plural])
        wait(lambda: which.api.get(f"{GROUP}/{plural}")[0] == 200, PATIENCE, f"{plural} to be served")

    def recreated(which, ns):
        def made():
            try:
                return which.create(ns, "a", SPEC, autoApply=True)
            except AssertionError:  # the kind is served a moment before it takes objects
                return None
        return wait(made, PATIENCE, "a request")

    with own_server() as server, World(scene.world.which, server) as own, server.namespace("kinds") as ns:
        remove(own, DGDRS)
        with own.operator(ns, synced=False) as operator:
            time.sleep(3)
            assert operator.process.popen.poll() is None, operator.process.lines
            assert not any("error" in line and "level=error" in line for line in operator.process.lines[5:]), operator.process.lines
            install(own, DGDRS)
            ready_once(recreated(own, ns))
            play = recreated_after_delete(own, ns, recreated)
            remove(own, DGDS)
            drive(play, stop=5)
            play.succeed()
            play.wait(lambda s: condition(s, "Stalled").get("reason") == "KindNotInstalled", "KindNotInstalled")
            install(own, DGDS)
            Stage.goes_on(play)
            succeeds_later(play)
            remove(own, DGDRS)
            wait(lambda: not own.api.get(f"/apis/batch/v1/namespaces/{ns}/jobs")[1]["items"] or scene.world.which == "cluster", PATIENCE, "the Job to go")
            own.api.delete(f"{GROUP}/namespaces/{ns}/{DGDS}/a-dgd")
            install(own, DGDRS)
            ready_once(recreated(own, ns))
            assert operator.process.popen.poll() is None, operator.process.lines


def recreated_after_delete(own, ns, recreated):
    ok(own.api.delete(f"{GROUP}/namespaces/{ns}/{DGDRS}/a"))
    return recreated(own, ns)


# --- F22 to F24: what the watches show -------------------------------------------------------------------------------------------

WATCHES = (
    "match WATCH * always -> duplicate lines=1", "match WATCH * always -> duplicate lines=3", "match WATCH * always -> replay lines=4",
    "\n".join(f"match WATCH * nth={i} -> cut ms=300" for i in range(1, 11)), "\n".join(f"match WATCH * nth={i} -> cut lines=1" for i in range(1, 11)), "match WATCH * every=2 -> expired lines=2",
    "match WATCH * always -> merge", "match WATCH * always -> stall ms=1200 lines=2", "match WATCH *pods* always -> stall ms=1500 lines=1",
    "match WATCH *jobs* always -> stall ms=1500 lines=1", "match WATCH *configmaps* always -> stall ms=1500 lines=2",
    "match WATCH *deploymentrequests* always -> stall ms=1500 lines=3", "match WATCH *jobs* always -> silent lines=1 ms=2000",
    "match LIST * always -> stale",
)


def f22_watches_disturbed():
    """F22: events twice, late, out of order across kinds, in lumps or not at all, and seeded mixtures: the same end"""
    def disturbed(what):
        script, seed = (what + "\n", None) if isinstance(what, str) else (None, what)
        with Stage(script=script, seed=seed, patient=True) as s:
            drive(s.play)
            s.finish(reasons="some" if seed else ())
    side_by_side(WATCHES + (1, 2, 3), disturbed)


def f23_own_writes_late():
    """F23: own writes come to the cache late, of each kind: nothing is written twice for that"""
    def writes(s):
        return [e for e in s.proxy.log() if e["event"] == "write"]

    def late(variant):
        kind, lines = variant
        with Stage(script=f"match WATCH *{kind}* always -> stall ms=2000 lines={lines}\n", patient=True) as s:
            drive(s.play)
            s.rest()
            s.told()
            s.same_end()
            wait(lambda: len(writes(s)) == s.record.writes(s.play.uid) + len(REASONS), PATIENCE, lambda_text(
                lambda: f"{len(writes(s))} writes, of which {s.record.writes(s.play.uid)} and {len(REASONS)} events are to be seen"))
            assert all(e["status"] < 300 for e in writes(s)), [e for e in writes(s) if e["status"] >= 300]
            s.converged()
            s.goes()
    side_by_side([("deploymentrequests", 1), ("deploymentrequests", 2), ("deploymentrequests", 4), ("jobs", 1), ("configmaps", 1),
                  ("configmaps", 2), ("dynamographdeployments", 1)], late)


def f24_deletions_missed():
    """F24: DELETED is missed and seen only as absence in a list: of ConfigMap, Job, deployment and request"""
    def missed(variant):
        kind, name, steps, then = variant
        with Stage(script=f"match WATCH */{kind}?* always -> cut ms=1500\n") as s:
            drive(s.play, stop=steps)
            s.proxy.script(f"match WATCH */{kind}?* always -> answer 503\nmatch LIST */{kind}?* always -> answer 503\n")
            faults = s.proxy.count("answer-503")
            wait(lambda: s.proxy.count("answer-503") > faults, PATIENCE, "the operator to be blind")
            ok(scene.world.api.delete(s.path(kind, name), BACKGROUND))
            wait(lambda: (kind, name) not in s.record.now(), PATIENCE, "it to be gone")
            time.sleep(0.3)
            s.proxy.script(f"match WATCH */{kind}?* nth=1 -> expired\n")
            then(s)

    def made_again(s):
        wait(lambda: s.play.object("configmaps/dgdr-status-a"), PATIENCE, "another ConfigMap")
        drive(s.play, start=3)
        extra = {("create", "configmaps", "dgdr-status-a"): 1, ("delete", "configmaps", "dgdr-status-a"): 1}
        s.finish(extra=extra)

    def ends(state, reason):
        def check(s):
            status = s.play.state(state)
            assert condition(status, "Ready")["reason"] == reason, status
            s.converged()
            s.goes()
        return check

    def nothing_left(s):
        wait(lambda: {name for _, name in s.record.listed(scene.world.api)} == set(STRANGERS), PATIENCE, "nothing to be left")
        s.rest()
        s.record.check_jobs(s.play.uid)
        s.record.check_unchanged(s.strangers)
    side_by_side([("configmaps", "dgdr-status-a", 3, made_again), ("jobs", "profile-a", 3, ends("Failed", "JobDeleted")),
                  (DGDS, "a-dgd", 7, ends("DeploymentDeleted", "DeploymentDeleted")), (DGDRS, "a", 3, nothing_left)], missed)


# --- all of them -----------------------------------------------------------------------------------------------------------

TESTS = [value for name, value in sorted({**globals(), **vars(fault_objects)}.items()) if name[:1] == "f" and name[1:3].isdigit()]


def later(test, pool):
    """TEST, begun now and told when its turn comes."""
    future = pool.submit(test)

    @functools.wraps(test)
    def told():
        future.result()
    return told


if __name__ == "__main__":
    names = [name for name in sys.argv[1:] if name != "cluster"]
    with World("cluster" if "cluster" in sys.argv[1:] else "engine") as scene.world, Recorder(scene.world.server) as scene.recorder:
        scene.reference = Reference()
        diag(f"{scene.reference.writes} writes; {scene.reference.counts}")
        with concurrent.futures.ThreadPoolExecutor(len(TESTS)) as workers:
            main(*[later(t, workers) for t in TESTS if not names or any(t.__name__.startswith(n) for n in names)])
