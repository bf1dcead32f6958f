#!/usr/bin/python3
"""The built programs: what they are linked with."""

import json
import os
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
from sonde_test import BUILD, main, program

PT_DYNAMIC, PT_INTERP, PT_GNU_STACK, DT_NEEDED = 2, 3, 0x6474E551, 1


def segments(path):
    """(type, flags, contents) of every segment of a 64-bit ELF program."""
    with open(path, "rb") as f:
        data = f.read()
    assert data[:5] == b"\x7fELF\x02", f"{path} is not a 64-bit program"
    offset, size, count = struct.unpack_from("<Q", data, 32)[0], *struct.unpack_from("<HH", data, 54)
    for i in range(count):
        kind, flags, start, _, _, length = struct.unpack_from("<IIQQQQ", data, offset + i * size)
        yield kind, flags, data[start:start + length]


def dynamic(path):
    """The (tag, value) pairs of the dynamic section."""
    for kind, _, data in segments(path):
        if kind == PT_DYNAMIC:
            yield from struct.iter_unpack("<QQ", data)


def sonde_pod_is_linked_statically():
    path = program("sonde-pod")
    assert not [s for s in segments(path) if s[0] == PT_INTERP], "it names an interpreter"
    assert not [t for t in dynamic(path) if t[0] == DT_NEEDED], "it needs shared libraries"


def no_stack_is_executable():
    for path in installed:
        assert not [1 for kind, flags, _ in segments(path) if kind == PT_GNU_STACK and flags & 1], path


def targets():
    with open(os.path.join(BUILD, "meson-info", "intro-targets.json"), encoding="utf-8") as f:
        return {t["name"]: t["filename"][0] for t in json.load(f) if t["type"] == "executable"}


installed = [path for path in targets().values() if os.path.exists(path)]
main(no_stack_is_executable, sonde_pod_is_linked_statically)
