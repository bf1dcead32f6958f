"""F25 to F29 and F43 to F45: what people, Jobs and servers do to the objects of a request."""

import datetime
import os
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
from dgdr_play import DGDS, PATIENCE, SPEC, condition, now, ok
from dgdr_record import of_one_attempt
from dgdr_stage import BACKGROUND, REST, STEPS, STRANGERS, Stage, drive, gets_a_job, is_deployed, scene, side_by_side, succeeds_later
from sonde_test import wait

# --- F25, F27: the same name again -------------------------------------------------------------------------------------------------

HASHED = (r"profile-a-[0-9a-z]{8}\b", "profile-a")


def drive_after_another(s, play):
    """Where the one before has left its deployment, which outlives it, that must go first."""
    old = s.play.object(f"{DGDS}/a-dgd")
    drive(play, stop=5)
    play.succeed()
    if old:
        s.stalls("NameConflict", play, about="a-dgd")  # of the other objects before it, while they were on their way out
        assert s.play.object(f"{DGDS}/a-dgd")["metadata"]["uid"] == old["metadata"]["uid"]
        ok(scene.world.api.delete(s.path(DGDS, "a-dgd")))
        s.goes_on(play)
    succeeds_later(play)


def not_of(play, record):
    """Nothing of another request has ever become PLAY's."""
    for _, _, item in record.seen:
        owners = {o["uid"] for o in item["metadata"].get("ownerReferences", [])}
        assert play.uid not in owners or len(owners) == 1, item


def f25_recreated():
    """F25: deleted and created again under the same name, at every point: the new one is new, and adopts nothing"""
    def recreated(point):
        with Stage() as s:
            drive(s.play, stop=point)
            s.play.delete()
            play = s.request()
            assert play.uid != s.play.uid
            drive_after_another(s, play)
            s.finish(play, rename=HASHED, reasons="any")
            not_of(play, s.record)
    side_by_side(range(len(STEPS) + 1), recreated)


def f27_job_names():
    """F27: a Job's name is never used twice within a request; beside an old Job that lingers another name is taken"""
    def attempts(_):
        with Stage() as s:
            drive(s.play, stop=2)
            s.play.edit(suspend=True)
            s.play.wait(lambda st: condition(st, "Suspended").get("status") == "True" and st["state"] == "Pending", "a rest")
            wait(lambda: not s.play.jobs(), PATIENCE, "the Job to go")
            s.play.edit(suspend=False)
            s.play.wait(lambda st: st["run"]["attempt"] == 2, "attempt 2")
            drive(s.play, stop=2)
            s.play.evict()
            s.play.wait(lambda st: st["run"]["attempt"] == 3, "attempt 3")
            drive(s.play)
            s.converged()
            names = [name for what, kind, name in s.record.counts(s.play.uid) if what == "create" and kind == "jobs"]
            assert names == ["profile-a", "profile-a-2", "profile-a-3"], names
            s.goes()

    def lingering(_):
        with Stage() as s:
            drive(s.play, stop=2)
            job = s.path("jobs", "profile-a")
            ok(scene.world.api.patch(job, {"metadata": {"finalizers": ["example.com/hold"]}}))
            s.play.delete()
            play = s.request()
            drive_after_another(s, play)
            old = ok(scene.world.api.get(job))
            assert old["metadata"]["ownerReferences"][0]["uid"] == s.play.uid, old
            ok(scene.world.api.patch(job, {"metadata": {"finalizers": None}}))
            s.finish(play, rename=HASHED, reasons="any")
            not_of(play, s.record)
    side_by_side([attempts, lingering], lambda f: f(None))


# --- F26: the Job --------------------------------------------------------------------------------------------------------------------


def attempts_more(n, alive=True):
    """What N attempts more leave. ALIVE: their Jobs had to be deleted, with their pods."""
    extra = {("create", "jobs", "profile-a"): n, ("create", "pods", "profile-a-"): n}
    return {**extra, ("delete", "jobs", "profile-a"): n, ("delete", "pods", "profile-a-"): n} if alive and n else extra


NUMBERED = (r"profile-a-[2-9]\b", "profile-a")
PODS = (("create", "pods", "profile-a-"), ("delete", "pods", "profile-a-"))


def job_deleted(s):
    """deleted by somebody while it runs"""
    drive(s.play, stop=3)
    ok(scene.world.api.delete(s.path("jobs", "profile-a"), BACKGROUND))
    fails(s, "JobDeleted")


def job_expired(s):
    """deleted by its TTL after the end"""
    drive(s.play)
    ok(scene.world.api.delete(s.path("jobs", "profile-a"), BACKGROUND))
    wait(lambda: not s.play.jobs(), PATIENCE, "the Job to go")
    s.converged()
    assert s.play.status()["state"] == "Ready"
    s.goes()


def job_suspended(s):
    """its own suspend set by somebody: not relied upon"""
    drive(s.play, stop=3)
    ok(scene.world.api.patch(s.path("jobs", "profile-a"), {"spec": {"suspend": True}}))
    drive(s.play, start=3)

    def mask(state):
        state["jobs", "profile-a"]["spec"].pop("suspend", None)
        return state
    s.finish(mask=mask)


def job_completes_unseen(s):
    """complete before anybody looks again"""
    drive(s.play, stop=5)
    s.operator.kill()
    s.play.succeed()
    wait(lambda: any(c["type"] == "Complete" for c in s.play.jobs()[0]["status"].get("conditions", [])), PATIENCE, "complete")
    s.operator.start()
    succeeds_later(s.play)
    s.finish(reasons="some")


def job_fails(s):
    """its pod fails, and it may not make another"""
    drive(s.play, stop=3)
    s.play.fail()
    status = fails(s, "WorkloadFailed")
    assert status["profilingPhase"] == "Failed" and status["profilingProgress"]["failedPhase"] == "Initializing", status


def job_too_late(s):
    """spec.timeout passes"""
    drive(s.play, stop=2)
    began = datetime.datetime.fromisoformat(s.play.pod()["status"]["startTime"]).timestamp()
    s.play.edit(timeout=f"{int(time.time() - began) + 4}s")
    fails(s, "DeadlineExceeded")
    assert not s.play.jobs() or scene.world.which == "cluster", s.play.jobs()


def pod_evicted(s):
    """evicted: another attempt"""
    drive(s.play, stop=3)
    s.play.evict()
    s.play.wait(lambda st: st["run"]["attempt"] == 2, "another attempt")
    s.play.sequence = 0
    drive(s.play)

    def mask(state):
        return {key: item for key, item in of_one_attempt(state).items() if key[0] not in ("jobs", "pods")}
    # The first Job is deleted, with its pod, if the server has not seen yet that it has failed.
    s.finish(mask=mask, rename=NUMBERED, extra=attempts_more(1, alive=False), reasons=["Retrying"],
             but=(("delete", "jobs", "profile-a"), PODS[1]))


def image_missing(s):
    """the image cannot be pulled, and then can"""
    gets_a_job(s.play)
    waiting = {"waiting": {"reason": "ImagePullBackOff", "message": "Back-off pulling image"}}
    there = s.play._containers(waiting, waiting)  # pylint: disable=protected-access

    def tell():  # until a scheduler, which finds no node, does not say otherwise any more
        if condition(s.play.pod()["status"], "PodScheduled").get("status") != "True":
            s.play.pod_status(phase="Pending", conditions=[{"type": "PodScheduled", "status": "True"}], containerStatuses=there)
        told = s.play.status()
        return told if condition(told, "Progressing").get("reason") == "ImagePullFailed" else None
    status = wait(tell, PATIENCE, "ImagePullFailed", every=0.3)
    assert "Back-off pulling image" in condition(status, "Progressing")["message"], status
    drive(s.play)
    s.finish()


def job_controller_late(s):
    """no pod for a while"""
    status = s.play.wait(lambda st: condition(st, "Progressing").get("reason") == "PodNotCreated", "PodNotCreated")
    assert "quota" in condition(status, "Progressing")["message"], status
    ok(scene.world.api.delete(f"/api/v1/namespaces/{s.ns}/resourcequotas/none"))
    drive(s.play)
    s.finish()


def no_pods(stage):
    ok(scene.world.api.post(f"/api/v1/namespaces/{stage.ns}/resourcequotas", {"metadata": {"name": "none"}, "spec": {"hard": {"pods": "0"}}}))
    if scene.world.which == "cluster":  # it counts from when its controller has seen it
        wait(lambda: ok(scene.world.api.get(f"/api/v1/namespaces/{stage.ns}/resourcequotas/none")).get("status", {}).get("hard"), PATIENCE, "a quota")


def fails(s, reason):
    status = s.play.state("Failed")
    assert condition(status, "Stalled")["reason"] == reason, status
    assert status["run"]["outcome"] == "Failed" and status["run"]["reason"] == reason, status
    s.converged()
    s.goes()
    return status


JOBS = (job_deleted, job_expired, job_suspended, job_completes_unseen, job_fails, job_too_late, pod_evicted, image_missing)


def f26_jobs():
    """F26: what becomes of a Job: deleted, expired, suspended, complete unseen, failed, too late, evicted, without image or pod"""
    def fate(case):
        late = case is job_controller_late
        with Stage(before=no_pods if late else None, patient=late) as s:
            case(s)
    side_by_side(JOBS + (job_controller_late,), fate)


# --- F28, F29: what people do to our objects --------------------------------------------------------------------------------------------


def f28_config_maps_changed():
    """F28: a ConfigMap of ours is edited, deleted, loses labels or owner, is made immutable: repaired or told, never lost"""
    status, output = "dgdr-status-a", "dgdr-output-a"

    def change(s, name, patch):
        ok(scene.world.api.patch(s.path("configmaps", name), patch))

    def edited(s):
        change(s, status, {"data": {"status.json": "{broken", "attempt": "many"}})
        s.play.wait(lambda st: condition(st, "Reporting").get("status") == "False", "Reporting=False")
        drive(s.play, start=3)
        s.finish(reasons="any")

    def deleted(name):
        def run(s):
            before = s.play.object(f"configmaps/{name}")["metadata"]["uid"]
            ok(scene.world.api.delete(s.path("configmaps", name)))
            wait(lambda: (s.play.object(f"configmaps/{name}") or {"metadata": {"uid": before}})["metadata"]["uid"] != before,
                 PATIENCE, "another one")
            drive(s.play, start=3)
            s.finish(extra={("create", "configmaps", name): 1, ("delete", "configmaps", name): 1}, reasons="any")
        return run

    def unlabelled(name):
        def run(s):
            change(s, name, {"metadata": {"labels": None}})
            wait(lambda: s.play.object(f"configmaps/{name}")["metadata"].get("labels", {}).get("sonde.dev/controller"), PATIENCE, "labels")
            drive(s.play, start=3)
            s.finish(reasons="any")
        return run

    def disowned(name):
        def run(s):
            owners = s.play.object(f"configmaps/{name}")["metadata"]["ownerReferences"]
            change(s, name, {"metadata": {"ownerReferences": None}})
            s.stalls("NameConflict")
            change(s, name, {"metadata": {"ownerReferences": owners}})
            s.goes_on(s.play)
            drive(s.play, start=3)
            s.finish(reasons=["NameConflict"])
        return run

    def immutable(s):
        change(s, status, {"immutable": True})
        code, _ = scene.world.api.patch(s.path("configmaps", status), {"data": {"sequence": "99"}})
        assert code == 422, code  # the relay cannot tell any more
        s.play.output()
        s.play.pod_ends(0)
        status_ = s.play.wait(lambda st: st.get("deployment", {}).get("created"), "a deployment")
        assert condition(status_, "Reporting")["status"] == "False", status_
        is_deployed(s.play)
        s.converged()
        s.goes()

    def after_the_end(s):
        drive(s.play, start=3)
        change(s, output, {"metadata": {"labels": None}})
        s.rest()
        ok(scene.world.api.delete(s.path("configmaps", output)))
        s.converged()
        assert s.play.status()["state"] == "Ready"
        s.goes()

    def run(case):
        with Stage() as s:
            drive(s.play, stop=3)
            case[1](s)
    side_by_side([("edited", edited), ("status deleted", deleted(status)), ("output deleted", deleted(output)),
                  ("status unlabelled", unlabelled(status)), ("output unlabelled", unlabelled(output)),
                  ("status disowned", disowned(status)), ("output disowned", disowned(output)), ("immutable", immutable),
                  ("after the end", after_the_end)], run)


def f29_deleted_by_force():
    """F29: the request is deleted while nobody looks, by force, or held by a finalizer that is taken away by hand: all goes"""
    def unseen(point):
        with Stage() as s:
            drive(s.play, stop=point)
            s.operator.kill()
            ok(scene.world.api.delete(f"{s.play.path}?gracePeriodSeconds=0"))
            s.operator.start()
            gone(s)

    def gone(s):
        wait(lambda: {name for _, name in s.record.listed(scene.world.api)} <= set(STRANGERS + ("a-dgd",)), PATIENCE, "nothing to be left")
        s.rest()
        s.record.check_jobs(s.play.uid)
        s.record.check_status(s.play.uid)
        s.record.check_unchanged(s.strangers)

    def held(point):
        with Stage() as s:
            drive(s.play, stop=point)
            ok(scene.world.api.patch(s.play.path, {"metadata": {"finalizers": ["example.com/hold"]}}))
            s.play.delete()
            s.rest()
            n = len(s.record.seen)
            s.operator.process.stop(PATIENCE)
            s.operator.start()
            time.sleep(REST)
            assert len(s.record.seen) == n, s.record.tail()
            ok(scene.world.api.patch(s.play.path, {"metadata": {"finalizers": None}}))
            gone(s)
    side_by_side([(f, point) for f in (unseen, held) for point in (1, 3, 7)], lambda v: v[0](v[1]))


# --- F43 to F45 --------------------------------------------------------------------------------------------------------------------------


def f43_objects_mutated():
    """F43: others add labels, annotations, data and a sidecar to our objects at once: no fight, and the same end"""
    with Stage() as s:
        mutated, over = {}, threading.Event()

        def mutate():
            at = 0
            while not over.is_set():
                for kind, what, item in s.record.seen[at:]:
                    at += 1
                    meta = item["metadata"]
                    if what == "DELETED" or meta["name"] in STRANGERS or "injected" in meta.get("labels", {}):
                        continue
                    patch = {"metadata": {"labels": {"injected": "yes"}, "annotations": {"injected": "yes"}}}
                    if kind == "configmaps":
                        patch["data"] = {"injected": "yes"}
                    if scene.world.api.patch(s.path(kind, meta["name"]), patch)[0] == 200:
                        mutated[meta["uid"]] = mutated.get(meta["uid"], 0) + 1
                time.sleep(0.01)
        mutator = threading.Thread(target=mutate)
        mutator.start()
        two = s.play._containers  # pylint: disable=protected-access
        sidecar = {"name": "sidecar", "image": "i", "imageID": "", "ready": True, "restartCount": 0, "state": {"running": {"startedAt": now()}}}
        s.play._containers = lambda *states: two(*states) + [sidecar]  # pylint: disable=protected-access
        try:
            drive(s.play)
            s.rest()
        finally:
            over.set()
            mutator.join()
        assert len(mutated) >= 8, mutated  # twice: another event was on its way already

        def mask(state):
            for item in state.values():
                for where in "labels", "annotations":
                    item["metadata"].get(where, {}).pop("injected", None)
                    if not item["metadata"].get(where, True):
                        del item["metadata"][where]
                item.get("data", {}).pop("injected", None)
            return state
        s.finish(mask=mask)


def f44_slow_admission():
    """F44: a write takes 12 s, before or after it takes effect: waited for, and done once"""
    def slow(rule):
        with Stage(script=f"match {rule}\n", patient=True) as s:
            drive(s.play)
            s.finish(reasons="some")
            assert s.proxy.stats()["total"] == 1, s.proxy.stats()
            again = [e for e in s.proxy.log() if e["event"] == "write" and e["status"] == 409]
            assert not again, again
    side_by_side(["POST *jobs* nth=1 -> delay ms=12000", "POST *jobs* nth=1 -> delay-answer ms=12000",
                  "PATCH *requests/a/status* nth=3 -> delay ms=12000", "POST *dynamographdeployments* nth=1 -> delay-answer ms=12000"], slow)


def f45_rolled_back():
    """F45: a change that cannot be satisfied, then taken back: the new generation counts, and the run ends as if nothing was"""
    nowhere = {"profilingConfig": {**SPEC["profilingConfig"], "nodeSelector": {"example.com/none": "such"}}}
    back = {"profilingConfig": {"nodeSelector": None}}

    def gets_a_pod(play):
        gets_a_job(play)
        play.pod()

    def finish(s, attempts, least):
        """All attempts had a Job each. Of pods, LEAST at least: a Job that goes may not have made one yet, or make another; one is left."""
        s.rest()
        counts = s.record.counts(s.play.uid, NUMBERED)
        made, gone = (counts.get(key, 0) for key in PODS)
        assert made >= least and made - gone == 1, counts
        s.finish(mask=of_one_attempt, rename=NUMBERED, extra=attempts_more(attempts - 1), reasons="any", but=PODS)

    def stuck(_):
        with Stage() as s:
            gets_a_pod(s.play)
            s.play.edit(**nowhere)
            s.play.wait(lambda st: st["run"]["attempt"] == 2, "attempt 2")
            gets_a_pod(s.play)
            assert s.play.job()["spec"]["template"]["spec"]["nodeSelector"] == {"example.com/none": "such"}
            s.play.edit(**back)
            s.play.wait(lambda st: st["run"]["attempt"] == 3, "attempt 3")
            drive(s.play)
            finish(s, 3, 3)

    def at_once(_):
        with Stage() as s:
            gets_a_pod(s.play)
            s.play.edit(**nowhere)
            s.play.edit(**back)
            status = s.play.wait(lambda st: st["observedGeneration"] == 3 and "reason" not in st["run"], "acceptance, and no attempt to come")
            attempts = status["run"]["attempt"]
            drive(s.play)
            finish(s, attempts, min(attempts, 2))

    def from_the_start(_):
        with Stage(**nowhere) as s:
            gets_a_pod(s.play)
            s.play.edit(**back)
            s.play.wait(lambda st: st["run"]["attempt"] == 2, "attempt 2")
            drive(s.play)
            finish(s, 2, 2)

    def invalid(_):
        with Stage() as s:
            drive(s.play, stop=3)
            s.play.edit(profilingConfig={"config": {"sla": {"isl": 0}}})
            status = s.play.wait(lambda st: condition(st, "SpecAccepted").get("status") == "False", "a refusal")
            assert status["observedGeneration"] == 1 and status["state"] == "Profiling", status
            s.play.edit(profilingConfig={"config": {"sla": {"isl": 3000}}})
            s.play.wait(lambda st: condition(st, "SpecAccepted").get("status") == "True" and st["observedGeneration"] == 3, "acceptance")
            drive(s.play, start=3)
            s.finish(mask=of_one_attempt, reasons=["SpecChangeRejected"])
    side_by_side([stuck, at_once, from_the_start, invalid], lambda f: f(None))
