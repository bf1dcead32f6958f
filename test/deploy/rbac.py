#!/usr/bin/python3
"""The operator with exactly the rights that deploy/ gives it, on a real control plane with an audit log: none is missing, none is left over.

    rbac.py              deploy/base, in all namespaces
    rbac.py namespaced   deploy/namespaced: Roles in one namespace, and nothing of the cluster's

A test plays kubelet, relay and profilers.
"""

import concurrent.futures
import contextlib
import json
import os
import sys

import yaml

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
import algorithm_play
import cuda_play
import dgdr_play
from accounts import granted_yet, kubeconfig_of
from chart import render
from cuda_play import PODGROUP_CRD, PODGROUPS
from dgdr_play import DGDS, condition, ok
from installed import HOME, PATIENCE, SERVES, Audit, Operator, answers, containers, granted, one, read
from schedules import YEARLY, make_due, name_of_due
from sonde_test import ROOT, ControlPlane, Process, diag, main, program, wait
from tidy import tidied

NAMESPACED = "namespaced" in sys.argv[1:]
FOLDER = "deploy/namespaced" if NAMESPACED else "deploy/base"
RUNS = "ml-pipeline"  # what deploy/namespaced watches
RBAC = "/apis/rbac.authorization.k8s.io/v1"


def path(play, plural, name=""):
    """Of an object in the request's namespace."""
    prefix = {**play.groups, "podgroups": PODGROUPS, cuda_play.PROFILES: cuda_play.GROUP}.get(plural, "/api/v1")
    return f"{prefix}/namespaces/{play.ns}/{plural}" + (f"/{name}" if name else "")


# --- what happens to requests ----------------------------------------------------------------------------------------------


def dgdr_deploys():
    """Its profiler deploys what it measures and is evicted in the middle of that; then the result is deployed, and deleted"""
    ok(api().post(f"/api/v1/namespaces/{RUNS}/persistentvolumeclaims", {"metadata": {"name": "out"}, "spec": {
        "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}))
    profiling = {**dgdr_play.SPEC["profilingConfig"], "apiAccess": True, "outputPVC": "out"}
    play = dgdrs.create(RUNS, "deploys", autoApply=True, profilingConfig=profiling)
    play.job()
    given.update(granted(play.object(f"roles/profile-{play.name}")["rules"]))
    play.pod_runs()
    play.report({"phase": "PrefillSweep", "message": "m"})
    left = {"app.kubernetes.io/managed-by": "sonde", "sonde.dev/controller": "dgdr", "sonde.dev/temporary": "true",
            "sonde.dev/request": play.uid}
    ok(api().post(path(play, DGDS), {"apiVersion": "nvidia.com/v1alpha1", "kind": "DynamoGraphDeployment", "spec": {"services": {}},
                                     "metadata": {"name": "left", "labels": left}}))
    play.evict()
    wait(lambda: not play.object(f"{DGDS}/left"), PATIENCE, "what was left to be taken away")
    play.wait(lambda s: s.get("run", {}).get("attempt") == 2, "another attempt")
    play.pod_runs()
    play.succeed()
    play.wait(lambda s: "deployment" in s, "a deployment")
    play.deployment_state("successful")
    play.state("Ready")
    ok(api().delete(path(play, DGDS, play.status()["generatedDeployment"]["metadata"]["name"])))
    play.state("DeploymentDeleted")


def dgdr_deployment_taken():
    """Somebody has the name of the deployment"""
    ok(api().post(f"{dgdr_play.GROUP}/namespaces/{RUNS}/{DGDS}", {
        "apiVersion": "nvidia.com/v1alpha1", "kind": "DynamoGraphDeployment", "spec": {"services": {}}, "metadata": {"name": "taken-dgd"}}))
    play = dgdrs.create(RUNS, "taken", autoApply=True)
    play.pod_runs()
    play.succeed()
    play.wait(lambda s: condition(s, "Stalled").get("reason") == "NameConflict", "NameConflict")


def cuda_runs():
    """Profiled, placed and executed"""
    play = cudas.create(RUNS, "runs")
    play.profiles()
    play.executes()
    status = play.phase("Succeeded")
    if NAMESPACED:
        assert any("may not list nodes" in e["note"] for e in play.events()), play.events()
    return status


def cuda_profile_there():
    """A profile of the experiment's own is there before it is measured, and says something else: it is put right"""
    play = cudas.create(RUNS, "there")
    owner = {"apiVersion": "gpu.scheduler.io/v1alpha1", "kind": "CUDAExperiment", "name": play.name, "uid": play.uid, "controller": True,
             "blockOwnerDeletion": True}
    ok(api().post(path(play, cuda_play.PROFILES), {
        "apiVersion": "gpu.scheduler.io/v1alpha1", "kind": "WorkloadProfile", "spec": {"workloadImage": "another", "workloadHash": "x"},
        "metadata": {"name": f"{play.name}-profile", "ownerReferences": [owner]}}))
    play.profiles()
    play.executes()
    play.phase("Succeeded")
    assert play.profile()["spec"]["workloadImage"] == cuda_play.SPEC["image"], play.profile()


def cuda_in_a_queue():
    """With Volcano, cancelled while it waits; and where somebody has the PodGroup's name"""
    queue = {"profilingEnabled": False, "placement": {"mode": "volcano", "queue": "q"}}
    ok(api().post(f"{PODGROUPS}/namespaces/{RUNS}/podgroups", {
        "apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup", "metadata": {"name": "grouped-execution"}}))
    taken = cudas.create(RUNS, "grouped", **queue)
    taken.wait(lambda s: condition(s, "Stalled").get("reason") == "NameConflict", "NameConflict")
    play = cudas.create(RUNS, "queued", **queue)
    wait(play.execution, PATIENCE, "the execution Job")
    play.edit(cancel=True)
    wait(lambda: api().get(path(play, "podgroups", "queued-execution"))[0] == 404, PATIENCE, "the PodGroup to go")


QUOTAS = f"/api/v1/namespaces/{RUNS}/resourcequotas"


def quota(**hard):
    ok(api().post(QUOTAS, {"metadata": {"name": "full"}, "spec": {"hard": hard}}))
    wait(lambda: ok(api().get(f"{QUOTAS}/full")).get("status", {}).get("hard"), PATIENCE, "the quota to count")


def no_quota():
    ok(api().delete(f"{QUOTAS}/full"))


def access_tampered():
    """Nothing more can be made before the Job; somebody changes the run's account, Role and binding, and they are put right"""
    quota(**{"count/jobs.batch": "0"})
    play = profilings.create(RUNS, "tampered")
    play.wait(lambda s: condition(s, "Stalled").get("reason") == "Forbidden", "the quota's word")
    name = next(r["metadata"]["name"] for r in ok(api().get(path(play, "roles")))["items"]
                if any(o["uid"] == play.uid for o in r["metadata"].get("ownerReferences", [])))
    tampered = {"serviceaccounts": {"automountServiceAccountToken": True}, "roles": {"rules": []}, "rolebindings": {"subjects": []}}
    for kind, change in tampered.items():
        ok(api().patch(path(play, kind, name), change))
    play.edit(priority=7)  # it is looked at again
    for kind, change in tampered.items():
        (key, value), = change.items()
        wait(lambda k=kind, m=key, v=value: ok(api().get(path(play, k, name))).get(m, v) != v, PATIENCE, f"{kind}/{name} to be put right")
    no_quota()
    play.measures()
    play.phase("Completed")


def no_room_for_pods():
    """A quota takes no pod of a run; the Job's events say why, and the request does"""
    quota(pods="0")
    play = profilings.create(RUNS, "no-room")
    play.wait(lambda s: "ResourceQuota full" in s.get("queue", {}).get("reason", ""), "the quota's word")
    no_quota()
    play.measures()
    play.phase("Completed")


def suspended_again():
    """Suspended, and once more by another operator: one event, told twice"""
    play = profilings.create(RUNS, "suspended")
    play.pod_runs()
    for again in False, True:
        play.edit(suspend=True)
        play.wait(lambda s: condition(s, "Suspended").get("status") == "True", "Suspended")
        wait(lambda: play.events("Suspended"), PATIENCE, "the event")
        if not again:
            operator.restart()
        play.edit(suspend=False)
        play.wait(lambda s: condition(s, "Suspended").get("status") == "False", "Resumed")
        play.pod_runs()
    wait(lambda: any(e.get("series") for e in play.events("Suspended")), PATIENCE, "a series")


def comparison_runs():
    """A comparison"""
    play = comparisons.create(RUNS, "compared")
    play.measures(COMPARED)
    play.phase("Completed")


def goes_by_itself(world, kind):
    play = world.create(RUNS, f"{kind}-goes", ttlSecondsAfterFinished=1)
    play.measures(COMPARED if kind == "ac" else None)
    wait(lambda: api().get(play.path)[0] == 404, PATIENCE, "the request to go")


def is_scheduled(world, kind):
    """One of a schedule is made; another one's name is taken, and its template says so"""
    plural = algorithm_play.KINDS[kind][1]
    world.create(RUNS, name_of_due(f"{kind}-taken"), suspend=True)
    play, taken = world.create(RUNS, f"{kind}-cron", **YEARLY), world.create(RUNS, f"{kind}-taken", **YEARLY)
    for template in play, taken:
        make_due(api(), template)
    due = f"{algorithm_play.GROUP}/namespaces/{RUNS}/{plural}/{name_of_due(play.name)}"
    wait(lambda: api().get(due)[0] == 200, PATIENCE, "the request of the schedule")
    taken.wait(lambda s: condition(s, "Stalled").get("reason") == "NameConflict", "NameConflict")
    play.delete(), taken.delete()


COMPARED = json.dumps(algorithm_play.result(algorithm_play.measured("quick_sort"), algorithm_play.measured("merge_sort")))
given = set()


def api():
    return dgdrs.api


def side_by_side(*steps):
    with concurrent.futures.ThreadPoolExecutor(len(steps)) as pool:
        for done in [pool.submit(step) for step in steps]:
            done.result()


# --- the points ------------------------------------------------------------------------------------------------------------


def every_kind_is_carried_out():
    """Requests of every kind, their follow-ups and what stands in their way, with the shipped account"""
    side_by_side(dgdr_deploys, dgdr_deployment_taken, cuda_runs, cuda_profile_there, cuda_in_a_queue, comparison_runs,
                 lambda: goes_by_itself(profilings, "ap"), lambda: goes_by_itself(comparisons, "ac"),
                 lambda: is_scheduled(profilings, "ap"), lambda: is_scheduled(comparisons, "ac"))
    access_tampered()
    no_room_for_pods()
    suspended_again()


def nothing_is_missing():
    """Nothing that the operator asked for was forbidden"""
    audit = Audit(cluster)
    assert audit.forbidden() == set(), (sorted(audit.forbidden()), audit.why())


def rules():
    found = set()
    for o in read(f"{FOLDER}/sonde.yaml"):
        if o["kind"] in ("Role", "ClusterRole") and o["metadata"]["name"].startswith("sonde-operator"):
            found |= granted(o["rules"])
    return found


def nothing_is_left_over():
    """Every granted verb was used, or is held because a run's own account is given it, or to own what blocks a deletion"""
    all_rules = rules()
    owning = {r for r in all_rules if r[1].endswith("/finalizers")}
    with contextlib.suppress(AssertionError):  # what was asked last may be still to come
        wait(lambda: not all_rules - Audit(cluster).used() - given - owning, PATIENCE)
    used = Audit(cluster).used()
    held = {r for r in all_rules - used if r in given}
    diag(f"{len(all_rules)} grants, {len(used & all_rules)} used; held to be given: {sorted(held)}")
    assert all_rules - used - held - owning == set(), sorted(all_rules - used - held - owning)
    assert used - all_rules == set(), sorted(used - all_rules)
    assert given <= all_rules, given - all_rules


def owners_are_waited_for():
    """Where the server asks who may set finalizers of an owner, the grants for that are needed, and enough"""
    place, name = (f"{RBAC}/namespaces/{RUNS}/roles", "sonde-operator") if NAMESPACED else (f"{RBAC}/clusterroles", "sonde-operator")
    role = ok(api().get(f"{place}/{name}"))
    less = [r for r in role["rules"] if not r["resources"][0].endswith("/finalizers")]
    ok(api().patch(f"{place}/{name}", {"rules": less}))
    group, resource, verb = sorted(granted(role["rules"]) - granted(less))[0]
    granted_yet(cluster, HOME, "sonde-operator", verb, group, resource, RUNS, yes=False)
    play = profilings.create(RUNS, "owner")
    told = play.wait(lambda s: condition(s, "Stalled").get("reason") == "Forbidden", "Forbidden", 2 * PATIENCE)
    assert "blockOwnerDeletion" in condition(told, "Stalled")["message"], told
    assert Audit(cluster).forbidden(), "the log has it, though each verb is granted"
    ok(api().patch(f"{place}/{name}", {"rules": role["rules"]}))
    plays = [play, dgdrs.create(RUNS, "owner"), cudas.create(RUNS, "owner"), comparisons.create(RUNS, "compared-owner")]
    for each in plays:
        wait(each.jobs, 2 * PATIENCE, f"the Job of {each.path}")


def nodes_may_be_granted():
    """With rbac.nodes, the chart's default, it looks at nodes, and for exporters in its own namespace alone: nothing is forbidden"""
    made, provoked = [o for o in yaml.safe_load_all(render(HOME, [f"watchNamespace={RUNS}", "crds.enabled=false"])) if o], len(Audit(cluster))
    cluster.kubectl("apply", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": [
        o for o in made if o["kind"] in ("ClusterRole", "ClusterRoleBinding")]}))
    granted_yet(cluster, HOME, "sonde-operator", "list", "", "nodes")
    labels = {"nvidia.com/gpu.product": "Tesla-T4", "nvidia.com/gpu.memory": "15360", "nvidia.com/gpu.count": "1"}
    ok(api().post("/api/v1/nodes", {"metadata": {"name": "gpu-1", "labels": labels}}))
    operator.deployment = one(made, "Deployment", "sonde-operator")
    operator.restart()
    play = cudas.create(RUNS, "placed")
    play.profiles()
    play.executes()
    play.phase("Succeeded")
    assert play.profile()["status"]["placement"]["nodes"][0]["name"] == "gpu-1", play.profile()
    audit = Audit(cluster)
    assert audit.of("list", resource="nodes") and audit.forbidden(provoked) == set(), sorted(audit.forbidden(provoked))
    assert [e for e in audit.of("list", resource="pods", namespace=RUNS) if "dcgm-exporter" in e["requestURI"]], "exporters"


def the_apis_own_account():
    """The API's Deployment of deploy/postgres fills its caches with what its account may, all of it, and asks for nothing else"""
    shipped = read("deploy/postgres/sonde.yaml")
    account = [one(shipped, kind, "sonde-api") for kind in ("ServiceAccount", "ClusterRole", "ClusterRoleBinding")]
    cluster.kubectl("apply", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": account}))
    for group, resource, verb in granted(account[1]["rules"]):
        granted_yet(cluster, HOME, "sonde-api", verb, group, resource)
    words = [w for w in containers(one(shipped, "Deployment", "sonde-api"))[0]["args"] if not w.startswith(("--history", "--listen"))]
    with kubeconfig_of(cluster, HOME, "sonde-api") as kubeconfig, \
            Process(program("sonde"), *words, "--listen=127.0.0.1:0", "--health-probe-bind-address=0", "--kubeconfig", kubeconfig) as process:
        port = process.expect(SERVES, PATIENCE)[1]
        wait(lambda: answers(port, "ready"), PATIENCE, "a ready API")
        user = f"system:serviceaccount:{HOME}:sonde-api"  # ready when all is listed: the last watch comes behind that
        wait(lambda: Audit(cluster, user).used() == granted(account[1]["rules"]), PATIENCE, "all grants to be used")
    audit = Audit(cluster, user)
    assert audit.forbidden() == set() and audit.used() == granted(account[1]["rules"]), (audit.forbidden(), audit.used())


def no_secrets_no_wildcards():
    """No rule of any role that is shipped has a wildcard, Secrets, or a way to more rights than it says"""
    found = 0
    for folder in "deploy/base", "deploy/namespaced", "deploy/postgres", "k8s/operator", "k8s/api", "k8s/rbac":
        for file in sorted(os.listdir(os.path.join(ROOT, folder))):
            for o in read(f"{folder}/{file}") if file.endswith(".yaml") else []:
                for rule in o.get("rules", []) if o["kind"] in ("Role", "ClusterRole") else []:
                    found += 1
                    words = rule["apiGroups"] + rule["resources"] + rule["verbs"]
                    assert not set(words) & {"*", "secrets", "nodes/proxy", "serviceaccounts/token", "escalate", "bind", "impersonate"}, o
    assert found > 50, found


if __name__ == "__main__":
    with contextlib.ExitStack() as stack:
        cluster = stack.enter_context(ControlPlane.of("fragile"))
        stack.enter_context(tidied(cluster))
        cluster.kubectl("create", "namespace", RUNS)
        cluster.kubectl("apply", "-f", os.path.join(ROOT, "deploy/crds"))
        cluster.kubectl("apply", "-k", os.path.join(ROOT, FOLDER))
        dgdrs = stack.enter_context(dgdr_play.World("cluster", cluster))
        cudas = stack.enter_context(cuda_play.World("cluster", cluster))
        profilings = stack.enter_context(algorithm_play.World("cluster", cluster))
        comparisons = stack.enter_context(algorithm_play.World("cluster", cluster, kind="ac"))
        ok(api().post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", PODGROUP_CRD))
        wait(lambda: api().get(f"{PODGROUPS}/podgroups")[0] == 200, PATIENCE, "PodGroups to be served")
        for group, resource, where in ("batch", "jobs", RUNS), ("coordination.k8s.io", "leases", HOME):
            granted_yet(cluster, HOME, "sonde-operator", "create", group, resource, where)
        operator = stack.enter_context(Operator(cluster, f"{FOLDER}/sonde.yaml"))
        main(every_kind_is_carried_out, nothing_is_missing, nothing_is_left_over, owners_are_waited_for,
             *([nodes_may_be_granted] if NAMESPACED else [the_apis_own_account, no_secrets_no_wildcards]))
