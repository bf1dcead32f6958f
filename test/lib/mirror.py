"""mirror - runs build/test/mirror, the reflector and its cache as a program, and compares it with the server."""

import json
import subprocess
import time

from sonde_test import Process, program, wait

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


def stripped(item):
    """An object without what the cache does not keep of it."""
    item = {k: v for k, v in item.items() if k not in ("apiVersion", "kind")}
    meta = {k: v for k, v in item["metadata"].items() if k not in ("managedFields", "selfLink")}
    if LAST_APPLIED in meta.get("annotations", {}):
        meta["annotations"] = {k: v for k, v in meta["annotations"].items() if k != LAST_APPLIED}
    return {**item, "metadata": meta}


class Mirror(Process):
    """The cache of one type in one namespace (None: all).

        with Mirror(cluster.kubeconfig, ns) as mirror:
            mirror.synced()
            mirror.agrees_with(cluster.api())
    """

    def __init__(self, kubeconfig, ns, *options, kind="configmaps"):
        groups = {"samples": "/apis/example.sonde.dev/v1", "jobs": "/apis/batch/v1"}
        self._path = groups.get(kind, "/api/v1") + \
            (f"/namespaces/{ns}" if ns else "") + f"/{kind}"
        where = ["--namespace", ns] if ns else []
        super().__init__(program("test/mirror"), "--kubeconfig", kubeconfig, "--type", kind, *where, *options,
                         stdin=subprocess.PIPE)

    def ask(self, command, seconds=60):
        """What the program answers to `stats` or `dump`."""
        start = len(self.lines)
        self.popen.stdin.write(command.encode() + b"\n")
        self.popen.stdin.flush()
        self.expect(r'^\{"synced"', seconds, start)
        return json.loads(next(line for line in self.lines[start:] if line.startswith('{"synced"')))

    def stats(self):
        return self.ask("stats")

    def synced(self, seconds=90):
        return wait(lambda: self.stats()["synced"], seconds, "the cache is complete")

    def listed(self, times, seconds=90):
        """Waits until the cache was listed whole this many times."""
        return wait(lambda: self.stats()["lists"] >= times, seconds, f"{times} lists")

    def difference(self, api):
        """What cache and server do not agree on; empty when they do."""
        status, body = api.get(self._path)
        assert status == 200, body
        server = {f"{i['metadata'].get('namespace', '')}/{i['metadata']['name']}": stripped(i) for i in body["items"]}
        cache = {key: stripped(item) for key, item in self.ask("dump")["objects"].items()}
        return {key: (cache.get(key), server.get(key)) for key in cache.keys() | server.keys()
                if cache.get(key) != server.get(key)}

    def agrees_with(self, api, seconds=120):
        """Waits until both hold exactly the same, and fails when an object ever went back in version."""
        deadline = time.monotonic() + seconds
        while True:
            difference = self.difference(api)
            if not difference:
                break
            if time.monotonic() > deadline:
                tail = "\n".join(line[:300] for line in self.lines[-30:])
                raise AssertionError(f"cache and server differ in {len(difference)} objects: "
                                     f"{str(difference)[:1500]}\n{tail}")
            time.sleep(0.1)
        back = [line for line in self.lines if line.startswith("BACK")]
        assert not back, back
