"""What can become of a run's pod on a real node; a custom algorithm in a foreign image is the workload of all of these."""

import os
import time

from algorithm_play import condition, ok
from e2e_images import reference
from e2e_site import BUSYBOX, PATIENCE, moment
from installed import Audit
from sonde_test import ROOT, diag, wait

RBAC = "/apis/rbac.authorization.k8s.io/v1"


def custom(*lines, image=BUSYBOX, **more):
    """A shell script in an image that has nothing of ours."""
    return {"algorithmName": "mine", "algorithmType": "custom", "inputSize": 1,
            "customConfig": {"image": image, "command": ["/bin/sh", "-c", "\n".join(lines)]}, **more}


def stalled(status):
    """(reason, message) of what a person must mend."""
    found = condition(status, "Stalled")
    return (found["reason"], found["message"]) if found.get("status") == "True" else (None, None)


def waits(play, reason):
    """The status of a request that says REASON while it waits."""
    return play.wait(lambda s: condition(s, "Progressing").get("reason") == reason or stalled(s)[0] == reason, reason, PATIENCE)


def running(play):
    """The pod, once the kubelet has told that it runs and the workload has begun."""
    play.wait(lambda s: "memoryMb" in s.get("progress", {}).get("usage", {}), "a workload that is measured", PATIENCE)
    return wait(lambda: play.pod()["status"].get("phase") == "Running" and play.pod(), PATIENCE, "a running pod")


def a_foreign_image(site):
    """A foreign image is staged into, measured, told of with the pod's own token, and logged; the access goes at the end"""
    ns = site.namespace("team-a")
    play = site.algorithms.create(ns, "mine", custom("echo the workload speaks", "sleep 0.3"), iterations=4)
    account = play.pod()["spec"]["serviceAccountName"]
    status = play.phase("Completed", PATIENCE)
    assert status["results"]["n"] == 4 and 0.3 <= status["results"]["executionTime"] < 60, status["results"]
    spec = play.object("jobs/dprofiler-mine")["spec"]["template"]["spec"]
    images = {c["name"]: c["image"] for c in spec["initContainers"] + spec["containers"]}
    assert images == {"stage": reference("sonde-pod"), "algorithm": BUSYBOX, "relay": reference("sonde-pod")}, images
    log = site.kubectl("-n", ns, "logs", "job/dprofiler-mine", "-c", "algorithm")
    assert log.count("the workload speaks") == 5, "once more than counts"
    assert "the workload speaks" in site.sonde("logs", "ap/mine", "-n", ns, "--tail", "3")
    assert "Completed" in site.sonde("get", "ap", "-n", ns) and "the median of 4 runs" in site.sonde("results", "ap/mine", "-n", ns)
    for path in f"/api/v1/namespaces/{ns}/serviceaccounts", f"{RBAC}/namespaces/{ns}/roles", f"{RBAC}/namespaces/{ns}/rolebindings":
        wait(lambda p=path: site.server.api().get(f"{p}/{account}")[0] == 404, PATIENCE, f"{account} to be gone from {path}")
    sent = Audit(site.server, f"system:serviceaccount:{ns}:{account}").of("patch", resource="configmaps")
    assert 200 in [e["responseStatus"]["code"] for e in sent], sent


def out_of_memory(site):
    """A workload over its memory limit: the request says that it was killed for that"""
    play = site.algorithms.create(site.namespace("team-a"), "eater", custom("exec tail /dev/zero"),
                                  resources={"limits": {"memory": "64Mi"}})
    status = play.phase("Failed", PATIENCE)
    reason, sentence = stalled(status)
    diag(f"{reason}: {sentence}")
    assert reason in ("OOMKilled", "OutOfMemory") and "64" in sentence and "memory" in sentence, (reason, sentence)


def widen(site, ns, account):
    """Somebody gives a run's account more than it is to have."""
    more = {"serviceaccounts": {"automountServiceAccountToken": True},
            "roles": {"rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list", "patch"]}]},
            "rolebindings": {"subjects": [{"kind": "ServiceAccount", "name": name, "namespace": ns}
                                          for name in (account, "default")]}}
    for kind, patch in more.items():
        ok(site.server.api().patch(f"{'/api/v1' if kind == 'serviceaccounts' else RBAC}/namespaces/{ns}/{kind}/{account}", patch))
    return list(more)


def evicted_by_somebody(site):
    """An eviction through the API makes another attempt, in a Job of its own; what its account was given meanwhile is taken back"""
    ns = site.namespace("team-b")
    once = "case $(hostname) in dprofiler-moved-[2-9]-*) sleep 0.2;; *) sleep 600;; esac"  # the first pod never ends by itself
    play = site.algorithms.create(ns, "moved", custom(once), iterations=4)
    pod = running(play)
    account = pod["spec"]["serviceAccountName"]
    widened = widen(site, ns, account)
    eviction = {"apiVersion": "policy/v1beta1", "kind": "Eviction", "deleteOptions": {"gracePeriodSeconds": 2},
                "metadata": {"name": pod["metadata"]["name"], "namespace": ns}}
    ok(site.server.api().post(f"/api/v1/namespaces/{ns}/pods/{pod['metadata']['name']}/eviction", eviction))
    play.wait(lambda s: s.get("run", {}).get("retries") == 1 and play.jobs(), "another attempt", PATIENCE)
    status = play.phase("Completed", PATIENCE)
    assert status["run"]["attempt"] >= 2 and status["jobId"] != "dprofiler-moved" and status["results"]["n"] == 4, status
    for kind in widened:
        assert Audit(site.server).of("patch", resource=kind, namespace=ns, name=account), f"{kind} stayed as it was"


def evicted_by_the_kubelet(site):
    """A pod that writes more than it may is evicted by its node; without retries that is the end, and says why"""
    script = custom("dd if=/dev/zero of=/tmp/x bs=1M count=40", "sleep 600")
    play = site.algorithms.create(site.namespace("team-b"), "writer", script, retries=0,
                                  resources={"limits": {"ephemeral-storage": "8Mi"}})
    status = play.phase("Failed", PATIENCE)
    reason, sentence = stalled(status)
    diag(f"{reason}: {sentence}")
    assert reason == "Evicted" and "8Mi" in sentence, (reason, sentence)


def deleted_by_somebody(site):
    """A deleted pod costs a retry: another attempt, in a Job of its own"""
    once = "case $(hostname) in dprofiler-deleted-[2-9]-*) sleep 0.2;; *) sleep 600;; esac"  # the first pod never ends by itself
    play = site.algorithms.create(site.namespace("team-b"), "deleted", custom(once), iterations=2)
    pod = running(play)["metadata"]
    ok(site.server.api().delete(f"/api/v1/namespaces/{pod['namespace']}/pods/{pod['name']}?gracePeriodSeconds=2"))
    status = play.phase("Completed", PATIENCE)
    assert status["run"]["attempt"] >= 2 and status["run"]["retries"] == 1 and status["results"]["n"] == 2, status


def suspended_and_resumed(site):
    """Suspended in mid-run its pod goes; resumed it is done by another attempt, which costs no retry"""
    once = "case $(hostname) in dprofiler-paused-[2-9]-*) sleep 0.2;; *) sleep 600;; esac"
    play = site.algorithms.create(site.namespace("team-b"), "paused", custom(once), iterations=2)
    pod = running(play)["metadata"]
    play.edit(suspend=True)
    play.wait(lambda s: condition(s, "Suspended").get("status") == "True", "its suspension", PATIENCE)
    path = f"/api/v1/namespaces/{pod['namespace']}/pods/{pod['name']}"
    wait(lambda: site.server.api().get(path)[0] == 404, PATIENCE, "the pod to be gone")
    play.edit(suspend=False)
    status = play.wait(lambda s: s.get("phase") == "Completed", "its end", PATIENCE)
    assert status["run"]["attempt"] == 2 and status["run"]["retries"] == 0 and status["results"]["n"] == 2, status


def an_image_that_is_not_there(site):
    """An image that cannot be pulled is told with its name, and nothing else waits for it; cancelled, its Job goes"""
    play = site.algorithms.create(site.namespace("team-b"), "pull", custom("true", image="localhost/there-is-none:1"))
    status = waits(play, "ImagePullFailed")
    diag(condition(status, "Progressing").get("message"))
    assert status["phase"] == "Pending" and "localhost/there-is-none:1" in str(status["conditions"]), status
    play.edit(cancel=True)
    play.phase("Cancelled", PATIENCE)
    wait(lambda: not play.jobs(), PATIENCE, "the Job to go")


def over_quota(site):
    """In a namespace with the seed's quota a run that asks for too much says what of, and one that fits is done"""
    ns = site.namespace("ml-pipeline")
    site.kubectl("apply", "-f", os.path.join(ROOT, "k8s/rbac/resource-quotas.yaml"))
    quotas = f"/api/v1/namespaces/{ns}/resourcequotas"
    [quota] = wait(lambda: [q for q in ok(site.server.api().get(quotas))["items"] if q.get("status", {}).get("hard")], PATIENCE,
                   "a quota that counts")
    name = quota["metadata"]["name"]
    small, large = ({what: {"cpu": cpu, "memory": "32Mi"} for what in ("requests", "limits")} for cpu in ("100m", "900"))
    fits = site.algorithms.create(ns, "fits", custom("true"), resources=small)
    play = site.algorithms.create(ns, "large", custom("true"), resources=large)
    status = waits(play, "PodNotCreated")
    diag(status["queue"]["reason"])
    assert status["phase"] == "Pending" and name in status["queue"]["reason"] and "cpu" in status["queue"]["reason"], status
    fits.phase("Completed", PATIENCE)
    play.edit(resources=small)
    play.phase("Completed", PATIENCE)


def a_namespace_that_goes(site):
    """A namespace is deleted in mid-run: all of it goes, and no error is logged about it"""
    ns = site.namespace("short-lived")
    play = site.algorithms.create(ns, "lost", custom("sleep 600"))
    running(play)
    since = time.time()
    ok(site.server.api().delete(f"/api/v1/namespaces/{ns}"))
    wait(lambda: site.server.api().get(f"/api/v1/namespaces/{ns}")[0] == 404, PATIENCE, "the namespace to be gone")
    assert site.logs(), "nothing of the operators' logs was kept"
    said = [entry for entry in site.logs() if moment(entry["ts"]) >= since and entry.get("namespace") == ns]
    assert not [entry for entry in said if entry["level"] == "error"], said


def the_operator_is_killed(site):
    """The operator's pod is killed in mid-run: the next one takes over, the run goes on, and what is told again is counted"""
    ns = site.namespace("team-b")
    play = site.algorithms.create(ns, "long", custom("while test ! -e /tmp/go; do sleep 0.2; done"), iterations=3)
    before = running(play)
    play.edit(iterations=99)
    wait(lambda: play.events("SpecChangeRejected"), PATIENCE, "the refusal of a change")
    job = play.job()["metadata"]["uid"]
    site.restart("--force", "--grace-period=0")
    play.edit(iterations=3)
    play.wait(lambda s: condition(s, "SpecAccepted").get("status") == "True", "what is as it was to be accepted", PATIENCE)
    play.edit(iterations=99)
    wait(lambda: [e for e in play.events("SpecChangeRejected") if e.get("series", {}).get("count") == 2], PATIENCE, "it once more")
    site.kubectl("-n", ns, "exec", before["metadata"]["name"], "-c", "algorithm", "--", "touch", "/tmp/go")
    status = play.phase("Completed", PATIENCE)
    assert status["run"]["attempt"] == 1 and status["run"]["retries"] == 0 and status["results"]["n"] == 3, status
    assert play.job()["metadata"]["uid"] == job and play.pod()["metadata"]["uid"] == before["metadata"]["uid"], "another pod"


TESTS = (a_foreign_image, out_of_memory, evicted_by_somebody, evicted_by_the_kubelet, deleted_by_somebody, suspended_and_resumed,
         an_image_that_is_not_there, over_quota, a_namespace_that_goes, the_operator_is_killed)
