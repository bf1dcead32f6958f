#!/usr/bin/python3
"""The command line of the programs: their names, help, version, and what they say to a wrong command."""

import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
from sonde_test import main, program


def run(path, *arguments):
    """Exit status, standard output, standard error."""
    done = subprocess.run([path, *arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120,
                          check=False)
    return done.returncode, done.stdout, done.stderr


def every_program_names_itself():
    sonde, pod = program("sonde"), program("sonde-pod")
    for path, name, called in (sonde, "sonde", "sonde"), (pod, "sonde-pod", "sonde-pod"), (kubectl, "sonde", "kubectl sonde"):
        for word in "version", "--version":
            status, out, err = run(path, word)
            assert (status, err) == (0, ""), (path, word, status, err)
            assert out.split() == [name, out.split()[1]] and out.split()[1][0].isdigit(), out
        status, out, err = run(path, "help")
        assert (status, err) == (0, "") and out.startswith(f"Usage: {called} COMMAND"), out
        assert f"'{called} help COMMAND'" in out, out
        assert run(path, "--help") == run(path, "-h") == (status, out, err)
    assert "Profiles workloads" not in run(pod, "help")[1]


def without_a_command_the_list_is_an_error():
    for path in program("sonde"), program("sonde-pod"), kubectl:
        assert run(path) == (2, "", run(path, "help")[1]), path


def help_of_a_command_is_what_it_says_itself():
    for path, called in (program("sonde"), "sonde"), (kubectl, "kubectl sonde"):
        for name in "validate", "version", "help":
            status, out, err = run(path, "help", name)
            assert (status, err) == (0, "") and out.startswith(f"Usage: {called} {name}"), (path, out)
            assert run(path, name, "--help") == (status, out, err)


def every_command_listed_has_help():
    for path in program("sonde"), program("sonde-pod"):
        listed = run(path, "help")[1].split("Commands:\n")[1].split("\n\n")[0].splitlines()
        names = [line.split()[0] for line in listed]
        assert {"help", "version"} <= set(names) and len(set(names)) == len(names), names
        for name in names:
            assert run(path, "help", name)[0] == 0, name


def an_unknown_command_is_an_error_with_a_suggestion():
    for path, called in (program("sonde"), "sonde"), (kubectl, "kubectl sonde"):
        for words in ("validat",), ("help", "validat"), ("help", "vlaidate"):
            said = f"{called}: unknown command '{words[-1]}'; did you mean 'validate'?\n"
            assert run(path, *words) == (2, "", said), run(path, *words)
        for word in "frobnicate", "", "x" * 200, "q":
            said = f"{called}: unknown command '{word}'; '{called} help' lists them\n"
            assert run(path, word) == run(path, "help", word) == (2, "", said), run(path, word)


def arguments_too_many_and_unknown_options_are_errors():
    sonde = program("sonde")
    for words in ("help", "validate", "version"), ("version", "now"), ("help", "--frob"), ("version", "--frob"), ("validate",):
        status, out, err = run(sonde, *words)
        assert (status, out) == (2, "") and err.startswith("sonde: ") and err.count("\n") == 1, (words, status, out, err)


with tempfile.TemporaryDirectory(prefix="sonde-cli-") as folder:
    kubectl = os.path.join(folder, "kubectl-sonde")
    os.symlink(program("sonde"), kubectl)
    main(every_program_names_itself, without_a_command_the_list_is_an_error, help_of_a_command_is_what_it_says_itself,
         every_command_listed_has_help, an_unknown_command_is_an_error_with_a_suggestion,
         arguments_too_many_and_unknown_options_are_errors)
