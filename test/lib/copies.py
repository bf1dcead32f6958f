"""Runs made once more from a copy: request, Jobs, pods, ConfigMaps, WorkloadProfile, as they are left, without running anything.

    copy = copy_of(server, play)
    make(server.api(), ns, copy, "another")

The server's own managers are to be stopped meanwhile, or see no_pods(): they would make pods for a Job whose status is to come.
"""

import json

from dgdr_play import ok
from every_kind import TYPES

KEPT = [kind for kind in TYPES if kind not in ("events", "serviceaccounts", "roles", "rolebindings")]
SERVERS = ("uid", "resourceVersion", "creationTimestamp", "managedFields", "selfLink", "generation", "generateName")


def owners(item):
    return {o["uid"] for o in item["metadata"].get("ownerReferences", [])}


def copy_of(server, play):
    """All that there is of a run: the request first, then what it owns, and what that owns."""
    items = [(kind, item) for kind in KEPT for item in ok(server.api().get(f"{TYPES[kind]}/namespaces/{play.ns}/{kind}"))["items"]]
    found = [next((k, i) for k, i in items if i["metadata"]["uid"] == play.uid)]
    for _, parent in found:  # it grows
        found += [(k, i) for k, i in items if parent["metadata"]["uid"] in owners(i)]
    return {"name": play.name, "objects": [(kind, item["metadata"]["uid"], template(kind, item)) for kind, item in found]}


def template(kind, item):
    """As it can be made once more: without what the server adds."""
    item = json.loads(json.dumps(item))
    for member in SERVERS:
        item["metadata"].pop(member, None)
    if kind == "jobs":
        del item["spec"]["selector"], item["spec"]["template"]["metadata"]["labels"]["controller-uid"]
        item["metadata"].get("labels", {}).pop("controller-uid", None)
    if kind == "pods":  # its account has gone with the run's end
        item["spec"].update(serviceAccountName="default", serviceAccount="default", automountServiceAccountToken=False)
    return item


def no_pods(copy):
    """The same with Jobs for which nobody makes pods."""
    for kind, _, item in copy["objects"]:
        if kind == "jobs":
            item["spec"]["parallelism"] = 0
    return copy


def make(api, ns, copy, name):
    """A run like that one, called NAME: its objects, which know each other by their new uids, and their status."""
    uids = {copy["name"]: name}

    def renewed(item):
        text = json.dumps(item)
        for before, after in uids.items():
            text = text.replace(before, after)
        return json.loads(text)
    paths = []
    for kind, old, item in copy["objects"]:
        item = renewed(item)
        item["metadata"]["namespace"] = ns
        made = ok(api.post(f"{TYPES[kind]}/namespaces/{ns}/{kind}", item))
        uids[old] = made["metadata"]["uid"]
        paths.append(f"{TYPES[kind]}/namespaces/{ns}/{kind}/{made['metadata']['name']}")
        if kind == "jobs":  # before its pods: the managers leave one alone that has ended
            ok(api.patch(f"{paths[-1]}/status", {"status": item["status"]}))
    for path, (kind, _, item) in zip(paths, copy["objects"]):
        if "status" in item and kind != "jobs":
            ok(api.patch(f"{path}/status", {"status": renewed(item["status"])}))
        elif "data" in item and renewed(item["data"]) != item["data"]:
            ok(api.patch(path, {"data": renewed(item["data"])}))
