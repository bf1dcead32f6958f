#!/usr/bin/python3
"""The node: pods as processes, as an ordinary client of the API server."""

import contextlib
import json
import os
import re
import secrets
import shutil
import signal
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
from sonde_test import Engine, Process, diag, main, program

PATIENCE = 120


# What puts a program where mount namespaces may not be made, for root and for others; the machine's settings stay as they are.
NO_MOUNTS = {True: ["setpriv", "--bounding-set=-sys_admin", "--inh-caps=-sys_admin"],
             False: ["unshare", "--map-current-user", "--keep-caps", "sh", "-c",
                     'echo 0 > /proc/sys/user/max_user_namespaces && exec setpriv --ambient-caps=-all --inh-caps=-all "$@"', "sh"]}


def as_user(user):
    return ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups"] if user else []


class Node:
    """One node of its own name, which no scheduler uses. PREFIX: a command that runs it."""

    def __init__(self, user=None, prefix=()):
        self.user, self.prefix = user, list(prefix)
        self.name = "node-" + secrets.token_hex(4)
        # The tests' own temporary directory is root's alone.
        self.dir = tempfile.mkdtemp(prefix="sonde-node-", dir="/tmp" if user else None)
        os.chmod(self.dir, 0o755)
        self.process = None

    def __enter__(self):
        # Made beforehand, so that nobody else's pods ever come here.
        status, body = api.post("/api/v1/nodes", {"metadata": {"name": self.name}, "spec": {"unschedulable": True}})
        assert status == 201, body
        self.start()
        return self

    def start(self):
        kubeconfig = cluster.kubeconfig
        if self.user:
            kubeconfig = shutil.copy(cluster.kubeconfig, os.path.join(self.dir, "kubeconfig"))
            for path in (self.dir, kubeconfig):
                os.chown(path, self.user, self.user)
        self.process = Process(*as_user(self.user), *self.prefix, program("test/node-main"), "--kubeconfig", kubeconfig, "--name", self.name, "--dir",
                               self.dir, "--pod-image", "sonde-pod:test", "--pod-program", "/bin/cat", "--log-level", "info")
        self.process.expect("^ready", PATIENCE)

    def kill(self):
        self.process.signal(signal.SIGKILL)
        self.process.wait()

    def __exit__(self, kind, *_):
        self.process.stop(PATIENCE)
        if kind:
            diag("\n".join(self.process.lines[-40:]))
            for root, _, files in os.walk(os.path.join(self.dir, "pods")):
                for file in files:
                    if file in ("state.json", "supervisor.log"):
                        diag(file + ": " + open(os.path.join(root, file), encoding="utf-8", errors="replace").read())
        api.delete(f"/api/v1/nodes/{self.name}")
        shutil.rmtree(self.dir, ignore_errors=True)

    def pod_dir(self, pod):
        return os.path.join(self.dir, "pods", pod["metadata"]["uid"])

    def log(self, pod, container="main", restart=0):
        """The texts of a container's log, in order."""
        with open(os.path.join(self.pod_dir(pod), "log", container, f"{restart}.log"), encoding="utf-8") as f:
            lines = [re.fullmatch(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z) (stdout|stderr) ([FP]) (.*)", l.rstrip("\n"))
                     for l in f]
        assert all(lines), "a line is not in the CRI's format"
        return [l[4] for l in lines]


def wait(what, check, seconds=PATIENCE):
    deadline = time.monotonic() + seconds
    while True:
        value = check()
        if value:
            return value
        assert time.monotonic() < deadline, f"{what}: not within {seconds} s"
        time.sleep(0.05)


def container(script=None, name="main", **more):
    c = {"name": name, "image": "anything"}
    if script is not None:
        c["command"] = ["/bin/sh", "-c", script]
    return {**c, **more}


def run(node, ns, *containers, inits=(), policy="Never", name="p", **spec):
    body = {"metadata": {"name": name, "labels": {"who": "me"}},
            "spec": {"nodeName": node.name, "restartPolicy": policy, "automountServiceAccountToken": False,
                     "terminationGracePeriodSeconds": 1, "containers": list(containers), "initContainers": list(inits),
                     **spec}}
    status, pod = api.post(f"/api/v1/namespaces/{ns}/pods", body)
    assert status == 201, pod
    return pod


def get(ns, name="p"):
    status, pod = api.get(f"/api/v1/namespaces/{ns}/pods/{name}")
    return pod if status == 200 else None


def phase(ns, *phases, name="p", seconds=PATIENCE):
    def there():
        pod = get(ns, name)
        return pod if pod and pod.get("status", {}).get("phase") in phases else None
    return wait(f"phase {phases}", there, seconds)


def ended(pod, i=0, kind="containerStatuses"):
    return pod["status"][kind][i]["state"]["terminated"]


def namespace():
    """A namespace in which pods can be made: its service account is there."""
    made = cluster.namespace("node")
    ns = made.__enter__()
    wait("service account", lambda: api.get(f"/api/v1/namespaces/{ns}/serviceaccounts/default")[0] == 200)
    return made, ns


def in_namespace(test):
    def wrapped():
        made, ns = namespace()
        try:
            with Node() as node:
                test(node, ns)
        finally:
            made.__exit__(None, None, None)
    wrapped.__name__, wrapped.__doc__, wrapped.is_test = test.__name__, test.__doc__, True
    return wrapped


def alive(marker):
    """Processes whose command line has MARKER."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as f:
                if marker.encode() in f.read().replace(b"\0", b" "):
                    found.append(int(pid))
        except OSError:
            pass
    return found


# --- the tests ---------------------------------------------------------------


@in_namespace
def a_pod_runs_and_its_status_is_a_kubelets(node, ns):
    run(node, ns, container("echo hello; echo oops >&2; exit 0"))
    pod = phase(ns, "Succeeded")
    status = pod["status"]["containerStatuses"][0]
    assert sorted(node.log(pod)) == ["hello", "oops"], node.log(pod)
    done = status["state"]["terminated"]
    assert done["exitCode"] == 0 and done["reason"] == "Completed" and done["startedAt"] and done["finishedAt"], done
    assert status["restartCount"] == 0 and status["ready"] is False and status["started"] is False, status
    conditions = {c["type"]: (c["status"], c.get("reason")) for c in pod["status"]["conditions"]}
    assert conditions == {"Initialized": ("True", "PodCompleted"), "Ready": ("False", "PodCompleted"),
                          "ContainersReady": ("False", "PodCompleted"), "PodScheduled": ("True", None)}, conditions
    ready = {c["type"]: c["status"] for c in api.get(f"/api/v1/nodes/{node.name}")[1]["status"]["conditions"]}
    assert ready["Ready"] == "True", ready
    status, lease = api.get(f"/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/{node.name}")
    assert status == 200 and lease["spec"]["renewTime"], lease


@in_namespace
def init_containers_run_in_order_before_the_others(node, ns):
    share = {"volumeMounts": [{"name": "v", "mountPath": "/shared/deep"}]}
    run(node, ns, container("cat /shared/deep/order; echo main >> /shared/deep/order", **share),
        inits=[container("sleep 0.3; echo one > /shared/deep/order", "one", **share),
               container("echo two >> /shared/deep/order", "two", **share)],
        volumes=[{"name": "v", "emptyDir": {}}])
    pod = phase(ns, "Succeeded", "Failed")
    assert node.log(pod) == ["one", "two"], (node.log(pod), pod["status"])
    inits = pod["status"]["initContainerStatuses"]
    assert [c["ready"] for c in inits] == [True, True], inits
    assert not os.path.exists("/shared"), "a directory was made on the machine"


@in_namespace
def a_failed_init_container_fails_the_pod(node, ns):
    run(node, ns, container("echo never"), inits=[container("exit 3", "one"), container("exit 0", "two")])
    pod = phase(ns, "Failed")
    assert ended(pod, 0, "initContainerStatuses")["exitCode"] == 3
    assert "waiting" in pod["status"]["initContainerStatuses"][1]["state"], pod["status"]
    assert pod["status"]["containerStatuses"][0]["state"] == {"waiting": {"reason": "PodInitializing"}}, pod["status"]
    condition = next(c for c in pod["status"]["conditions"] if c["type"] == "Initialized")
    assert condition["message"] == "containers with incomplete status: [one two]", condition


@in_namespace
def volumes_are_at_their_paths_and_nothing_is_left(node, ns):
    assert api.post(f"/api/v1/namespaces/{ns}/configmaps",
                    {"metadata": {"name": "cm"}, "data": {"a": "alpha", "b": "beta"}, "binaryData": {"bin": "AAEC"}})[0] == 201
    assert api.post(f"/api/v1/namespaces/{ns}/secrets", {"metadata": {"name": "s"}, "stringData": {"k": "hidden"}})[0] == 201
    with open(os.path.join(node.dir, "host"), "w", encoding="utf-8") as f:
        f.write("from the host\n")
    mounts = [("empty", "/etc/sonde-test/empty"), ("cm", "/usr/share/sonde-test"), ("items", "/srv/items"),
              ("secret", "/var/run/secrets/x"), ("down", "/podinfo"), ("all", "/opt/all"), ("none", "/mnt/none")]
    more = [{"name": "cm", "mountPath": "/srv/only-a", "subPath": "a"},
            {"name": "empty", "mountPath": "/srv/sub", "subPath": "x/y"},
            {"name": "host", "mountPath": "/run/host-file", "readOnly": True}]
    script = r"""
        echo made > /etc/sonde-test/empty/f && cat /etc/sonde-test/empty/f
        cat /usr/share/sonde-test/a; echo; cat /srv/only-a; echo
        test "$(od -An -tx1 /usr/share/sonde-test/bin)" = " 00 01 02" && echo binary
        (echo x > /usr/share/sonde-test/a) 2>/dev/null || echo read-only
        ls /srv/items; stat -c %a /srv/items/sub/renamed
        cat /var/run/secrets/x/k; echo; cat /podinfo/labels; echo; cat /podinfo/cpu; echo
        cat /opt/all/a; echo; cat /opt/all/name; echo; test -s /opt/all/token && echo token
        ls /mnt/none | wc -l
        cat /run/host-file; (echo x > /run/host-file) 2>/dev/null || echo read-only
        touch /srv/sub/z && ls /etc/sonde-test/empty/x/y
        test -e /etc/passwd -a -d /proc/self -a -c /dev/null && echo machine
    """
    volumes = [{"name": "empty", "emptyDir": {}}, {"name": "cm", "configMap": {"name": "cm"}},
               {"name": "items", "configMap": {"name": "cm", "items": [{"key": "b", "path": "sub/renamed", "mode": 0o400}]}},
               {"name": "secret", "secret": {"secretName": "s"}}, {"name": "host", "hostPath": {"path": node.dir + "/host"}},
               {"name": "down", "downwardAPI": {"items": [
                   {"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}},
                   {"path": "cpu", "resourceFieldRef": {"containerName": "main", "resource": "limits.cpu", "divisor": "1m"}}]}},
               {"name": "all", "projected": {"sources": [
                   {"configMap": {"name": "cm"}}, {"serviceAccountToken": {"path": "token", "expirationSeconds": 3600}},
                   {"downwardAPI": {"items": [{"path": "name", "fieldRef": {"fieldPath": "metadata.name"}}]}}]}},
               {"name": "none", "configMap": {"name": "not-there", "optional": True}}]
    before = {p: sorted(os.listdir(p)) for p in ("/", "/etc", "/usr/share", "/srv", "/opt", "/mnt", "/run")}
    run(node, ns, container(script, volumeMounts=[{"name": n, "mountPath": p} for n, p in mounts] + more,
                            resources={"limits": {"cpu": "250m"}}), volumes=volumes)
    pod = phase(ns, "Succeeded", "Failed")
    expected = ["made", "alpha", "alpha", "binary", "read-only", "sub", "400", "hidden", 'who="me"', "250", "alpha", "p",
                "token", "0", "from the host", "read-only", "z", "machine"]
    assert [l for l in node.log(pod) if l] == expected, (node.log(pod), pod["status"])
    assert before == {p: sorted(os.listdir(p)) for p in before}, "something was made on the machine"


@in_namespace
def a_sub_path_makes_nothing_outside_its_volume(node, ns):
    # An earlier container left symbolic links in it.
    outside = os.path.join(node.dir, "outside")
    os.mkdir(outside)
    leave = f"ln -s {outside} /v/out; ln -s ../../../../../../.. /v/up; mkdir /v/in; ln -s /in /v/link"
    volume = {"volumes": [{"name": "v", "emptyDir": {}}], "inits": [container(leave, "links", volumeMounts=[{"name": "v", "mountPath": "/v"}])]}
    top = f"new-{secrets.token_hex(4)}"
    for sub in ("out/new", f"up/{outside}/new", f"up/{top}"):
        name = f"p-{secrets.token_hex(3)}"
        run(node, ns, container("echo ran", volumeMounts=[{"name": "v", "mountPath": "/w", "subPath": sub}]), name=name, **volume)
        phase(ns, "Succeeded", "Failed", name=name)
    assert os.listdir(outside) == [] and not os.path.exists(f"/{top}"), "a subPath made a directory on the machine"
    # A link that stays in the volume is a way like any other.
    run(node, ns, container("touch /w/f; ls /v/in/a..b/c", volumeMounts=[{"name": "v", "mountPath": "/w", "subPath": "link/a..b/c"},
                                                                         {"name": "v", "mountPath": "/v"}]), name="inside", **volume)
    pod = phase(ns, "Succeeded", "Failed", name="inside")
    assert node.log(pod) == ["f"], (node.log(pod), pod["status"])


@in_namespace
def the_environment_is_what_a_container_has(node, ns):
    assert api.post(f"/api/v1/namespaces/{ns}/configmaps", {"metadata": {"name": "cm"}, "data": {"a": "alpha", "B": "beta"}})[0] == 201
    field = lambda path: {"valueFrom": {"fieldRef": {"fieldPath": path}}}
    env = [{"name": "LIT", "value": "x"}, {"name": "REF", "value": "$(LIT)-$(NOPE)-$$(LIT)"},
           {"name": "POD", **field("metadata.name")}, {"name": "NODE", **field("spec.nodeName")},
           {"name": "LABEL", **field("metadata.labels['who']")},
           {"name": "KEY", "valueFrom": {"configMapKeyRef": {"name": "cm", "key": "a"}}},
           {"name": "NONE", "valueFrom": {"configMapKeyRef": {"name": "nope", "key": "a", "optional": True}}},
           {"name": "MEM", "valueFrom": {"resourceFieldRef": {"resource": "limits.memory", "divisor": "1Mi"}}}]
    run(node, ns, {"name": "main", "image": "x", "command": ["/usr/bin/env"], "env": env, "workingDir": "/usr",
                   "envFrom": [{"prefix": "CM_", "configMapRef": {"name": "cm"}}],
                   "resources": {"limits": {"memory": "64Mi"}}},
        {"name": "args", "image": "x", "command": ["echo"], "args": ["$(WHO)", "$$(WHO)"], "env": [{"name": "WHO", "value": "me"}]})
    pod = phase(ns, "Succeeded", "Failed")
    got = dict(l.split("=", 1) for l in node.log(pod))
    host, port = cluster.address
    expected = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOSTNAME": "p",
                "KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": str(port),
                "KUBERNETES_SERVICE_PORT_HTTPS": str(port), "CM_a": "alpha", "CM_B": "beta", "LIT": "x",
                "REF": "x-$(NOPE)-$(LIT)", "POD": "p", "NODE": node.name, "LABEL": "me", "KEY": "alpha", "MEM": "64"}
    home = got.pop("HOME")
    assert home == os.path.expanduser("~"), home
    assert got == expected, got
    assert node.log(pod, "args") == ["me $(WHO)"], node.log(pod, "args")


@in_namespace
def exit_codes_and_messages_are_told(node, ns):
    run(node, ns, container("exit 7", "code"), container("kill -9 $$$$", "signal"),
        container("echo why > /dev/termination-log; exit 1", "file"),
        container("echo said; exit 1", "log", terminationMessagePolicy="FallbackToLogsOnError"),
        {"name": "missing", "image": "x", "command": ["no-such-program"]},
        container("pwd; exit 0", "cwd", workingDir="/usr/bin"), container("id -u; exit 2", "user", securityContext={"runAsUser": 1234}))
    pod = phase(ns, "Failed")
    got = {c["name"]: c["state"]["terminated"] for c in pod["status"]["containerStatuses"]}
    assert (got["code"]["exitCode"], got["code"]["reason"]) == (7, "Error")
    assert got["signal"]["exitCode"] == 137
    assert got["file"]["message"] == "why\n" and got["log"]["message"] == "said\n", got
    assert got["missing"]["reason"] == "StartError" and got["missing"]["exitCode"] == 128, got["missing"]
    assert 'exec: "no-such-program": executable file not found in $PATH' in got["missing"]["message"], got["missing"]
    assert node.log(pod, "cwd") == ["/usr/bin"], node.log(pod, "cwd")
    if os.geteuid() == 0:
        assert node.log(pod, "user") == ["1234"], node.log(pod, "user")


@in_namespace
def a_container_without_a_command_says_why_it_waits(node, ns):
    run(node, ns, container(), container("sleep 60", "other"))
    state = wait("waiting", lambda: next((c["state"]["waiting"] for c in get(ns)["status"].get("containerStatuses", [])
                                          if c["name"] == "main" and c["state"].get("waiting", {}).get("message")), None))
    assert state["reason"] == "CreateContainerError" and "has no command" in state["message"], state


@in_namespace
def what_is_missing_is_waited_for(node, ns):
    run(node, ns, container("echo $X", env=[{"name": "X", "valueFrom": {"configMapKeyRef": {"name": "late", "key": "x"}}}]))
    reason = wait("waiting", lambda: next((c["state"]["waiting"] for c in get(ns)["status"].get("containerStatuses", [])
                                           if c["state"].get("waiting", {}).get("message")), None))
    assert reason == {"reason": "CreateContainerConfigError", "message": 'configmap "late" not found'}, reason
    assert api.post(f"/api/v1/namespaces/{ns}/configmaps", {"metadata": {"name": "late"}, "data": {"x": "here"}})[0] == 201
    assert node.log(phase(ns, "Succeeded")) == ["here"]


@in_namespace
def on_failure_restarts_with_a_delay(node, ns):
    pod = run(node, ns, container("echo try; exit 1"), policy="OnFailure")
    events = cluster.api(timeout=300).watch(f"/api/v1/namespaces/{ns}/pods?watch=1&resourceVersion={pod['metadata']['resourceVersion']}")
    status = next(c for e in events for c in e["object"]["status"].get("containerStatuses", [])
                  if c["state"].get("waiting", {}).get("reason") == "CrashLoopBackOff")
    events.close()
    assert status["restartCount"] == 2 and status["lastState"]["terminated"]["exitCode"] == 1, status
    assert status["state"]["waiting"]["message"].startswith("back-off 10s restarting failed container=main pod=p_"), status
    assert get(ns)["status"]["phase"] == "Running"


@in_namespace
def a_tree_that_ignores_sigterm_is_ended(node, ns):
    marker = "31536" + str(secrets.randbelow(10**6))
    script = f"trap '' TERM; (trap '' TERM; setsid sh -c 'trap \"\" TERM; while :; do sleep {marker}; done') & while :; do sleep {marker}; done"
    pod = run(node, ns, container(script), terminationGracePeriodSeconds=3600)
    phase(ns, "Running")
    wait("the tree", lambda: len(alive(f"sleep {marker}")) >= 2)
    begun = time.monotonic()
    status, _ = api.delete(f"/api/v1/namespaces/{ns}/pods/p", {"gracePeriodSeconds": 2})
    assert status in (200, 202)
    wait("deletion", lambda: get(ns) is None)
    assert time.monotonic() - begun > 1.5
    assert not alive(marker), "processes are left"
    wait("the directory's end", lambda: not os.path.exists(node.pod_dir(pod)))


@in_namespace
def what_a_container_leaves_behind_ends_with_it(node, ns):
    marker = "31537" + str(secrets.randbelow(10**6))
    run(node, ns, container(f"setsid sh -c 'sleep {marker}' & sleep 0.2; exit 0"))
    phase(ns, "Succeeded")
    assert not alive(marker), "processes are left"


@in_namespace
def sigterm_is_heard(node, ns):
    run(node, ns, container("trap 'echo bye; exit 5' TERM; echo up; while :; do sleep 0.1; done"), terminationGracePeriodSeconds=30)
    pod = phase(ns, "Running")
    wait("its trap", lambda: node.log(pod) == ["up"])
    events = cluster.api(timeout=300).watch(f"/api/v1/namespaces/{ns}/pods?watch=1&timeoutSeconds=300&resourceVersion={pod['metadata']['resourceVersion']}")
    api.delete(f"/api/v1/namespaces/{ns}/pods/p")
    codes = []
    for e in events:
        terminated = e["object"]["status"]["containerStatuses"][0]["state"].get("terminated")
        codes += [terminated["exitCode"]] if terminated else []
        if e["type"] == "DELETED":
            break
    assert codes and codes[-1] == 5, codes


@in_namespace
def a_deadline_ends_the_pod(node, ns):
    run(node, ns, container("sleep 600"), activeDeadlineSeconds=1)
    pod = phase(ns, "Failed")
    assert pod["status"]["reason"] == "DeadlineExceeded", pod["status"]
    assert pod["status"]["message"] == "Pod was active on the node longer than the specified deadline"


@in_namespace
def a_killed_node_finds_its_pods_again(node, ns):
    flag = os.path.join(node.dir, "go")
    script = f"echo begun; while [ ! -e {flag} ]; do sleep 0.1; done; echo done"
    run(node, ns, container(script), name="long")
    run(node, ns, container(f"echo begun; while [ ! -e {flag}-short ]; do sleep 0.1; done; exit 4"), name="short")
    phase(ns, "Running", name="long")
    phase(ns, "Running", name="short")
    node.kill()
    open(flag + "-short", "w", encoding="utf-8").close()
    time.sleep(2)  # the short one ends while nobody looks
    node.start()
    short = phase(ns, "Failed", name="short")
    assert ended(short)["exitCode"] == 4 and node.log(short) == ["begun"], short["status"]
    assert get(ns, "long")["status"]["phase"] == "Running"
    open(flag, "w", encoding="utf-8").close()
    long = phase(ns, "Succeeded", name="long")
    assert node.log(long) == ["begun", "done"], node.log(long)


@in_namespace
def pods_start_exactly_once_whenever_the_node_is_killed(node, ns):
    starts = os.path.join(node.dir, "starts")
    for i in range(8):
        run(node, ns, container(f"echo {i} >> {starts}"), name=f"p{i}")
        time.sleep(0.02 * i)
        node.kill()
        node.start()
    for i in range(8):
        phase(ns, "Succeeded", name=f"p{i}")
    with open(starts, encoding="utf-8") as f:
        assert sorted(f.read().split()) == [str(i) for i in range(8)]


@in_namespace
def a_killed_supervisor_fails_its_pod_and_leaves_nothing(node, ns):
    marker = "31538" + str(secrets.randbelow(10**6))
    run(node, ns, container(f"setsid sleep {marker} & sleep {marker}"))
    pod = phase(ns, "Running")
    wait("both", lambda: len(alive(f"sleep {marker}")) >= 2)
    with open(os.path.join(node.pod_dir(pod), "state.json"), encoding="utf-8") as f:
        os.kill(json.load(f)["pid"], signal.SIGKILL)
    pod = phase(ns, "Failed")
    assert pod["status"]["reason"] == "NodeLost" and ended(pod)["reason"] == "ContainerStatusUnknown", pod["status"]
    wait("the end of its processes", lambda: not alive(f"sleep {marker}"))


@in_namespace
def orphans_of_deleted_pods_end_when_the_node_comes_back(node, ns):
    marker = "31539" + str(secrets.randbelow(10**6))
    pod = run(node, ns, container(f"sleep {marker}"))
    phase(ns, "Running")
    node.kill()
    api.delete(f"/api/v1/namespaces/{ns}/pods/p", {"gracePeriodSeconds": 0})
    assert get(ns) is None and alive(f"sleep {marker}")
    node.start()
    wait("the end of the orphan", lambda: not alive(f"sleep {marker}"))
    wait("its directory", lambda: not os.path.exists(node.pod_dir(pod)))


@in_namespace
def logs_are_rotated(node, ns):
    run(node, ns, container("yes 0123456789012345678901234567890123456789 | head -c 12000000; printf '\\nend'"))
    pod = phase(ns, "Succeeded")
    files = sorted(os.listdir(os.path.join(node.pod_dir(pod), "log", "main")))
    assert files == ["0.log", "0.log.1", "0.log.2"], files
    sizes = [os.path.getsize(os.path.join(node.pod_dir(pod), "log", "main", f)) for f in files]
    assert all(s <= 10 << 20 for s in sizes), sizes
    assert node.log(pod)[-1] == "end"


def memory_cgroups():
    """Where they are: of version 2 all of them, if memory is among them, else version 1's of memory."""
    with contextlib.suppress(FileNotFoundError), open("/sys/fs/cgroup/cgroup.controllers", encoding="ascii") as f:
        if "memory" in f.read().split():
            return "/sys/fs/cgroup"
    return "/sys/fs/cgroup/memory"


@in_namespace
def memory_beyond_the_limit_is_oom_killed(node, ns):
    group = os.path.join(memory_cgroups(), "sonde-test")
    try:
        os.mkdir(group)
        os.rmdir(group)
    except OSError as e:
        raise AssertionError(f"no memory cgroup can be made here ({e}); run as root, with the memory controller of cgroups v1 at "
                             "/sys/fs/cgroup/memory, or of v2 at /sys/fs/cgroup") from None
    run(node, ns, container("exec python3 -c 'x = bytearray(300 << 20)'", resources={"limits": {"memory": "64Mi"}}))
    pod = phase(ns, "Failed")
    assert (ended(pod)["exitCode"], ended(pod)["reason"]) == (137, "OOMKilled"), pod["status"]


@in_namespace
def what_it_passes_over_is_told(node, ns):
    probe = {"exec": {"command": ["false"]}}
    anti = [{"labelSelector": {}, "topologyKey": "kubernetes.io/hostname"}]
    run(node, ns, container("exit 0", livenessProbe=probe, startupProbe=probe, readinessProbe=probe, lifecycle={"preStop": probe}),
        container("exit 0", "other"), affinity={"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": anti}})
    run(node, ns, container("exit 0"), name="plain")
    phase(ns, "Succeeded")
    phase(ns, "Succeeded", name="plain")
    told = wait("the event", lambda: [e for e in api.get(f"/api/v1/namespaces/{ns}/events")[1]["items"] if e["reason"] == "FieldsIgnored"])
    assert [(e["type"], e["involvedObject"]["name"]) for e in told] == [("Warning", "p")], told
    assert told[0]["message"].endswith(
        "passed over: spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution, spec.containers{main}.livenessProbe, "
        "spec.containers{main}.readinessProbe, spec.containers{main}.startupProbe, spec.containers{main}.lifecycle"), told


@in_namespace
def the_known_image_has_its_program(node, ns):
    run(node, ns, {"name": "main", "image": "sonde-pod:test", "args": ["/etc/hostname"]})
    pod = phase(ns, "Succeeded", "Failed")
    assert node.log(pod) == open("/etc/hostname", encoding="utf-8").read().splitlines(), (node.log(pod), pod["status"])
    assert not os.path.exists("/sonde-pod")


@in_namespace
def a_job_of_the_real_controller_completes(node, ns):
    job = {"metadata": {"name": "j"}, "spec": {"completions": 3, "parallelism": 2, "template": {"spec": {
        "nodeName": node.name, "restartPolicy": "Never", "automountServiceAccountToken": False, "containers": [container("exit 0")]}}}}
    assert api.post(f"/apis/batch/v1/namespaces/{ns}/jobs", job)[0] == 201
    done = wait("the Job", lambda: (lambda j: j if j["status"].get("conditions") else None)(api.get(f"/apis/batch/v1/namespaces/{ns}/jobs/j")[1]))
    assert done["status"]["succeeded"] == 3 and done["status"]["conditions"][0]["type"] == "Complete", done["status"]


@in_namespace
def a_node_that_is_stopped_ends_its_pods(node, ns):
    marker = "31540" + str(secrets.randbelow(10**6))
    run(node, ns, container(f"sleep {marker}"), terminationGracePeriodSeconds=30)
    phase(ns, "Running")
    node.process.signal(signal.SIGTERM)
    assert node.process.wait(PATIENCE) == 0
    assert not alive(f"sleep {marker}")
    pod = get(ns)
    assert pod["status"]["phase"] == "Failed" and ended(pod)["exitCode"] == 143, pod["status"]
    node.start()


def somebody_who_is_not_root_runs_pods_too():
    if os.geteuid() != 0:
        return  # then all of the above was this
    made, ns = namespace()
    marker = "31541" + str(secrets.randbelow(10**6))
    try:
        with Node(user=65534) as node:
            share = {"volumeMounts": [{"name": "v", "mountPath": "/etc/sonde-test/deep"}]}
            run(node, ns, container(f"setsid sleep {marker} & cat /etc/sonde-test/deep/f; id -u; echo why > /dev/termination-log", **share),
                inits=[container("echo made > /etc/sonde-test/deep/f", "one", **share)], volumes=[{"name": "v", "emptyDir": {}}])
            pod = phase(ns, "Succeeded", "Failed")
            assert node.log(pod) == ["made", "65534"], (node.log(pod), pod["status"])
            assert ended(pod)["message"] == "why\n", pod["status"]
            assert not alive(f"sleep {marker}") and not os.path.exists("/etc/sonde-test")
    finally:
        made.__exit__(None, None, None)


somebody_who_is_not_root_runs_pods_too.is_test = True


def where_mounts_are_forbidden_that_is_said_with_the_remedy():
    root = os.geteuid() == 0
    for user in (None, 65534) if root else (None,):
        may_root = root and not user
        prefix = NO_MOUNTS[may_root]
        remedy = "CAP_SYS_ADMIN" if may_root else "sysctl -w kernel.unprivileged_userns_clone=1 user.max_user_namespaces="
        what = "this machine does not let the node make mount namespaces, which pods with volumes need"
        made, ns = namespace()
        try:
            with Node(user, prefix) as node:
                said = "\n".join(node.process.lines)
                assert "Pods with volumes cannot run" in said and what in said and remedy in said, said
                run(node, ns, container("echo never", volumeMounts=[{"name": "v", "mountPath": "/v"}]), volumes=[{"name": "v", "emptyDir": {}}])
                status = phase(ns, "Succeeded", "Failed")["status"]
                assert status["reason"] == "MountsForbidden" and what in status["message"] and remedy in status["message"], status
                events = wait("its event", lambda: [e for e in api.get(f"/api/v1/namespaces/{ns}/events")[1]["items"]
                                                    if e["reason"] == "MountsForbidden"])
                assert events[0]["type"] == "Warning" and remedy in events[0]["message"], events
                run(node, ns, container("echo ran"), name="bare")
                assert node.log(phase(ns, "Succeeded", "Failed", name="bare")) == ["ran"], "a pod that needs no mounts"
                up_says(user, prefix, what, remedy)
        finally:
            made.__exit__(None, None, None)


def up_says(user, prefix, *words):
    """`sonde up` has a note at its start."""
    home = tempfile.mkdtemp(prefix="sonde-up-", dir="/tmp" if user else None)
    try:
        if user:
            os.chown(home, user, user)
        with Process(*as_user(user), *prefix, program("sonde"), "up", "--dir", home, "--listen", "127.0.0.1:0", "--no-fsync") as up:
            note = up.expect(r"^ +note: (this machine does not let .*)", PATIENCE)[1]
            assert all(w in note for w in words), note
    finally:
        shutil.rmtree(home, ignore_errors=True)


where_mounts_are_forbidden_that_is_said_with_the_remedy.is_test = True


if __name__ == "__main__":
    with Engine("--no-node", "--no-fsync") as cluster:
        api = cluster.api()
        tests = [t for t in list(globals().values()) if getattr(t, "is_test", False)]
        only = sys.argv[1:]
        main(*[t for t in tests if not only or t.__name__ in only])
