"""omissions - what the embedded engine leaves out on purpose. Nothing else is taken out of a comparison.

Each entry says what is left out and why, and how it is taken out of both sides' answers. ARCHITECTURE.md shows the same
list ("What the embedded engine leaves out"); `conformance.py --omissions` prints it as that table.
"""

import re

TOKEN = re.compile(r"^[a-z0-9-]+-token-[a-z0-9]{5}$")

# Words of Go's libraries: what comes after them is left out; the sentence before them, code and reason are compared.
GO_WORDS = [
    re.compile(r"((?:pod updates may not change fields other than|field is immutable)[^\n]*)\n.*", re.S),
    re.compile(r"(patch: Invalid value):? .*", re.S),
    re.compile(r"^(Invalid value): \"(?:\{\\?\"|\[).*", re.S),
    re.compile(r"(cannot be handled as an? \w+): .*", re.S),
    re.compile(r"(json parse error): .*", re.S),
    re.compile(r"(error decoding YAML): .*", re.S),
    re.compile(r"(must be a valid regular expression, but isn't): .*", re.S),
    re.compile(r"(continue key is not valid): .*", re.S),
    re.compile(r"^(failed to) (?:merge config: expected objects of the same type|create typed patch object: no corresponding).*", re.S),
    re.compile(r"^()(?:unexpected EOF|invalid JSON at .*)$", re.S),
]
GO_DUMP = re.compile(r"(?:\[\])?(?:apiextensions|core|resource)\.\w+\{.*?\}(?=: [a-z])|\[\]string\{.*?\}(?=: must have)", re.S)

# The resources that the engine serves; discovery and kubectl api-resources show no others.
SERVED = {
    "v1": "configmaps events namespaces nodes persistentvolumeclaims pods resourcequotas secrets serviceaccounts services".split(),
    "batch/v1": ["jobs"],
    "coordination.k8s.io/v1": ["leases"],
    "rbac.authorization.k8s.io/v1": "clusterrolebindings clusterroles rolebindings roles".split(),
    "authorization.k8s.io/v1": ["selfsubjectaccessreviews", "selfsubjectrulesreviews", "subjectaccessreviews"],
    "apiextensions.k8s.io/v1": ["customresourcedefinitions"],
}
SUBRESOURCES = {"", "status", "log", "finalize", "binding", "token"}

TABLE = [
    ("token Secrets of service accounts, and their volumes in pods",
     "1.20 makes a Secret for every ServiceAccount and mounts it; tokens that never expire are gone from Kubernetes since"
     " 1.24, and the engine has one user with one token"),
    ("the ConfigMap kube-root-ca.crt in every namespace", "it would say the same everywhere: the node gives it to a pod that mounts it"),
    ("resources beyond those that `sonde` uses (Deployments, volumes, webhooks, ...)",
     "404 as for any resource that does not exist"),
    ("old versions of served resources (`v1beta1`), preferred versions of groups that have several", "the stable one is served"),
    ("subresources `exec`, `attach`, `portforward`, `proxy`, `eviction`, `scale`, `approval`", "404"),
    ("the words of Go's libraries inside messages: a dump of a value, a decoder's or a regular expression's complaint",
     "they tell the insides of the real server and change from one answer to the next; code, reason, field and the sentence"
     " before them are equal"),
    ("descriptions of the built-in types' fields and printed columns", "they are written anew, and shorter"),
    ("the order of a schema's complaints", "the real server has none: it goes through Go's maps"),
    ("the index of a list's element in the path of a schema's complaint is there (`spec.tags[0]`)",
     "as servers since 1.24 say it; 1.20 says `spec.tags`"),
    ("the list of all paths in the answer to a path that is nothing", "404 alone"),
    ("conversion webhooks of CustomResourceDefinitions", "422: there is nobody to call"),
    ("scopes of resource quotas", "422: what a quota counts by scope is nothing that one machine needs"),
    ("probes and lifecycle hooks of containers, required affinity to other pods, spreading",
     "stored, and passed over by the node (a container that runs is ready), which names them in a Warning event `FieldsIgnored` of"
     " the pod"),
    ("`+sonde` in the server's version", "so that nobody takes it for a cluster; the numbers before it are equal"),
    ("answers in YAML", "406: JSON is what every client asks for; bodies may be YAML"),
    ("protobuf bodies",
     "answers are JSON, which every client accepts; a request body in protobuf (`kubectl create configmap` and the like of"
     " kubectl 1.32 and later) is 415 with what to do instead"),
    ("watches that begin with what is there (`sendInitialEvents`)",
     "1.20 does not know the option and passes over it; the engine does as servers with WatchList do (since 1.27), in its events"
     " and its refusals, which `test/local/watch-list.py` checks against what those servers' validation and watch cache say"),
]


def _is_machinery(item):
    """An object that only the control plane's own machinery makes."""
    if not isinstance(item, dict):
        return False
    item = item.get("object", item) if "cells" in item or "type" in item else item
    name = (item.get("metadata") or {}).get("name", "") if isinstance(item, dict) else ""
    return name == "kube-root-ca.crt" or bool(TOKEN.match(name))


def is_machinery_event(event):
    """A watch event about such an object."""
    return _is_machinery(event)


def _without_token_volumes(spec):
    for key in ("volumes",):
        if isinstance(spec.get(key), list):
            spec[key] = [v for v in spec[key] if not TOKEN.match(v.get("name", ""))]
            if not spec[key]:
                del spec[key]
    for key in ("containers", "initContainers"):
        for container in spec.get(key) or []:
            mounts = container.get("volumeMounts") if isinstance(container, dict) else None
            if isinstance(mounts, list):
                container["volumeMounts"] = [m for m in mounts if not TOKEN.match(m.get("name", ""))]
                if not container["volumeMounts"]:
                    del container["volumeMounts"]


OUR_COLUMNS = ("Custom resource definition column", "How big it is.")
INDEX = re.compile(r"(?<=\w)\[\d+\](?=[.: ]|$)")


def _without_indexes(status):
    status["message"] = INDEX.sub("", status.get("message", ""))
    for cause in status["details"].get("causes") or []:
        cause["field"] = INDEX.sub("", cause.get("field", ""))
        cause["message"] = INDEX.sub("", cause.get("message", ""))


def take_out(value):
    """VALUE, a decoded answer, without what the engine leaves out."""
    if isinstance(value, list):
        return [take_out(item) for item in value if not _is_machinery(item)]
    if isinstance(value, str):
        for pattern in GO_WORDS:
            value = pattern.sub(r"\1", value)
        return GO_DUMP.sub("(...)", value)
    if not isinstance(value, dict):
        return value
    if value.keys() >= {"name", "type", "format", "priority", "description"}:  # a printed column
        if not value["description"].startswith(OUR_COLUMNS):
            del value["description"]
    if value.get("kind") == "Status" and "conformance.test" in (value.get("details") or {}).get("group", ""):
        _without_indexes(value)
    if "containers" in value:
        _without_token_volumes(value)
    if value.get("kind") == "ServiceAccount" or ("secrets" in value and "metadata" in value):
        value.pop("secrets", None)
    return {key: take_out(child) for key, child in value.items()}


def served_groups(answer):
    """/apis with the groups of both sides only; a group's versions are those served."""
    groups = []
    for group in answer.get("groups", []):
        versions = [v for v in group["versions"] if v["groupVersion"] in SERVED]
        if versions:
            groups.append({**group, "versions": versions, "preferredVersion": versions[0]})
    return {**answer, "groups": sorted(groups, key=lambda g: g["name"])}


def served_resources(answer):
    """/apis/GROUP/VERSION with the resources and subresources of both sides only."""
    names = SERVED.get(answer.get("groupVersion"))
    if names is None:
        return answer
    kept = [r for r in answer.get("resources", [])
            if r["name"].split("/")[0] in names and r["name"].partition("/")[2] in SUBRESOURCES]
    return {**answer, "resources": sorted(kept, key=lambda r: r["name"])}


def table():
    rows = ["| left out | why, and what the answer is |", "|---|---|"]
    return "\n".join(rows + [f"| {what} | {why} |" for what, why in TABLE])
