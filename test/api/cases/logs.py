"""What needs a node: pods that run, and their logs. Runs where both sides have one (conformance.py --node)."""

from suite.case import group, pod

logs = group("logs")

# Both nodes find it: the real one in the rig's image, the engine's on this machine.
SHELL = {"image": "localhost/busybox:1", "imagePullPolicy": "IfNotPresent"}


def shell(script, **more):
    return {"schedulerName": None, "restartPolicy": "Never", "terminationGracePeriodSeconds": 1,
            "containers": [{"name": "main", **SHELL, "command": ["sh", "-c", script]}], **more}


def phase(t, name, *wanted):
    t.until(lambda: t.quietly("GET", f"pods/{name}")[1].get("status", {}).get("phase") in wanted, f"{name} {wanted}", 300)


def ended(t, name, spec, then):
    t.quietly("POST", "pods", pod(name, spec))
    phase(t, name, "Succeeded", "Failed")
    then(t)


def state(value):
    """How the containers ended."""
    return [value["status"]["phase"], [[c["name"], c["restartCount"], c["state"].get("terminated", {}).get("exitCode"),
                                        c["state"].get("terminated", {}).get("reason"), c["state"].get("terminated", {}).get("message")]
                                       for c in value["status"].get("initContainerStatuses", []) + value["status"]["containerStatuses"]]]


def in_any_order(text):
    """kubectl takes containers as Go's maps have them; two streams of one container race."""
    return "\n".join(sorted(text.splitlines()))


def case(title, run):
    logs(title, run, own=True, kubectl=True)


case("the log of a pod that ended", lambda t: ended(t, "p", shell("echo one; echo two >&2; echo three"), lambda t: (
    t.kubectl("logs p", only=in_any_order), t.get("pods/p", only=state))))
case("its last lines and bytes", lambda t: ended(t, "p", shell("for i in 1 2 3 4 5; do echo line $i; done"), lambda t: (
    t.kubectl("logs p --tail=2"), t.kubectl("logs p --limit-bytes=10"), t.kubectl("logs p --tail=0"))))
case("with times", lambda t: ended(t, "p", shell("echo hello"), lambda t: t.kubectl("logs p --timestamps", only=lambda s: s.split(" ", 1)[1])))
case("followed to the end", lambda t: (t.quietly("POST", "pods", pod("p", shell("echo begin; sleep 1; echo end"))), phase(t, "p", "Running", "Succeeded"),
                                       t.kubectl("logs -f p")))
case("of one of two containers", lambda t: ended(t, "p", {**shell("echo a"), "containers": [
    {"name": n, **SHELL, "command": ["sh", "-c", f"echo i am {n}"]} for n in ("a", "b")]}, lambda t: (
        t.kubectl("logs p -c b"), t.kubectl("logs p"), t.kubectl("logs p --all-containers --prefix", only=in_any_order))))
case("of an init container", lambda t: ended(t, "p", {**shell("echo main"), "initContainers": [
    {"name": "first", **SHELL, "command": ["sh", "-c", "echo first"]}]}, lambda t: (t.kubectl("logs p -c first"), t.kubectl("logs p"))))
case("of a container that is not there", lambda t: ended(t, "p", shell("true"), lambda t: t.kubectl("logs p -c none")))
case("of a pod that is not there", lambda t: t.kubectl("logs none"))
case("an exit code and a message", lambda t: ended(t, "p", shell("echo why > /dev/termination-log; exit 3"), lambda t: t.get("pods/p", only=state)))
case("a job's log", lambda t: (t.kubectl("create job j --image=localhost/busybox:1 -- sh -c 'echo from a job'"), t.until(
    lambda: t.quietly("GET", "jobs/j")[1].get("status", {}).get("succeeded"), "its end", 300), t.kubectl(
        "wait --for=condition=complete job/j --timeout=60s"), t.kubectl("logs job/j")))


def placed(title, then, **spec):
    logs(title, lambda t: (t.quietly("POST", "pods", pod("p", shell("true", **spec))), then(t)))


def affinity(**term):
    return {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}}


def unschedulable(t):
    def told(pod_now):
        return [[c["type"], c["status"], c.get("reason"), c.get("message")] for c in pod_now["status"].get("conditions") or []]

    t.until(lambda: told(t.quietly("GET", "pods/p")[1]), "told")
    t.get("pods/p", only=lambda v: [v["status"]["phase"], told(v)])


def runs(t):
    phase(t, "p", "Succeeded", "Failed")
    t.get("pods/p", only=lambda v: v["status"]["phase"])


placed("a node selector that no node has", unschedulable, nodeSelector={"none": "such"})
placed("a required affinity that no node has", unschedulable, **affinity(matchExpressions=[{"key": "none", "operator": "In", "values": ["such"]}]))
placed("a required affinity to a node that there is not", unschedulable, **affinity(matchFields=[
    {"key": "metadata.name", "operator": "In", "values": ["no-such-node"]}]))
placed("a required affinity that holds", runs, **affinity(matchExpressions=[
    {"key": "kubernetes.io/os", "operator": "In", "values": ["linux"]}, {"key": "none", "operator": "DoesNotExist"}]))
placed("another scheduler's pod stays where it is", lambda t: (
    t.quietly("POST", "pods", pod("q", shell("true"))), phase(t, "q", "Succeeded", "Failed"),
    t.get("pods/p", only=lambda v: [v["spec"].get("nodeName"), v["status"]])), schedulerName="by-hand")
