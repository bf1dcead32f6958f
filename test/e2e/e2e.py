#!/usr/bin/python3
"""Sonde on a real cluster, from one end to the other: the shipped images and manifests, a real node, and an audit log of all of it.

    e2e.py [NAME...]    these scenarios alone, and nothing of what is asked of all of them; needs root, for the node

The scenarios (pods.py, kinds.py) all begin at once, and share one operator, which is killed meanwhile. An installation with PostgreSQL
(postgres.py) begins with them, and has its runs when that operator is gone.
"""

import base64
import contextlib
import json
import os
import sqlite3
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
import kinds
import pods
import postgres
from e2e_site import PATIENCE, Site
from installed import HOME, Audit, finalizers, granted
from sonde_test import Begun, Process, diag, kubectl_path, main, wait


def said(message):
    """The lines of the operator's log that say MESSAGE."""
    return [entry for entry in site.log() if entry["msg"] == message]


def it_is_installed():
    """The operator that the chart makes starts in its pod, and leads"""
    site.install()
    wait(lambda: said("Became the leader"), PATIENCE, "the operator to lead")


def token_of(site, account):
    """As docs/install.md has it for clusters before 1.24; a controller makes it."""
    name = wait(lambda: site.kubectl("get", "serviceaccount", account, "-o", "jsonpath={.secrets[0].name}"), PATIENCE, "the account's token")
    return base64.b64decode(site.kubectl("get", "secret", name, "-o", "jsonpath={.data.token}")).decode()


def the_api_is_reached_from_outside(site):
    """By a forwarded port and curl, as docs/install.md says: an account with sonde-view is told of all runs, another one of none"""
    site.algorithms.create(site.namespace("team-a"), "first", {"algorithmName": "quick_sort", "inputSize": 1000})
    site.kubectl("create", "serviceaccount", "looker")
    site.kubectl("create", "clusterrolebinding", "looker", "--clusterrole", "sonde-view", "--serviceaccount", "default:looker")
    with Process(kubectl_path(), "--kubeconfig", site.server.kubeconfig, "port-forward", "--namespace", HOME, "service/dprofiler-api-service",
                 ":8000") as forward:
        port = forward.expect(r"Forwarding from 127\.0\.0\.1:(\d+)", PATIENCE)[1]

        def runs(account):
            done = subprocess.run(["curl", "-k", "-sS", "-H", f"Authorization: Bearer {token_of(site, account)}",
                                   f"https://127.0.0.1:{port}/api/v1/runs"], capture_output=True, text=True, timeout=PATIENCE, check=False)
            assert done.returncode == 0, done.stderr
            return [(run["namespace"], run["name"]) for run in json.loads(done.stdout)["items"]]
        wait(lambda: ("team-a", "first") in runs("looker"), PATIENCE, "the run to be told")
        assert runs("default") == []


def nothing_was_forbidden():
    """The operator was never refused anything for want of a grant"""
    audit = Audit(site.server)
    assert len(audit) and not audit.forbidden(), audit.forbidden()
    diag(f"{len(audit)} requests")


def no_grant_is_left_over():
    """Every verb that is granted to the operator was used, by itself or by a run that has it from there"""
    own = Audit(site.server)
    by_itself, by_runs = own.used(), Audit(site.server, *own.made_accounts()).used()
    waited_for = finalizers(item for kind in ("jobs", "algorithmprofilings", "algorithmcomparisons") for item in
                            json.loads(site.kubectl("get", kind, "-A", "-o", "json"))["items"])
    all_granted = granted(rule for role in site.manifests if role["kind"] in ("ClusterRole", "Role")
                          and role["metadata"]["name"].startswith("sonde-operator") for rule in role["rules"])
    handed_on = sorted(by_runs & all_granted - by_itself)
    diag(f"{len(all_granted)} verbs granted; for runs alone: " + ", ".join(" ".join(x) for x in handed_on))
    left = all_granted - by_itself - by_runs - waited_for
    assert all_granted and not left, "granted and never used:\n" + "\n".join(" ".join(x) for x in sorted(left))


def every_run_is_in_the_history():
    """Every run that has ended is in the history, on the volume that the operator's claim has got"""
    with contextlib.closing(sqlite3.connect(os.path.join(site.folder, "history/history.db"))) as db:
        rows = dict(db.execute("SELECT name, outcome FROM run ORDER BY attempt").fetchall())
    good = ("mine", "moved", "deleted", "paused", "long", "three", "model", "spread", "step", "llm", "own", "vectoradd")
    wanted = {**dict.fromkeys(good, "Succeeded"), "eater": "Failed", "writer": "Failed"}
    assert {name: rows.get(name) for name in wanted} == wanted, rows


def begin():
    """All scenarios begin"""
    begun.extend(Begun(test, site) for test in scenarios)


def ended(test):
    """The test that waits for the one that has begun."""
    def wait_for():
        next(b for b in begun if b.__name__ == test.__name__)()
    wait_for.__doc__, wait_for.__name__ = test.__doc__, test.__name__
    return wait_for


def alone(test):
    """The test of a scenario that has the cluster to itself."""
    def run():
        test(site)
    run.__doc__, run.__name__ = test.__doc__, test.__name__
    return run


def chosen(tests):
    return [test for test in tests if not words or test.__name__ in words]


words = sys.argv[1:]
scenarios = chosen((the_api_is_reached_from_outside, *pods.TESTS, *kinds.TESTS, *postgres.TESTS))
begun = []
with Site() as site:
    main(it_is_installed, begin, *map(ended, scenarios),
         *(() if words else (nothing_was_forbidden, no_grant_is_left_over, every_run_is_in_the_history)),
         *map(alone, chosen(postgres.LAST)))
