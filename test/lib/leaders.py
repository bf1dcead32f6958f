"""Elections as the API server saw them: whose writes took effect, and when.

One of several operators is told by BY(event), of an event of the audit log: by its user agent, or by its account.
"""

WRITES = ("create", "update", "patch", "delete")


def events(cluster, ns, by):
    """All that one has written in a namespace, leases included, in order."""
    found = [e for e in cluster.audit() if e.get("objectRef", {}).get("namespace") == ns and e["verb"] in WRITES and
             "responseStatus" in e and by(e)]
    return sorted(found, key=lambda e: e["requestReceivedTimestamp"])


def writes(cluster, ns, by, since=""):
    """(time, verb, resource, code) of the writes of one, election apart."""
    return [(e["requestReceivedTimestamp"], e["verb"], e["objectRef"]["resource"], e["responseStatus"]["code"])
            for e in events(cluster, ns, by) if e["objectRef"]["resource"] != "leases" and e["requestReceivedTimestamp"] > since]


def held(cluster, ns, by):
    """When one wrote the Lease with success: the first is when it took it, the last when it renewed it last."""
    return [e["requestReceivedTimestamp"] for e in events(cluster, ns, by)
            if e["objectRef"]["resource"] == "leases" and e["responseStatus"]["code"] < 300]
