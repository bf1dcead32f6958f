#!/usr/bin/python3
"""`sonde results` and `sonde compare`: of runs of each kind, in each format.

    results.py [NAME...]            on the embedded engine; also of runs that were really made
    results.py cluster [NAME...]    on a real control plane
"""

import base64
import csv
import gzip
import html.parser
import io
import json
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
from cli_play import PATIENCE, World, ended, running
from dgdr_play import ok
from sonde_test import ROOT, Engine, Process, main, program, wait

FORMATS = ("table", "json", "csv", "md", "html")
MACHINE = {"cpu": "EPYC", "cpus": 2}
RESULT = {"simulated": True, "sla": {"isl": 1000, "osl": 50, "ttft": 40, "itl": 12}, "feasible": True,
          "prefill": {"label": "TP=2", "gpus": 2, "ttft": 23.5, "throughputPerGpu": 21271.4, "target": 40, "feasible": True},
          "decode": {"label": "TP=1", "gpus": 1, "itl": 10.9, "throughputPerGpu": 2481.4, "concurrency": 28, "target": 12, "feasible": True},
          "replicas": {"prefill": 1, "decode": 1, "gpus": 3}, "notes": ["TP=4 did not come up"],
          "prefillCurve": {"prefill_isl": [100, 971], "prefill_ttft": [5.85, 22.9], "prefill_thpt_per_gpu": [8545.5, 21187]}}


class Page(html.parser.HTMLParser):
    """What a page says, and whom it asks."""

    def __init__(self, text):
        super().__init__()
        self.asks, self.text, self.tags = [], "", []
        self.feed(text)
        assert not re.search(r"url\(|@import|https?://", text), text

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.asks += [name for name, _ in attrs if name in ("src", "href", "action")] + [tag] * (tag in ("script", "link", "img"))

    def handle_data(self, data):
        self.text += data


def keep(ns, name, **files):
    """A data ConfigMap; what is long is gzipped, as the relay does it."""
    packed = {f"{key}.gz": base64.b64encode(gzip.compress(text.encode())).decode() for key, text in files.items() if len(text) > 1000}
    plain = {key: text for key, text in files.items() if len(text) <= 1000}
    ok(world.api.post(f"/api/v1/namespaces/{ns}/configmaps", {"metadata": {"name": name}, "data": plain, "binaryData": packed}))


def samples(**levels):
    """samples.json: each algorithm 12 times at its level, with some noise, after a run of warm-up."""
    rows = [[name, 1000, 0, i, None, 9 if i < 0 else level * (1 + 0.002 * (i * 7 % 11)), 2e6] for name, level in levels.items()
            for i in range(-1, 12)]
    return json.dumps({"columns": ["algorithm", "size", "pod", "iteration", "failure", "time", "memory"], "rows": rows, "dropped": 0})


def profiling(ns, name, level, machine=None):
    """A profiling that has ended."""
    status = ended("ap", "Completed", True, "Succeeded", "fine")
    status["results"] = {"executionTime": level, "ciLow": level * 0.99, "ciHigh": level * 1.01, "memoryUsage": 2, "cpuUsage": 99.5, "n": 12,
                         "metrics": {"swaps": 12.5}}
    status["statistics"] = {"unit": "process in one pod", "machine": machine or MACHINE,
                            "algorithms": [{"algorithmName": "quick_sort", "inputSize": 1000, "n": 12, "time": {"median": level}}]}
    world.make(ns, "ap", name, status=status)
    keep(ns, f"{name}-run-results", **{"samples.json": samples(quick_sort=level), "result.json": "{}"})


def dgdr(ns, name, itl=10.9):
    status = ended("dgdr", "Completed", True, "SpecGenerated", "Generated spec is available")
    status["generatedDeployment"] = {"apiVersion": "nvidia.com/v1alpha1", "kind": "DynamoGraphDeployment",
                                     "metadata": {"name": f"{name}-dgd", "annotations": {"simulated": "true"}}, "spec": {"services": {}}}
    world.make(ns, "dgdr", name, status=status)
    keep(ns, f"dgdr-output-{name}", **{"result.json": json.dumps({**RESULT, "decode": {**RESULT["decode"], "itl": itl}})})


def profile(ns, name, **metrics):
    world.make(ns, "wprof", name, status={
        "boundType": "memory-bound", "replay": True, "metrics": {"smThroughput": "31.5", "memThroughput": "88", "bottleneck": "saturated-memory", **metrics},
        "details": {"device": "A100", "byKernel": [{"kernel": "vectorAdd<float>", "launches": 5, "durationNs": 12500, "share": 1.0,
                                                    "boundType": "memory-bound", "metrics": {"smThroughput": 31.5}}], "warnings": ["few launches"]},
        "placement": {"reason": "A100 is preferred", "nodes": [{"name": "gpu-7", "product": "A100", "score": 900}]}})


def results(ns, label, *words, **env):
    return world.sonde("results", label, "-n", ns, *words, **env)


def all_formats(ns, label, *words):
    """Each of them, told apart; the JSON."""
    texts = {f: results(ns, label, "-o", f, *words).expect(0).out for f in FORMATS}
    page = Page(texts["html"])
    assert not page.asks and "table" in page.tags and "prefers-color-scheme: dark" in texts["html"], page.asks
    told = json.loads(texts["json"])
    rows = list(csv.DictReader(io.StringIO(texts["csv"])))
    table = next(v for k, v in told.items() if isinstance(v, list) and k != "notes")
    assert len(rows) == len(table) and set(table[0]) <= set(rows[0]), (rows, table)
    assert texts["md"].startswith("# ") and texts["md"].count("|---") + texts["md"].count("|:---") > 1, texts["md"]
    for note in told["notes"]:
        assert note in texts["table"] and note in page.text, (note, texts["table"])
    return told, texts


def every_kind_in_every_format():
    """What is known is told with units, what is not is left out, and simulated values say so"""
    with world.server.namespace("results") as ns:
        profiling(ns, "a", 0.0412)
        dgdr(ns, "b")
        profile(ns, "c-profile")
        world.make(ns, "cudaexp", "c", status={**ended("cudaexp", "Completed", True, "Succeeded", "it ran"), "profileName": "c-profile",
                                               "boundType": "memory-bound"})
        told, texts = all_formats(ns, "ap/a")
        assert told["results"][0] == {"time": 0.0412, "timeLow": 0.0412 * 0.99, "timeHigh": 0.0412 * 1.01, "memoryMb": 2, "cpuPercent": 99.5, "runs": 12}, told
        assert "41.2 ms (40.8-41.6 ms)" in texts["table"] and "swaps" in texts["table"], texts["table"]
        assert "accuracy" not in texts["table"] and told["metrics"] == [{"name": "swaps", "value": 12.5}], texts["table"]
        told, texts = all_formats(ns, "dgdr/b")
        assert told["origin"] == "simulated" and told["chosen"][0]["ttftMs"] == 23.5 and told["chosen"][1]["mapping"] == "TP=1", told
        assert "these values are simulated, not measured" in told["notes"] and "TP=4 did not come up" in told["notes"], told
        assert [row["isl"] for row in told["prefillCurve"]] == [100, 971] and "10.9 ms" in texts["table"], texts
        assert results(ns, "dgdr/b", "-o", "yaml").expect(0).out.startswith("apiVersion: nvidia.com/v1alpha1\nkind: DynamoGraphDeployment\n")
        for label in "wprof/c-profile", "cuda/c":
            told, texts = all_formats(ns, label)
            assert told["origin"] == "replayed" and told["facts"]["boundType"] == "memory-bound", told
            assert {"name": "memory throughput", "value": 88, "unit": "%"} in told["metrics"], told
            assert told["kernels"][0]["kernel"] == "vectorAdd<float>" and "vectorAdd&lt;float&gt;" in texts["html"], texts["html"]
            assert told["nodes"] == [{"node": "gpu-7", "product": "A100", "score": 900}], told


def where_it_goes_and_what_is_missing():
    """Samples, files, and runs that have nothing to show"""
    with world.server.namespace("results") as ns:
        profiling(ns, "a", 0.0412)
        world.make(ns, "ap", "new", status=running("ap"))
        rows = list(csv.DictReader(io.StringIO(results(ns, "ap/a", "-o", "csv", "--samples").expect(0).out)))
        assert len(rows) == 13 and rows[1]["time"] == "0.0412" and rows[0]["iteration"] == "-1", rows
        path = os.path.join(world.folder, "out.html")
        results(ns, "ap/a", "-o", "html", "--to", path).expect(0, "")
        with open(path, encoding="utf-8") as f:
            assert f.read() == results(ns, "ap/a", "-o", "html").out
        results(ns, "ap/new").expect(0, re.compile("phase +DecodeSweep"))
        results(ns, "ap/new", "--samples").expect(1, "", re.compile("samples of ap/new are not there: it has not ended"))
        results(ns, "ap/a", "-o", "yaml").expect(1, "", re.compile("has generated no deployment"))
        results(ns, "ap/a", "-o", "xml").expect(2, "", re.compile("'xml' is not a format; table, json"))
        results(ns, "ap/a", "--to", "/nowhere/x").expect(1, "", re.compile("/nowhere/x"))
        world.sonde("results").expect(2, "", re.compile("needs the name of a run"))


def compare(ns, *words):
    return world.sonde("compare", "-n", ns, *words)


def runs_are_compared():
    """Two profilings: intervals, ratio, p and a verdict, and plainly that they were not interleaved"""
    with world.server.namespace("results") as ns:
        profiling(ns, "old", 0.2)
        profiling(ns, "new", 0.1, machine={"cpu": "Xeon", "cpus": 4})
        told = json.loads(compare(ns, "ap/old", "ap/new", "-o", "json").expect(0).out)
        pair = told["pairs"][0]
        assert (pair["a"], pair["b"], pair["verdict"]) == ("ap/new", "ap/old", "faster") and pair["ratio"] == 0.5 and pair["pAdjusted"] < 0.01, pair
        assert told["tested"] and not told["interleaved"] and [r["n"] for r in told["runs"]] == [12, 12], told
        seen = compare(ns, "ap/old", "ap/new").expect(0).out
        for part in "these runs were not interleaved", "different machines: cpu EPYC and Xeon, cpus 2 and 4", "0.5x (", "large":
            assert part in seen, (part, seen)
        for f in "csv", "md", "html":
            assert "ap/new" in compare(ns, "ap/old", "ap/new", "-o", f).expect(0).out, f
        compare(ns, "ap/old", "ap/old").expect(2, "", re.compile("ap/old is named twice"))
        compare(ns, "ap/old").expect(2, "", re.compile("takes 2 to 16 runs"))
        compare(ns, "ap/old", "ap/new#bubble").expect(2, "", re.compile("no algorithm 'bubble'"))
        world.make(ns, "ap", "late", status=running("ap"))
        compare(ns, "ap/old", "ap/late").expect(1, "", re.compile("ap/late has not ended"))


def figures_are_compared_without_a_test():
    """Kinds without samples: their figures side by side, and that nothing was tested"""
    with world.server.namespace("results") as ns:
        dgdr(ns, "a")
        dgdr(ns, "b", itl=21.8)
        profile(ns, "p")
        profile(ns, "q", memThroughput="44")
        seen = compare(ns, "dgdr/a", "dgdr/b").expect(0).out
        assert re.search(r"^inter-token latency +10.9 ms +21.8 ms +2x$", seen, re.M) and "no samples of both to test" in seen, seen
        assert "the values of dgdr/a are simulated, not measured" in seen, seen
        told = json.loads(compare(ns, "wprof/p", "wprof/q", "-o", "json").expect(0).out)
        assert next(f for f in told["figures"] if f["key"] == "memThroughput")["ratios"] == [None, 0.5], told
        assert not told["tested"] and "pairs" not in told, told


def the_history_outlives_the_object(engine):
    place = ("--history", os.path.join(engine.home, "history.db"))
    path = world.path("default", "ap", "quick-sort")
    before = json.loads(results("default", "ap/quick-sort", "-o", "json").expect(0).out)
    uid = engine.api().get(path)[1]["metadata"]["uid"]
    assert engine.api().delete(path)[0] == 200
    wait(lambda: results("default", "ap/quick-sort").code == 1, PATIENCE, "it to be gone")
    told, texts = all_formats("default", "ap/quick-sort", *place)
    assert told["facts"]["outcome"] == "Succeeded" and told["facts"]["uid"] == uid, told
    sizes = {row["size"]: row["time"] for row in told["results"]}
    assert sizes and all(abs(sizes[row["size"]] / row["time"] - 1) < 1e-6 for row in before["sizes"]), (before["sizes"], sizes)
    assert any(row["phase"] == "Measuring" for row in told["phases"]), told["phases"]
    assert texts["table"].startswith("AlgorithmProfiling default/quick-sort, from the history"), texts["table"]
    assert json.loads(world.sonde("results", "--uid", uid, *place, "-o", "json").expect(0).out) == told
    kept = json.loads(results("default", "ap/quick-sort", *place, "--samples", "-o", "json").expect(0).out)["samples"]
    assert len(kept) == 84, len(kept)
    results("default", "ap/nothing", *place).expect(1, "", re.compile("no such run is kept"))
    results("default", "ap/quick-sort", *place, "-o", "yaml").expect(2, "", re.compile("--history goes with"))
    world.sonde("results", "--uid", uid).expect(2, "", re.compile("--uid and .* need --history"))


def runs_that_were_really_made():
    """The examples, run: results in every format, and compared with each other"""
    names = ["algorithmcomparison", "algorithmprofiling", "dgdr"]
    with Engine("--no-fsync") as engine:
        env = world.env(KUBECONFIG=engine.kubeconfig)
        files = [word for name in names for word in ("-f", os.path.join(ROOT, "examples", f"{name}.yaml"))]
        wait(lambda: world.sonde("apply", *files, **env).code == 0, PATIENCE, "the kinds to be served")
        with Process(program("sonde"), "wait", "ac/sorting", "ap/quick-sort", "dgdr/simulated-qwen3", env=env) as p:
            assert p.wait(600) == 0, p.lines
        kept, world.env = world.env, lambda **more: {**env, **more}
        try:
            for label, table in ("ac/sorting", "pairs"), ("ap/quick-sort", "sizes"), ("dgdr/simulated-qwen3", "sweep"):
                told, _ = all_formats("default", label)
                assert told[table], told
            told = json.loads(results("default", "ac/sorting", "-o", "json").expect(0).out)
            assert {row["algorithm"] for row in told["results"]} == {"quick_sort", "merge_sort", "quick_sort_first"}, told
            assert len(json.loads(results("default", "ap/quick-sort", "--samples", "-o", "json").expect(0).out)["samples"]) == 84
            told = json.loads(compare("default", "ap/quick-sort", "ac/sorting#quick_sort", "-o", "json").expect(0).out)
            assert told["tested"] and not told["interleaved"] and [r["n"] for r in told["runs"]] == [20, 20], told
            told = json.loads(compare("default", "ac/sorting#merge_sort", "ac/sorting#quick_sort", "-o", "json").expect(0).out)
            assert told["interleaved"] and not any("interleaved" in n for n in told["notes"]), told
            compare("default", "ac/sorting", "ap/quick-sort").expect(2, "", re.compile("ac/sorting has 3 algorithms; say which one: ac/sorting#quick_sort"))
            told = json.loads(compare("default", "ap/quick-sort@25000", "ap/quick-sort@200000", "-o", "json").expect(0).out)
            assert told["pairs"][0]["verdict"] == "not comparable", told
            the_history_outlives_the_object(engine)
        finally:
            world.env = kept


TESTS = [every_kind_in_every_format, where_it_goes_and_what_is_missing, runs_are_compared, figures_are_compared_without_a_test]

given = sys.argv[1:]
which = "cluster" if given[:1] == ["cluster"] else "engine"
chosen = given[1:] if which == "cluster" else given
if which == "engine":
    TESTS.append(runs_that_were_really_made)
with World(which) as world:
    main(*[test for test in TESTS if not chosen or test.__name__ in chosen])
