#!/usr/bin/python3
"""The Helm chart: what it makes of its values, what it refuses, and that all that is made of it is what it makes."""

import json
import os
import re
import subprocess
import sys

import yaml

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
from chart import CHART, Refused, render
from installed import containers, one, read
from restricted import violations
from sonde_test import ROOT, diag, main, program

POSTGRES = ["history.type=postgres", "history.postgres.url=postgres://sonde@db/sonde", "history.postgres.passwordSecret.name=db"]
STATIC = ["namespace.create=true", "crds.keep=false"]


def objects(text):
    return [o for o in yaml.safe_load_all(text) if o]


def kinds(text):
    return {o["kind"] for o in objects(text)}


def pod(deployment):
    return deployment["spec"]["template"]["spec"]


# --- what it makes ---------------------------------------------------------------------------------------------------------


def by_default():
    """One operator with its history on a volume, which serves the API; roles of the cluster; no budget that would hold up a drain"""
    made = objects(render())
    operator = one(made, "Deployment", "sonde-operator")
    assert operator["spec"]["replicas"] == 1 and operator["spec"]["strategy"]["type"] == "Recreate", operator["spec"]
    words = containers(operator)[0]["args"]
    assert {"--leader-elect", "--listen=:8000", "--history=/var/lib/sonde/history.db"} <= set(words), words
    claim = one(made, "PersistentVolumeClaim", "sonde-history")
    assert {"name": "history", "persistentVolumeClaim": {"claimName": claim["metadata"]["name"]}} in pod(operator)["volumes"]
    service = one(made, "Service", "dprofiler-api-service")
    assert service["spec"]["ports"][0]["port"] == 8000 and service["spec"]["selector"] == operator["spec"]["selector"]["matchLabels"]
    assert {"PodDisruptionBudget", "HorizontalPodAutoscaler", "Namespace"}.isdisjoint(o["kind"] for o in made)
    assert len([o for o in made if o["kind"] == "CustomResourceDefinition"]) == 5
    assert all(o["metadata"]["annotations"]["helm.sh/resource-policy"] == "keep" for o in made if o["kind"] == "CustomResourceDefinition")


def one_namespace():
    """With watchNamespace nothing of the cluster's: Roles there, the same rules as the ClusterRole's, and the operator is told"""
    everywhere, here = objects(render()), objects(render(values=["watchNamespace=team-a", "rbac.nodes=false", "crds.enabled=false"]))
    assert {"ClusterRole", "ClusterRoleBinding"}.isdisjoint(o["kind"] for o in here)
    role = one(here, "Role", "sonde-operator")
    assert role["metadata"]["namespace"] == "team-a" and role["rules"] == one(everywhere, "ClusterRole", "sonde-operator")["rules"]
    assert "--namespace=team-a" in containers(one(here, "Deployment", "sonde-operator"))[0]["args"]
    for name in "sonde-view", "sonde-edit", "sonde-admin", "sonde-component":
        assert one(here, "Role", name)["rules"] == one(everywhere, "ClusterRole", name)["rules"]


def with_postgres():
    """Two operators, an API of its own that is scaled, budgets, and the password as a file"""
    made = objects(render(values=POSTGRES))
    operator, api = one(made, "Deployment", "sonde-operator"), one(made, "Deployment", "sonde-api")
    assert operator["spec"]["replicas"] == 2 and "replicas" not in api["spec"], (operator["spec"], api["spec"])
    for deployment in operator, api:
        words = containers(deployment)[0]["args"]
        assert {"--history=postgres://sonde@db/sonde", "--history-password-file=/etc/sonde/postgres/password"} <= set(words), words
        assert pod(deployment)["topologySpreadConstraints"], deployment
        assert [v["secret"]["secretName"] for v in pod(deployment)["volumes"]] == ["db"], pod(deployment)["volumes"]
    assert "--api-only" in containers(api)[0]["args"] and not any("--listen" in w for w in containers(operator)[0]["args"])
    scaler = one(made, "HorizontalPodAutoscaler", "sonde-api")
    assert scaler["apiVersion"] == "autoscaling/v1" and scaler["spec"]["minReplicas"] == 2, scaler
    assert one(made, "Service", "dprofiler-api-service")["spec"]["selector"] == api["spec"]["selector"]["matchLabels"]
    assert "PersistentVolumeClaim" not in {o["kind"] for o in made}


def budgets_by_what_is_served():
    """A PodDisruptionBudget of the version that the cluster has, and none where it has none"""
    for served, version in (["policy/v1", "policy/v1beta1"], "policy/v1"), (["policy/v1beta1"], "policy/v1beta1"), ([], None):
        found = {o["apiVersion"] for o in objects(render(values=POSTGRES, served=served)) if o["kind"] == "PodDisruptionBudget"}
        assert found == ({version} if version else set()), (served, found)


def pods_are_restricted():
    """Operator and API: Pod Security "restricted", uid 65532, a root that is not written to, probes, requests, time to end"""
    for values in [], ["watchNamespace=a"], POSTGRES, ["api.tls.secretName=t", "history.sqlite.persistent=false"]:
        for deployment in (o for o in objects(render(values=values)) if o["kind"] == "Deployment"):
            spec, container = pod(deployment), containers(deployment)[0]
            assert violations(spec) == [], (values, violations(spec))
            assert spec["securityContext"]["runAsUser"] == 65532 and container["securityContext"]["readOnlyRootFilesystem"] is True
            cpu = {"sonde-operator": "10m", "sonde-api": "100m"}[deployment["metadata"]["name"]]
            assert container["resources"]["requests"] == {"cpu": cpu, "memory": "16Mi"} and container["resources"]["limits"]
            assert container["livenessProbe"]["httpGet"]["port"] == "probes" and container["readinessProbe"], container
            assert spec["terminationGracePeriodSeconds"] > 20, "what the operator takes to end"


def limits_of_the_history():
    """maxAge and maxRuns are passed on, 0 too, which is no limit; nothing is said where they are not"""
    def said(*values):
        return [w for w in containers(one(objects(render(values=values)), "Deployment", "sonde-operator"))[0]["args"] if "history-max" in w]
    assert said() == [] and said("history.maxRuns=0") == ["--history-max-runs=0"]
    assert said("history.maxRuns=5", "history.maxAge='0'") == ["--history-max-age=0", "--history-max-runs=5"]


def certificates():
    """A Secret with a certificate is mounted and named; a mesh's TLS is said; without either the API has one of its own"""
    words = containers(one(objects(render(values=["api.tls.secretName=t"])), "Deployment", "sonde-operator"))[0]["args"]
    assert {"--tls-cert=/etc/sonde/tls/tls.crt", "--tls-key=/etc/sonde/tls/tls.key"} <= set(words), words
    words = containers(one(objects(render(values=["api.plainHTTP=true"])), "Deployment", "sonde-operator"))[0]["args"]
    assert "--plain-http" in words and not any("tls" in w for w in words), words


def network_policies():
    """All in and out is denied but what is named; a run's pods are found by the label that the operator puts on them"""
    run = "runNamespaces=[{name: a, networkPolicy: true}]"
    made = objects(render(values=[*POSTGRES, run, "networkPolicy.apiServer.cidrs=[10.0.0.1/32]"]))
    policies = {o["metadata"]["name"]: o for o in made if o["kind"] == "NetworkPolicy"}
    assert set(policies) == {"sonde-operator", "sonde-api", "sonde-runs"}, set(policies)
    for policy in policies.values():
        assert set(policy["spec"]["policyTypes"]) == {"Ingress", "Egress"}
        to = [rule["to"] for rule in policy["spec"]["egress"] if {"port": 6443, "protocol": "TCP"} in rule.get("ports", [])]
        assert to == [[{"ipBlock": {"cidr": "10.0.0.1/32"}}]], policy
    runs = policies["sonde-runs"]
    assert runs["metadata"]["namespace"] == "a" and runs["spec"]["ingress"] == [], runs
    (label,) = runs["spec"]["podSelector"]["matchExpressions"]
    with open(os.path.join(ROOT, "src/operator/operator.h"), encoding="utf-8") as f:
        assert label == {"key": re.search(r'OPERATOR_LABEL_CONTROLLER\s+"([^"]+)"', f.read())[1], "operator": "Exists"}, label
    assert "NetworkPolicy" not in kinds(render(values=["networkPolicy.enabled=false"]))


PORTS = {"db/sonde": [5432], "db:6000/sonde?sslmode=verify-full": [6000], "a:1,[::1]:77,b5,a:1/sonde": [1, 77, 5432],
         "[::1]/sonde?sslmode=verify-full&port=9": [9], "a,b/sonde?port=9,8&sslmode=disable": [9, 8]}


def the_databases_ports():
    """The way out to PostgreSQL is at the ports of its URL, or at those of networkPolicy.postgres; the program finds the same ones"""
    def ways_out(text):
        policies = [o for o in objects(text) if o["kind"] == "NetworkPolicy"]
        found = [[p["port"] for p in rule["ports"]] for o in policies for rule in o["spec"]["egress"]]
        assert len(policies) == 2 and all(p["protocol"] == "TCP" for o in policies for p in o["spec"]["egress"][2]["ports"]), policies
        return [ports for ports in found if ports not in ([53, 53], [443, 6443, 8443, 16443], [9400])]
    for place, ports in PORTS.items():
        url = f"postgres://me@{place}"
        assert ways_out(render(values=[*POSTGRES, f"history.postgres.url='{url}'"], only=["network"])) == [ports] * 2, place
        assert ways_out(printed("--postgres", url)) == [ports] * 2, place
    assert ways_out(render(values=[*POSTGRES, "networkPolicy.postgres.ports=[7]"], only=["network"])) == [[7]] * 2


def pipelines():
    """The accounts of pipelines may make requests in their namespace"""
    made = objects(render(values=["runNamespaces=[{name: kf, pipelineAccounts: [pipeline-runner]}]"]))
    binding = one(made, "RoleBinding", "sonde-component")
    assert binding["subjects"] == [{"kind": "ServiceAccount", "name": "pipeline-runner", "namespace": "kf"}], binding
    assert binding["roleRef"]["name"] == "sonde-component" and binding["metadata"]["namespace"] == "kf", binding


def roles_for_people():
    """view, edit and admin of every cluster get ours; each holds what the one before it does"""
    made, before = objects(render()), set()
    for name in "view", "edit", "admin":
        role = one(made, "ClusterRole", f"sonde-{name}")
        assert role["metadata"]["labels"][f"rbac.authorization.k8s.io/aggregate-to-{name}"] == "true", role["metadata"]
        rules = {json.dumps(rule, sort_keys=True) for rule in role["rules"]}
        assert rules > before, name
        before = rules


def monitoring():
    """ServiceMonitor, alerts and dashboard come when they are asked for, as deploy/monitoring has them"""
    assert {"ServiceMonitor", "PrometheusRule"}.isdisjoint(kinds(render()))
    made = objects(render(values=["monitoring={serviceMonitor: true, alerts: true, dashboard: true}"]))
    for file in "alerts", "grafana-dashboard", "servicemonitor":
        for wanted in read(f"deploy/monitoring/{file}.yaml"):
            assert wanted in made, (file, wanted["kind"])
    monitor = next(o for o in made if o["kind"] == "ServiceMonitor")
    service = one(made, "Service", "sonde-metrics")
    assert monitor["spec"]["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items(), (monitor, service)
    assert monitor["spec"]["endpoints"][0]["port"] == service["spec"]["ports"][0]["name"]


# --- what it refuses -------------------------------------------------------------------------------------------------------


def bad_values_are_refused_by_name():
    """What does not go together, and what is not known, is refused with the value's name"""
    for values, named in ((["replicas=2"], "replicas"), ([*POSTGRES, "replicas=1"], "replicas"),
                          (["history.type=postgres"], "history.postgres.url"),
                          ([*POSTGRES, "history.postgres.passwordSecret.name=''"], "history.postgres.passwordSecret.name"),
                          ([*POSTGRES, "history.postgres.url=postgres://sonde:secret@db/sonde"], "history.postgres.url"),
                          (["history.type=mysql"], "history.type"), (["api={plainHTTP: true, tls: {secretName: x}}"], "api.tls.secretName"),
                          (["watchNamespace=Team_A"], "watchNamespace"), (["operator.logLevel=loud"], "operator.logLevel"),
                          (["runNamespaces=[{quota: {pods: '1'}}]"], "runNamespaces.0: name"), (["replica=1"], "replica"),
                          (["images.pod='a b'"], "images.pod"), (["networkPolicy.apiServer.ports=[0]"], "networkPolicy.apiServer.ports.0"),
                          (["operator.profilerEnv={1A: b}"], "1A"), ([*POSTGRES, "api.enabled=false"], "api.enabled"),
                          ([*POSTGRES, "api.autoscaling.minReplicas=6"], "api.autoscaling.minReplicas"),
                          (["rbac.userRoles=false", "runNamespaces=[{name: a, pipelineAccounts: [b]}]"],
                           "runNamespaces.0.pipelineAccounts")):
        try:
            render(values=values)
        except Refused as e:
            assert named in str(e), (values, str(e))
        else:
            raise AssertionError(f"taken: {values}")


def every_value_is_in_the_schema():
    """values.yaml and values.schema.json name the same values"""
    def names(value, schema, path=""):
        for key, inner in value.items():
            assert key in schema["properties"], f"{path}{key} is not in the schema"
            if schema["properties"][key].get("additionalProperties") is False:
                names(inner, schema["properties"][key], f"{path}{key}.")
        missing = set(schema["properties"]) - set(value) - ({"replicas", "global"} if not path else set())
        assert not missing, f"{path}: {missing} not in values.yaml"
    with open(os.path.join(CHART, "values.yaml"), encoding="utf-8") as f, \
            open(os.path.join(CHART, "values.schema.json"), encoding="utf-8") as s:
        names(yaml.safe_load(f), json.load(s))


# --- what is made of it ----------------------------------------------------------------------------------------------------


def the_files_are_what_it_makes():
    """deploy/base, deploy/namespaced, deploy/postgres and k8s/ are what scripts/manifests makes of the chart"""
    done = subprocess.run([os.path.join(ROOT, "scripts/manifests"), "--check"], check=False, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 0, done.stderr


def printed(*words):
    return subprocess.run([program("sonde"), "manifests", *words], check=True, stdout=subprocess.PIPE, text=True).stdout


def the_program_prints_the_same():
    """`sonde manifests` with each of its options prints what the chart makes with those values"""
    given = ["images.operator=r.example/s:1", "images.pod=r.example/p:2", "images.ml=r.example/m@sha256:12"]
    images = ["--image", "r.example/s:1", "--pod-image", "r.example/p:2", "--ml-image", "r.example/m@sha256:12"]
    url = "postgres://me@db.example:5433/runs?sslmode=verify-full&sslrootcert=/etc/x.crt"
    postgres = ["history.type=postgres", f"history.postgres.url={url}", "history.postgres.passwordSecret.name=sonde-postgres"]
    team = ["watchNamespace=team-a", "rbac.nodes=false"]
    for words, home, values in ([], "sonde-system", []), (["--namespace", "ml-pipeline"], "ml-pipeline", []), \
            (["-n", "a", *images], "a", given), (["--namespaced", "team-a"], "sonde-system", team), \
            (["--namespaced", "team-a", "--namespace", "true", *images], "true", [*team, *given]), \
            (["--postgres", url], "sonde-system", postgres), (["--postgres", url, "-n", "b", *images], "b", [*postgres, *given]):
        def by_name(text):
            return {(o["kind"], o["metadata"]["name"], o["metadata"].get("namespace")): o for o in objects(text)}
        made, shown = by_name(render(home, STATIC + values)), by_name(printed(*words))
        assert made == shown, (words, [k for k in {*made, *shown} if made.get(k) != shown.get(k)])
        diag(f"{' '.join(words) or 'nothing'}: {len(shown)} objects")
        for option, kind in ("--no-crds", "CustomResourceDefinition"), ("--no-namespace", "Namespace"):
            assert by_name(printed(*words, option)) == {key: o for key, o in shown.items() if key[0] != kind}, (words, option)
    assert kinds(printed("--crds-only")) == {"CustomResourceDefinition"}


def the_program_refuses():
    """What is no name, image or database is one sentence, and so is what only the chart can do"""
    for words, told in ((["--namespace", "A_b"], "--namespace: 'A_b' is no namespace"),
                        (["--namespaced", ""], "--namespaced: '' is no namespace"),
                        (["--image", 'a"b'], "--image: 'a\"b' is no image"), (["--image", ""], "--image: '' is no image"),
                        (["--postgres", "postgres://u:p@h/d"], "the password is in a Secret"),
                        (["--postgres", "postgres://u@h/d$(A)"], "--postgres"), (["--postgres", "postgres://u@h:65536/d"], "HOST:PORT"),
                        (["--postgres", "postgres://u@h/d?port=0"], "HOST:PORT"), (["--postgres", "postgres://u@/d"], "HOST:PORT"),
                        (["--crds-only", "--no-crds"], "nothing is left"),
                        (["--namespaced", "a", "--postgres", "postgres://u@h/d"], "use the chart")):
        done = subprocess.run([program("sonde"), "manifests", *words], check=False, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert done.returncode == 2 and done.stdout == "" and told in done.stderr and done.stderr.count("\n") == 1, (words, done)


def versions_go_together():
    """The chart's appVersion is the program's, and the images are named by it"""
    with open(os.path.join(ROOT, "meson.build"), encoding="utf-8") as f:
        version = re.search(r"version: '([^']+)'", f.read())[1]
    with open(os.path.join(CHART, "Chart.yaml"), encoding="utf-8") as f:
        assert yaml.safe_load(f)["appVersion"] == version
    assert containers(one(read("deploy/base/sonde.yaml"), "Deployment", "sonde-operator"))[0]["image"] == f"localhost/sonde:{version}"


if __name__ == "__main__":
    main(by_default, one_namespace, with_postgres, budgets_by_what_is_served, pods_are_restricted, limits_of_the_history, certificates,
         network_policies, the_databases_ports,
         pipelines, roles_for_people, monitoring, bad_values_are_refused_by_name, every_value_is_in_the_schema,
         the_files_are_what_it_makes, the_program_prints_the_same, the_program_refuses, versions_go_together)
