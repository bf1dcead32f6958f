"""Each kind of request from one end to the other, in real pods from the shipped images."""

import json
import os

from algorithm_play import condition, ok
from cuda_play import PODGROUP_CRD, PODGROUPS
from cuda_site import SAMPLE, SAMPLE_PROGRAM
from dgd_controller import FAULTS, DgdController, Deployments, quick_sweep
from e2e_images import reference
from e2e_site import BUSYBOX, PATIENCE
from installed import HOME
from planes import GPUS
from pods import stalled, waits
from schedules import YEARLY, make_due, name_of_due
from sonde_test import diag, wait

# --- algorithms ------------------------------------------------------------------------------------------------------------


def a_comparison(site):
    """A comparison of built-in algorithms and a foreign image's: figures, a verdict, and one that fails beside them"""
    algorithms = [{"name": "quick_sort"}, {"name": "bubble_sort"}] + [
        {"name": name, "type": "custom", "customConfig": {"image": BUSYBOX, "command": ["/bin/sh", "-c", script]}}
        for name, script in (("mine", "true"), ("broken", "exit 3"))]
    play = site.algorithms.create(site.namespace("team-a"), "three", {"algorithms": algorithms, "inputSize": 3000, "iterations": 8,
                                                                       "baseline": "quick_sort"}, kind="ac")
    status = play.phase("Completed", PATIENCE)
    by_name = {r["algorithmName"]: r for r in status["results"]}
    assert by_name["bubble_sort"]["verdict"] == "slower" and by_name["mine"]["executionTime"] > 0, by_name
    assert "3" in by_name["broken"]["error"]["message"], by_name
    diag(status["comparison"]["summary"])


def train(site, name, framework):
    """A small model."""
    play = site.algorithms.create(site.namespace("team-a"), name, {
        "algorithmName": name, "algorithmType": "ml", "inputSize": 500, "iterations": 1,
        "mlConfig": {"framework": framework, "task": "distributed_training", "datasetSize": 500, "nFeatures": 20,
                     "algorithm": "random_forest"}})
    status = play.phase("Completed", PATIENCE)
    assert 0.6 < status["results"]["mlResults"]["accuracy"] <= 1, status["results"]
    assert play.pod()["spec"]["containers"][0]["image"] == reference("sonde-ml")


def sklearn_in_the_shipped_image(site):
    """An ml request runs in sonde-ml with sklearn, and has an accuracy"""
    train(site, "model", "sklearn")


def dask_in_the_shipped_image(site):
    """The same with dask, whose workers are threads of the pod's"""
    train(site, "spread", "dask")


def the_steps_of_a_pipeline(site):
    """The component's image makes a request, waits for it and prints what came out, as an account that may just that"""
    ns = site.namespace("pipelines")
    site.apply([{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "pipeline-runner", "namespace": ns}},
                *site.run_namespace(name=ns, pipelineAccounts=["pipeline-runner"])])
    of_kind = ["--resource-type", "AlgorithmProfiling"]
    steps = {"profile": ["--algorithm-name", "quick_sort", "--input-size", "5000"],
             "wait": [*of_kind, "--wait-timeout", str(PATIENCE)], "get-results": of_kind}
    containers = [{"name": action, "image": reference("kubeflow-component"),
                   "args": ["--action", action, "--name", "step", "--namespace", ns, *more]} for action, more in steps.items()]
    pod = {"metadata": {"name": "steps"}, "spec": {"restartPolicy": "Never", "serviceAccountName": "pipeline-runner",
                                                   "initContainers": containers[:2], "containers": containers[2:]}}
    pods, api = f"/api/v1/namespaces/{ns}/pods", site.server.api()
    wait(lambda: api.post(pods, pod)[0] in (201, 409), PATIENCE, "the account to have its token")
    wait(lambda: ok(api.get(f"{pods}/steps"))["status"]["phase"] in ("Succeeded", "Failed"), PATIENCE, "the steps to end")
    logs = {action: site.kubectl("-n", ns, "logs", "steps", "-c", action, check=False) for action in steps}
    assert logs["profile"] == "Created AlgorithmProfiling: step\n", logs
    assert "AlgorithmProfiling step completed with status: Completed" in logs["wait"], logs
    assert '"executionTime"' in logs["get-results"], logs


# Somebody in a pod, with the token of its account. The API's certificate is its own, which nobody can verify.
CALLER = """
import json, ssl, sys, urllib.error, urllib.request
trust = ssl._create_unverified_context()
def call(path, token=None):
    headers = {"Authorization": "Bearer " + token} if token else {}
    try:
        with urllib.request.urlopen(urllib.request.Request(sys.argv[1] + path, headers=headers), context=trust, timeout=60) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as e:
        return e.code, e.read().decode()
token = open("/var/run/secrets/kubernetes.io/serviceaccount/token").read()
runs, history = ("/api/v1/%s?namespace=" % what for what in ("runs", "history"))
print(json.dumps({"ready": call("/ready"), "nobody": call(runs + sys.argv[2]), "runs": call(runs + sys.argv[2], token),
                  "history": call(history + sys.argv[2], token), "elsewhere": call(runs + "default", token)}))
"""


def called(site, ns, home, role):
    """What the API of the installation in HOME tells a pod in NS, whose account has ROLE there: (code, text) by question."""
    site.apply([{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "caller", "namespace": ns}},
                {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": "caller", "namespace": ns},
                 "roleRef": {"apiGroup": "rbac.authorization.k8s.io", **role},
                 "subjects": [{"kind": "ServiceAccount", "name": "caller", "namespace": ns}]}])
    pod = {"metadata": {"name": "caller"}, "spec": {"restartPolicy": "Never", "serviceAccountName": "caller", "containers": [
        {"name": "caller", "image": reference("sonde-ml"),
         "command": ["/usr/bin/python3", "-c", CALLER, f"https://dprofiler-api-service.{home}.svc:8000", ns]}]}}
    pods, api = f"/api/v1/namespaces/{ns}/pods", site.server.api()

    def told():
        """The operator is killed meanwhile, and is not reached then: once more."""
        wait(lambda: api.post(pods, pod)[0] == 201, PATIENCE, "the account to have its token, and the last pod to be gone")
        wait(lambda: ok(api.get(f"{pods}/caller"))["status"]["phase"] in ("Succeeded", "Failed"), PATIENCE, "its end")
        log = site.kubectl("-n", ns, "logs", "caller")
        ok(api.delete(f"{pods}/caller"))
        return log.startswith("{") and json.loads(log)
    answers = wait(told, PATIENCE, "the API")
    diag(answers)
    return answers


def shows(answers, names):
    """Whether the API is ready, refuses nobody's and others' requests, and has the runs NAMES and their history."""
    assert answers["ready"][0] == 200 and answers["nobody"][0] == 401 and answers["elsewhere"][0] == 403, answers
    for what in "runs", "history":
        assert answers[what][0] == 200 and {r["name"] for r in json.loads(answers[what][1])["items"]} == names, answers


def the_api_in_the_cluster(site):
    """A pod calls the API by its Service, with TLS and its own token: it is told what its account may see, and no more"""
    ns = site.namespace("callers")
    site.algorithms.create(ns, "seen", SMALL["ap"]).phase("Completed", PATIENCE)
    shows(called(site, ns, HOME, {"kind": "ClusterRole", "name": "view"}), {"seen"})


SMALL = {"ap": {"algorithmName": "quick_sort", "inputSize": 100},
         "ac": {"algorithms": [{"name": "quick_sort"}, {"name": "merge_sort"}], "inputSize": 100}}


def again_and_for_a_while(site):
    """A schedule makes requests of either kind and takes old ones away; one with a time to live goes by itself"""
    ns = site.namespace("team-a")
    for kind, spec in SMALL.items():
        template = site.algorithms.create(ns, f"yearly-{kind}", spec, kind=kind, **YEARLY)
        make_due(site.server.api(), template)
        status = template.wait(lambda s: "lastRun" in s, "one that has ended", PATIENCE)
        assert status["lastRun"]["phase"] == "Completed", status
        brief = site.algorithms.create(ns, f"brief-{kind}", spec, kind=kind, ttlSecondsAfterFinished=1)
        wait(lambda p=brief: site.server.api().get(p.path)[0] == 404, PATIENCE, "the request to go")


def names_that_are_taken(site):
    """What a request is to make has somebody else's name: that is told, and what is there is not touched"""
    ns = site.namespace("team-a")
    for kind, spec in SMALL.items():
        other = site.algorithms.create(ns, name_of_due(f"taken-{kind}"), spec, kind=kind, suspend=True)
        before = other.wait(lambda s: condition(s, "Suspended").get("status") == "True", "its suspension", PATIENCE)
        template = site.algorithms.create(ns, f"taken-{kind}", spec, kind=kind, **YEARLY)
        make_due(site.server.api(), template)
        template.wait(lambda s: stalled(s)[0] == "NameConflict", "NameConflict", PATIENCE)
        assert other.status() == before and "ownerReferences" not in other.get()["metadata"]


# --- deployments -----------------------------------------------------------------------------------------------------------


def temporary_deployments(site):
    """A model is profiled on temporary deployments, of which one crashes and one cannot be pulled; the best is deployed"""
    ns = site.namespace("serving")
    seen = Deployments(site.dgdrs, ns)
    with DgdController(site.dgdrs, ns, reference("sonde-pod"), False, FAULTS):
        play = site.dgdrs.create(ns, "llm", quick_sweep(), autoApply=True)
        status = play.wait(lambda s: s.get("state") in ("Ready", "Failed"), "the end", PATIENCE)
        assert status["state"] == "Ready" and status["profilingProgress"]["phase"] == "Complete", status
        assert status["deployment"] == {"name": "llm-dgd", "namespace": ns, "state": "successful", "created": True}, status
        wait(seen.balanced, PATIENCE, "all temporary deployments to be gone")
    log = site.sonde("logs", "dgdr/llm", "-n", ns)
    assert "CUDA out of memory" in log and ("ErrImagePull" in log or "ImagePullBackOff" in log), log[-3000:]
    diag(f"{len(seen.created)} temporary deployments")


# A profiler of somebody's that deploys by itself. It is upstream's language, and uses all that apiAccess gives.
PROFILER = """
import json, os, ssl, urllib.request
account = "/var/run/secrets/kubernetes.io/serviceaccount/"
token, ns = (open(account + name).read() for name in ("token", "namespace"))
server = "https://%s:%s" % (os.environ["KUBERNETES_SERVICE_HOST"], os.environ["KUBERNETES_SERVICE_PORT"])
trust = ssl.create_default_context(cafile=account + "ca.crt")
def call(method, path, body=None):
    request = urllib.request.Request(server + path, method=method, data=json.dumps(body).encode() if body else None,
                                     headers={"Authorization": "Bearer " + token, "Content-Type": "application/json"})
    return urllib.request.urlopen(request, context=trust, timeout=60).read().decode()
pods, dgds = "/api/v1/namespaces/%s/pods" % ns, "/apis/nvidia.com/v1alpha1/namespaces/%s/dynamographdeployments" % ns
me = os.environ["HOSTNAME"]
print("profiling begins", flush=True)
dgd = {"apiVersion": "nvidia.com/v1alpha1", "kind": "DynamoGraphDeployment", "metadata": {"name": "candidate"},
       "spec": {"services": {}}}
call("POST", dgds, dgd)
for path in pods, pods + "?watch=1&timeoutSeconds=1", pods + "/" + me:
    assert me in call("GET", path), path
for path in dgds, dgds + "?watch=1&timeoutSeconds=1", dgds + "/candidate":
    assert "candidate" in call("GET", path), path
assert "profiling begins" in call("GET", pods + "/" + me + "/log?container=profiler")
call("DELETE", dgds + "/candidate")
dgd["metadata"]["name"] = "chosen"
with open("/data/config_with_planner.yaml", "w") as f:
    json.dump(dgd, f)
"""


def a_profiler_of_their_own(site):
    """A profiler with apiAccess deploys by itself, starts from a deployment in a ConfigMap and keeps its output on a volume"""
    ns, api = site.namespace("serving"), site.server.api()
    site.volume("results")
    site.apply([{"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "results", "namespace": ns}, "spec": {
        "accessModes": ["ReadWriteOnce"], "volumeName": "results", "resources": {"requests": {"storage": "1Gi"}}}},
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "base", "namespace": ns}, "data": {"disagg.yaml": "{}"}}])
    config = {"profilerImage": reference("sonde-ml"), "command": ["/usr/bin/python3", "-c", PROFILER], "apiAccess": True,
              "outputPVC": "results", "configMapRef": {"name": "base"},
              "config": {"sla": {"isl": 1, "osl": 1, "ttft": 1, "itl": 1}}}
    play = site.dgdrs.create(ns, "own", {"model": "m", "backend": "vllm", "profilingConfig": config})
    status = play.wait(lambda s: s.get("state") in ("Ready", "Failed"), "the end", PATIENCE)
    assert status["state"] == "Ready" and status["generatedDeployment"]["metadata"]["name"] == "own-dgd", status
    assert api.get(f"/apis/nvidia.com/v1alpha1/namespaces/{ns}/dynamographdeployments/candidate")[0] == 404
    assert os.path.exists(os.path.join(site.folder, "results/config_with_planner.yaml")), "the volume keeps it"


# --- CUDA ------------------------------------------------------------------------------------------------------------------


def cuda(*command, **more):
    return {"image": SAMPLE, "command": list(command) or [SAMPLE_PROGRAM], "profilingEnabled": True, **more}


def a_cuda_experiment(site):
    """Profiled by the runner around a stand-in for Nsight Compute, since there is no GPU; executed; reused by another"""
    ns = site.namespace("gpu")
    site.label_node(product="Tesla-T4", memory="15360", count="1", compute_major="7", compute_minor="5")
    play = site.cuda.create(ns, "vectoradd", cuda())
    status = play.phase("Succeeded", PATIENCE)
    profile = play.profile()["status"]
    assert profile["replay"] is True and profile["metrics"]["replay"] == "true", "what was not measured says so"
    assert status["boundType"] == profile["boundType"] and profile["placement"]["nodes"][0]["name"] == "node-1", profile
    again = site.cuda.create(ns, "again", cuda(), profiling={"reuse": True})
    status = again.phase("Succeeded", PATIENCE)
    assert status["profileName"] == "vectoradd-profile" and not again.profile(), status
    assert "Linux" in site.sonde("logs", "cuda/again", "-n", ns, "--job", "again-execution")


def more_gpus_than_there_are(site):
    """An experiment that asks for more GPUs than a node has says so while it waits; with fewer it runs"""
    play = site.cuda.create(site.namespace("gpu"), "greedy", cuda("/bin/true", gpuRequired=GPUS + 1))
    status = waits(play, "Unschedulable")
    diag(condition(status, "Progressing")["message"])
    assert status["phase"] in ("Pending", "Profiling") and "nvidia.com/gpu" in condition(status, "Progressing")["message"], status
    play.edit(gpuRequired=1)
    play.phase("Succeeded", PATIENCE)


def another_program_after_all(site):
    """An experiment that executes is suspended, given another program and resumed: its WorkloadProfile is made anew"""
    play = site.cuda.create(site.namespace("gpu"), "changed", cuda("/bin/sh", "-c", "trap 'exit 0' TERM; sleep 600 & wait"))
    play.wait(lambda s: s.get("phase") == "Executing", "Executing", PATIENCE)
    first = play.profile()
    play.edit(suspend=True)
    play.phase("Suspended", PATIENCE)
    play.edit(command=["/bin/true"], suspend=False)
    play.wait(lambda s: s.get("phase") == "Succeeded", "its end", PATIENCE)
    second = play.profile()
    assert second["metadata"]["uid"] == first["metadata"]["uid"] and second["spec"]["command"] == ["/bin/true"], second


def a_pod_group(site):
    """With Volcano a PodGroup is made before the execution Job, and goes while that is suspended; a stranger's is not taken"""
    ns = site.namespace("gpu")
    ok(site.server.api().post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", PODGROUP_CRD), 201, 409)
    play = site.cuda.create(ns, "grouped", cuda("/bin/true", profilingEnabled=False, placement={"mode": "volcano"}))
    path = f"{PODGROUPS}/namespaces/{ns}/podgroups/grouped-execution"
    wait(lambda: site.server.api().get(path)[0] == 200, PATIENCE, "the PodGroup")
    wait(play.execution, PATIENCE, "the Job")
    play.edit(suspend=True)
    play.phase("Suspended", PATIENCE)
    group = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup", "metadata": {"name": "other-execution"},
             "spec": {"minMember": 1}}
    ok(site.server.api().post(f"{PODGROUPS}/namespaces/{ns}/podgroups", group))
    other = site.cuda.create(ns, "other", cuda("/bin/true", profilingEnabled=False, placement={"mode": "volcano"}))
    other.wait(lambda s: stalled(s)[0] == "NameConflict", "NameConflict", PATIENCE)
    assert not other.execution()


TESTS = (the_api_in_the_cluster, temporary_deployments, a_profiler_of_their_own, a_comparison, sklearn_in_the_shipped_image,
         dask_in_the_shipped_image, the_steps_of_a_pipeline, again_and_for_a_while, names_that_are_taken, a_cuda_experiment,
         more_gpus_than_there_are, another_program_after_all, a_pod_group)
