"""Watches of all that a test looks at in one namespace: what is there now, and all that has ever been seen.

    with Watched(server, ns, {"jobs": "/apis/batch/v1", "pods": "/api/v1"}) as watched:
        watched.wait(lambda: "a" in watched.now["jobs"], 30, "a Job")

Predicates look at the objects in memory, so that hundreds of requests can be waited for without asking the server.
"""

import contextlib
import threading
import time


class Watched:
    def __init__(self, server, ns, types):
        self.ns = ns
        self._broken = None
        self._over = False
        self._now = {kind: {} for kind in types}
        self._seen = {kind: [] for kind in types}
        self.last = time.monotonic()  # when something was last seen
        self.changed = threading.Condition()
        self._server, self._types = server, types
        for kind, prefix in types.items():
            api, path = server.api(), f"{prefix}/namespaces/{ns}/{kind}"
            version = self._list(api, kind, path)
            threading.Thread(target=self._follow, args=(server, api, kind, path, version), daemon=True).start()

    def _whole(self):
        """A watch that has ended sees nothing: all would be quiet, and nothing made twice."""
        assert self._over or not self._broken, self._broken

    @property
    def now(self):
        """What is there, by kind and name."""
        self._whole()
        return self._now

    @property
    def seen(self):
        """[(ADDED, MODIFIED or DELETED, object)] by kind, in order."""
        self._whole()
        return self._seen

    def _list(self, api, kind, path):
        """Takes all that is there as if it had been watched; returns its version."""
        status, listed = api.get(path)
        assert status == 200, listed
        there = {item["metadata"]["name"]: item["metadata"] for item in listed["items"]}
        for name, item in list(self._now[kind].items()):
            if there.get(name, {}).get("uid") != item["metadata"]["uid"]:
                self._take(kind, "DELETED", item)
        for item in listed["items"]:
            known = self._now[kind].get(item["metadata"]["name"])
            if not known or known["metadata"]["resourceVersion"] != item["metadata"]["resourceVersion"]:
                self._take(kind, "MODIFIED" if known else "ADDED", item)
        return listed["metadata"]["resourceVersion"]

    def _follow(self, server, api, kind, path, version):
        broken = f"the watch of {kind} ended"
        try:
            while not self._over:
                with contextlib.suppress(TimeoutError):  # nothing came for long: go on from there
                    for event in api.watch(f"{path}?watch=true&resourceVersion={version}"):
                        if event["type"] == "ERROR":  # a changed definition makes the server forget what it had to tell
                            assert event["object"]["code"] == 410, event
                            with self.changed:
                                version = self._list(server.api(), kind, path)
                                self.changed.notify_all()
                            break
                        version = event["object"]["metadata"]["resourceVersion"]
                        with self.changed:
                            self._take(kind, event["type"], event["object"])
                            self.changed.notify_all()
        except Exception as e:  # pylint: disable=broad-except
            broken = f"{broken}: {e!r}"
        with self.changed:
            self._broken = broken
            self.changed.notify_all()

    def _take(self, kind, what, item):
        name = item["metadata"]["name"]
        self._seen[kind].append((what, item))
        self.last = time.monotonic()
        if what == "DELETED":
            self._now[kind].pop(name, None)
        else:
            self._now[kind][name] = item

    def wait(self, is_true, seconds, what):
        """What IS_TRUE() returns, as soon as that is something true. WHAT: a text, or a function that makes it."""
        deadline = time.monotonic() + seconds
        with self.changed:
            while True:
                value = is_true()
                if value:
                    return value
                left = deadline - time.monotonic()
                self._whole()
                assert left > 0, f"after {seconds} s still not: {what() if callable(what) else what}"
                self.changed.wait(min(left, 1))
                if left > 0.1:  # events come in crowds
                    self.changed.release()
                    time.sleep(0.02)
                    self.changed.acquire()

    def quiet(self, rest=0.5, seconds=60):
        """Waits until nothing has been seen for REST seconds."""
        deadline = time.monotonic() + seconds
        while time.monotonic() - self.last < rest:
            self._whole()
            assert time.monotonic() < deadline, f"something still changes after {seconds} s"
            time.sleep(rest / 5)
        self._whole()

    def catch_up(self, kind, seconds=60):
        """Waits until all that the server has of a kind by now has been seen: who asks the server may know more than a watch shows."""
        api = self._server.api()
        status, listed = api.get(f"{self._types[kind]}/namespaces/{self.ns}/{kind}")
        api.close()
        assert status == 200, listed
        there = {item["metadata"]["uid"]: int(item["metadata"]["resourceVersion"]) for item in listed["items"]}
        version = int(listed["metadata"]["resourceVersion"])

        def is_seen():
            seen = {item["metadata"]["uid"]: (what, int(item["metadata"]["resourceVersion"])) for what, item in self.seen[kind]}
            return all(uid in seen and seen[uid][1] >= least for uid, least in there.items()) and \
                all(uid in there or what == "DELETED" or at > version for uid, (what, at) in seen.items())
        self.wait(is_seen, seconds, f"the watch of {kind} to show what there is")

    def versions(self, kind, name):
        """All that there has been of one object until now, in order."""
        self.catch_up(kind)
        with self.changed:
            return [(what, item) for what, item in self.seen[kind] if item["metadata"]["name"] == name]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._over = True
