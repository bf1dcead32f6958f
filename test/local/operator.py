#!/usr/bin/python3
"""`sonde operator`: its flags, a request carried out, one namespace or all, election, the end; and `sonde manifests`."""

import contextlib
import glob
import json
import os
import re
import secrets
import signal
import subprocess
import sys
import urllib.error
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
from sonde_test import ROOT, Engine, Process, main, program, wait

PATIENCE = 180
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
GROUP = "/apis/nvidia.com/v1alpha1"
SPEC = {"model": "m", "backend": "vllm", "profilingConfig": {
    "profilerImage": "registry.example/profiler:1", "config": {"sla": {"isl": 3000, "osl": 500, "ttft": 50, "itl": 10}}}}


def run(*arguments, **more):
    """Exit status, standard output, standard error of a command that ends by itself."""
    done = subprocess.run([program("sonde"), *arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=PATIENCE, check=False, **more)
    return done.returncode, done.stdout, done.stderr


@contextlib.contextmanager
def operator(*arguments, env=None):
    """An operator that has started; its port of health is taken from what it logs, and it must end well."""
    with Process(program("sonde"), "operator", "--kubeconfig", engine.kubeconfig, "--health-probe-bind-address", "127.0.0.1:0",
                 *arguments, env=env) as process:
        started = process.expect(r'"Started".*"port":(\d+)', PATIENCE)
        process.port = int(started[1])
        yield process
        if process.popen.poll() is None:
            process.signal(signal.SIGTERM)
        assert process.wait(PATIENCE) == 0, process.lines[-20:]


def served(port, path):
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=PATIENCE) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as e:
        return e.code, e.read().decode()


def install():
    """As `sonde manifests --crds-only | kubectl apply -f -`."""
    status, text, err = run("manifests", "--crds-only")
    assert (status, err) == (0, ""), err
    for document in text.split("\n---\n"):
        name = re.search(r"^  name: (\S+)", document, re.M)[1]
        code, body = engine.api().request("PATCH", f"{CRDS}/{name}?fieldManager=t&force=true", document.encode(),
                                          "application/apply-patch+yaml")
        assert code in (200, 201), body
    wait(lambda: engine.api().get(f"{GROUP}/dynamographdeploymentrequests")[0] == 200, PATIENCE, "the kind to be served")


def request(ns, name="r"):
    code, body = engine.api().post(f"{GROUP}/namespaces/{ns}/dynamographdeploymentrequests", {
        "apiVersion": "nvidia.com/v1alpha1", "kind": "DynamoGraphDeploymentRequest", "metadata": {"name": name}, "spec": SPEC})
    assert code == 201, body


def state(ns, name="r"):
    got = engine.api().get(f"{GROUP}/namespaces/{ns}/dynamographdeploymentrequests/{name}")[1]
    return got.get("status", {}).get("state", "")


def job(ns, name="profile-r"):
    code, body = engine.api().get(f"/apis/batch/v1/namespaces/{ns}/jobs/{name}")
    return body if code == 200 else None


def wrong_usage_is_one_sentence():
    for words, said in ((["--log-level", "loud"], "--log-level: 'loud'"), (["--log-format", "xml"], "--log-format: 'xml'"),
                        (["--profiler-env", "hidden"], "--profiler-env: what is given is not NAME=VALUE"),
                        (["--profiler-env", "1X=hidden"], "--profiler-env: '1X' is no name"),
                        (["--leader-elect-namespace", "x"], "needs --leader-elect"),
                        (["--namespace", "a,b"], "--namespace: 'a,b'"), (["--frob"], "--frob"), (["more"], "more"),
                        (["--concurrency", "many"], "--concurrency")):
        status, out, err = run("operator", *words)
        assert (status, out) == (2, "") and err.count("\n") == 1 and said in err, (words, status, out, err)
        assert "hidden" not in err, err  # it may be a secret


def what_cannot_start_says_why():
    with Process(program("sonde"), "operator", "--kubeconfig", engine.kubeconfig, "--health-probe-bind-address", "nowhere") as p:
        assert p.wait(PATIENCE) == 1 and any("--health-probe-bind-address: cannot listen on 'nowhere'" in x for x in p.lines), p.lines
    for words in (["--kubeconfig", "/nowhere"], ["--kubeconfig", engine.kubeconfig, "--context", "nothing"],
                  ["--kubeconfig", engine.kubeconfig, "--history", "/nowhere/h.db", "--health-probe-bind-address", "0"]):
        status, out, err = run("operator", *words)
        assert (status, out) == (1, "") and "sonde: operator: " in err, (words, status, out, err)


def manifests_are_what_the_folder_has():
    status, out, err = run("manifests", "--crds-only")
    assert (status, err) == (0, ""), err
    files = sorted(glob.glob(os.path.join(ROOT, "deploy", "crds", "*.yaml")))
    assert len(out.split("\n---\n")) == len(files), files
    for path in [*files, os.path.join(ROOT, "deploy", "base", "sonde.yaml")]:
        with open(path, encoding="utf-8") as f:
            assert f.read() in run("manifests")[1], path
    assert out in run("manifests")[1] and run("manifests", "more")[0] == 2


def without_the_definition_it_waits():
    """F11: no crash, not ready, and all is well when the definition comes"""
    with operator() as process:
        code, text = served(process.port, "/readyz")
        assert code == 503 and "[-]cache dgdr/dynamographdeploymentrequests" in text, (code, text)
        assert served(process.port, "/healthz") == (200, "ok")
        install()
        wait(lambda: served(process.port, "/readyz")[0] == 200, PATIENCE, "ready")
        text = served(process.port, "/readyz?verbose")[1]
        assert re.search(r"\[\+\]cache dgdr/dynamographdeployments: 0 objects.*, not installed", text), text


def a_request_is_carried_out():
    with engine.namespace() as ns, operator("--profiler-env", "A=1", "--profiler-env", "B=x=y", "--pod-image", "my/pod:1",
                                            "--history", os.path.join(engine.home, f"h-{secrets.token_hex(4)}.db")) as process:
        request(ns)
        made = wait(lambda: job(ns), PATIENCE, "the Job")
        pod = made["spec"]["template"]["spec"]
        env = {e["name"]: e.get("value") for e in pod["containers"][0]["env"]}
        assert env["A"] == "1" and env["B"] == "x=y", env
        assert any(c["image"] == "my/pod:1" for c in pod["initContainers"]), pod["initContainers"]
        # The Job is there before the reconcile that made it is over and counted.
        wait(lambda: 'controller_runtime_reconcile_total{controller="dgdr",result="success"}' in served(process.port, "/metrics")[1],
             PATIENCE, "the reconcile to be counted")
        for line in process.lines:
            json.loads(line)  # every line of the log


def metrics_may_have_an_address_of_their_own():
    with operator("--metrics-bind-address", "127.0.0.1:0") as process:
        assert served(process.port, "/metrics")[0] == 404
    with operator("--metrics-bind-address", "0", "--log-level", "debug") as process:
        assert served(process.port, "/metrics")[0] == 404


def one_namespace_is_watched_and_no_other():
    with engine.namespace() as mine, engine.namespace() as other:
        for arguments, env, name in ((["--namespace", mine], None, "flag"), ([], {"WATCH_NAMESPACE": mine}, "env")):
            with operator(*arguments, env=env) as process:
                request(other, name)
                request(mine, name)
                wait(lambda n=name: job(mine, f"profile-{n}"), PATIENCE, "the Job")
                assert state(other, name) == "" and not job(other, f"profile-{name}")
                assert mine in process.lines[0], process.lines[0]


def one_of_two_leads():
    """the second takes over as soon as the first gives the lease back"""
    lease = "/apis/coordination.k8s.io/v1/namespaces/{}/leases/sonde-operator"
    with engine.namespace() as ns:
        elect = ["--leader-elect", "--leader-elect-namespace", ns, "--namespace", ns]
        with operator(*elect) as first:
            first.expect("Became the leader", PATIENCE)
            with operator(*elect) as second:
                second.expect("Saw a leader", PATIENCE)
                request(ns, "one")
                wait(lambda: job(ns, "profile-one"), PATIENCE, "the Job")
                holder = engine.api().get(lease.format(ns))[1]["spec"]["holderIdentity"]
                first.signal(signal.SIGTERM)
                assert first.wait(PATIENCE) == 0, first.lines[-10:]
                second.expect("Became the leader", PATIENCE)
                assert engine.api().get(lease.format(ns))[1]["spec"]["holderIdentity"] not in ("", holder)
                request(ns, "two")
                wait(lambda: job(ns, "profile-two"), PATIENCE, "the Job")


def a_lost_lease_ends_it():
    lease = "/apis/coordination.k8s.io/v1/namespaces/{}/leases/sonde-operator"
    with engine.namespace() as ns, \
            Process(program("sonde"), "operator", "--kubeconfig", engine.kubeconfig, "--health-probe-bind-address", "0",
                    "--leader-elect", "--leader-elect-namespace", ns, "--log-format", "logfmt") as process:
        process.expect("Became the leader", PATIENCE)
        code, body = engine.api().patch(lease.format(ns), {"spec": {"holderIdentity": "thief"}})
        assert code == 200, body
        assert process.wait(PATIENCE) == 1
        assert "Lost the lease" in process.lines[-1], process.lines[-3:]


def whoever_stops_reading_the_log_stops_nothing():
    with engine.namespace() as ns, \
            subprocess.Popen([program("sonde"), "operator", "--kubeconfig", engine.kubeconfig, "--namespace", ns, "--log-level", "debug",
                              "--health-probe-bind-address", "0"], stderr=subprocess.PIPE) as process:
        try:
            assert b"Started" in process.stderr.readline()
            process.stderr.close()
            request(ns)
            wait(lambda: job(ns), PATIENCE, "the Job")
            process.terminate()
            assert process.wait(PATIENCE) == 0
        finally:
            process.kill()


def ctrl_c_is_130():
    with Process(program("sonde"), "operator", "--kubeconfig", engine.kubeconfig, "--health-probe-bind-address", "0") as process:
        process.expect("Started", PATIENCE)
        process.signal(signal.SIGINT)
        assert process.wait(PATIENCE) == 130


with Engine("--no-node", "--no-fsync") as engine:
    main(wrong_usage_is_one_sentence, what_cannot_start_says_why, manifests_are_what_the_folder_has,
         without_the_definition_it_waits, a_request_is_carried_out, metrics_may_have_an_address_of_their_own,
         one_namespace_is_watched_and_no_other, one_of_two_leads, a_lost_lease_ends_it,
         whoever_stops_reading_the_log_stops_nothing, ctrl_c_is_130)
