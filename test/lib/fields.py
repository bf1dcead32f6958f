"""Every field of a kind's spec has an effect: a change of it is seen in a child object, in the status or in a refusal.

A kind's test says how a request is played and gives a base spec that reaches as many objects as it can:

    effects(fields, BASE, HINTS, play)      play({name: spec}) -> {name: trace}

For each field of the schema two requests are played side by side that differ in that field alone. A trace is whatever
could be seen of a request, its spec left out, in dicts and lists, without what is different by nature (names, uids,
times). The base is played twice: where these two differ, a difference says nothing.

Values are made from the schema. HINTS are for those that must mean something:

    "a.b[].c": Hint(value="an existing one", beside={"a": {"b": [{"d": 1}]}})

`beside` is merged into the base of that field alone.
"""

import collections
import copy
import json
import re

import yaml

from sonde_test import diag

Field = collections.namedtuple("Field", "path schema")
Case = collections.namedtuple("Case", "path base changed")
NONE = object()
CHANGED = "changed"
TEXTS = (CHANGED, "1s", "1", "1Gi", "2026-01-01T00:00:00Z", "10.1.2.3", "changed.example/changed:1")
NUMBERS = (0, 1, 2, 7, 100)
TWIN = "the base, once more"


class Hint:
    def __init__(self, value=NONE, beside=None):
        self.value, self.beside = value, beside or {}


# --- the fields of a schema -------------------------------------------------------------------------------------------


def spec_schema(path):
    """The schema of spec in the CRD of that file."""
    with open(path, encoding="utf-8") as f:
        crd = yaml.safe_load(f)
    (version,) = (v for v in crd["spec"]["versions"] if v["storage"])
    return version["schema"]["openAPIV3Schema"]["properties"]["spec"]


def fields_of(schema, path=""):
    """All fields in it: "a", "a.b", "a[].b" of a list, "a{}.b" of a map. What is made of simple values only is one field."""
    if schema.get("properties"):
        for name, sub in schema["properties"].items():
            yield from fields_of(sub, f"{path}.{name}" if path else name)
    elif isinstance(schema.get("items"), dict) and is_deep(schema["items"]):
        yield from fields_of(schema["items"], path + "[]")
    elif isinstance(schema.get("additionalProperties"), dict) and is_deep(schema["additionalProperties"]):
        yield from fields_of(schema["additionalProperties"], path + "{}")
    else:
        yield Field(path, schema)


def is_deep(schema):
    return any(isinstance(schema.get(key), dict) for key in ("properties", "items", "additionalProperties"))


def published(api, kind, part):
    """The same list from the document that `kubectl explain` reads; empty while it does not have KIND."""
    status, document = api.get("/openapi/v2")
    assert status == 200, document
    for definition in document["definitions"].values():
        if any(of["kind"] == kind for of in definition.get("x-kubernetes-group-version-kind", [])):
            return [field.path for field in fields_of(definition["properties"][part])]
    return []


# --- a value that is another one --------------------------------------------------------------------------------------


def candidates(schema, present):
    if "enum" in schema:
        return schema["enum"]
    if schema.get("x-kubernetes-int-or-string"):
        return "2", 3
    return {
        "boolean": lambda: (True, False),
        "integer": lambda: (*(schema[k] for k in ("minimum", "maximum") if k in schema), *NUMBERS),
        "number": lambda: (*(schema[k] for k in ("minimum", "maximum") if k in schema), *NUMBERS, 0.5),
        "string": lambda: TEXTS,
        "array": lambda: ([item] for item in candidates(schema.get("items", {}), NONE)),
        "object": lambda: objects(schema, present),
    }.get(schema.get("type"), lambda: ())()


def objects(schema, present):
    inner, here = schema.get("additionalProperties"), present if isinstance(present, dict) else {}
    if isinstance(inner, dict):
        return ({**here, CHANGED: value} for value in candidates(inner, NONE))
    return ({**here, CHANGED: CHANGED},)


def allows(schema, value):
    """Whether the schema takes it, as far as candidates() needs that."""
    if isinstance(value, bool) or isinstance(value, dict):
        return True
    if isinstance(value, list):
        return all(allows(schema.get("items", {}), item) for item in value)
    if isinstance(value, str):
        return schema.get("minLength", 0) <= len(value) <= schema.get("maxLength", len(value)) and \
            bool(re.search(schema.get("pattern", ""), value))
    return schema.get("minimum", value) <= value <= schema.get("maximum", value)


def another(field, present):
    """A value that the field may have and that is not PRESENT."""
    for value in candidates(field.schema, present):
        if value != present and allows(field.schema, value):
            return value
    raise AssertionError(f"spec.{field.path}: no value is known that its schema takes; it needs a hint")


# --- the requests -----------------------------------------------------------------------------------------------------


def steps(path):
    """"a.b[].c" as "a", "b", 0, "c"."""
    for word in path.split("."):
        yield word.rstrip("[]{}")
        yield from (0 if mark == "[]" else CHANGED for mark in re.findall(r"\[\]|\{\}", word))


def at(spec, path, default=None):
    for step in steps(path):
        try:
            spec = spec[step]
        except (KeyError, IndexError):
            return default
    return spec


def put(spec, path, value):
    """A copy of the spec with the value there."""
    root = copy.deepcopy(spec)
    here, words = root, list(steps(path))
    for step, after in zip(words, words[1:]):
        if isinstance(here, list):
            here.extend({} for _ in range(step + 1 - len(here)))
        elif step not in here:
            here[step] = [] if after == 0 else {}
        here = here[step]
    here[words[-1]] = value
    return root


def merged(spec, more):
    if not isinstance(spec, dict) or not isinstance(more, dict):
        return copy.deepcopy(more)
    return {**copy.deepcopy(spec), **{k: merged(spec.get(k), v) for k, v in more.items()}}


def case_of(field, base, hint):
    base = merged(base, hint.beside)
    present = at(base, field.path, field.schema.get("default"))
    value = another(field, present) if hint.value is NONE else hint.value
    assert value != present, f"spec.{field.path}: {value!r} is no change"
    return Case(field.path, base, put(base, field.path, value))


def cases_of(fields, base, hints):
    unknown = set(hints) - {f.path for f in fields}
    assert not unknown, f"hints for fields that there are not: {unknown}"
    return [case_of(f, base, hints.get(f.path, Hint())) for f in fields]


def contains(stored, sent):
    """Whether the server has all that it was sent; it may have added defaults."""
    if isinstance(sent, dict):
        return isinstance(stored, dict) and all(k in stored and contains(stored[k], v) for k, v in sent.items())
    if isinstance(sent, list):
        return isinstance(stored, list) and len(stored) == len(sent) and all(map(contains, stored, sent))
    return stored == sent


# --- what it did ------------------------------------------------------------------------------------------------------


def differences(a, b, path=""):
    """Where two traces differ: [(path, this, that)]."""
    if isinstance(a, dict) and isinstance(b, dict):
        found = []
        for key in sorted(a.keys() | b.keys()):
            found += differences(a.get(key), b.get(key), f"{path}/{key}")
        return found
    if isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
        return [d for i, (x, y) in enumerate(zip(a, b)) for d in differences(x, y, f"{path}/{i}")]
    return [] if a == b else [(path, a, b)]


def shown(difference):
    path, this, that = difference
    return f"{path}: {json.dumps(this)[:120]} -> {json.dumps(that)[:160]}"


def stripped(trace, masks):
    """A trace without what is different by nature: keys of MASKS are left out, texts (pattern, mask) are replaced."""
    keys, texts = masks
    if isinstance(trace, dict):
        return {stripped(k, masks): stripped(v, masks) for k, v in trace.items() if k not in keys}
    if isinstance(trace, list):
        return [stripped(v, masks) for v in trace]
    if isinstance(trace, str):
        for pattern, mask in texts:
            trace = re.sub(pattern, mask, trace)
    return trace


def play_cases(cases, base, play):
    """Plays all cases; for each the differences it made, and those of the twin."""
    names, specs = {}, {}

    def name_of(spec):
        key = json.dumps(spec, sort_keys=True)
        if key not in names:
            names[key] = f"request-{len(specs):03d}"
            specs[names[key]] = spec
        return names[key]

    first = name_of(base)
    pairs = {case.path: (name_of(case.base), name_of(case.changed)) for case in cases}
    specs["request-twin"] = base
    traces = play(specs)
    made = {path: differences(traces[a], traces[b]) for path, (a, b) in pairs.items()}
    return made, differences(traces[first], traces["request-twin"]), len(specs)


def effects(fields, base, hints, play):
    """{path: the differences that a change of this field made}."""
    cases = cases_of(fields, base, hints)
    for _ in range(6):
        made, noise, count = play_cases(cases, base, play)
        if not noise:
            break
        diag(f"{TWIN}, differs: " + "; ".join(map(shown, noise[:5])))
    assert not noise, "two requests of the same spec were never alike: " + shown(noise[0])
    diag(f"{len(fields)} fields, {count} requests")
    for path, found in made.items():
        diag(f"spec.{path}: " + (f"{len(found)}, {shown(found[0])}" if found else "NO EFFECT"))
    return made
