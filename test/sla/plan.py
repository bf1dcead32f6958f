#!/usr/bin/python3
"""sonde-pod sla plan and sla pick: JSON or YAML from a file or standard input, JSON out, one sentence for what is wrong."""

import json
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
from sonde_test import main, program

POD = program("sonde-pod")
PLAN = {"engine": {"maxContextLength": 8192}}
PICK = {"targets": {"ttft": 200}, "isl": 3000,
        "prefill": [{"label": "TP=1", "ttft": 310}, {"label": "TP=2", "ttft": 180}]}


def sla(*args, text=""):
    if not isinstance(text, str):
        text = json.dumps(text)
    return subprocess.run([POD, "sla", *args], input=text, capture_output=True, text=True, timeout=20)


def answer(*args, text=""):
    done = sla(*args, text=text)
    assert done.returncode == 0 and not done.stderr, done
    return json.loads(done.stdout)


def refused(*args, text="", code=1):
    """The sentence, without the program's name."""
    done = sla(*args, text=text)
    assert done.returncode == code and not done.stdout, done
    assert done.stderr.count("\n") == 1 and done.stderr.startswith("sonde-pod: "), done.stderr
    return done.stderr[len("sonde-pod: "):-1]


def a_plan_from_standard_input_and_from_a_file_is_the_same():
    plan = answer("plan", text=PLAN)
    assert [c["label"] for c in plan["candidates"]] == ["TP=1", "TP=2", "TP=4"], plan
    assert (plan["deployments"], plan["points"]) == (8, 74), plan
    assert answer("plan", "-", text=PLAN) == plan
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        file.write("engine:\n  max_context_length: 8192\n")
        file.flush()
        assert answer("plan", file.name) == plan


def the_steps_of_a_plan_are_at_least_its_points():
    for kv in (0, 3499, 3500, 100000, 10 ** 9):
        plan = answer("plan", text={"config": PLAN, "kvTokens": kv})
        assert plan["points"] <= sum(plan["steps"].values()) - 3, plan


def a_choice():
    choice = answer("pick", text=PICK)["prefill"]
    assert (choice["index"], choice["label"], choice["feasible"]) == (1, "TP=2", True), choice
    assert answer("pick", text=PICK | {"targets": {"ttft": 100}})["prefill"]["feasible"] is False


def what_is_wrong_is_one_sentence():
    assert refused("plan", text={}) == ("sla plan: engine.maxContextLength: is missing, and no config.json of the model "
                                        "is here to say it")
    assert refused("pick", text={}) == "sla pick: pick needs rows of prefill or decode, places (at), or a demand"
    assert refused("pick", text="{") .startswith("sla pick: -: ")
    assert refused("plan", "/nonexistent/file") == ("sla plan: cannot open /nonexistent/file: "
                                                    "No such file or directory")
    assert refused("pick", "a", "b", code=2) == "sla pick takes one file; see 'sonde-pod sla pick --help'"


def both_have_help():
    for name in ("plan", "pick"):
        done = sla(name, "--help")
        assert done.returncode == 0 and f"sla {name} [FILE]" in done.stdout, done


main(a_plan_from_standard_input_and_from_a_file_is_the_same, the_steps_of_a_plan_are_at_least_its_points, a_choice,
     what_is_wrong_is_one_sentence, both_have_help)
