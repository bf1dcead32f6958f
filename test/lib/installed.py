"""What is in deploy/ on a real control plane, and its operator, started here as its Deployment says and with its account."""

import contextlib
import datetime
import math
import os
import tempfile
import urllib.error
import urllib.request

import yaml

from accounts import kubeconfig_of
from sonde_test import ROOT, Process, diag, program

PATIENCE = 120
HOME = "sonde-system"
OPERATOR = f"system:serviceaccount:{HOME}:sonde-operator"
MOMENT = 30  # seconds; a busy server's
ANSWERED = "stageTimestamp"  # of an audit event
SERVES = r'"msg":"Serving the API and the page".*"port":(\d+)'  # in its log


def read(path):
    """The objects of a file in the repository."""
    with open(os.path.join(ROOT, path), encoding="utf-8") as f:
        return [o for o in yaml.safe_load_all(f) if o]


def one(objects, kind, name):
    return next(o for o in objects if o["kind"] == kind and o["metadata"]["name"] == name)


def containers(deployment):
    return deployment["spec"]["template"]["spec"]["containers"]


def answers(port, what):
    """What 127.0.0.1:PORT/WHAT says; None unless it is 200."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/{what}", timeout=60) as answer:
            return answer.read().decode() if answer.status == 200 else None
    except urllib.error.HTTPError:
        return None


def arguments(deployment, folder):
    """Of its container, with places of this machine for those of the pod."""
    places = {"--history": os.path.join(folder, "history.db"), "--listen": "127.0.0.1:0", "--history-password-file": None}
    given = [word.partition("=") for word in containers(deployment)[0]["args"]]
    here = [(name, equals, places.get(name, value)) for name, equals, value in given]
    return ["".join(word) for word in here if word[2] is not None] + ["--health-probe-bind-address=127.0.0.1:0"]


class Operator:
    """`sonde operator` of the Deployment in PATH; its history outlives restarts."""

    def __init__(self, cluster, path, home=HOME):
        self._cluster, self._home = cluster, home
        self.deployment = one(read(path), "Deployment", "sonde-operator")
        self._stack = contextlib.ExitStack()

    def __enter__(self):
        with self._stack:
            self._folder = self._stack.enter_context(tempfile.TemporaryDirectory(prefix="sonde-installed-"))
            self._kubeconfig = self._stack.enter_context(kubeconfig_of(self._cluster, self._home, "sonde-operator"))
            self.start()
            self._stack = self._stack.pop_all()
        return self

    def start(self):
        words = arguments(self.deployment, self._folder)
        self.process = Process(program("sonde"), *words, "--kubeconfig", self._kubeconfig)
        self.process.expect("Became the leader", PATIENCE)

    def stop(self):
        self.process.stop(PATIENCE)

    def restart(self):
        self.stop()
        self.start()

    def __exit__(self, kind, *_):
        if self.process.popen.poll() is None:
            self.stop()
        if kind not in (None, SystemExit):
            diag("the operator:\n" + "\n".join(self.process.lines[-40:]))
        self._stack.close()


# --- grants ----------------------------------------------------------------------------------------------------------------


def granted(rules):
    """{(group, resource, verb)} of a list of rules."""
    return {(g, r, v) for rule in rules for g in rule["apiGroups"] for r in rule["resources"] for v in rule["verbs"]}


def finalizers(objects):
    """{(group, resource/finalizers, "update")} of all owners whose deletion waits for one of OBJECTS, whose maker needs it."""
    owners = [owner for item in objects for owner in item["metadata"].get("ownerReferences", []) if owner.get("blockOwnerDeletion")]
    return {(o["apiVersion"].partition("/")[0], o["kind"].lower() + "s/finalizers", "update") for o in owners}


def at(event, which="requestReceivedTimestamp"):
    """When it was asked, in seconds; or ANSWERED."""
    return datetime.datetime.fromisoformat(event[which].replace("Z", "+00:00")).timestamp()


class Audit:
    """What accounts have asked the API server, by its log."""

    def __init__(self, cluster, *users):
        everything = cluster.audit()
        self._events = [e for e in everything if e["user"].get("username") in (users or (OPERATOR,))]
        self._limited, self._going = {}, {}
        for event in everything:
            self._note(event)

    def __len__(self):
        return len(self._events)

    def of(self, verb, **ref):
        """Those of a verb, with their objectRef's members as REF."""
        return [e for e in self._events if e["verb"] == verb and ref.items() <= e.get("objectRef", {}).items()]

    def made_accounts(self):
        """The accounts that were made by these."""
        made = [e["objectRef"] for e in self.of("create", resource="serviceaccounts")]
        return {f"system:serviceaccount:{ref['namespace']}:{ref['name']}" for ref in made if "name" in ref}

    @staticmethod
    def _what(event):
        ref = event["objectRef"]
        return ref.get("apiGroup", ""), ref["resource"] + ("/" + ref["subresource"] if "subresource" in ref else ""), event["verb"]

    def _decided(self, decision, after=0):
        return {self._what(e) for e in self._events[after:]
                if "objectRef" in e and e["annotations"].get("authorization.k8s.io/decision") == decision}

    def used(self):
        return self._decided("allow")

    def forbidden(self, after=0):
        """What was refused of all but the first AFTER: for want of a grant, or because a Role would give, or an owner be made to wait by, more
        than the account has. A Job that a quota refuses is none of these, nor is what is made in a namespace that goes: the log does not have
        the server's words, but when there was what."""
        return self._decided("forbid", after) | {self._what(e) for e in self._refused(after)}

    def why(self, after=0):
        """For who has to find out about forbidden(): when there was which request, and which quota."""
        return [(e["verb"], e["requestURI"], at(e), at(e, ANSWERED), self._limited.get(e["objectRef"].get("namespace")))
                for e in self._refused(after)[:5]]

    def _refused(self, after):
        return [e for e in self._events[after:]
                if e.get("responseStatus", {}).get("code") == 403 and "objectRef" in e and not self._is_excused(e)]

    def _is_excused(self, event):
        if event["verb"] != "create":
            return False
        ref, asked, answered = event["objectRef"], at(event), at(event, ANSWERED)  # a quota may be made between the two
        spans = self._limited.get(ref.get("namespace"), ()) if ref["resource"] == "jobs" else ()
        limited = any(since <= answered and asked <= until for since, until in spans)
        return limited or answered >= self._going.get(ref.get("namespace"), math.inf)

    def _note(self, event):
        """When a namespace got or lost a quota, or began to go. What is told to the server's caches takes a moment."""
        ref = event.get("objectRef", {})
        spans = self._limited.setdefault(ref.get("namespace"), [])
        if ref.get("resource") == "namespaces" and event["verb"] == "delete":
            self._going.setdefault(ref["name"], at(event))
        elif ref.get("resource") == "resourcequotas" and event["verb"] == "create":
            spans.append((at(event), math.inf))
        elif ref.get("resource") == "resourcequotas" and event["verb"] == "delete" and spans:
            spans[-1] = (spans[-1][0], at(event) + MOMENT)
