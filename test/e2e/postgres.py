"""The installation with PostgreSQL in pods: two operators, of which one leads, and the API on its own.

It is installed beside the one that all other scenarios use, in a namespace of its own and for one namespace. That one watches all of them, so
the runs here begin when it is gone.
"""

import json

import chart
import yaml
from algorithm_play import ok
from e2e_site import PATIENCE
from installed import Audit, one
from kinds import SMALL, called, shows
from pods import custom, running
from postgres_server import Postgres
from sonde_test import diag, wait

HOME, RUNS = "sonde-replicated", "replicated"
SERVER, SECRET = "postgres", "sonde-postgres"  # as in deploy/postgres
MOUNTED = "/etc/sonde/postgres"
URL = f"postgres://sonde@{SERVER}/sonde?sslmode=verify-full&sslrootcert={MOUNTED}/ca.crt"


class Installation:
    def __init__(self, site):
        self._site = site
        self.server = site.keep(Postgres(site.server.address[0], SERVER))
        site.namespace(HOME)
        site.namespace(RUNS)
        site.kubectl("-n", HOME, "create", "secret", "generic", SECRET, f"--from-file=password={self.server.password_file}",
                     f"--from-file=ca.crt={self.server.authority}")
        self.manifests = list(filter(None, yaml.safe_load_all(chart.render(HOME, served=["policy/v1beta1"], values=[
            "crds.enabled=false", f"watchNamespace={RUNS}", "history.type=postgres", f"history.postgres.url={URL}",
            f"history.postgres.passwordSecret.name={SECRET}"]))))
        site.apply([*self._named(), *self.manifests])

    def _named(self):
        """A Service for the server, which is no pod."""
        meta = {"name": SERVER, "namespace": HOME}
        return [{"apiVersion": "v1", "kind": "Service", "metadata": meta, "spec": {"ports": [
                    {"port": 5432, "targetPort": self.server.port}]}},
                {"apiVersion": "v1", "kind": "Endpoints", "metadata": meta, "subsets": [
                    {"addresses": [{"ip": self.server.address}], "ports": [{"port": self.server.port}]}]}]

    def _get(self, group, path):
        return ok(self._site.server.api().get(f"{group}/namespaces/{HOME}/{path}"))

    def ready(self, deployment, count):
        """So many pods of it, all ready. None of them has begun twice."""
        component = one(self.manifests, "Deployment", deployment)["spec"]["selector"]["matchLabels"]["app.kubernetes.io/component"]

        def pods():
            found = self._get("/api/v1", f"pods?labelSelector=app.kubernetes.io/component%3D{component}")["items"]
            found = [p for p in found if "deletionTimestamp" not in p["metadata"]]
            told = [c for p in found for c in p["status"].get("containerStatuses", [])]
            return len(told) == len(found) == count and all(c["ready"] for c in told) and {
                p["metadata"]["name"]: p["status"]["containerStatuses"][0] for p in found}
        try:
            found = wait(pods, PATIENCE, f"{count} ready pods of {deployment}", every=0.5)
        except AssertionError:
            diag(self._site.kubectl("-n", HOME, "describe", "pods", check=False)[-4000:])
            diag(self._site.kubectl("-n", HOME, "logs", f"deployment/{deployment}", check=False)[-4000:])
            raise
        assert not any(told["restartCount"] for told in found.values()), found
        return set(found)

    def leader(self):
        """The pod that has the lease; "": none has it."""
        code, lease = self._site.server.api().get(f"/apis/coordination.k8s.io/v1/namespaces/{HOME}/leases/sonde-operator")
        return lease["spec"].get("holderIdentity", "").rpartition("_")[0] if code == 200 else ""

    def scaler(self):
        return self._get("/apis/autoscaling/v1", "horizontalpodautoscalers/sonde-api")

    def rows(self):
        """Of the history, as the server has them."""
        return self.server.sql("SELECT ns || '/' || name || '=' || outcome FROM run ORDER BY finished", database="sonde")

    def log(self, pod):
        return [json.loads(line) for line in self._site.kubectl("-n", HOME, "logs", pod).splitlines()]


_made = []


def installation(site):
    """The one there is; the first who asks makes it, and nobody asks meanwhile."""
    if not _made:
        _made.append(Installation(site))
    return _made[0]


def two_operators_and_an_api(site):
    """With PostgreSQL: two operators are ready and one leads; the API is ready, and its autoscaler makes two of it. None is restarted

    The rig has no metrics server: that the autoscaler finds its Deployment is seen by its minimum, and nothing is scaled by its load.
    """
    here = installation(site)
    operators = here.ready("sonde-operator", 2)
    leader = wait(here.leader, PATIENCE, "a leader")
    assert leader in operators, (leader, operators)
    said = {name: [entry["msg"] for entry in here.log(name)] for name in operators}
    assert [name for name in said if "Became the leader" in said[name]] == [leader], said
    here.ready("sonde-api", 2)
    wait(lambda: here.scaler().get("status", {}).get("desiredReplicas") == 2, PATIENCE, "the autoscaler to want two")
    scaler = here.scaler()
    diag(scaler["metadata"]["annotations"].get("autoscaling.alpha.kubernetes.io/conditions"))
    assert scaler["spec"]["scaleTargetRef"] == {"apiVersion": "apps/v1", "kind": "Deployment", "name": "sonde-api"}, scaler


def runs_in_postgresql(site):
    """A run's row is in PostgreSQL; the leader is deleted in mid-run, the other takes over, and that run's row comes too; the API has both"""
    here = installation(site)
    site.stop()
    site.algorithms.create(RUNS, "first", SMALL["ap"]).phase("Completed", PATIENCE)
    assert here.rows() == [f"{RUNS}/first=Succeeded"], here.rows()
    play = site.algorithms.create(RUNS, "second", custom("while test ! -e /tmp/go; do sleep 0.2; done"), iterations=2)
    pod, old = running(play), here.leader()
    [other] = here.ready("sonde-operator", 2) - {old}
    site.kubectl("cordon", "node-1")  # so that no third one comes, which may be quicker
    site.kubectl("-n", HOME, "delete", "pod", old, "--wait=false")
    wait(lambda: here.leader() == other, PATIENCE, "the other one to lead")
    site.kubectl("uncordon", "node-1")
    site.kubectl("-n", RUNS, "exec", pod["metadata"]["name"], "-c", "algorithm", "--", "touch", "/tmp/go")
    status = play.phase("Completed", PATIENCE)
    assert status["run"]["attempt"] == 1 and play.pod()["metadata"]["uid"] == pod["metadata"]["uid"], status
    assert here.rows() == [f"{RUNS}/{name}=Succeeded" for name in ("first", "second")], here.rows()
    shows(called(site, RUNS, HOME, {"kind": "Role", "name": "sonde-view"}), {"first", "second"})
    audit = Audit(site.server, *(f"system:serviceaccount:{HOME}:sonde-{name}" for name in ("operator", "api")))
    assert len(audit) and not audit.forbidden(), audit.forbidden()


TESTS = (two_operators_and_an_api,)
LAST = (runs_in_postgresql,)
