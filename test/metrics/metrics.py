#!/usr/bin/python3
"""/metrics of the operator that is shipped: checked by promtool, listed by the page, scraped by a real Prometheus, alerts fired."""

import copy
import json
import os
import re
import shutil
import socket
import sys
import urllib.parse

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
from metrics_site import KINDS, NS, PATIENCE, MetricsSite, Operator, Prometheus, load, promtool
from sonde_test import ROOT, diag, main, wait

SERIES_OF_OBJECTS = re.compile(r"dprofiler_(job|memory|cpu|execution|performance)_|sonde_(run|object)_")
RECONCILE = [.005, .01, .025, .05, .1, .15, .2, .25, .3, .35, .4, .45, .5, .6, .7, .8, .9, 1, 1.25, 1.5, 1.75, 2, 2.5, 3, 3.5, 4,
             4.5, 5, 6, 7, 8, 9, 10, 15, 20, 25, 30, 40, 50, 60]
QUEUE = [10.0 ** k for k in range(-8, 4)]
REQUEST = [.005, .025, .1, .25, .5, 1, 2, 4, 8, 15, 30, 60]
# Name, type, labels, buckets: those of controller-runtime and client-go, which dashboards of others ask for.
OTHERS = (
    ("controller_runtime_reconcile_total", "counter", "controller result", None),
    ("controller_runtime_reconcile_errors_total", "counter", "controller", None),
    ("controller_runtime_terminal_reconcile_errors_total", "counter", "controller", None),
    ("controller_runtime_reconcile_panics_total", "counter", "controller", None),
    ("controller_runtime_reconcile_timeouts_total", "counter", "controller", None),
    ("controller_runtime_reconcile_time_seconds", "histogram", "controller", RECONCILE),
    ("controller_runtime_max_concurrent_reconciles", "gauge", "controller", None),
    ("controller_runtime_active_workers", "gauge", "controller", None),
    ("workqueue_depth", "gauge", "name controller priority", None),
    ("workqueue_adds_total", "counter", "name controller", None),
    ("workqueue_retries_total", "counter", "name controller", None),
    ("workqueue_queue_duration_seconds", "histogram", "name controller", QUEUE),
    ("workqueue_work_duration_seconds", "histogram", "name controller", QUEUE),
    ("workqueue_unfinished_work_seconds", "gauge", "name controller", None),
    ("workqueue_longest_running_processor_seconds", "gauge", "name controller", None),
    ("rest_client_requests_total", "counter", "code method host", None),
    ("rest_client_request_duration_seconds", "histogram", "verb host", REQUEST),
    ("leader_election_master_status", "gauge", "name", None),
    ("leader_election_slowpath_total", "counter", "name", None),
    ("process_cpu_seconds_total", "counter", "", None),
    ("process_resident_memory_bytes", "gauge", "", None),
    ("process_virtual_memory_bytes", "gauge", "", None),
    ("process_open_fds", "gauge", "", None),
    ("process_max_fds", "gauge", "", None),
    ("process_start_time_seconds", "gauge", "", None),
)


def page():
    with open(os.path.join(ROOT, "docs", "metrics.md"), encoding="utf-8") as f:
        return f.read()


def listed():
    """{name: (type, labels)} by the page."""
    rows = re.findall(r"^\| `([a-z_]+)` \| (\w+) \|([^|]*)\|", page(), re.M)
    return {name: (kind, set(re.findall(r"`(\w+)`", labels))) for name, kind, labels in rows}


def rules(*path):
    return {"groups": load(*path)[0]["spec"]["groups"]}


def board():
    """(title, expression) of every panel."""
    item = load("deploy", "monitoring", "grafana-dashboard.yaml")[0]
    assert item["metadata"]["labels"]["grafana_dashboard"] == "1"
    return [(p["title"], t["expr"]) for p in json.loads(item["data"]["sonde.json"])["panels"] for t in p["targets"]]


def hasty():
    """The alerts that are shipped, sooner, and content with less memory: the expression is the same but for the number."""
    quick = copy.deepcopy(rules("deploy", "monitoring", "alerts.yaml"))
    for group in quick["groups"]:
        group["interval"] = "1s"
        for rule in group["rules"]:
            rule["for"] = "1s"
            rule["expr"] = rule["expr"].replace("dprofiler_memory_usage_mb > 8000", "dprofiler_memory_usage_mb > 250")
    return quick


def promtool_finds_nothing_wrong():
    """promtool check metrics, while there are requests of every kind; the one unit that it would spell out is the guide's own"""
    text = leader.text()
    code, said = promtool("check", "metrics", stdin=text)
    diag(f"{len(text)} bytes")
    lines = [line for line in said.splitlines() if line.strip()]
    assert [line.split()[0] for line in lines] == ["dprofiler_memory_usage_mb"] and "abbreviat" in lines[0], said
    assert code == 3, (code, said)  # its status for a remark


def every_kind_is_there():
    status = leader.scrape()["dprofiler_job_status"]
    assert status.labels == {"namespace", "name", "job_name", "kind", "status"}, status.labels
    for kind in KINDS:
        assert status.find(kind=kind, namespace=NS), kind
    for name in {dict(labels)["name"] for labels in status.samples}:
        values = status.find(name=name)
        assert len(values) == 6 and sorted(values) == [0] * 5 + [1], (name, values)


def others_dashboards_find_what_they_ask_for():
    families = leader.scrape()
    for name, kind, labels, buckets in OTHERS:
        family = families[name]
        assert (family.type, family.labels) == (kind, set(labels.split())), (name, family.type, family.labels)
        if buckets:
            first = [dict(s) for s in family.samples if dict(s)["__name__"].endswith("_bucket")]
            of = {k: v for k, v in first[0].items() if k != "le"}
            have = [s["le"] for s in first if {k: v for k, v in s.items() if k != "le"} == of]
            assert have[-1] == "+Inf" and [float(x) for x in have[:-1]] == buckets, (name, have)
    results = families["controller_runtime_reconcile_total"]
    for controller in "dgdr", "algorithmprofiling":
        have = {dict(s)["result"] for s in results.samples if dict(s)["controller"] == controller}
        assert have == {"success", "error", "requeue", "requeue_after"}, (controller, have)
    values = list(families["dprofiler_reconcile_total"].samples.values())
    assert values == list(results.samples.values()) and sum(values) > 0


def a_port_that_was_taken_meanwhile_is_not_the_end():
    """The Prometheus of these tests takes another port where somebody was faster"""
    class Late(Prometheus):
        """Somebody else has the first port that it finds."""

        @staticmethod
        def free_port():
            return found.pop(0) if found else Prometheus.free_port()

    folder = os.path.join(site.folder, "late")
    os.mkdir(folder)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        found = [taken.getsockname()[1]]
        with Late(folder, "127.0.0.1:9", {}) as late:
            assert late.port != taken.getsockname()[1] and late.get("/api/v1/status/buildinfo"), late.process.lines


def the_page_lists_every_series():
    """docs/metrics.md and /metrics, both ways: names, types and labels"""
    families, rows = leader.scrape(), listed()
    assert set(rows) == set(families), (set(rows) - set(families), set(families) - set(rows))
    for name, (kind, labels) in rows.items():
        assert families[name].type == kind, name
        assert families[name].labels in (labels, set()), (name, families[name].labels, labels)
    known = set(rows) | {f"{n}_{end}" for n, (kind, _) in rows.items() if kind == "histogram" for end in ("bucket", "sum", "count")}
    used = [r["expr"] for g in rules("deploy", "monitoring", "alerts.yaml")["groups"] for r in g["rules"]]
    for expression in used + [expression for _, expression in board()]:
        names = set(re.findall(r"\b(?:dprofiler|sonde|controller_runtime|workqueue|rest_client|leader_election|process)_\w+", expression))
        assert names and names <= known, (expression, names - known)


def only_the_leader_tells_of_requests():
    """the other one has everything else"""
    families = follower.scrape()
    assert not [n for n, f in families.items() if SERIES_OF_OBJECTS.match(n) and f.samples], list(families)
    assert families["leader_election_master_status"].find() == [0]
    assert leader.scrape()["leader_election_master_status"].find() == [1]
    wait(lambda: max(follower.scrape()["sonde_cache_objects"].find(resource="algorithmprofilings")) > 0, PATIENCE, "its cache")


def behind_one_service_everyone_tells_the_same():
    """the API's port, in plain HTTP beside TLS: the follower and the API alone have the leader's series, but not beside their probes"""
    def of_requests(families):
        return {name: set(f.samples) for name, f in families.items() if re.match("dprofiler_job_status|dprofiler_execution", name)}
    for one in leader, follower, alone:
        wait(lambda one=one: of_requests(one.scrape_api()) == of_requests(leader.scrape()), PATIENCE, "the same requests", 0.2)
    assert not [n for n, f in alone.scrape().items() if SERIES_OF_OBJECTS.match(n) and f.samples]
    code, said = promtool("check", "metrics", stdin=alone.text_api())
    assert code == 3 and len([line for line in said.splitlines() if line.strip()]) == 1, said
    def scraped():
        found = (second.get("/api/v1/query?query=dprofiler_job_status%3D%3D1") or {}).get("result", [])
        names = [r["metric"]["name"] for r in found]
        assert "broken" in names, names
        return names
    names = wait(scraped, PATIENCE, "the guide's Prometheus to see it there", 0.5)
    assert len(names) == len(set(names)), names


def the_rules_are_good():
    """promtool check rules on ours and on the guide's; names, expressions, times and labels of the guide's alerts are ours too"""
    ours, theirs = rules("deploy", "monitoring", "alerts.yaml"), rules("examples", "seeds", "dprofiler-alerts.yaml")
    for name, groups in ("ours", ours), ("theirs", theirs):
        path = os.path.join(site.folder, f"{name}.yml")
        with open(path, "w", encoding="utf-8") as f:
            f.write(json.dumps(groups))
        code, said = promtool("check", "rules", path)
        assert code == 0, said
    for file, seed in ("alerts.yaml", "dprofiler-alerts.yaml"), ("prometheus-config.yaml", "dprofiler-metrics-config.yaml"):
        one, other = load("deploy", "monitoring", file)[0], load("examples", "seeds", seed)[0]
        assert [one[k] for k in ("apiVersion", "kind")] == [other[k] for k in ("apiVersion", "kind")], file
        assert one["metadata"]["name"] == other["metadata"]["name"] and one.get("data") == other.get("data"), file
    for seed, rule in zip(theirs["groups"][0]["rules"], ours["groups"][0]["rules"], strict=True):
        assert all(rule[key] == seed[key] for key in ("alert", "expr", "for", "labels")), (seed, rule)
        assert rule["annotations"]["summary"] == seed["annotations"]["summary"]
    assert rule["annotations"]["description"] == seed["annotations"]["description"] and rule["alert"] == "HighMemoryUsage"
    sections = {re.sub(r"[^a-z0-9]", "", title.lower()) for title in re.findall(r"^### (.+)$", page(), re.M)}
    for rule in [r for g in ours["groups"] for r in g["rules"]]:
        assert {"summary", "description", "runbook_url"} <= set(rule["annotations"]) and rule["labels"]["severity"], rule
        file, _, section = rule["annotations"]["runbook_url"].partition("#")
        assert file == "docs/metrics.md" and section == rule["alert"].lower() and section in sections, rule


def the_alerts_fire_after_their_times_and_above_their_bounds():
    """promtool test rules: those that are shipped, as they are, on series of minutes"""
    folder = os.path.join(site.folder, "rules")
    os.mkdir(folder)
    with open(os.path.join(folder, "alerts.yml"), "w", encoding="utf-8") as f:
        f.write(json.dumps(rules("deploy", "monitoring", "alerts.yaml")))
    path = shutil.copy(os.path.join(ROOT, "test", "metrics", "alerts.test.yml"), folder)
    code, said = promtool("test", "rules", path)
    assert code == 0, said


def memory_is_alerted_while_the_run_runs():
    """HighMemoryUsage: a real Prometheus, the guide's prometheus.yml, a run that holds 300 MB and still runs"""
    def fires():
        """It may first fire while the memory is still being filled."""
        [alert] = prometheus.firing("HighMemoryUsage", name="hog") or [None]
        assert alert and re.fullmatch(r"Memory usage is 3\d\dMB", alert["annotations"]["description"]), alert
        return alert
    alert = wait(fires, PATIENCE, "HighMemoryUsage", 0.5)
    assert site.status("AlgorithmProfiling", "hog")["phase"] == "Running"
    assert alert["labels"]["job"] == "dprofiler" and alert["labels"]["namespace"] == NS, alert
    assert leader.scrape()["dprofiler_job_status"].find(name="hog", status="running") == [1]


def a_failure_is_alerted_by_name():
    """AlgorithmProfilingFailed names the job, and after how many seconds"""
    [broken] = wait(lambda: prometheus.firing("AlgorithmProfilingFailed", job_name="broken"), PATIENCE, "AlgorithmProfilingFailed", 0.5)
    assert re.fullmatch(r"Job broken failed after \d+ seconds", broken["annotations"]["description"]), broken


def what_has_become_slower_is_alerted():
    """PerformanceDegraded, by a run that is slower than the history of its algorithm"""
    alert = wait(lambda: prometheus.firing("PerformanceDegraded"), PATIENCE, "PerformanceDegraded", 0.5)
    assert [a["labels"]["name"] for a in alert] == ["slow-1"], alert
    conditions = {c["type"]: c for c in site.status("AlgorithmProfiling", "slow-1")["conditions"]}
    assert conditions["PerformanceDegraded"]["status"] == "True", conditions


def every_panel_of_the_dashboard_has_an_answer():
    for title, expression in board():
        expression = re.sub(r"\$(namespace|kind)", ".*", expression)
        needs_none = "rate(" in expression or "eta_seconds" in expression  # two scrapes, or a run whose end is foreseen

        def answered(expression=expression, needs_none=needs_none):
            """A scrape that came too late leaves nothing until the next one."""
            found = prometheus.get("/api/v1/query?" + urllib.parse.urlencode({"query": expression}))
            return found and (needs_none or found["result"])
        wait(answered, PATIENCE, f"an answer to {title}: {expression}")


def series_vanish_with_their_object():
    """and what was measured follows what was used"""
    open(site.release, "w", encoding="utf-8").close()
    site.phase("AlgorithmProfiling", "hog", "Completed")
    status = wait(lambda: (s := leader.scrape()["dprofiler_job_status"]).find(name="hog", status="completed") == [1] and s, PATIENCE)
    families = leader.scrape()
    assert families["dprofiler_memory_usage_mb"].find(name="hog")[0] > 300
    assert families["dprofiler_execution_time_seconds"].find(name="hog")[0] > 0
    assert not families["sonde_run_eta_seconds"].find(name="hog") and status.find(name="broken")
    for name in "hog", "broken":
        site.delete("AlgorithmProfiling", name)
    for name in "hog", "broken":
        wait(lambda name=name: f'name="{name}"' not in leader.text(), PATIENCE, f"the series of {name} to go", 0.2)
    assert leader.scrape()["dprofiler_job_status"].find(name="slow-1")


with MetricsSite() as site:
    site.make_history()
    elect = ("--leader-elect", "--leader-elect-namespace", NS, "--max-concurrent-runs", "50",
             "--max-concurrent-runs-per-namespace", "20", "--listen", "0.0.0.0:0")
    leader = site.enter(Operator(site, *elect))
    leader.process.expect("Became the leader", PATIENCE)
    prometheus = site.enter(Prometheus(site.folder, f"127.0.0.1:{leader.port}", hasty()))
    site.create_all()
    follower = site.enter(Operator(site, *elect))
    alone = site.enter(Operator(site, "--api-only", "--listen", "0.0.0.0:0"))
    os.mkdir(os.path.join(site.folder, "second"))
    second = site.enter(Prometheus(os.path.join(site.folder, "second"), f"127.0.0.1:{alone.api_port}", {}))
    site.phase("AlgorithmProfiling", "broken", "Failed")
    site.phase("AlgorithmProfiling", "slow-1", "Completed")
    wait(lambda: leader.scrape()["dprofiler_memory_usage_mb"].find(name="hog"), PATIENCE, "the memory that is used", 0.2)
    wait(lambda: len({dict(s).get("kind") for s in leader.scrape()["dprofiler_job_status"].samples}) == len(KINDS), PATIENCE)
    main(promtool_finds_nothing_wrong, every_kind_is_there, others_dashboards_find_what_they_ask_for, the_page_lists_every_series,
         only_the_leader_tells_of_requests, behind_one_service_everyone_tells_the_same, the_rules_are_good,
         the_alerts_fire_after_their_times_and_above_their_bounds, memory_is_alerted_while_the_run_runs, a_failure_is_alerted_by_name,
         what_has_become_slower_is_alerted, a_port_that_was_taken_meanwhile_is_not_the_end,
         every_panel_of_the_dashboard_has_an_answer, series_vanish_with_their_object)
