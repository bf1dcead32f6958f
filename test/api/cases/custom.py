"""CustomResourceDefinitions and the resources that they define."""

from suite.case import (JSON, MERGE, TABLE, apply, configmap, custom, definition, delete, get, group, patch, post, put)

PLURAL = "customresourcedefinitions"
crd = group("crd")


def bare(value):
    """A definition without what tells when its controllers have looked at it."""
    if value.get("kind") != "CustomResourceDefinition":
        return value
    for key in ("managedFields", "resourceVersion"):
        value["metadata"].pop(key, None)
    if "status" in value:
        value["status"]["conditions"] = sorted(value["status"].get("conditions") or [], key=lambda c: c["type"])
    return value


def established(t, plural):
    return t.wait(f"{PLURAL}/{plural}.$GROUP", lambda s, o: s == 200 and any(
        c["type"] == "Established" and c["status"] == "True" for c in o.get("status", {}).get("conditions") or []), "established", only=bare)


def served(t, plural):
    t.until(lambda: t.quietly("GET", f"/apis/$GROUP/v1/{plural}")[0] == 200, "served")


def made(t, body):
    t.post(PLURAL, body, only=bare)
    plural = body["spec"]["names"]["plural"]
    established(t, plural)
    served(t, plural)


def ended(t, plural):
    t.quietly("DELETE", f"{PLURAL}/{plural}.$GROUP")


def refused(title, **more):
    body = definition("things")
    body["spec"].update(more)
    crd(title, post(PLURAL, body), lambda t: ended(t, "things"))


def refused_schema(title, schema, **version):
    crd(title, post(PLURAL, definition("things", schema, version=version)), lambda t: ended(t, "things"))


OBJECT = {"type": "object"}
crd("made, established, served, deleted", lambda t: (
    made(t, definition("gizmos", {"type": "object", "properties": {"spec": {"type": "object"}}}, {"shortNames": ["gz"], "categories": ["all"]})),
    t.get("/apis/$GROUP/v1/namespaces/$NS/gizmos"), t.post("/apis/$GROUP/v1/namespaces/$NS/gizmos", custom("gizmos", "a", spec={})),
    t.delete(f"{PLURAL}/gizmos.$GROUP", only=lambda v: (v.get("metadata", {}).get("finalizers"), v.get("kind"))),
    t.gone(f"{PLURAL}/gizmos.$GROUP"), t.until(lambda: t.quietly("GET", "/apis/$GROUP/v1/namespaces/$NS/gizmos")[0] == 404, "gone")))
crd("cluster-scoped", lambda t: (made(t, definition("globes", scope="Cluster")), t.post("/apis/$GROUP/v1/globes", custom("globes", "a")),
                                 t.get("/apis/$GROUP/v1/globes/a"), t.get("/apis/$GROUP/v1/namespaces/$NS/globes"), ended(t, "globes")))
crd("two versions, one stored", lambda t: (
    made(t, definition("pairs", versions=[
        {"name": v, "served": True, "storage": v == "v1", "schema": {"openAPIV3Schema": {**OBJECT, "x-kubernetes-preserve-unknown-fields": True}}}
        for v in ("v1", "v2alpha1")])), t.post("/apis/$GROUP/v1/namespaces/$NS/pairs", custom("pairs", "a", spec={"x": 1})),
    t.until(lambda: t.quietly("GET", "/apis/$GROUP/v2alpha1/pairs")[0] == 200, "served"),
    t.get("/apis/$GROUP/v2alpha1/namespaces/$NS/pairs/a"), t.get("/apis/$GROUP/v2alpha1/namespaces/$NS/pairs"), ended(t, "pairs")))
crd("a version that is not served", lambda t: (
    made(t, definition("halves", versions=[
        {"name": v, "served": v == "v1", "storage": v == "v1", "schema": {"openAPIV3Schema": OBJECT}} for v in ("v1", "v2")])),
    t.get("/apis/$GROUP/v2/namespaces/$NS/halves"), ended(t, "halves")))
crd("names that another has", lambda t: (
    t.post(PLURAL, definition("others", names={"kind": "Widget", "listKind": "WidgetList", "shortNames": ["wd"]}), only=bare),
    t.wait(f"{PLURAL}/others.$GROUP", lambda s, o: any(c["type"] == "NamesAccepted" for c in o.get("status", {}).get("conditions") or []),
           "looked at", only=bare), ended(t, "others")))


def looked_at(t, plural, accepted, only=bare):
    """Waits until the definition's names were judged so, and records it."""
    return t.wait(f"{PLURAL}/{plural}.$GROUP", lambda s, o: s == 200 and any(
        c["type"] == "NamesAccepted" and c["status"] == accepted for c in o.get("status", {}).get("conditions") or []), f"names {accepted}", only=only)


crd("names that another left", lambda t: (
    made(t, definition("firsts", names={"kind": "Claimed", "shortNames": ["clm"]})),
    t.post(PLURAL, definition("seconds", names={"kind": "Claimed", "shortNames": ["scd", "clm"]}), only=bare), looked_at(t, "seconds", "False"),
    t.gone("/apis/$GROUP/v1/seconds"), ended(t, "firsts"), t.gone(f"{PLURAL}/firsts.$GROUP"),
    established(t, "seconds"), served(t, "seconds"), ended(t, "seconds")))
crd("names that were in conflict and are changed", lambda t: (
    made(t, definition("thirds", names={"kind": "Third", "shortNames": ["trd"]})),
    t.post(PLURAL, definition("fourths", names={"kind": "Third", "listKind": "FourthList", "singular": "fourth", "shortNames": ["trd", "thirds"]}), only=bare),
    looked_at(t, "fourths", "False"),
    t.patch(f"{PLURAL}/fourths.$GROUP", {"spec": {"names": {"kind": "Fourth", "shortNames": ["frt"]}}}, only=lambda v: v["spec"]["names"]),
    established(t, "fourths"), served(t, "fourths"), ended(t, "fourths"), ended(t, "thirds")))
crd("names of an established one that come into conflict, and are given up by another", lambda t: (
    made(t, definition("fifths", names={"shortNames": ["ff"]})), made(t, definition("sixths", names={"shortNames": ["sx"]})),
    t.patch(f"{PLURAL}/sixths.$GROUP", {"spec": {"names": {"shortNames": ["ff"], "singular": "six"}}}, only=lambda v: v["spec"]["names"]),
    looked_at(t, "sixths", "False"),
    t.patch(f"{PLURAL}/fifths.$GROUP", {"spec": {"names": {"shortNames": None}}}, only=lambda v: v["spec"]["names"]),
    looked_at(t, "sixths", "True"), t.get(f"{PLURAL}/fifths.$GROUP", only=bare), ended(t, "fifths"), ended(t, "sixths")))
crd("an update of its columns", lambda t: (
    made(t, definition("knobs")), t.patch(f"{PLURAL}/knobs.$GROUP", [{"op": "add", "path": "/spec/versions/0/additionalPrinterColumns", "value": [
        {"name": "X", "type": "string", "jsonPath": ".spec.x"}]}], JSON, only=bare), ended(t, "knobs")))
crd("scope cannot change", lambda t: (made(t, definition("levers")), t.patch(f"{PLURAL}/levers.$GROUP", {"spec": {"scope": "Cluster"}}), ended(t, "levers")))
crd("a new schema is used", lambda t: (
    made(t, definition("dials", {**OBJECT, "properties": {"spec": {**OBJECT, "properties": {"a": {"type": "integer"}}}}})),
    t.patch(f"{PLURAL}/dials.$GROUP", [{"op": "replace", "path": "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/a/type",
                                        "value": "string"}], JSON, only=bare),
    t.until(lambda: t.quietly("POST", "/apis/$GROUP/v1/namespaces/$NS/dials", custom("dials", "a", spec={"a": "x"}))[0] in (201, 409), "taken"),
    t.post("/apis/$GROUP/v1/namespaces/$NS/dials", custom("dials", "b", spec={"a": 1})), ended(t, "dials")))
crd("as a table", lambda t: t.get(f"{PLURAL}/widgets.$GROUP", accept=TABLE, only=lambda v: (v["columnDefinitions"], v["rows"][0]["cells"])))
crd("what is there", lambda t: t.get(f"{PLURAL}/widgets.$GROUP", only=bare))
crd("status cannot be set on create", lambda t: (t.post(PLURAL + "?dryRun=All", {**definition("stats"), "status": {"acceptedNames": {"plural": "x", "kind": "y"}}},
                                                        only=bare)))
refused("a name that is not plural.group", names={"plural": "other", "kind": "Thing"})
refused("a group that is no domain", group="nodots")
refused("a scope that does not exist", scope="World")
refused("no versions", versions=[])
refused("no kind", names={"plural": "things", "kind": ""})
refused("no names", names={})
refused("a kind that is no name", names={"plural": "things", "kind": "Thing_"})
refused("short names that are not valid", names={"plural": "things", "kind": "Thing", "shortNames": ["A B"]})
refused("two stored versions", versions=[{"name": v, "served": True, "storage": True, "schema": {"openAPIV3Schema": OBJECT}} for v in ("v1", "v2")])
refused("no stored version", versions=[{"name": "v1", "served": True, "storage": False, "schema": {"openAPIV3Schema": OBJECT}}])
refused("a version's name", versions=[{"name": "V1", "served": True, "storage": True, "schema": {"openAPIV3Schema": OBJECT}}])
refused("the same version twice", versions=[{"name": "v1", "served": True, "storage": s, "schema": {"openAPIV3Schema": OBJECT}} for s in (True, False)])
refused("no schema", versions=[{"name": "v1", "served": True, "storage": True}])
refused("preserveUnknownFields", preserveUnknownFields=True)
refused("a conversion that does not exist", conversion={"strategy": "Magic"})
refused_schema("a schema without a type", {"properties": {"spec": {"properties": {"a": {}}}}})
refused_schema("a schema whose root is no object", {"type": "string"})
refused_schema("a type that does not exist", {**OBJECT, "properties": {"a": {"type": "text"}}})
refused_schema("an array without items", {**OBJECT, "properties": {"a": {"type": "array"}}})
refused_schema("properties and additionalProperties", {**OBJECT, "properties": {"a": {
    **OBJECT, "properties": {"b": {"type": "string"}}, "additionalProperties": {"type": "string"}}}})
refused_schema("additionalProperties false", {**OBJECT, "additionalProperties": False})
refused_schema("uniqueItems", {**OBJECT, "properties": {"a": {"type": "array", "items": {"type": "string"}, "uniqueItems": True}}})
refused_schema("$ref", {**OBJECT, "properties": {"a": {"$ref": "#/x"}}})
refused_schema("a pattern that is broken", {**OBJECT, "properties": {"a": {"type": "string", "pattern": "("}}})
refused_schema("a default that is not valid", {**OBJECT, "properties": {"a": {"type": "integer", "default": "x"}}})
refused_schema("a default that would be pruned", {**OBJECT, "properties": {"a": {**OBJECT, "default": {"b": 1}}}})
refused_schema("a type inside of anyOf", {**OBJECT, "properties": {"a": {"type": "string", "anyOf": [{"type": "string"}]}}})
refused_schema("a list map without keys", {**OBJECT, "properties": {"a": {"type": "array", "x-kubernetes-list-type": "map", "items": OBJECT}}})
refused_schema("a list type that does not exist", {**OBJECT, "properties": {"a": {
    "type": "array", "x-kubernetes-list-type": "bag", "items": {"type": "string"}}}})
refused_schema("metadata with more than name", {**OBJECT, "properties": {"metadata": {**OBJECT, "properties": {"labels": OBJECT}}}})
refused_schema("a column without a path", OBJECT, additionalPrinterColumns=[{"name": "x", "type": "string"}])
refused_schema("a column of a type that does not exist", OBJECT, additionalPrinterColumns=[{"name": "x", "type": "text", "jsonPath": ".a"}])
refused_schema("a column with a broken path", OBJECT, additionalPrinterColumns=[{"name": "x", "type": "string", "jsonPath": ".a["}])

check = group("cr-validate")


def widget(spec, name="a", **more):
    return custom("widgets", name, spec=spec, **more)


for title, spec in (
        ("all is well", {"size": 5, "color": "blue", "name": "abc", "ratio": 1.5, "when": "2020-01-01T00:00:00Z", "flag": True, "note": None,
                         "port": "http", "tags": ["a", "b"], "parts": [{"id": "x"}], "limits": {"a": 1}, "choice": {"a": "x"}}),
        ("a missing field", {}), ("too small", {"size": 0}), ("too large", {"size": 101}), ("a text for a number", {"size": "5"}),
        ("a fraction for an integer", {"size": 1.5}), ("an integer written as a fraction", {"size": 2.0}), ("null for a number", {"size": None}),
        ("not in the enumeration", {"size": 1, "color": "pink"}), ("too short", {"size": 1, "name": "a"}),
        ("too long", {"size": 1, "name": "abcdefghi"}), ("not the pattern", {"size": 1, "name": "ABC"}),
        ("not more than the exclusive minimum", {"size": 1, "ratio": 0}), ("no multiple", {"size": 1, "step": 0.7}),
        ("no time", {"size": 1, "when": "yesterday"}), ("no boolean", {"size": 1, "flag": "true"}),
        ("an integer or a text: integer", {"size": 1, "port": 80}), ("an integer or a text: boolean", {"size": 1, "port": True}),
        ("too many elements", {"size": 1, "tags": ["a", "b", "c", "d"]}), ("a set with the same twice", {"size": 1, "tags": ["a", "a"]}),
        ("no list", {"size": 1, "tags": "a"}), ("an element of a wrong type", {"size": 1, "tags": [1]}),
        ("an element without its key", {"size": 1, "parts": [{"count": 1}]}), ("two elements of one key", {"size": 1, "parts": [{"id": "a"}, {"id": "a"}]}),
        ("a wrong value in a map", {"size": 1, "limits": {"a": "x"}}), ("too many members", {"size": 1, "limits": {"a": 1, "b": 2, "c": 3}}),
        ("none of oneOf", {"size": 1, "choice": {}}), ("both of oneOf", {"size": 1, "choice": {"a": "1", "b": "2"}}),
        ("no object", {"size": 1, "nested": "x"}), ("several mistakes", {"size": 0, "color": "x", "name": "A"}),
        ("a wrong value deep in what is free", {"size": 1, "free": {"known": "x"}})):
    check(title, post("widgets", widget(spec)))
check("no spec", post("widgets", custom("widgets", "a")))
check("spec is no object", post("widgets", custom("widgets", "a", spec=[])))
check("an update is checked", post("widgets", widget({"size": 1})), patch("widgets/a", {"spec": {"size": 1000}}), patch(
    "widgets/a", [{"op": "remove", "path": "/spec/size"}], JSON))
check("a name that is not valid", post("widgets", widget({"size": 1}, "Bad_Name")))
check("another kind", post("widgets", {**widget({"size": 1}), "kind": "Plain"}))
check("another version", post("widgets", {**widget({"size": 1}), "apiVersion": "$GROUP/v9"}))
check("no kind", post("widgets", {"metadata": {"name": "a"}, "spec": {"size": 1}}))
check("metadata of a wrong type", post("widgets", {**widget({"size": 1}), "metadata": {"name": "a", "labels": {"a": 1}}}))

default = group("cr-default")
default("what is missing is filled in", post("widgets", widget({"size": 1})), get("widgets/a"))
default("what is given stays", post("widgets", widget({"size": 1, "color": "green", "nested": {"depth": 9}})))
default("in elements of lists", post("widgets", widget({"size": 1, "parts": [{"id": "a"}, {"id": "b", "count": 5}]})))
default("null is replaced where it is not allowed", post("widgets", widget({"size": 1, "color": None})))
default("null stays where it is allowed", post("widgets", widget({"size": 1, "note": None})))
default("a removed field comes back", post("widgets", widget({"size": 1, "color": "green"})), patch("widgets/a", {"spec": {"color": None}}))
default("inside of an object that is given", post("widgets", widget({"size": 1, "nested": {"label": "x"}})))

prune = group("cr-prune")
prune("unknown fields are dropped", post("widgets", widget({"size": 1, "unknown": 1, "nested": {"deep": {"x": 1}}}, more={"a": 1})))
prune("unknown fields stay where they may", post("widgets", widget({"size": 1, "free": {"any": {"thing": [1, {"x": None}]}}})))
prune("in elements", post("widgets", widget({"size": 1, "parts": [{"id": "a", "extra": 1}]})))
prune("by a patch", post("widgets", widget({"size": 1})), patch("widgets/a", {"spec": {"unknown": 1}}))
prune("metadata", post("widgets", {**widget({"size": 1}), "metadata": {"name": "a", "unknown": 1}}))
prune("nothing is dropped without a schema", post("frees", custom("frees", "a", spec={"x": [1, 2.50, 1e3, None, "é"]}, other=True)), get("frees/a"))

status = group("cr-status")
W = post("widgets", widget({"size": 1}))
status("cannot be set on create", post("widgets", widget({"size": 1}, status={"phase": "X"})))
status("cannot be set by an update of the object", W, patch("widgets/a", {"status": {"phase": "X"}}))
status("is set through its own path", W, patch("widgets/a/status", {"status": {"phase": "X"}}), get("widgets/a/status"))
status("nothing else is set through its path", W, patch("widgets/a/status", {"spec": {"size": 9}, "metadata": {"labels": {"a": "b"}},
                                                                              "status": {"phase": "X"}}))
status("does not count generations", W, patch("widgets/a/status", {"status": {"ready": 1}}), patch("widgets/a", {"spec": {"size": 2}}))
status("PUT", W, lambda t: (o := t.quietly("GET", "widgets/a")[1], o.update(status={"phase": "Y"}), t.put("widgets/a/status", o)))
status("is checked and pruned", W, patch("widgets/a/status", {"status": {"ready": "x"}}), patch("widgets/a/status", {"status": {"extra": 1}}))
status("JSON patch", W, patch("widgets/a/status", [{"op": "add", "path": "/status", "value": {"phase": "Z"}}], JSON))
status("without a status subresource it is a field", post("plains", custom("plains", "a", status={"x": 1})), get("plains/a/status"))
status("of what is not there", patch("widgets/none/status", {"status": {}}))
status("an old version is refused", W, lambda t: (o := t.quietly("GET", "widgets/a")[1], t.patch("widgets/a", {"spec": {"size": 3}}),
                                                  o.update(status={"phase": "Y"}), t.put("widgets/a/status", o)))

columns = group("cr-columns")
columns("empty", get("widgets", accept=TABLE))
columns("of what is there", W, get("widgets/a", accept=TABLE))
columns("of a status", W, patch("widgets/a/status", {"status": {"phase": "Run", "since": "2020-01-01T00:00:00Z", "conditions": [
    {"type": "Ready", "status": "True"}]}}), get("widgets", accept=TABLE, only=lambda v: [
        [c for n, c in enumerate(r["cells"][:-1]) if n != 4] for r in v["rows"]]))  # times since: 4, and the age at the end
columns("a resource without columns", post("plains", custom("plains", "a")), get("plains", accept=TABLE))
