#!/usr/bin/python3
"""Many DynamoGraphDeploymentRequests in flight at once: one status write for a progress update, and none that changes
nothing. The long form is bench/dgdr.py.

    test/dgdr/many.py [cluster]
"""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
from dgdr_many import many
from dgdr_play import World
from sonde_test import diag, main

COUNT, UPDATES, PATIENCE = 60, 5, 120


def sixty_at_once():
    """60 requests in flight: what is planned is made once, and each progress update is one write"""
    with world.server.namespace("many") as ns:
        many(world, ns, COUNT, UPDATES, PATIENCE, lambda what, value: diag(f"{what}: {value}"))


if __name__ == "__main__":
    with World("cluster" if "cluster" in sys.argv[1:] else "engine") as world:
        main(sixty_at_once)
