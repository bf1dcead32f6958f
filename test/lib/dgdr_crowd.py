"""Many DynamoGraphDeploymentRequests side by side in one namespace, seen through watches and played by a few threads."""

import collections
import concurrent.futures

from dgdr_play import DGDRS, DGDS, FINAL, GROUP, PATIENCE, Play, condition
from watched import Watched

RBAC = "/apis/rbac.authorization.k8s.io/v1"
TYPES = {DGDRS: GROUP, DGDS: GROUP, "jobs": "/apis/batch/v1", "pods": "/api/v1", "configmaps": "/api/v1",
         "serviceaccounts": "/api/v1", "roles": RBAC, "rolebindings": RBAC, "events": "/apis/events.k8s.io/v1"}
CHILDREN = "jobs", "configmaps", "serviceaccounts", "roles", "rolebindings", DGDS
PLAYERS = 8


class Actor(Play):
    """Takes its pod and its status as they are known: a pod that has gone is not waited for."""

    def __init__(self, crowd, play):
        super().__init__(play.world, play.ns, play.name, play.uid)
        self.crowd = crowd

    def status(self):
        return self.crowd.status(self.name)

    def pod(self):
        pod = self.crowd.pod_of(self.name)
        assert pod, f"{self.name} has no pod"
        return pod


class Crowd(Watched):
    requests, types, actor = DGDRS, TYPES, Actor

    def __init__(self, world, ns):
        super().__init__(world.server, ns, self.types)
        self.world, self.plays = world, {}
        self._pods = (0, {})

    # --- what is seen

    def status(self, name):
        return self.now[self.requests][name].get("status", {})

    def rests(self, name):
        """Nothing more becomes of it by itself, or of its pod."""
        status = self.status(name)
        return status.get("state") in FINAL or condition(status, "Suspended").get("status") == "True"

    def _pods_of_jobs(self):
        with self.changed:
            if self._pods[0] != len(self.seen["pods"]):
                self._pods = len(self.seen["pods"]), {
                    p["metadata"]["labels"].get("controller-uid"): p for p in self.now["pods"].values()
                    if "deletionTimestamp" not in p["metadata"]}
            return self._pods[1]

    def pod_of(self, name):
        """The pod of the attempt under way."""
        job = self.now["jobs"].get(self.status(name).get("run", {}).get("job"))
        return job and self._pods_of_jobs().get(job["metadata"]["uid"])

    def has_pod(self, name, attempt):
        return self.status(name).get("run", {}).get("attempt") == attempt and self.pod_of(name)

    def owned(self, kind):
        """How many objects of a kind were ever made, by the uid of what they belong to."""
        counts = collections.Counter()
        for what, item in self.seen[kind]:
            for owner in item["metadata"].get("ownerReferences", []) if what == "ADDED" else []:
                counts[owner["uid"]] += 1
        return counts

    # --- what is done

    def create(self, specs):
        def one(item):
            name, spec = item
            return name, self.actor(self, self.world.create(self.ns, name, spec))
        with concurrent.futures.ThreadPoolExecutor(PLAYERS) as pool:
            self.plays.update(pool.map(one, specs.items()))
        self.wait(lambda: specs.keys() <= self.now[self.requests].keys(), PATIENCE, "all requests")

    def each(self, act):
        """Calls ACT with every play that does not rest; one may end meanwhile, by a timeout."""
        def one(play):
            try:
                act(play)
            except AssertionError as e:
                self.wait(lambda: self.rests(play.name), PATIENCE, f"{play.name} could not go on: {e}")
        going = [p for name, p in self.plays.items() if not self.rests(name)]
        with concurrent.futures.ThreadPoolExecutor(PLAYERS) as pool:
            list(pool.map(one, going))

    def until(self, what, is_true, seconds=PATIENCE):
        """Waits for all that do not rest, and then for silence."""
        def late():
            return [n for n in self.plays if not self.rests(n) and not is_true(n)]
        self.wait(lambda: not late(), seconds, lambda: f"{what}: {[(n, self.status(n)) for n in late()[:3]]}")
        self.quiet()
