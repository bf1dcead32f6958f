#!/usr/bin/python3
"""Other people's clients against the embedded engine under churn: no event is missed, doubled or out of order.

Several writers create, change and delete ConfigMaps and custom resources, each its own, and note what the server
answered. Meanwhile `python3-kubernetes` watches and `@kubernetes/client-node` informers (churn.mjs) listen, some on one
long watch, some on watches that are cut every second or two and resumed. For every object each of them must have heard
exactly what its writer did. 20 s, or 10 minutes in the long form."""

import collections
import json
import os
import random
import signal
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
from sonde_test import SOAK, Process, diag, engine_client, main, program, wait
import kubernetes

SECONDS = 600 if SOAK else 20
WRITERS, OBJECTS, RATE = 6, 8, 40  # RATE: writes a second and writer
PATIENCE = 120
NS = "churn"
MAPS = f"/api/v1/namespaces/{NS}/configmaps"
GROUP, VERSION, PLURAL = "churn.sonde.dev", "v1", "widgets"
WIDGETS = f"/apis/{GROUP}/{VERSION}/namespaces/{NS}/{PLURAL}"
END = "the-end"  # the name of the last object


# --- writers -----------------------------------------------------------------


class Writer(threading.Thread):
    """Changes its own objects until told to stop; `did` has the events that must have been heard, by uid."""

    def __init__(self, api, path, number):
        super().__init__(daemon=True)
        self.api, self.path, self.random = api, path, random.Random(number)
        self.prefix = f"w{number}"
        self.there = {}  # name: the object as last answered
        self.did = collections.OrderedDict()
        self.writes = 0
        self.stop = threading.Event()
        self.error = None

    def run(self):
        due = time.monotonic()
        try:
            while not self.stop.is_set():
                self.write(f"{self.prefix}-{self.random.randrange(OBJECTS)}")
                self.writes += 1
                due += 1 / RATE
                time.sleep(max(0, due - time.monotonic()))
        except Exception as e:  # pylint: disable=broad-except
            self.error = e

    def content(self):
        field = "data" if self.path == MAPS else "spec"
        return {field: {"n": str(self.writes), "pad": "x" * self.random.randrange(200)}}

    def write(self, name):
        old = self.there.get(name)
        if not old:
            self.note("ADDED", self.api.post(self.path, {**self.kind(), "metadata": {"name": name}, **self.content()}), 201)
        elif self.random.random() < 0.25:
            status, answer = self.api.delete(f"{self.path}/{name}")
            assert status == 200, (status, answer)
            self.did[old["metadata"]["uid"]].append(("DELETED", None))
            del self.there[name]
        elif self.random.random() < 0.5:
            self.note("MODIFIED", self.api.put(f"{self.path}/{name}", {**old, **self.content()}), 200)
        else:
            self.note("MODIFIED", self.api.patch(f"{self.path}/{name}", self.content()), 200)

    def kind(self):
        return {"apiVersion": "v1", "kind": "ConfigMap"} if self.path == MAPS else {"apiVersion": f"{GROUP}/{VERSION}", "kind": "Widget"}

    def note(self, event, answer, expected):
        status, made = answer
        assert status == expected, answer
        self.there[made["metadata"]["name"]] = made
        self.did.setdefault(made["metadata"]["uid"], []).append((event, made["metadata"]["resourceVersion"]))


# --- listeners ---------------------------------------------------------------


class PythonWatch(threading.Thread):
    """A watch of python3-kubernetes, cut every CUT seconds (0: never) and resumed where it was."""

    def __init__(self, kubeconfig, path, cut):
        super().__init__(daemon=True)
        self.title = f"python3-kubernetes, {path.rsplit('/', 1)[1]}, {f'cut every {cut} s' if cut else 'one watch'}"
        self.path, self.cut = path, cut
        self.heard = []  # (event, name, uid, version)
        self.watches = 0
        self.error = None
        client = kubernetes.config.new_client_from_config(kubeconfig)
        if path == MAPS:
            self.list, self.where = kubernetes.client.CoreV1Api(client).list_namespaced_config_map, (NS,)
        else:
            self.list = kubernetes.client.CustomObjectsApi(client).list_namespaced_custom_object
            self.where = (GROUP, VERSION, NS, PLURAL)
        found = self.list(*self.where)
        self.version = found["metadata"]["resourceVersion"] if isinstance(found, dict) else found.metadata.resource_version

    def run(self):
        try:
            while not self.follow():
                pass
        except Exception as e:  # pylint: disable=broad-except
            self.error = e

    def follow(self):
        """One watch; true when the last object was seen."""
        self.watches += 1
        limit = {"timeout_seconds": self.cut} if self.cut else {}
        watch = kubernetes.watch.Watch()
        for event in watch.stream(self.list, *self.where, resource_version=self.version, **limit):
            meta = event["raw_object"]["metadata"]
            self.version = meta["resourceVersion"]
            if meta["name"] == END:
                return True
            self.heard.append((event["type"], meta["name"], meta["uid"], meta["resourceVersion"]))
        return False


class Informers:
    """churn.mjs: informers of @kubernetes/client-node. It prints a line of JSON when it listens, and one at the end."""

    def __init__(self, kubeconfig):
        script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "churn.mjs")
        self.process = Process("node", script, kubeconfig, NS, MAPS, WIDGETS, END)

    def results(self):
        """[(title, heard, watches)]"""
        assert self.process.wait(PATIENCE) == 0, "\n".join(self.process.lines[-20:])
        for line in self.process.lines:
            if line.startswith("{"):
                one = json.loads(line)
                yield one["title"], [tuple(e) for e in one["heard"]], one["watches"]


# --- comparing ---------------------------------------------------------------


def compare(title, heard, writers, versions_of_deletes):
    """What is wrong with HEARD, as sentences. Informers give a deleted object as it last was, so its version is not looked at."""
    expected = {uid: events for w in writers for uid, events in w.did.items()}
    by_uid, last = collections.defaultdict(list), 0
    wrong = []
    for event, name, uid, version in heard:
        by_uid[uid].append((event, None if event == "DELETED" else version))
        if event != "DELETED" or versions_of_deletes:
            if int(version) <= last:
                wrong.append(f"{title}: {event} {name} has version {version} after {last}")
            last = int(version)
    for uid in expected.keys() | by_uid.keys():
        if expected.get(uid) != by_uid.get(uid):
            wrong.append(f"{title}: {uid}: written {expected.get(uid)}, heard {by_uid.get(uid)}")
    return wrong


def set_up(api):
    crd = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": f"{PLURAL}.{GROUP}"},
           "spec": {"group": GROUP, "scope": "Namespaced", "names": {"kind": "Widget", "plural": PLURAL}, "versions": [
               {"name": VERSION, "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                   "spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}}}}]}}
    assert api.post("/api/v1/namespaces", {"metadata": {"name": NS}})[0] == 201
    status, answer = api.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", crd)
    assert status == 201, answer
    deadline = time.monotonic() + PATIENCE
    while api.get(WIDGETS)[0] != 200:
        assert time.monotonic() < deadline, api.get(WIDGETS)
        time.sleep(0.05)


def nothing_is_missed_or_doubled():
    with tempfile.TemporaryDirectory(prefix="sonde-churn-") as folder, \
            Process(program("sonde"), "up", "--no-node", "--dir", os.path.join(folder, "home"), "--watch-history", "100000") as engine:
        engine.expect("engine ready", PATIENCE)
        kubeconfig = os.path.join(folder, "home", "kubeconfig")
        client = engine_client(kubeconfig)
        set_up(client())
        informers = Informers(kubeconfig)
        with informers.process:
            informers.process.expect("^listening", PATIENCE)
            watches = [PythonWatch(kubeconfig, path, cut) for path in (MAPS, WIDGETS) for cut in (0, 1, 2)]
            writers = [Writer(client(), MAPS if i % 2 else WIDGETS, i) for i in range(WRITERS)]
            for thread in (*watches, *writers):
                thread.start()
            time.sleep(SECONDS)
            wait(lambda: all(w.error or not w.cut or w.watches > SECONDS / 4 for w in watches), PATIENCE, "watches that were cut")
            for writer in writers:
                writer.stop.set()
            for writer in writers:
                writer.join(PATIENCE)
                assert not writer.error and not writer.is_alive(), writer.error
            for path in MAPS, WIDGETS:
                kind = next(w for w in writers if w.path == path).kind()
                assert client().post(path, {**kind, "metadata": {"name": END}})[0] == 201
            for watch in watches:
                watch.join(PATIENCE)
                assert not watch.error, (watch.title, watch.error)
                assert not watch.is_alive(), f"{watch.title}: the last object was not heard of, {len(watch.heard)} events"
            report([(w.title, w.heard, w.watches, True) for w in watches] + [(*one, False) for one in informers.results()], writers)
        engine.signal(signal.SIGTERM)
        assert engine.wait(PATIENCE) == 0, engine.lines


def report(results, writers):
    wrong = []
    diag(f"{sum(w.writes for w in writers)} writes to {sum(len(w.did) for w in writers)} objects")
    assert len(results) == 6 + 8, [r[0] for r in results]
    for title, heard, watches, versions in results:
        diag(f"{title}: {len(heard)} events, {watches} watches")
        mine = [w for w in writers if w.path.rsplit("/", 1)[1] in title]
        assert not "cut" in title or watches > SECONDS / 4, f"{title}: it was not cut"
        wrong += compare(title, heard, mine, versions)
    assert not wrong, "\n".join(wrong[:20])


if __name__ == "__main__":
    main(nothing_is_missed_or_doubled)
