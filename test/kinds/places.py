#!/usr/bin/python3
"""The place in the queue: a status tells 10+, get and explain the number."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
from cli_play import World, waiting
from sonde_test import main

OF_ALL = "at most 4 runs may be under way at once, and others are before it"
OF_NAMESPACE = "at most 2 runs of a namespace may be under way at once, and others are before it"


def queue_up(reason, *namespaces):
    """Twelve, each more urgent than the next; the first three are in the second namespace."""
    for i in range(12):
        kind = "ac" if i % 2 else "ap"
        world.make(namespaces[i < 3], kind, f"r{i:02}", spec={"priority": max(10 - i, 0)}, status=waiting(
            kind, "Queued", f"the run waits for its turn: {reason}", queue={"position": "10+" if i > 9 else str(i + 1), "reason": reason}))


def places(reason, expected):
    with world.server.namespace("here") as here, world.server.namespace("there") as there:
        queue_up(reason, here, there)
        said = {row[1]: row[-1] for row in world.sonde("get", "ac", "-n", here).expect(0).table()}
        assert said["r11"] == f"queue position {expected}: {reason}", said
        head = world.sonde("explain", "ac/r11", "-n", here).expect(0).out
        assert f"waits at position {expected} of the queue" in head, head


def of_all():
    """Of one queue for all: those of other kinds and namespaces are counted, whatever was asked for"""
    places(OF_ALL, 12)


def of_a_namespace():
    """Where only namespaces are limited, those of others are not"""
    places(OF_NAMESPACE, 9)


with World("engine") as world:
    main(of_all, of_a_namespace)
