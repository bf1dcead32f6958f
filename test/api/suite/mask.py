"""mask - what may differ between two servers is replaced by a placeholder; everything else must be equal.

Equality inside one recording stays visible where it is promised: uids and objects' resourceVersions are numbered in
the order in which they appear, so that a version that a write without a change leaves alone is seen to be the same.
"""

import datetime
import json
import re

UUID = re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b")
TIME = re.compile(r"\b(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(\.\d+)?(Z|[+-]\d\d:\d\d)")
DATE = re.compile(r"\b\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d [+-]\d{4}")
AGE = re.compile(r"(?<![\w.:/=\"-])\d+(?:s|m|h|d)(?:\d+(?:s|m|h))?(?![\w.:/\"-])")
SUFFIX = r"[bcdfghjklmnpqrstvwxz2456789]{5}(?![a-z0-9])"  # of a generated name
EVENT_NAME = re.compile(r"(?<=\.)[0-9a-f]{16}(?![0-9a-f])")
VERSIONS = [  # resource versions inside sentences
    (re.compile(r"(too old resource version: \d+ \()\d+\)"), r"\1rv)"),
    (re.compile(r"(Too large resource version: \d+, current: )\d+"), r"\1rv"),
    (re.compile(r"(ResourceVersion in the precondition \()\d+(\) does not match the ResourceVersion in record \()\d+"),
     r"\1rv\2rv"),
    (re.compile(r"0xc0[0-9a-f]{8}"), "0xPOINTER"),  # Go's addresses
    (re.compile(r"(resourceVersion\\?\": ?\\?\")\d+"), r"\1rv"),  # objects quoted in a message
]


def recent(match):
    """A time of about now is the server's own; any other was given by the case and stays."""
    try:
        when = datetime.datetime.strptime(match[1], "%Y-%m-%dT%H:%M:%S")
    except ValueError:
        return match[0]
    if abs((when - datetime.datetime.utcnow()).total_seconds()) > 2 * 86400:
        return match[0]
    return "MICROTIME" if match[2] else "TIME"


class Mask:
    """The placeholders of one recording. NAMES maps texts of this side (its namespaces, its address) to common ones."""

    def __init__(self, names):
        self._names = sorted(names.items(), key=lambda item: -len(item[0]))
        self._seen = {}
        self._prefixes = set()

    def name(self, actual, common):
        self._names = sorted({**dict(self._names), actual: common}.items(), key=lambda item: -len(item[0]))

    def generated(self, prefix):
        """Names that begin with PREFIX end in five random characters."""
        self._prefixes.add(prefix)

    def _number(self, kind, value):
        of_kind = self._seen.setdefault(kind, {})
        return f"{kind}#{of_kind.setdefault(value, len(of_kind) + 1)}"

    def text(self, text):
        for actual, common in self._names:
            text = text.replace(actual, common)
        for prefix in self._prefixes:
            text = re.sub(re.escape(prefix) + SUFFIX, prefix + "?????", text)
        text = UUID.sub(lambda m: self._number("uid", m[0]), text)
        text = EVENT_NAME.sub("(hex)", text)
        text = DATE.sub("DATE", TIME.sub(recent, text))
        for pattern, by in VERSIONS:
            text = pattern.sub(by, text)
        return text

    def printed(self, text):
        """What kubectl printed: a JSON document, or text with ages and versions in it."""
        if text.startswith("{") and text.rstrip().endswith("}"):
            try:
                return json.dumps(self.value(json.loads(text)), indent=1, sort_keys=True, ensure_ascii=False) + "\n"
            except ValueError:
                pass
        text = re.sub(r"(resourceVersion\"?: )\"(\d+)\"", lambda m: m[1] + self._number("rv", m[2]), self.text(text))
        text = re.sub(r"(Resource Version: +)(\d+)", lambda m: m[1] + self._number("rv", m[2]), text)
        return re.sub(r"AGE +", "AGE ", AGE.sub("AGE", text))

    def _learn(self, value):
        """Finds the generated names of VALUE before anything is replaced."""
        if isinstance(value, dict):
            prefix = value.get("generateName")
            if isinstance(prefix, str) and prefix:
                self._prefixes.add(prefix)
            for child in value.values():
                self._learn(child)
        elif isinstance(value, list):
            for child in value:
                self._learn(child)

    def value(self, value):
        value = json.loads(json.dumps(value))
        self._learn(value)
        return self._value(value, False)

    def _value(self, value, collection):
        if isinstance(value, dict):
            if value.get("kind") == "Status" and ("conformance.test" in (value.get("details") or {}).get("group", "")
                                                  or value.get("reason") == "Conflict" and value.get("details")):
                self._sort_causes(value)
            is_list = "items" in value or "rows" in value or value.get("kind") == "Bookmark"
            return {self.text(k): self._member(k, value[k], is_list if k == "metadata" else collection)
                    for k in sorted(value)}
        if isinstance(value, list):
            return [self._value(child, False) for child in value]
        return self.text(value) if isinstance(value, str) else value

    @staticmethod
    def _sort_causes(status):
        """A schema's complaints come in no order: the real server goes through Go's maps."""
        causes = status["details"].get("causes", [])
        if status.get("reason") == "Conflict":  # of several managers
            causes.sort(key=lambda c: (c.get("field", ""), c.get("message", "")))
            return
        if len(causes or []) > 1 and "[" in status.get("message", ""):
            causes.sort(key=lambda c: (c.get("field", ""), c.get("message", "")))
            said = ", ".join(f"{c.get('field')}: {c.get('message')}" for c in causes)
            begin = status["message"].partition("[")[0]
            if len(begin) + len(said) + 2 == len(status["message"]):  # otherwise it says something else, and that is compared
                status["message"] = f"{begin}[{said}]"

    def _member(self, key, value, collection):
        if key == "resourceVersion" and isinstance(value, str) and value not in ("", "0"):
            return "rv" if collection else self._number("rv", value)
        if key == "continue" and value:
            return "CONTINUE"
        if key == "managedFields" and isinstance(value, list):  # in the order of their times, to the second
            value = sorted((self._value(entry, False) for entry in value),
                           key=lambda e: (e.get("operation", ""), e.get("manager", ""), json.dumps(e, sort_keys=True)))
            return [{**e, "fieldsV1": json.dumps(e["fieldsV1"], sort_keys=True)} if "fieldsV1" in e else e for e in value]
        if key == "cells" and isinstance(value, list):
            value = ["AGE" if isinstance(cell, str) and AGE.fullmatch(cell) else cell for cell in value]
        return self._value(value, collection and key == "metadata")
