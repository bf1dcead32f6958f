#!/usr/bin/python3
"""An upgrade in the full design's order, CRDs, controller, profiler image, with 20 runs in flight at each step.

Before: a CRD without the fields of progress, an operator, profilers that write no status file. No run restarts, none is missed and
nothing is lost: every Job is made once and none is changed or taken away, runs end in every half-way state, and the history has
each of them once. What is in flight goes on as it was begun; the next run of a profiler shows its progress.

SONDE_OLD=FOLDER takes the operator before the upgrade, and its CRDs, from the build in that folder: an older version. With
`--record FILE` the objects of some of its runs are kept, as in test/data/upgrade: what an older version left is read by this one.
"""

import collections
import contextlib
import json
import os
import signal
import sqlite3
import subprocess
import sys
import tempfile

import yaml

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
import leaders
from copies import copy_of, make
from dgdr_play import DGDRS, SPEC, condition, ok
from every_kind import JOBS, PATIENCE, TYPES, EveryKind, ends, is_over, reports, shows, step_of
from sonde_test import BUILD, ROOT, ControlPlane, Process, diag, main, wait
from tidy import tidied
from watched import Watched

IN_FLIGHT = 20  # DynamoGraphDeploymentRequests, and some of every other kind beside them
OTHERS = {"cuda": 2, "ap": 2, "ac": 2}
PLURALS = {"cuda": "cudaexperiments", "ap": "algorithmprofilings", "ac": "algorithmcomparisons"}
OLD = os.environ.get("SONDE_OLD", BUILD)
RECORDED = os.path.join(ROOT, "test/data/upgrade/runs.json")
NEWER = ("profilingPhase", "profilingProgress", "progress")  # of the status, which the old CRD does not have
IMAGES = {"old": "registry.example/profiler:1", "new": "registry.example/profiler:2"}


def crds(build):
    """Those that a version of the program prints, by plural."""
    done = subprocess.run([os.path.join(build, "sonde"), "manifests"], capture_output=True, text=True, check=True)
    found = [d for d in yaml.safe_load_all(done.stdout) if d and d["kind"] == "CustomResourceDefinition"]
    return {d["spec"]["names"]["plural"]: d for d in found}


def status_of(crd):
    return crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["status"]["properties"]


def without_progress(crd):
    """As it was before there was any."""
    version = crd["spec"]["versions"][0]
    for field in NEWER:
        del status_of(crd)[field]
    version["additionalPrinterColumns"] = [c for c in version["additionalPrinterColumns"]
                                           if not any(f".status.{field}" in c["jsonPath"] for field in NEWER)]


def install(all_crds):
    """As `kubectl apply` does; waits until requests are served as they say."""
    cluster.kubectl("apply", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": list(all_crds.values())}))
    known = set(status_of(all_crds[DGDRS]))

    def served():
        definitions = ok(cluster.api().get("/openapi/v2"))["definitions"]
        found = next((d for name, d in definitions.items() if name.endswith("v1alpha1.DynamoGraphDeploymentRequest")), {})
        return set(found.get("properties", {}).get("status", {}).get("properties", {})) == known
    wait(served, PATIENCE, "the CRDs to be served")


class Site:
    """A namespace with all that is in flight in it, and the operators of the old and the new version."""

    def __init__(self):
        self._stack = contextlib.ExitStack()
        self.plays = []

    def __enter__(self):
        with self._stack as stack:
            self.folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="sonde-upgrade-"))
            self.history = os.path.join(self.folder, "history.db")
            self.ns = stack.enter_context(cluster.namespace("upgrade"))
            self.seen = stack.enter_context(Watched(cluster, self.ns, TYPES))
            self.operators = {}
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *what):
        if what[0] not in (None, SystemExit):
            for which, process in self.operators.items():
                diag(f"{which}:\n" + "\n".join(process.lines[-20:]))
        return self._stack.__exit__(*what)

    def start(self, which, build):
        """Its settings differ, too: what it plans for a new run is not what was planned for those in flight."""
        self.operators[which] = self._stack.enter_context(Process(
            os.path.join(build, "sonde"), "operator", "--kubeconfig", cluster.kubeconfig, "--namespace", self.ns, "--leader-elect",
            "--leader-elect-namespace", self.ns, "--history", self.history, "--pod-image", f"registry.example/sonde-pod:{which}",
            "--profiler-env", f"VERSION={which}", "--health-probe-bind-address", "0", "--log-format", "logfmt"))
        return self.operators[which]

    def create(self, kind, name, **more):
        play = kinds.create(self.ns, kind, name, **more)
        self.plays.append(play)
        return play

    def of(self, *names):
        return [play for play in self.plays if play.name in names]

    def created(self, image, *names):
        spec = {**SPEC, "profilingConfig": {**SPEC["profilingConfig"], "profilerImage": IMAGES[image]}}
        return [self.create("dgdr", name, spec=spec) for name in names]

    def untouched(self):
        """What an upgrade may not touch: uid, spec and version of Jobs, uid of pods, by name."""
        with self.seen.changed:
            jobs = {name: (j["metadata"]["uid"], j["metadata"]["generation"] if "generation" in j["metadata"] else 1, j["spec"])
                    for name, j in self.seen.now["jobs"].items()}
            return jobs, {name: p["metadata"]["uid"] for name, p in self.seen.now["pods"].items()}

    def attempts(self):
        return {play.name: play.status()["run"]["attempt"] for play in self.plays}


@contextlib.contextmanager
def nothing_restarts():
    """Jobs and pods that were there are there, as they were, and every request is at its first attempt."""
    jobs, pods = site.untouched()
    yield
    site.seen.quiet(1)
    jobs_after, pods_after = site.untouched()
    for name, before in jobs.items():
        assert jobs_after.get(name) == before, (name, before, jobs_after.get(name))
    assert not pods.items() - pods_after.items(), (pods, pods_after)
    assert set(site.attempts().values()) == {1}, site.attempts()


def end(*plays):
    for play in plays:
        ends(play, silent=play.name.startswith("old") and play.status()["run"]["attempt"] == 1)
    for play in plays:
        is_over(play)


def by_sonde(event):
    return event.get("userAgent", "").startswith("sonde/")


def writes_of(play):
    """Status writes of a request, as the audit log has them."""
    return [e for e in leaders.events(cluster, site.ns, by_sonde) if e["objectRef"].get("name") == play.name and
            e["objectRef"].get("subresource") == "status"]


def runs(play):
    return play.wait(lambda s: condition(s, "Progressing").get("reason") == "Running", "it to run")


def shows_nothing(play):
    """It runs, and says what it said before there was progress."""
    status = runs(play)
    assert status["state"] == "Profiling" and step_of(status) is None and "profilingProgress" not in status, status


def nothing_newer_is_written(ended):
    """The other way round: a new profiler before all. What the server does not take is not shown, and not written for ever."""
    early, = site.created("new", "early")
    early.pod_runs()
    reports(early, 2)
    early.wait(lambda s: any("step 2" in c.get("message", "") for c in s.get("conditions", [])), "its report to be told")
    wait(lambda: writes_of(early), PATIENCE, "its status to be written")
    site.seen.quiet(1)
    before = len(writes_of(early))
    reports(early, 2)
    site.seen.quiet(1)
    for play in (early, ended):
        assert not any(field in play.get()["status"] for field in NEWER), play.get()["status"]
    times = [e["requestReceivedTimestamp"] for e in writes_of(early)]
    assert len(times) <= before + 1, f"what the server does not take is written again and again: {times}"


def an_old_installation():
    """Before: 20 requests are profiled, and none of them shows how far it is; some wait for their pods"""
    old = crds(OLD)
    if OLD == BUILD:  # the program is of today, and stands for one from before there was progress
        without_progress(old[DGDRS])
    install(old)
    site.start("old", OLD).expect("Became the leader", PATIENCE)
    plays = site.created("old", *(f"old-{i:02d}" for i in range(IN_FLIGHT)))
    for kind, count in OTHERS.items():
        plays += [site.create(kind, f"old-{kind}-{i}") for i in range(count) if PLURALS[kind] in old]
    for play in plays:
        play.job()
    running = [play for play in plays[:-1] if not play.name.endswith("9")]  # those wait for a node all the way
    for play in running:
        play.pod_runs()
    for play in plays[:9]:
        shows_nothing(play)
    for play in running:
        runs(play)
    end(plays[0])
    if OLD == BUILD:
        nothing_newer_is_written(plays[0])


def first_the_crds():
    """1. The new CRDs: what is in flight goes on under the old operator, and ends"""
    with nothing_restarts():
        before = {play.name: play.get()["metadata"]["resourceVersion"] for play in site.plays}
        install(crds(BUILD))
        for play in site.plays:
            assert play.get()["metadata"]["resourceVersion"] == before[play.name] or play.name == "early", play.get()
        end(*site.of("old-01"))
        for early in site.of("early"):
            reports(early, 5)
            shows(early, 5)


def then_the_controller():
    """2. The new operator waits for the old one's lease and takes over at once when that ends; runs end before, meanwhile and after"""
    with nothing_restarts():
        new = site.start("new", BUILD)
        new.expect("Saw a leader", PATIENCE)
        end(*site.of("old-02"))
        ending, = site.of("old-03")
        ends(ending, silent=True)  # whoever sees it
        site.operators["old"].signal(signal.SIGTERM)
        assert site.operators["old"].wait(PATIENCE) == 0, site.operators["old"].lines[-10:]
        new.expect("Became the leader", PATIENCE)
        is_over(ending)
        end(*site.of("old-04"))
        for play in site.of("old-05", "old-06"):
            shows_nothing(play)


def then_the_profiler():
    """3. The new profiler image: new runs show their progress, those in flight go on without, until the next run of a profiler"""
    with nothing_restarts():
        plays = site.created("new", "new-0", "new-1")
        for play in plays:
            play.pod_runs()
            reports(play, 3)
        for play in plays:
            status = shows(play, 3)
            assert status["profilingProgress"]["currentStep"] == 3 and status["profilingPhase"] == "PrefillSweep", status
        for play in site.of("old-05", "old-06"):
            shows_nothing(play)
        end(*plays, *site.of("old-05"))
    again, = site.of("old-06")
    again.evict()  # what is in flight gets another profiler only so
    again.wait(lambda s: s["run"]["attempt"] == 2 and again.object(f"jobs/{s['run']['job']}"), "another attempt")
    again.sequence = 0
    again.pod_runs()
    reports(again, 4)
    shows(again, 4)


def afterwards():
    """All of them end with their results; every Job was made once, none was taken away, and the history has each run once"""
    rest = [play for play in site.plays if not condition(play.status(), "Ready").get("status") == "True"]
    for play in rest:
        play.pod_runs()
    end(*rest)

    def added():
        return [item["metadata"]["name"] for what, item in site.seen.seen["jobs"] if what == "ADDED"]
    expected = sum(JOBS[play.world.kind] for play in site.plays) + 1  # of the one that was evicted
    site.seen.wait(lambda: len(added()) >= expected, PATIENCE, "the Jobs")
    names = added()
    assert len(names) == len(set(names)) == expected, (sorted(names), expected)
    gone = [item["metadata"]["name"] for kind in ("jobs", "pods") for what, item in site.seen.seen[kind] if what == "DELETED"]
    assert [name for name in gone if not name.startswith("profile-old-06")] == [], gone  # which was evicted

    def written():
        return collections.Counter((verb, code) for _, verb, resource, code in leaders.writes(cluster, site.ns, by_sonde)
                                   if resource == "jobs")
    wait(lambda: written()["create", 201] >= expected, PATIENCE, "the audit log")
    assert written()["create", 201] == expected and sum(written().values()) - expected <= 1, written()  # the evicted one's may go
    with contextlib.closing(sqlite3.connect(site.history)) as history:
        rows = history.execute("SELECT name, attempt, outcome FROM run").fetchall()
    wanted = [(play.name, attempt, "Succeeded") for play in site.plays if (attempt := play.status()["run"]["attempt"])]
    diag(f"{len(site.plays)} requests, {expected} Jobs made, {len(rows)} runs in the history")
    assert sorted(r for r in rows if r[2] == "Succeeded") == sorted(wanted), rows
    for play in site.plays:
        if play.world.kind == "dgdr":
            assert play.status()["profilingResults"] and play.status()["generatedDeployment"], play.status()


def record(file):
    """One that has ended, one that runs, one that waits for its pod, and experiments that run and have been executed."""
    executed, = site.of("old-cuda-0")
    end(executed)
    runs = [copy_of(cluster, play) for play in site.of("old-00", "old-01", "old-09", "old-cuda-0", "old-cuda-1")]
    with open(file, "w", encoding="utf-8") as f:
        json.dump(runs, f, separators=(",", ":"))


def what_an_older_version_left():
    """Objects as an older version wrote them: what has ended stays as it is, what runs goes on and ends, and no Job is made"""
    with open(RECORDED, encoding="utf-8") as f:
        left = json.load(f)
    with cluster.namespace("left") as ns, Watched(cluster, ns, TYPES) as seen:
        cluster.rig("stop", "controller-manager")
        for run in left:
            make(cluster.api(), ns, run, run["name"])
        cluster.rig("start", "controller-manager")
        plays = [kinds.worlds["cuda" if "cuda" in run["name"] else "dgdr"].play(ns, run["name"]) for run in left]
        seen.wait(lambda: len(seen.now["jobs"]) >= sum(kind == "jobs" for run in left for kind, *_ in run["objects"]), PATIENCE, "their Jobs")
        jobs = set(seen.now["jobs"])
        before = {play.name: play.get() for play in plays}
        with kinds.worlds["dgdr"].operator(ns) as dgdr, kinds.worlds["cuda"].operator(ns) as cuda:
            for operator in (dgdr, cuda):
                operator.process.expect("^idle after", PATIENCE)
            for play in plays:
                if condition(before[play.name]["status"], "Ready").get("status") == "True":
                    assert play.get() == before[play.name], (play.get(), before[play.name])
                else:
                    play.pod_runs()
                    end(play)
        seen.wait(lambda: set(seen.now["jobs"]) - jobs, PATIENCE, "the Job of an execution")
        made = set(seen.now["jobs"]) - jobs
        assert made == {"old-cuda-1-execution"}, made  # which follows its profile
        diag(f"{len(plays)} runs, {len(jobs)} Jobs")


with ControlPlane.of("fragile") as cluster, tidied(cluster), EveryKind(cluster) as kinds, Site() as site:
    if sys.argv[1:2] == ["--record"]:
        an_old_installation()
        record(sys.argv[2])
    else:
        main(an_old_installation, first_the_crds, then_the_controller, then_the_profiler, afterwards, what_an_older_version_left)
