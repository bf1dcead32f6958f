"""Requests in a queue, on either engine, without a node: pods are played, and end as soon as they may.

    with World("engine") as world, world.server.namespace("t") as ns, world.operator(ns, "--max-concurrent-runs", "4"):
        with Queue(world, ns) as q:
            world.create(ns, "a", priority=7)
            q.go()
            q.wait(lambda: q.over == ["a"], 60, "its end")

    with Profilings("engine") as world: ...       the same of AlgorithmProfilings
"""

import collections
import json
import queue
import re
import threading
import time

import algorithm_play
import dgdr_play
from dgdr_play import now, ok
from watched import Watched

GROUP = "/apis/test.sonde.dev/v1alpha1"
PLAYERS = 4


class World(dgdr_play.World):
    kind = "testrun"
    crds = ("test/kinds/crd.yaml",)
    served = (f"{GROUP}/testruns",)
    group, plural, named = GROUP, "testruns", "TestRun"
    spec = {"image": "i", "command": ["true"]}
    container = "workload"
    results = {}  # what a run leaves, by the name of its ConfigMap

    def create(self, ns, name, spec=None, **more):
        body = {"apiVersion": self.group.removeprefix("/apis/"), "kind": self.named, "metadata": {"name": name},
                "spec": {**self.spec, **more}}
        return ok(self.api.post(f"{self.group}/namespaces/{ns}/{self.plural}", body))

    @staticmethod
    def of_job(job):
        """Of which request it is, and which attempt."""
        return re.match(r"(.*)-run(?:-(\d+))?$", job).groups("1")


class Profilings(World):
    kind = "ap"
    crds, served = algorithm_play.World.crds, algorithm_play.World.served
    group, plural, named = algorithm_play.GROUP, algorithm_play.PROFILINGS, "AlgorithmProfiling"
    spec = algorithm_play.SPECS["ap"]
    container = "algorithm"
    results = {"{}-run-results": {"result.json": json.dumps(algorithm_play.result())}}

    @staticmethod
    def of_job(job):
        return job.removeprefix("dprofiler-"), "1"  # none is made again here


class Players:
    """The kubelet and the relay of every pod, and whoever deletes a request when it is over."""

    def __init__(self, world, ns):
        self.world, self.ns = world, ns
        self.todo = queue.Queue()
        for _ in range(PLAYERS):
            threading.Thread(target=self._play, daemon=True).start()

    def _play(self):
        while True:
            act, thing = self.todo.get()
            act(thing)

    def _patch(self, path, body):
        ok(self.world.api.patch(f"/api/v1/namespaces/{self.ns}/{path}", body), 200, 404)

    def end(self, pod):
        name, job = pod["metadata"]["name"], pod["metadata"]["labels"]["job-name"]
        run, attempt = self.world.of_job(job)
        for results, data in self.world.results.items():
            self._patch(f"configmaps/{results.format(run)}", {"data": data})
        exit_json = json.dumps({"code": 0, "startedAt": now(), "finishedAt": now()})
        self._patch(f"configmaps/{run}-run-status", {"data": {"attempt": attempt, "podUID": pod["metadata"]["uid"], "sequence": "1",
                                                              "state": "Succeeded", "exit.json": exit_json}})
        ended = {"terminated": {"exitCode": 0, "reason": "Completed", "startedAt": now(), "finishedAt": now()}}
        self._patch(f"pods/{name}/status", {"status": {"phase": "Succeeded", "startTime": now(), "containerStatuses": [
            {"name": c, "image": "i", "imageID": "", "ready": False, "restartCount": 0, "state": ended} for c in (self.world.container, "relay")]}})

    def delete(self, name):
        ok(self.world.api.delete(f"{self.world.group}/namespaces/{self.ns}/{self.world.plural}/{name}"))


class Queue(Watched):
    def __init__(self, world, ns, deletes=False):
        self.begun, self.over, self.queue_writes, self.most = [], [], collections.Counter(), 0
        self.under_way, self.places, self.held_back = set(), {}, {}
        self.ends = False  # pods end as soon as they are there
        self.deletes = deletes  # requests that are over
        self.players = Players(world, ns)
        self.requests = world.plural
        super().__init__(world.server, ns, {world.plural: world.group, "pods": "/api/v1"})

    def _take(self, kind, what, item):
        self.last = time.monotonic()
        if kind == "pods":
            if what == "ADDED" and self.ends:
                self.players.todo.put((self.players.end, item))
            elif what == "ADDED":
                self.held_back[item["metadata"]["name"]] = item
            elif what == "DELETED":
                self.held_back.pop(item["metadata"]["name"], None)
        elif kind == self.requests and what != "DELETED":
            self._look(item["metadata"]["name"], item.get("status", {}))
            self.now[kind][item["metadata"]["name"]] = item
        elif kind == self.requests:
            self.now[kind].pop(item["metadata"]["name"], None)

    def _look(self, name, status):
        run = status.get("run", {})
        if status.get("queue") != self.places.get(name):
            self.queue_writes[name] += 1
            self.places[name] = status.get("queue")
        if run.get("job") and name not in self.under_way and name not in self.over:
            self.begun.append(name)
            self.under_way.add(name)
            self.most = max(self.most, len(self.under_way))
        if run.get("outcome") and name in self.under_way:
            assert run["outcome"] == "Succeeded", (name, status)
            self.under_way.remove(name)
            self.over.append(name)
            if self.deletes:
                self.players.todo.put((self.players.delete, name))

    def go(self):
        with self.changed:
            self.ends = True
            for pod in self.held_back.values():
                self.players.todo.put((self.players.end, pod))


def sorted_by_turn(items):
    def turn(item):
        meta = item["metadata"]
        made = time.mktime(time.strptime(meta["creationTimestamp"], "%Y-%m-%dT%H:%M:%SZ"))
        return made - 600 * item["spec"].get("priority", 5), meta["name"]
    return [i["metadata"]["name"] for i in sorted(items, key=turn)]


def check_order(begun, expected, limit):
    """Those whose slots came free at the same time may be written in any order."""
    place = {name: i for i, name in enumerate(expected)}
    off = [abs(place[name] - i) for i, name in enumerate(begun)]
    assert len(begun) == len(expected), (len(begun), len(expected))
    assert max(off) < limit, [(n, i, place[n]) for i, n in enumerate(begun) if abs(place[n] - i) >= limit][:5]
    return sum(map(bool, off))
