#!/usr/bin/python3
"""`sonde up`: the start, what it says, files applied and Jobs followed, the end. `up.py kubectl`: the same with kubectl."""

import json
import os
import re
import secrets
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
from sonde_test import ROOT, Process, diag, engine_client, kubectl_path, main, program, wait

PATIENCE = 180


def up(*arguments, home=None, **more):
    """The engine in a directory of its own, or in HOME."""
    directory = home or os.path.join(tempfile.mkdtemp(dir=folder), "home")
    process = Process(program("sonde"), "up", "--dir", directory, "--no-fsync", *arguments, **more)
    process.home = directory
    process.kubeconfig = os.path.join(directory, "kubeconfig")
    return process


def ready(process):
    """Milliseconds that the engine says it took, and that passed."""
    return int(process.expect(r"engine ready in (\d+) ms", PATIENCE)[1])


def finished(*arguments, **more):
    """Exit status and output of an engine that ends by itself."""
    with up(*arguments, **more) as process:
        return process.wait(PATIENCE), process.lines


def client(process, token=True):
    return engine_client(process.kubeconfig, with_token=token)()


def written(text):
    path = os.path.join(tempfile.mkdtemp(dir=folder), "f.yaml")
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
    return path


def job(name, script, **spec):
    """A Job of one container, as a document (JSON is YAML)."""
    return json.dumps({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": {
        "backoffLimit": 0, **spec, "template": {"spec": {"restartPolicy": "Never", "containers": [
            {"name": "main", "image": "any", "command": ["sh", "-c", script]}]}}}}) + "\n"


def alive(words):
    """Processes whose command line holds WORDS."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as f:
                if words.encode() in f.read().replace(b"\0", b" ") and int(pid) != os.getpid():
                    found.append(int(pid))
        except OSError:
            pass
    return found


def flag():
    """The path of a file that a container can wait for."""
    directory = tempfile.mkdtemp(dir=folder)
    for path in folder, directory:
        os.chmod(path, 0o711)
    return os.path.join(directory, "go")


def of_job(name, lines):
    return [line for line in lines if line.startswith(f"job/{name} ")]


# --- start -------------------------------------------------------------------


def it_starts_and_says_how_to_use_it():
    began = time.monotonic()
    with up() as process:
        said = ready(process)
        diag(f"ready after {1000 * (time.monotonic() - began):.0f} ms, {said} ms by its own clock")
        process.expect("containers run their command from this machine's files")
        assert f"kubectl --kubeconfig {process.kubeconfig} get all" in process.lines[0], process.lines
        assert stat.S_IMODE(os.stat(process.home).st_mode) == 0o700
        for name in "kubeconfig", "token", "server.key":
            assert stat.S_IMODE(os.stat(os.path.join(process.home, name)).st_mode) == 0o600, name
        with open(os.path.join(process.home, "token"), encoding="utf-8") as f:
            token = f.read().strip()
        process.expect(rf"  page: http://127\.0\.0\.1:\d+/#t={re.escape(token)}$")
        assert [line.split()[0] for line in process.lines if token in line] == ["page:"], process.lines
        assert client(process).get("/api/v1/namespaces/default")[0] == 200
        assert client(process, token=False).get("/api/v1/namespaces/default")[0] == 401
        process.signal(signal.SIGTERM)
        assert process.wait(PATIENCE) == 0, process.lines


def has_ipv6():
    try:
        with socket.create_server(("::1", 0), family=socket.AF_INET6):
            return True
    except OSError:
        return False


def the_page_is_where_it_listens():
    places = [("127.0.0.2:0", r"http://127\.0\.0\.2"), ("0.0.0.0:0", r"https://127\.0\.0\.1"), (":0", r"https://127\.0\.0\.1")]
    for listen, told in places + [("[::1]:0", r"http://\[::1\]")] * has_ipv6():
        with up("--page-listen", listen) as process:
            process.expect(rf"  page: {told}:\d+/#t=\w+$")


def a_second_one_in_the_same_directory_is_refused():
    with up("--no-node") as first:
        ready(first)
        status, lines = finished("--no-node", home=first.home)
        assert status == 1 and len(lines) == 1 and lines[0].startswith("sonde: up: "), lines
        assert str(first.pid) in lines[0] or first.home in lines[0], lines
        assert client(first).get("/version")[0] == 200


def a_restart_keeps_objects_and_port():
    with up("--no-node") as first:
        ready(first)
        made = client(first).post("/api/v1/namespaces/default/configmaps", {"metadata": {"name": "kept"}})
        assert made[0] == 201, made
        with open(first.kubeconfig, encoding="utf-8") as f:
            before = f.read()
        first.signal(signal.SIGINT)
        assert first.wait(PATIENCE) == 130, first.lines
    with up("--no-node", home=first.home) as second:
        ready(second)
        with open(second.kubeconfig, encoding="utf-8") as f:
            assert f.read() == before
        assert client(second).get("/api/v1/namespaces/default/configmaps/kept") == (200, made[1])


def listening_to_others_is_warned_of():
    with up("--no-node", "--listen", "0.0.0.0:0") as process:
        ready(process)
        assert [line for line in process.lines if "warning: 0.0.0.0:0 can be reached from other machines" in line]
    with up("--no-node", "--listen", "127.0.0.1:0") as process:
        ready(process)
        assert "warning" not in "\n".join(process.lines), process.lines


# --- files -------------------------------------------------------------------


def a_job_is_followed_to_its_end():
    status, lines = finished("-f", os.path.join(ROOT, "examples", "jobs", "hello.yaml"), "--exit-when-done")
    text = "\n".join(lines)
    assert status == 0, text
    # What containers write is read by a stream each: there is an order within one of them.
    for container in ["prepare:"], ["work: step 1 of 3", "work: all steps done"]:
        steps = ["job/hello created", "job/hello running on", *["job/hello | " + said for said in container],
                 "job/hello completed in", "done in"]
        places = [next((i for i, line in enumerate(lines) if line.startswith(step)), None) for step in steps]
        assert None not in places and places == sorted(places), text
    assert lines[-1].endswith(": 1 completed, 0 failed"), text
    assert len([line for line in lines if line.startswith("job/hello | ")]) == 7, text


def a_failing_job_makes_exit_status_1():
    status, lines = finished("-f", written(job("good", "echo fine")), written(job("bad", "echo oh; exit 3")), "--exit-when-done")
    assert status == 1, lines
    assert "job/good | fine" in lines and "job/bad | oh" in lines, lines
    assert re.match(r"job/bad failed after .*: BackoffLimitExceeded: .*container main exited with code 3",
                    of_job("bad", lines)[-1]), lines
    assert lines[-1].endswith(": 1 completed, 1 failed"), lines


def whatever_jobs_end_in_all_have_ended():
    """A restart, a deadline before the pod runs, a pod that cannot be started: each is told, and it ends"""
    restarted = json.loads(job("again", "echo try; test -e /v/f && exit 0; touch /v/f; exit 4", backoffLimit=3))
    template = restarted["spec"]["template"]["spec"]
    template.update(restartPolicy="OnFailure", volumes=[{"name": "v", "emptyDir": {}}])
    template["containers"][0]["volumeMounts"] = [{"name": "v", "mountPath": "/v"}]
    large = json.loads(job("large", "true"))
    large["spec"]["template"]["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "100000"}}
    empty = json.loads(job("empty", "true"))
    del empty["spec"]["template"]["spec"]["containers"][0]["command"]
    several = job("several", "echo one", parallelism=2, completions=4)
    for seconds in 5, 20, 60:  # on a slow machine a short one is over before anybody has looked at the pod
        for each in large, empty:
            each["spec"]["activeDeadlineSeconds"] = seconds
        text = "---\n".join([json.dumps(j) + "\n" for j in (restarted, large, empty)] + [several])
        status, lines = finished("-f", written(text), "--exit-when-done")
        if all(any("waiting: " in line for line in of_job(name, lines)) for name in ("large", "empty")):
            break
    assert status == 1 and lines[-1].endswith(": 2 completed, 2 failed"), lines
    assert lines.count("job/again | try") == 2 and lines.count("job/several | one") == 4, lines
    assert "job/large waiting: Unschedulable: 0/1 nodes are available: 1 Insufficient cpu." in lines, lines
    assert [line for line in of_job("empty", lines) if "waiting: CreateContainerError: container \"main\" has no command" in line], lines
    for name in "large", "empty":
        assert "DeadlineExceeded" in of_job(name, lines)[-1], lines


def standard_input_is_a_file_too():
    read, write = os.pipe()
    with up("-f", "-", "--exit-when-done", stdin=read) as process:
        os.close(read)
        with os.fdopen(write, "w") as f:
            f.write(job("piped", "echo 'one\ntwo'; printf three"))
        assert process.wait(PATIENCE) == 0, process.lines
        assert [line for line in process.lines if " | " in line] == [f"job/piped | {n}" for n in ("one", "two", "three")], process.lines


def a_custom_resource_may_follow_its_definition():
    name = {"group": "up.sonde.dev", "names": {"kind": "Thing", "plural": "things"}, "scope": "Namespaced"}
    crd = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "things.up.sonde.dev"},
           "spec": {**name, "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {
               "type": "object", "x-kubernetes-preserve-unknown-fields": True}}}]}}
    thing = {"apiVersion": "up.sonde.dev/v1", "kind": "Thing", "metadata": {"name": "t", "namespace": "default"}, "spec": {"n": 1}}
    items = {"apiVersion": "v1", "kind": "List", "items": [crd, thing]}
    status, lines = finished("--no-node", "-f", written(json.dumps(items)), "--exit-when-done")
    assert status == 0 and "thing/t created" in lines, lines


def dgdr(name, script, **more):
    """A request whose profiler is a script."""
    return json.dumps({"apiVersion": "nvidia.com/v1alpha1", "kind": "DynamoGraphDeploymentRequest", "metadata": {"name": name},
                       "spec": {"model": "m", "backend": "vllm", "profilingConfig": {
                           "profilerImage": "any", "command": ["sh", "-c", script],
                           "config": {"sla": {"isl": 3000, "osl": 500, "ttft": 50, "itl": 10}}}, **more}})


PROFILER = """set -e; PATH=/sonde:$PATH
sonde-pod report --phase PrefillSweep --step 1 --of 2 --message half
sonde-pod report --phase PrefillSweep --step 2 --of 2 --message whole
sleep 1  # what follows at once is told in its place
printf '%s' '{"apiVersion": "nvidia.com/v1alpha1", "kind": "DynamoGraphDeployment", "metadata": {"name": "x"},
"spec": {"services": {}}}' > $SONDE_RUN_DIR/final_config.yaml
sonde-pod report --complete
"""


def requests_are_followed_to_their_end():
    """A request that is met, one whose profiler fails, one that is refused, and a Job beside them: each is told, and counted"""
    go = flag()
    held = PROFILER.replace("sleep 1  # what follows at once is told in its place", f"while [ ! -e {go} ]; do sleep 0.1; done")
    assert go in held
    documents = [dgdr("good", held), dgdr("bad", "echo no luck; exit 3"), dgdr("wrong", "true", timeout="soon"),
                 job("plain", "echo hi")]
    with up("-f", written("\n---\n".join(documents)), "--exit-when-done") as process:
        process.expect(r"^dgdr/good  Profiling  PrefillSweep 2/7  .*2/2  whole", PATIENCE)
        open(go, "w", encoding="utf-8").close()
        status, lines = process.wait(PATIENCE), process.lines
    text = "\n".join(lines)
    assert status == 1, text
    for line in (r"^dgdr/good  Profiling  PrefillSweep 2/7  .*2/2  whole", r"^dgdr/good completed in .* s: ",
                 r"^dgdr/bad failed after .* s: WorkloadFailed: .*status 3", r'"wrong" is invalid: spec.timeout',
                 r"^job/plain completed in", r"^job/plain \| hi$"):
        assert re.search(line, text, re.M), (line, text)
    assert "job/profile-good" not in text, text  # its Job is not followed by itself
    assert re.search(r"^done in \S+ s: 2 completed, 1 failed, 1 not applied$", text, re.M), text


def requests_stay_for_the_next_start():
    """A request that is done is not run again; without --exit-when-done the engine stays, with the history beside it"""
    file = written(dgdr("good", PROFILER))
    status, lines = finished("-f", file, "--exit-when-done", home=(home := os.path.join(tempfile.mkdtemp(dir=folder), "home")))
    assert status == 0 and any(x.startswith("done in") and "1 completed, 0 failed" in x for x in lines), lines
    history = subprocess.run([program("sonde"), "history", "--history", os.path.join(home, "history.db"), "-o", "json"],
                             check=True, capture_output=True, text=True)
    runs = json.loads(history.stdout)["runs"]
    assert [(r["kind"], r["name"], r["outcome"]) for r in runs] == [("DynamoGraphDeploymentRequest", "good", "Succeeded")], runs
    assert runs[0]["image"] and runs[0]["specHash"], runs
    with up("-f", file, home=home) as process:
        process.expect("dgdr/good ended in an earlier run", PATIENCE)
        process.expect("1 completed, 0 failed; the engine stays up", PATIENCE)
        pods = client(process).get("/api/v1/namespaces/default/pods")[1]["items"]
        assert len(pods) == 1 and pods[0]["status"]["phase"] == "Succeeded", pods


def a_changed_spec_that_is_not_taken_is_told():
    """A request that has ended is applied again with another spec: nobody waits for what does not come"""
    scripts = {"good": PROFILER, "bad": "exit 3"}
    for name, script in scripts.items():
        home = os.path.join(tempfile.mkdtemp(dir=folder), "home")
        finished("-f", written(dgdr(name, script)), "--exit-when-done", home=home)
        status, lines = finished("-f", written(dgdr(name, script + "\ntrue")), "--exit-when-done", home=home)
        assert status == 1 and any(x.startswith(f"dgdr/{name} failed after") and "SpecChangeRejected" in x for x in lines), lines


def what_is_tried_again_fails_when_it_lasts():
    taken = json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "dgdr-status-r"}})
    status, lines = finished("-f", written("\n---\n".join([taken, dgdr("r", PROFILER)])), "--exit-when-done")
    ends = [re.match(r"dgdr/r failed after (\S+) s: NameConflict", x) for x in lines]
    assert status == 1 and [float(x[1]) >= 10 for x in ends if x] == [True], lines


def an_operator_elsewhere_finds_the_definitions():
    with up("--no-operator") as process:
        ready(process)
        wait(lambda: client(process).get("/apis/nvidia.com/v1alpha1/dynamographdeploymentrequests")[0] == 200, PATIENCE, "the kind")


def bad_yaml_is_one_sentence():
    directory = os.path.join(tempfile.mkdtemp(dir=folder), "home")
    bad = written("kind: Job\nmetadata:\n  name: a\n  name: b\n")
    status, lines = finished("-f", bad, home=directory)
    assert status == 1 and len(lines) == 1 and lines[0].startswith(f"sonde: {bad}:4:3: "), lines
    assert not os.path.exists(directory)
    status, lines = finished("-f", "/does/not/exist.yaml", home=directory)
    assert status == 1 and len(lines) == 1 and "/does/not/exist.yaml" in lines[0], lines


def what_the_server_refuses_is_told_with_its_place():
    text = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n  labels:\n    k: 'not valid'\n"
    unknown = "apiVersion: no.such/v1\nkind: Nothing\nmetadata:\n  name: none\n"
    bad = written(text + "---\n" + unknown)
    status, lines = finished("--no-node", "-f", bad, "--exit-when-done")
    assert status == 1, lines
    wrong = [line for line in lines if line.startswith(f"sonde: {bad}:")]
    assert re.match(r".*:[56]:\d+: .*metadata.labels", wrong[0]), lines
    assert wrong[1].startswith(f"sonde: {bad}:9:"), lines
    assert lines[-1].endswith(": 0 completed, 0 failed, 2 not applied"), lines


def a_pod_reaches_the_api_with_its_token():
    """What a pod mounts on any cluster to reach the API (token, kube-root-ca.crt, namespace) is there"""
    script = ("import os, ssl, urllib.request as u; d = '/var/run/secrets/kubernetes.io/serviceaccount/'; "
              "e = os.environ; url = f'https://{e[\"KUBERNETES_SERVICE_HOST\"]}:{e[\"KUBERNETES_SERVICE_PORT\"]}/api/v1/namespaces/' "
              "+ open(d + 'namespace').read(); q = u.Request(url, headers={'Authorization': 'Bearer ' + open(d + 'token').read()}); "
              "print(u.urlopen(q, context=ssl.create_default_context(cafile=d + 'ca.crt')).status)")
    asking = json.loads(job("asking", "true"))
    template = asking["spec"]["template"]["spec"]
    template["containers"][0].update(command=["/usr/bin/python3", "-c", script], volumeMounts=[
        {"name": "api", "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"}])
    template["volumes"] = [{"name": "api", "projected": {"sources": [
        {"serviceAccountToken": {"path": "token"}}, {"configMap": {"name": "kube-root-ca.crt"}},
        {"downwardAPI": {"items": [{"path": "namespace", "fieldRef": {"fieldPath": "metadata.namespace"}}]}}]}}]
    status, lines = finished("-f", written(json.dumps(asking)), "--exit-when-done")
    assert status == 0 and "job/asking | 200" in lines, lines


# --- the end -----------------------------------------------------------------


def an_interrupt_tells_running_jobs():
    marker = "86401." + str(secrets.randbelow(10**6))
    text = job("long", f"trap 'echo told; exit 7' TERM; echo begun; sleep {marker} & wait")
    with up("-f", written(text), "--exit-when-done") as process:
        process.expect(r"^job/long \| begun", PATIENCE)
        process.signal(signal.SIGINT)
        assert process.wait(PATIENCE) == 130, process.lines
        assert not alive(f"sleep {marker}") and not alive(process.home), process.lines
        assert "job/long | told" in process.lines, process.lines


def a_second_interrupt_ends_at_once():
    marker = "86402." + str(secrets.randbelow(10**6))
    deaf = json.loads(job("deaf", f"trap '' TERM; echo begun; while :; do sleep {marker}; done"))
    deaf["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] = 3600
    with up("-f", written(json.dumps(deaf))) as process:
        process.expect(r"^job/deaf \| begun", PATIENCE)
        process.signal(signal.SIGINT)
        process.expect("ending: running pods are asked to stop, 1 of the jobs and requests is not done", PATIENCE)
        process.signal(signal.SIGINT)
        assert process.wait(PATIENCE) == 130, process.lines  # and not after the grace period
        assert not alive(f"sleep {marker}") and not alive(process.home), process.lines


def whoever_stops_reading_ends_it():
    marker = "86403." + str(secrets.randbelow(10**6))
    directory = os.path.join(tempfile.mkdtemp(dir=folder), "home")
    text = written(job("talks", f"echo begun; sleep {marker} & while :; do echo more; sleep 0.05; done"))
    with subprocess.Popen([program("sonde"), "up", "--dir", directory, "--no-fsync", "-f", text, "--exit-when-done"],
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True) as process:
        try:
            while b" | begun" not in process.stdout.readline():
                assert process.poll() is None, process.returncode
            process.stdout.close()
            assert process.wait(2 * PATIENCE) == 1
        finally:
            process.kill()
    assert not alive(f"sleep {marker}") and not alive(directory)


def wrong_usage_is_one_sentence():
    for words in ("x.yaml",), ("--exit-when-done",), ("--listen",), ("--frob",), \
            ("--no-node", "--exit-when-done", "-f", written(job("j", "true"))):
        status, lines = finished(*words)
        assert status == 2 and len(lines) == 1 and lines[0].startswith("sonde: "), (words, status, lines)


# --- kubectl -----------------------------------------------------------------


def kubectl_works_with_its_kubeconfig():
    with up() as process:
        ready(process)

        def kubectl(*words):
            done = subprocess.run([kubectl_path(), "--kubeconfig", process.kubeconfig, *words], env={**os.environ, "HOME": process.home},
                                  stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE, check=False)
            assert done.returncode == 0, (words, done.stdout, done.stderr)
            return done.stdout

        kubectl("get", "all")
        wait(lambda: " Ready " in kubectl("get", "nodes"), PATIENCE, "a node that is ready")
        assert kubectl("create", "job", "greet", "--image=any", "--", "echo", "good day") == "job.batch/greet created\n"
        kubectl("wait", "--for=condition=complete", "job/greet", f"--timeout={PATIENCE}s")
        assert kubectl("logs", "job/greet") == "good day\n"
        assert re.search(r"^greet +1/1 ", kubectl("get", "jobs"), re.M), kubectl("get", "jobs")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="sonde-up-") as folder:
        tests = [kubectl_works_with_its_kubeconfig] if sys.argv[1:] == ["kubectl"] else [
            it_starts_and_says_how_to_use_it, the_page_is_where_it_listens, a_second_one_in_the_same_directory_is_refused,
            a_restart_keeps_objects_and_port, listening_to_others_is_warned_of, a_job_is_followed_to_its_end,
            a_failing_job_makes_exit_status_1, whatever_jobs_end_in_all_have_ended, standard_input_is_a_file_too,
            a_custom_resource_may_follow_its_definition, a_pod_reaches_the_api_with_its_token, requests_are_followed_to_their_end, requests_stay_for_the_next_start,
            a_changed_spec_that_is_not_taken_is_told, what_is_tried_again_fails_when_it_lasts,
            an_operator_elsewhere_finds_the_definitions, bad_yaml_is_one_sentence,
            what_the_server_refuses_is_told_with_its_place, an_interrupt_tells_running_jobs, a_second_interrupt_ends_at_once,
            whoever_stops_reading_ends_it, wrong_usage_is_one_sentence]
        main(*[t for t in tests if sys.argv[1:] in ([], ["kubectl"]) or t.__name__ in sys.argv[1:]])
