#!/usr/bin/python3
"""What is in deploy/ and k8s/, installed on a real control plane as a person would: with kubectl, kustomize and the guide's own commands."""

import json
import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
from chart import render
from dgdr_play import ok
from installed import HOME, PATIENCE, SERVES, Operator, answers, read
from sonde_test import ROOT, ControlPlane, diag, kubectl_path, main, program, wait
from tidy import tidied

RUNS = "ml-pipeline"
# The five commands of dProfiler's guide, "Production Deployment", as they are written there.
GUIDE = """\
kubectl apply -f k8s/crds/algorithmprofiling.yaml
kubectl apply -f k8s/operator/deployment.yaml
kubectl apply -f k8s/api/deployment.yaml
kubectl create namespace ml-pipeline
kubectl apply -f k8s/rbac/resource-quotas.yaml
"""


def kubectl(*words, **more):
    return cluster.kubectl(*words, **more)


def folder(name):
    return os.path.join(ROOT, name)


def unchanged(text):
    """All that an apply says is that nothing changed."""
    return [line for line in text.splitlines() if not line.endswith((" unchanged", " unchanged (server dry run)"))] == []


def gone(*words, **more):
    """Takes away what was applied, so that the next one begins with nothing."""
    kubectl("delete", "--ignore-not-found", "--wait=true", *words, **more)


def typed(commands, *first, where=ROOT, fails=False):
    """Types COMMANDS, with programs of the folders FIRST before others; returns what the last one printed."""
    folders = [*first, os.path.dirname(program("sonde")), os.path.dirname(kubectl_path()), os.environ["PATH"]]
    environment = {**os.environ, "KUBECONFIG": cluster.kubeconfig, "PATH": ":".join(folders)}
    for command in commands.splitlines():
        done = subprocess.run(command, shell=True, cwd=where, env=environment, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True)
        assert (done.returncode != 0) == fails, (command, done.stdout)
    return done.stdout


def documented(commands):
    """They are on the page, one after the other."""
    with open(folder("docs/install.md"), encoding="utf-8") as f:
        assert "".join(f"    {command}\n" for command in commands.splitlines()) in f.read(), commands


def the_guides_commands():
    """The five commands of dProfiler's guide, word for word from the repository's root, and what they make works"""
    documented(GUIDE)
    typed(GUIDE)
    for plural in "algorithmprofilings", "algorithmcomparisons":
        wait(lambda p=plural: cluster.api().get(f"/apis/dprofiler.io/v1alpha1/{p}")[0] == 200, PATIENCE, plural)
    api = ok(cluster.api().get(f"/api/v1/namespaces/{HOME}/services/dprofiler-api-service"))
    operator = ok(cluster.api().get(f"/apis/apps/v1/namespaces/{HOME}/deployments/sonde-operator"))
    labels = operator["spec"]["template"]["metadata"]["labels"]
    assert api["spec"]["selector"].items() <= labels.items() and api["spec"]["ports"][0]["port"] == 8000, api["spec"]
    assert any(p["name"] == api["spec"]["ports"][0]["targetPort"] for p in operator["spec"]["template"]["spec"]["containers"][0]["ports"])
    is_ready("k8s/operator/deployment.yaml")


def is_ready(path):
    """The operator of that file, with its account: its probes say so, and the metrics are there without a token"""
    with Operator(cluster, path) as operator:
        port = operator.process.expect(r'"msg":"Started".*"port":(\d+)', PATIENCE)[1]
        wait(lambda: answers(port, "readyz"), PATIENCE, "a ready operator")
        assert answers(port, "healthz") == "ok" and "leader_election_master_status" in answers(port, "metrics")
        api = operator.process.expect(SERVES, PATIENCE)[1]
        assert "leader_election_master_status" in answers(api, "metrics")


def a_quota_of_runs():
    """The quota of the guide's namespace counts, and a request that says nothing about resources passes it"""
    quota = wait(lambda: ok(cluster.api().get(f"/api/v1/namespaces/{RUNS}/resourcequotas/sonde-runs")).get("status", {}).get("hard"),
                 PATIENCE, "the quota to count")
    assert {"requests.cpu", "requests.memory", "pods", "count/jobs.batch"} <= set(quota), quota
    made = ok(cluster.api().post(f"/api/v1/namespaces/{RUNS}/pods", {"metadata": {"name": "p"}, "spec": {
        "automountServiceAccountToken": False, "containers": [{"name": "c", "image": "i"}]}}))
    resources = made["spec"]["containers"][0]["resources"]
    assert resources["requests"]["cpu"] == "100m" and "limits" not in resources, resources
    ok(cluster.api().delete(f"/api/v1/namespaces/{RUNS}/pods/p"))


def each_file_of_the_guides_alone():
    """Each of the guide's files works by itself, whatever was applied before it"""
    gone("-f", folder("k8s/operator/deployment.yaml"))
    for file in "api", "operator":
        assert kubectl("apply", "-f", folder(f"k8s/{file}/deployment.yaml")), file
        gone("-f", folder(f"k8s/{file}/deployment.yaml"))


def by_kustomize():
    """deploy/base, by kubectl apply -k: tried, done, and done again without a change"""
    said = kubectl("apply", "-k", folder("deploy/base"))
    assert said.count(" created") == len(read("deploy/base/sonde.yaml")) + len(read("deploy/base/crds.yaml")), said
    assert unchanged(kubectl("apply", "-k", folder("deploy/base"))), "changed the second time"
    assert unchanged(kubectl("apply", "-k", folder("deploy/base"), "--dry-run=server"))
    is_ready("deploy/base/sonde.yaml")


def by_the_program():
    """`sonde manifests | kubectl apply -f -` finds everything as deploy/base has made it, and deploy/crds the kinds"""
    text = subprocess.run([program("sonde"), "manifests"], check=True, stdout=subprocess.PIPE, text=True).stdout
    assert unchanged(kubectl("apply", "-f", "-", stdin=text)), "not the same"
    assert unchanged(kubectl("apply", "-f", folder("deploy/crds")))
    assert unchanged(kubectl("apply", "-f", folder("k8s/crds/algorithmprofiling.yaml")))


def one_namespace():
    """deploy/namespaced: tried, done, and done again without a change, with nothing of the cluster's but the kinds"""
    gone("-f", folder("deploy/base/sonde.yaml"))
    said = kubectl("apply", "-k", folder("deploy/namespaced"))
    assert "clusterrole" not in said, said
    assert unchanged(kubectl("apply", "-k", folder("deploy/namespaced")))
    assert unchanged(kubectl("apply", "-k", folder("deploy/namespaced"), "--dry-run=server"))
    is_ready("deploy/namespaced/sonde.yaml")
    gone("-f", folder("deploy/namespaced/sonde.yaml"))


ADMINISTRATORS = """\
sonde manifests --crds-only | kubectl apply -f -
kubectl create namespace team-a
kubectl create namespace sonde-team-a
kubectl create rolebinding installers --clusterrole cluster-admin --user ann --namespace team-a
kubectl create rolebinding installers --clusterrole cluster-admin --user ann --namespace sonde-team-a
"""
ANNS = "sonde manifests --namespaced team-a --namespace sonde-team-a --no-crds --no-namespace | kubectl apply -f -"


def by_somebody_with_two_namespaces():
    """The page's commands for one namespace: all but the administrator's are done by somebody with rights in the two namespaces alone"""
    documented(ADMINISTRATORS), documented(ANNS)
    with tempfile.TemporaryDirectory(prefix="sonde-install-") as hers:
        with open(os.path.join(hers, "kubectl"), "w", encoding="utf-8") as f:
            f.write(f'#!/bin/sh\nexec {kubectl_path()} --as ann "$@"\n')
        os.chmod(f.name, 0o755)
        typed(ADMINISTRATORS)
        said = typed(ANNS, hers)
        assert "deployment.apps/sonde-operator created" in said, said
        assert unchanged(typed(ANNS, hers)), "changed the second time"
        refused = typed(ANNS.replace(" --no-crds --no-namespace", ""), hers, fails=True)
        assert "customresourcedefinitions" in refused and "forbidden" in refused, refused
    gone("namespace", "team-a", "sonde-team-a")


POSTGRES = """\
sonde manifests --crds-only | kubectl apply -f -
kubectl create namespace sonde-system
kubectl create secret generic sonde-postgres --namespace sonde-system --from-file=password
"""
APPLIED = "sonde manifests --postgres 'postgres://sonde@db.example.com/sonde?sslmode=verify-full' | kubectl apply -f -"
OWN_AUTHORITY = """\
kubectl create secret generic sonde-postgres --namespace sonde-system --from-file=password --from-file=ca.crt
"""
APPLIED_WITH_IT = APPLIED.replace("verify-full'", "verify-full&sslrootcert=/etc/sonde/postgres/ca.crt'")


def budgets_alone(complaints):
    """deploy/postgres has those of policy/v1, which 1.20 does not have."""
    return len(complaints) == 2 and all('no matches for kind "PodDisruptionBudget" in version "policy/v1"' in c for c in complaints)


def with_the_pages_postgres():
    """The page's commands for PostgreSQL, all but the budgets; what is mounted has the keys that the arguments name"""
    documented(POSTGRES + APPLIED), documented(OWN_AUTHORITY + APPLIED_WITH_IT)
    with tempfile.TemporaryDirectory(prefix="sonde-install-") as here:
        for name in "password", "ca.crt":
            with open(os.path.join(here, name), "w", encoding="utf-8") as f:
                f.write("x\n")
        for before, then in (POSTGRES, APPLIED), (OWN_AUTHORITY, APPLIED_WITH_IT):
            typed(before, where=here)
            said = typed(then, where=here, fails=True).splitlines()
            assert budgets_alone([line for line in said if not line.endswith((" created", " configured", " unchanged"))
                                  and not line.startswith("Warning")]), said
            keys = ok(cluster.api().get(f"/api/v1/namespaces/{HOME}/secrets/sonde-postgres"))["data"]
            for name in "sonde-operator", "sonde-api":
                pod = ok(cluster.api().get(f"/apis/apps/v1/namespaces/{HOME}/deployments/{name}"))["spec"]["template"]["spec"]
                named = re.findall(r"/etc/sonde/postgres/([\w.]+)", " ".join(pod["containers"][0]["args"]))
                assert sorted(named) == sorted(keys), (named, keys)
                assert pod["volumes"][0]["secret"] == {"secretName": "sonde-postgres", "defaultMode": 0o440}, pod["volumes"]
            gone("secret", "sonde-postgres", "-n", HOME)
    others = [o for o in read("deploy/postgres/sonde.yaml") if o["kind"] != "PodDisruptionBudget"]
    gone("-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": others}))


def with_postgres():
    """deploy/postgres: all but its budgets, which are policy/v1 and not in 1.20; with 1.20's from the chart, all of it, twice"""
    done = subprocess.run([kubectl_path(), "--kubeconfig", cluster.kubeconfig, "apply", "-k", folder("deploy/postgres")], check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    others = [o for o in read("deploy/postgres/sonde.yaml") if o["kind"] != "PodDisruptionBudget"]
    complaints = done.stderr.strip().splitlines()
    assert done.stdout.count(" created") == len(others), done.stdout
    assert budgets_alone(complaints), complaints
    text = render(HOME, ["history.type=postgres", "history.postgres.url=postgres://sonde@postgres/sonde", "namespace.create=true",
                         "crds.enabled=false", "history.postgres.passwordSecret.name=sonde-postgres"], served=["policy/v1beta1"])
    said = kubectl("apply", "-f", "-", stdin=text)
    assert said.count(" created") == 2 and unchanged(kubectl("apply", "-f", "-", stdin=text)), said
    gone("-f", "-", stdin=text)


KINDS = {"algorithmprofilings.dprofiler.io", "algorithmcomparisons.dprofiler.io", "cudaexperiments.gpu.scheduler.io",
         "dynamographdeploymentrequests.nvidia.com"}
PROFILES = "workloadprofiles.gpu.scheduler.io"
READS, WRITES = {"get", "list", "watch"}, {"create", "update", "patch", "delete", "deletecollection"}


def may(who, verb, what, subresource="", ns=RUNS):
    """Whether the API server lets the user WHO do that."""
    resource, _, group = what.partition(".")
    review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": {
        "user": who, "groups": ["system:authenticated"], "resourceAttributes": {
            "namespace": ns, "verb": verb, "group": group, "resource": resource, "subresource": subresource}}}
    return ok(cluster.api().post("/apis/authorization.k8s.io/v1/subjectaccessreviews", review))["status"]["allowed"]


def roles_for_people():
    """Who is bound to the cluster's view, edit or admin in a namespace may there, and only there, what docs/security.md says"""
    kubectl("apply", "-f", folder("deploy/base/sonde.yaml"))
    allowed = {"view": {(verb, kind) for verb in READS for kind in {*KINDS, PROFILES}}}
    allowed["edit"] = allowed["view"] | {(verb, kind) for verb in WRITES for kind in KINDS}
    allowed["admin"] = allowed["edit"] | {(verb, PROFILES) for verb in WRITES}
    for role in allowed:
        kubectl("create", "rolebinding", f"people-{role}", "-n", RUNS, f"--clusterrole={role}", f"--user={role}er")
    wait(lambda: may("adminer", "create", PROFILES), PATIENCE, "the roles to be aggregated")
    every = [(verb, kind) for verb in sorted(READS | WRITES) for kind in sorted({*KINDS, PROFILES})]

    def as_said(role):
        """Each role is aggregated by itself, one grant after the other."""
        got = {what for what in every if may(f"{role}er", *what)}
        assert got == allowed[role], (role, got ^ allowed[role])
        return True
    for role in allowed:
        wait(lambda r=role: as_said(r), PATIENCE, f"what {role} may")
    for who in "viewer", "editer", "adminer":
        assert not may(who, "list", "algorithmprofilings.dprofiler.io", ns="default"), who
        assert not may(who, "patch", "algorithmprofilings.dprofiler.io", "status"), who
    gone("-f", folder("deploy/base/sonde.yaml"))


def everything_of_the_chart():
    """All that the chart can make but what needs the Prometheus operator's kinds, tried on the server"""
    run = "{name: ml-pipeline, quota: {pods: '5'}, defaultRequests: {cpu: 100m}, networkPolicy: true, pipelineAccounts: [pipeline-runner]}"
    kubectl("create", "namespace", HOME)
    text = render(HOME, [f"runNamespaces=[{run}]", "monitoring.dashboard=true", "api.tls.secretName=t", "images.cudaRunner=r/x:1",
                         "operator={maxConcurrentRuns: 3, profilerEnv: {A: 'b c'}, nodeSelector: {a: b}, extraArgs: [--concurrency=4]}",
                         "networkPolicy={clients: [{podSelector: {}}], runEgress: [{ports: [{port: 8080}]}]}",
                         "imagePullSecrets=[{name: r}]"], served=["policy/v1beta1"])
    said = kubectl("apply", "--dry-run=server", "-f", "-", stdin=text)
    diag(f"{len(said.splitlines())} objects")


if __name__ == "__main__":
    with ControlPlane.of("fragile") as cluster, tidied(cluster):
        main(the_guides_commands, a_quota_of_runs, each_file_of_the_guides_alone, by_kustomize, by_the_program, one_namespace,
             by_somebody_with_two_namespaces, with_the_pages_postgres, with_postgres,
             roles_for_people, everything_of_the_chart)
