#!/usr/bin/python3
"""The reflector and its cache when the server's history ends, goes back, or its token does."""
import os
import signal
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
from fault_proxy import FaultProxy
from mirror import Mirror
from sonde_test import ControlPlane, main, wait


def maps(ns):
    return f"/api/v1/namespaces/{ns}/configmaps"


def make(api, ns, *names, value="1"):
    for name in names:
        status, body = api.post(maps(ns), {"metadata": {"name": name}, "data": {"v": value}})
        assert status == 201, body


def change(api, ns, name, value):
    status, body = api.patch(f"{maps(ns)}/{name}", {"data": {"v": value}})
    assert status == 200, body


def follows_changes():
    """Creates, changes and deletes arrive, and only one list is made"""
    with cluster.namespace("r") as ns, Mirror(cluster.kubeconfig, ns) as mirror:
        api = cluster.api()
        mirror.synced()
        make(api, ns, "a", "b", "c")
        change(api, ns, "b", "2")
        api.delete(f"{maps(ns)}/c")
        mirror.agrees_with(api)
        assert mirror.stats()["lists"] == 1


def compaction_in_mid_pagination():
    """A compaction between two pages (410) starts the list again"""
    cluster.rig("restart", "apiserver", "--watch-cache=false")  # pages come from etcd then, also of the first list
    with cluster.namespace("r") as ns:
        api = cluster.api()
        make(api, ns, *[f"m{i}" for i in range(40)])
        with FaultProxy(cluster, script=f"match LIST {maps(ns)}*continue=* nth=2 -> delay ms=8000\n") as proxy, \
                Mirror(proxy.kubeconfig, ns, "--page", "5") as mirror:
            wait(lambda: proxy.faults().get("delay"), 90, "the third page is held back")
            proxy.signal(signal.SIGSTOP)  # however long the next steps take
            assert not mirror.stats()["synced"], "the page was not held back for long enough"
            change(api, ns, "m1", "2")
            cluster.rig("compact")
            proxy.signal(signal.SIGCONT)
            mirror.synced()
            mirror.agrees_with(api)
            mirror.expect("Listing anew because a version expired", 60)


def resume_too_old(mirror, ns, other, *apiserver_args, compact=False):
    """Moves the server's history on without the mirror seeing it, restarts the API server, and goes on."""
    api = cluster.api()
    for i in range(3):
        change(api, other, "elsewhere", str(i))
    cluster.rig("stop", "apiserver")
    if compact:
        cluster.rig("compact")
    cluster.rig("start", "apiserver", *apiserver_args)
    api = cluster.api()
    change(api, ns, "a", "2")
    make(api, ns, "c")
    api.delete(f"{maps(ns)}/b")
    mirror.agrees_with(api)
    mirror.expect("Listing anew because a version expired", 60)


def api_server_restarted():
    """The watch is cut, the API server restarted, the old version resumed (410): the cache agrees again"""
    with cluster.namespace("r") as ns, cluster.namespace("o") as other, Mirror(cluster.kubeconfig, ns) as mirror:
        make(cluster.api(), ns, "a", "b")
        make(cluster.api(), other, "elsewhere")
        mirror.synced()
        mirror.agrees_with(cluster.api())
        resume_too_old(mirror, ns, other)


def api_server_restarted_without_watch_cache():
    """Without a watch cache, after a compaction past our version: the cache agrees again

    The point before has started the API server so; the next start turns it on again."""
    with cluster.namespace("r") as ns, cluster.namespace("o") as other, Mirror(cluster.kubeconfig, ns) as mirror:
        make(cluster.api(), ns, "a", "b")
        make(cluster.api(), other, "elsewhere")
        mirror.synced()
        mirror.agrees_with(cluster.api())
        resume_too_old(mirror, ns, other, "--watch-cache=false", compact=True)


def etcd_restored():
    """etcd is put back to a backup: versions go back, and the cache follows"""
    snapshot = cluster.file("backup.db")
    with cluster.namespace("r") as ns:
        api = cluster.api()
        make(api, ns, "kept", "changed", "deleted-later")
        cluster.rig("etcd-snapshot", snapshot)
        with Mirror(cluster.kubeconfig, ns, "--watchdog", "3s") as mirror:
            mirror.synced()
            change(api, ns, "changed", "2")
            make(api, ns, "born-after", *[f"filler{i}" for i in range(50)])
            api.delete(f"{maps(ns)}/deleted-later")
            mirror.agrees_with(api)
            before = mirror.stats()
            cluster.rig("etcd-restore", snapshot)
            api = cluster.api()
            wait(lambda: mirror.stats()["lists"] > before["lists"], 120, "the cache is listed anew")
            mirror.agrees_with(api)
            after = mirror.stats()
            assert after["count"] < before["count"], (before, after)
            change(api, ns, "kept", "3")
            mirror.agrees_with(api)


def token_expires():
    """A token that expires is replaced in its file, and read again"""
    with cluster.namespace("r") as ns:
        api = cluster.api()
        cluster.kubectl("create", "serviceaccount", "reader", "-n", ns)
        cluster.kubectl("create", "role", "reader", "-n", ns, "--verb=get,list,watch", "--resource=configmaps")
        cluster.kubectl("create", "rolebinding", "reader", "-n", ns, "--role=reader", f"--serviceaccount={ns}:reader")
        token = cluster.file(f"token-{ns}")
        kubeconfig = cluster.file(f"token-{ns}.kubeconfig")
        host, port = cluster.address

        def new_token(seconds):
            text = cluster.rig("token", ns, "reader", seconds).strip()
            with open(token + ".new", "w", encoding="utf-8") as f:
                f.write(text)
            os.rename(token + ".new", token)

        with open(kubeconfig, "w", encoding="utf-8") as f:
            f.write("apiVersion: v1\nkind: Config\ncurrent-context: c\n"
                    f"clusters: [{{name: c, cluster: {{server: 'https://{host}:{port}', "
                    f"certificate-authority: {cluster.file('pki', 'ca.crt')}}}}}]\n"
                    f"users: [{{name: u, user: {{tokenFile: {token}}}}}]\n"
                    "contexts: [{name: c, context: {cluster: c, user: u}}]\n")

        def outlived(seconds):
            """A mirror that was in use before its token of SECONDS ran out goes on with the next one; False: that was too short."""
            new_token(seconds)
            until = time.monotonic() + seconds

            def in_time(condition):
                while not condition() and time.monotonic() < until:
                    time.sleep(0.1)
                return condition()
            with Mirror(kubeconfig, ns, "--watchdog", "2s") as mirror:
                if not in_time(lambda: mirror.stats()["synced"]):
                    return False
                make(api, ns, f"a{seconds}")
                if not in_time(lambda: not mirror.difference(api)):
                    return False
                # The watchdog asks every 2 s, with a token that has run out by then.
                mirror.expect(r"401", seconds + 90)
                new_token(600)
                make(api, ns, f"b{seconds}")
                mirror.agrees_with(api)
            return True
        assert any(outlived(seconds) for seconds in (8, 16, 32, 64)), "never in use"


with ControlPlane.of("fragile") as cluster:
    main(follows_changes, compaction_in_mid_pagination, api_server_restarted_without_watch_cache, api_server_restarted, etcd_restored,
         token_expires)
