#!/usr/bin/python3
"""Every command in the documents, run as a reader would, page by page: exit status, and what the page shows is printed.

test/lib/doc_pages.py says how pages are read. Each page has a directory and an engine (or a control plane) of its own, in which its
commands are run one after the other, with build/ in PATH; three pages at a time. What stays, such as `sonde up`, goes on beside
the rest of its page, or until the same is started again. So that nobody's port is taken, the ports of 127.0.0.1 that a page names become
free ones, and an operator of which the page does not say where it is asked for its health is not asked.

    test/docs/commands.py                       the pages that need no Kubernetes
    test/docs/commands.py cluster               the others, on the plane `fragile`
    test/docs/commands.py docs/cli.md           one page
    test/docs/commands.py --show docs/cli.md    and what its commands print
"""

import concurrent.futures
import contextlib
import os
import re
import shutil
import socket
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
import doc_pages  # noqa: E402  pylint: disable=wrong-import-position
from sonde_test import BUILD, ROOT, ControlPlane, Engine, Process, diag, kubectl_path, main, wait  # noqa: E402
from terminal import Terminal  # noqa: E402
from tidy import tidied  # noqa: E402

PATIENCE = 300  # for one command, or what a page takes for granted: some real runs
# What does not end by itself: it is waited for until it has printed what is shown, or anything, and ended with its page.
STAYS = re.compile(r"\b(sonde up\b|sonde operator\b|sonde-pod sim\b|kubectl get\b(?=.* -w)|sonde watch$)(?!.*(?:--exit-when-done|--truth))")
# What a page takes for granted, as a script. It may not fail.
PROFILING = "examples/algorithmprofiling.yaml"


def sweeps(osl):
    """The example with an answer of OSL tokens, so that its decode sweep lasts until it was seen: ten seconds for every 200 of them.
    It takes the place of the one that the page itself may have made."""
    return f"""kubectl delete dgdr simulated-qwen3 --ignore-not-found --cascade=foreground &&
        sed 's/osl: 50, ttft/osl: {osl}, ttft/' examples/dgdr.yaml | sonde apply -f -"""


GIVEN = {
    "a finished profiling": f"sonde apply -f {PROFILING} && sonde wait -q ap/quick-sort",
    "a profiling that was deleted": f"sonde apply -f {PROFILING} && sonde wait -q ap/quick-sort && kubectl delete ap quick-sort",
    "a finished comparison": "sonde apply -f examples/algorithmcomparison.yaml && sonde wait -q ac/sorting",
    "a finished deployment request": "sonde apply -f examples/dgdr.yaml && sonde wait -q dgdr/simulated-qwen3",
    "a deployment request in its decode sweep": sweeps(400) + """ &&
        until kubectl get dgdr simulated-qwen3 -o jsonpath='{.status.profilingProgress}' | grep '"phase":"DecodeSweep".*totalSteps'; do sleep 0.1; done""",
    "a deployment request in its decode interpolation": """sed 's/InterpolationOsl: 50/InterpolationOsl: 400/' examples/dgdr.yaml | sonde apply -f - &&
        until sonde get dgdr | grep DecodeInterpolation; do sleep 0.1; done""",
    "runs in many states": f"""set -e
        sonde apply -f {PROFILING} -f examples/algorithmcomparison.yaml -f examples/cudaexperiment.yaml
        sed 's/name: quick-sort/name: held/; $a\\  suspend: true' {PROFILING} | sonde apply -f -
        sed 's/name: quick-sort/name: same/; $a\\  schedule: {{cron: "0 3 * * 1"}}' {PROFILING} | sonde apply -f -
        sed 's/name: sorting/name: same/; $a\\  suspend: true' examples/algorithmcomparison.yaml | sonde apply -f -
        sed 's/name: quick-sort/name: broken/; s/algorithmType: sorting/algorithmType: custom/; s/inputSizes: .*/warmup: 0/;
             $a\\  customConfig: {{image: mine, command: [sh, -c, exit 3]}}' {PROFILING} | sonde apply -f -
        sonde wait -q ap/quick-sort ac/sorting
        sonde wait -q ap/broken || true
        {sweeps(1000)}
        until sonde get dgdr | grep Sweep; do sleep 0.1; done""",
    "an executed experiment": """sed 's#/cuda-samples/vectorAdd#/bin/true#' examples/cudaexperiment.yaml | sonde apply -f - &&
        sonde wait -q cuda/vectoradd""",
    "runs to compare": f"""set -e
        for name in before after; do sed "s/name: quick-sort/name: $name/" {PROFILING} | sonde apply -f -; done
        for name in monday friday; do
          sed "s/name: sorting/name: $name/; s/inputSize: .*/inputSize: 25000/" examples/algorithmcomparison.yaml | sonde apply -f -; done
        sonde wait -q ap/before ap/after ac/monday ac/friday""",
    "a report of Nsight Compute": "cp test/data/ncu/wide.csv report.csv",
    "a configuration of the profiler": """cat > config.yaml <<'END'
deployment: {model: sim/llama}
engine: {backend: vllm, maxContextLength: 4096}
hardware: {minNumGpusPerEngine: 1, maxNumGpusPerEngine: 2, numGpusPerNode: 2}
sla: {isl: 1000, osl: 50, ttft: 40, itl: 12}
END""",
    "a file with mistakes": """cat > bad.yaml <<'END'
apiVersion: dprofiler.io/v1alpha1
kind: AlgorithmProfiling
metadata:
  name: bad
spec:
  algorithmName: quick_sort
  algorithmType: sortin
  inputsize: 100000
  iterations: "20"
  parameters:
    pivot_strategy: median
  priority: 5
  frobnicate: 1
END""",
}


class Reader:
    """Somebody who types what a page says, in a directory with the repository's folders, and nothing else around."""

    def __init__(self, server):
        self._server = server
        self._rest = contextlib.ExitStack()
        self._stay = {}  # by what was started
        self._ports = {}

    def __enter__(self):
        self._state = self._rest.enter_context(tempfile.TemporaryDirectory(prefix="sonde-docs-"))
        home, here, path = (os.path.join(self._state, name) for name in ("home", "here", "bin"))
        for folder in home, here, path:
            os.mkdir(folder)
        os.chmod(self._state, 0o755)  # pods run as another user
        for name in "examples", "deploy", "python", "test", "k8s":
            if os.path.exists(os.path.join(ROOT, name)):
                shutil.copytree(os.path.join(ROOT, name), os.path.join(here, name))
        os.symlink(BUILD, os.path.join(here, "build"))
        for name, target in ("sonde", f"{BUILD}/sonde"), ("kubectl-sonde", f"{BUILD}/sonde"), ("sonde-pod", f"{BUILD}/sonde-pod"), \
                ("kubectl", kubectl_path()), ("cluster", f"{ROOT}/test/cluster/cluster"):
            os.symlink(target, os.path.join(path, name))
        self._env = {"PATH": f"{path}:/usr/bin:/bin", "HOME": home, "TZ": "UTC", "LC_ALL": "C.UTF-8", "TERM": "dumb", "USER": "reader",
                     "SHELL": "/bin/bash"}
        server = self._rest.enter_context(self._server)
        if server:
            self._env["KUBECONFIG"] = server.kubeconfig
            if isinstance(server, Engine):
                os.symlink(server.home, os.path.join(home, ".sonde"))  # where `sonde up` keeps what it has
        for name, text in ("environment", ""), ("directory", here + "\n"):
            with open(os.path.join(self._state, name), "w", encoding="utf-8") as f:
                f.write(text)
        return self

    def __exit__(self, *what):
        return self._rest.__exit__(*what)

    def _free(self, port):
        if port[0] not in self._ports:
            with socket.socket() as s:
                s.bind(("127.0.0.1", 0))
                self._ports[port[0]] = f"127.0.0.1:{s.getsockname()[1]}"
        return self._ports[port[0]]

    def _script(self, command):
        """COMMAND where the last one left off, with what it had exported."""
        command = re.sub(r"(?:127\.0\.0\.1|localhost):\d{4,5}\b", self._free, command)
        if "--health-probe-bind-address" not in command:
            command = re.sub(r"\bsonde operator\b", "sonde operator --health-probe-bind-address 0", command)
        return (f'. {self._state}/environment; cd "$(cat {self._state}/directory)" || exit\n{command}\nstatus=$?\n'
                f"export -p > {self._state}/environment; pwd > {self._state}/directory; exit $status")

    def _process(self, command):
        """A bash with nothing of the test's own environment, in a process group that ends with it."""
        return Process("/usr/bin/env", "-i", *(f"{name}={value}" for name, value in self._env.items()), "bash", "-c", self._script(command))

    def run(self, command):
        """(exit status, what it printed)"""
        with self._process(command) as process:
            try:
                code = process.wait(PATIENCE)
            except AssertionError:
                raise AssertionError(f"{command}\nstill runs after {PATIENCE} s, having printed\n" + "\n".join(process.lines)) from None
        return code, "".join(line + "\n" for line in process.lines)

    def start(self, command, shown):
        """Starts what stays, and waits until it has printed what is SHOWN."""
        name = STAYS.search(command)[1]
        if name in self._stay:
            self._stay[name].stop(PATIENCE)
        process = self._stay[name] = self._process("exec env " + command)  # so that it is the one that is told to end
        self._rest.callback(process.stop, PATIENCE)  # an engine ends its pods first
        expected = doc_pages.pattern(shown, whole=False) if shown else re.compile(".")

        def printed():
            text = "".join(line + "\n" for line in list(process.lines))
            assert expected.match(text), text
            return text
        return wait(printed, PATIENCE, f"{command} to print what the page shows")

    def look(self, command, shown):
        """Runs it in a terminal until the screen is as SHOWN."""
        expected = doc_pages.pattern(shown, whole=False)
        with Terminal(["bash", "-c", self._script("TERM=screen " + command)], 100, 40, self._env) as terminal:
            def seen():
                text = terminal.screen() + "\n"
                assert expected.search(text.partition("before\n")[2]), text
                return text
            return wait(seen, PATIENCE, f"{command} to show what the page shows")


@contextlib.contextmanager
def served(*arguments):
    """An engine that has our kinds: it names its page after that."""
    with Engine(*arguments) as engine:
        engine.process.expect("page:", 120)
        yield engine


@contextlib.contextmanager
def replayed():
    """An engine with a GPU, on which a recording is played in the place of Nsight Compute."""
    with served("--no-operator", "--gpus", "1") as engine, \
         Process(f"{BUILD}/sonde", "operator", "--kubeconfig", engine.kubeconfig, "--health-probe-bind-address", "0",
                 "--profiler-env", f"SONDE_NCU={ROOT}/test/tools/ncu-replay"):
        yield engine


@contextlib.contextmanager
def kubernetes():
    with ControlPlane.of("fragile") as cluster, tidied(cluster):
        yield cluster


SERVERS = {"engine": served, "cluster": kubernetes, "replay": replayed, "nothing": contextlib.nullcontext}


def follow(reader, command, shown, terminal):
    """Types one command; what it printed."""
    if terminal:
        return reader.look(command, shown)
    if STAYS.search(command.partition("#")[0].strip()):
        return reader.start(command, shown)
    code, text = reader.run(command)
    assert (code != 0) == doc_pages.fails(shown), f"{command}\nexit status {code}:\n{text}"
    if shown is not None:
        assert doc_pages.pattern(shown).match(text), f"{command}\nprinted\n{text}\nand not\n" + "\n".join(shown)
    return text


def type_block(reader, block):
    given = block.comments.get("given")
    if given:
        code, text = reader.run(GIVEN[given])
        assert code == 0, f"given {given!r}: {text}"
    for command, shown in block.commands():
        if shown and "may differ" in block.comments:
            shown = shown[:1] + ["..."]
        text = follow(reader, command, shown, "in a terminal" in block.comments)
        if SHOW:
            print(f"$ {command}\n{text}", flush=True)


def type_page(file, runs):
    """Types all of a page's blocks RUNS; how long that took."""
    began = time.monotonic()
    with Reader(SERVERS[runs[0].comments.get("on", "engine")]()) as reader:
        for block in runs:
            try:
                type_block(reader, block)
            except AssertionError as e:
                raise AssertionError(f"{file}:{block.at}: {e}") from None
    return time.monotonic() - began


def page_test(file, runs, pool):
    """A test that waits until a page was typed by one of the POOL."""
    typed = pool.submit(type_page, file, runs)

    def test():
        diag(f"{typed.result():.1f} s")
    test.__name__ = file
    test.__doc__ = f"{file}: {sum(len(block.commands()) for block in runs)} commands"
    return test


def every_comment_is_understood():
    """what is not run has a reason that is known, and what is given is known"""
    bad, left = [], []
    for file, text in doc_pages.pages():
        for block in doc_pages.blocks(text):
            given, not_run = block.comments.get("given"), block.comments.get("not run")
            if given and given not in GIVEN:
                bad.append(f"{file}:{block.at}: given {given!r} is not in test/docs/commands.py")
            if not_run:
                left.append(f"{file}:{block.at}: {not_run}")
                fault = doc_pages.refusal(not_run, [command for command, _ in block.commands()] if block.is_commands else ())
                if fault:
                    bad.append(f"{file}:{block.at}: {fault}")
    diag(f"{len(left)} blocks are not run:")
    for line in left:
        diag("  " + line)
    assert not bad, bad


SAMPLE = """# A page

Text.

    $ sonde get
    NAME  AGE
    a     3m

    ...
    $ sonde explain x
    sonde: there is no x

<!-- not run: needs a GPU, see test/cuda/e2e.py -->
    sonde-pod ncu -- ./a \\
        --all

Text.

    name: not a command

```bash
for i in 1 2; do
  true
done
```
"""


def pages_are_read_as_they_say():
    shown, not_run, text, script = doc_pages.blocks(SAMPLE)
    assert shown.commands() == [("sonde get", ["NAME  AGE", "a     3m", "", "..."]), ("sonde explain x", ["sonde: there is no x"])]
    assert not_run.commands() == [("sonde-pod ncu -- ./a --all", None)] and not_run.comments == {"not run": "needs a GPU, see test/cuda/e2e.py"}
    assert not text.is_commands and script.is_commands and script.commands()[0][0].startswith("set -e\nfor")
    assert doc_pages.fails(["sonde: no"]) and not doc_pages.fails(["sonde up: engine ready"])
    assert doc_pages.refusal("no time") and doc_pages.refusal("needs a GPU, see test/gone.py") and doc_pages.refusal("needs a GPU")
    assert doc_pages.refusal("needs a GPU, see test/lib/sonde_test.py") and not doc_pages.refusal("needs a GPU, see test/probe/ncu.py")
    assert not doc_pages.refusal("needs Docker")
    assert doc_pages.telling("sonde results ac/a --to x | kubectl create secret generic s --from-file=p # sonde get") == \
        ["results", "--to", "create", "secret"]
    assert doc_pages.telling('A=1 curl -k "Bearer $(kubectl create token x)"; sonde probe -n 2 -- a --b') == ["curl", "create", "token", "probe"]
    assert doc_pages.telling("curl -k https://127.0.0.1:8000/api/v1/runs") == ["/api/v1/runs"]
    seen = "needs PostgreSQL, see test/history/postgres.py"
    assert not doc_pages.refusal(seen, ["sonde history --history x"]) and "'manifests'" in doc_pages.refusal(seen, ["sonde manifests"])
    for wrong in "<!-- not run: needs a GPU -->\ntext\n", "<!-- hidden -->\n":
        try:
            list(doc_pages.blocks(wrong))
        except ValueError:
            continue
        raise AssertionError(f"{wrong!r} is taken")


def output_is_compared_as_it_says():
    def equal(shown, printed):
        return bool(doc_pages.pattern(shown.splitlines()).match(printed))
    assert equal("a  3m  17.9 ms ± 1.1 %", "a     11m20s   9 ms ±  12.25 %\n")
    assert equal("at 14:02, ...", "at 09:59, in a while\n") and equal("a\n...\nz", "a\nb\nc\nz\n") and equal("a\n...\nz", "a\nz\n")
    assert equal("run  ███▌··  5 %", "run  █·  95 %\n")
    for shown, printed in ("a", "b\n"), ("a", "a\nb\n"), ("2 failed", "0 failed\n"), ("a\n...", "b\n"), ("a b", "ab\n"), ("a", ""):
        assert not equal(shown, printed), (shown, printed)


def pages(words):
    """[(file, blocks that are run)] of the pages that WORDS choose."""
    for file, text in doc_pages.pages():
        runs = [block for block in doc_pages.blocks(text) if block.is_commands and "not run" not in block.comments]
        if runs and (file in words if words not in ([], ["cluster"]) else (runs[0].comments.get("on") == "cluster") == bool(words)):
            yield file, runs


SHOW = "--show" in sys.argv[1:]
if __name__ == "__main__":
    names = [word for word in sys.argv[1:] if word != "--show"]
    checks = () if names else (pages_are_read_as_they_say, output_is_compared_as_it_says, every_comment_is_understood)
    with concurrent.futures.ThreadPoolExecutor(3) as readers:
        main(*checks, *[page_test(file, runs, readers) for file, runs in pages(names)])
