#!/usr/bin/python3
"""sonde-pod probe --plan and --worker: a whole session over real commands, in one process and in several.

Nothing here depends on how fast the machine is: counts, orders and exit statuses. How time grows with size is tested with samples
(test/unit/session_result.c, test/unit/stats_series.c) and measured by bench/scaling.py.
"""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
from sonde_test import main, program, wait

POD = program("sonde-pod")
PYTHON = "/usr/bin/python3"
HANG = 120  # seconds: longer than anything takes


def sorting(name, **more):
    return {"name": name, "type": "sorting", "command": [POD, "algorithm", name], **more}


def command(name, *words, **more):
    return {"name": name, "type": "custom", "command": list(words), **more}


class Pod:
    """The directories of a run, and the processes in it."""

    def __enter__(self):
        self.root = tempfile.mkdtemp(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None)
        self.run, self.ctl = os.path.join(self.root, "run"), os.path.join(self.root, "ctl")
        os.mkdir(self.run)
        os.mkdir(self.ctl)
        self.children = []
        return self

    def __exit__(self, *_):
        for child in self.children:
            if child.poll() is None:
                child.kill()
            child.wait()
        shutil.rmtree(self.root)

    def start(self, *args, **env):
        child = subprocess.Popen([POD, "probe", *args, "--ctl", self.ctl], stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE, env={**os.environ, **env}, cwd=self.root)
        self.children.append(child)
        return child

    def coordinator(self, plan, *more):
        return self.start("--plan", json.dumps(plan), "--dir", self.run, *more)

    def worker(self, group, **env):
        return self.start("--worker", str(group), **env)

    def stranger(self, text=b""):
        """A connection to the coordinator of somebody who says TEXT."""
        path = os.path.join(self.ctl, "probe.sock")
        wait(lambda: os.path.exists(path), HANG, what="the coordinator listens")
        s = socket.socket(socket.AF_UNIX)
        s.connect(path)  # waits for its turn
        s.settimeout(HANG)
        s.sendall(text)
        return s

    def measure(self, plan, status=0):
        child = self.coordinator(plan)
        out, err = child.communicate(timeout=HANG)
        assert child.returncode == status, (child.returncode, out, err)
        return self.file("result.json")

    def file(self, name):
        path = os.path.join(self.run, name)
        if not os.path.exists(path):
            return None
        with open(path, encoding="utf-8") as f:
            return json.load(f)

    def rows(self):
        """samples.json as a list of dictionaries."""
        samples = self.file("samples.json")
        return [dict(zip(samples["columns"], row)) for row in samples["rows"]]


def entry(result, name):
    return next(e for e in result["algorithms"] if e["name"] == name)


def sorting_grows_as_it_should():
    """sorting at several sizes is a line of each algorithm, with an exponent in its interval"""
    with Pod() as pod:
        result = pod.measure({"seed": 3, "uid": "u", "iterations": 4, "sizes": [100, 200, 400],
                              "algorithms": [sorting("bubble_sort"), sorting("merge_sort")]})
        assert result["unit"] == "process in one pod" and not result["contended"]
        assert len(result["algorithms"]) == 6 and all(e["n"] == 4 for e in result["algorithms"]), result
        assert all(e["executionTime"] > 0 for e in result["algorithms"]), result
        assert [s["algorithm"] for s in result["scaling"]] == ["bubble_sort", "merge_sort"], result["scaling"]
        for s in result["scaling"]:
            assert s["ciLow"] <= s["exponent"] <= s["ciHigh"] and s["sizes"] == 3, s
        assert pod.file("profiling_status.json")["phase"] == "Complete"
        assert pod.file("checkpoint.json") is None
        rows = pod.rows()
        assert len(rows) == 30 and all(r["failure"] is None for r in rows)
        assert sum(r["iteration"] < 0 for r in rows) == 6


def one_that_fails_and_one_that_is_not_there_leave_the_others_alone():
    with Pod() as pod:
        result = pod.measure({"iterations": 6, "sizes": [100], "algorithms": [
            sorting("heap_sort"), command("fails", PYTHON, "-c", "raise SystemExit(3)"), command("missing", "/no/such/program")]})
        rows = pod.rows()
    assert entry(result, "heap_sort")["n"] == 6
    assert "error" not in entry(result, "heap_sort")
    assert entry(result, "fails")["invalidReasons"] == {"exit 3": 2}, entry(result, "fails")
    assert entry(result, "missing")["error"]["reason"] == "NotStarted", entry(result, "missing")
    assert len(rows) == 7 + 3 + 3


def one_that_does_not_end_in_time_is_ended():
    with Pod() as pod:
        pod.measure({"iterations": 2, "warmup": 0, "runTimeout": 1, "algorithms": [command("slow", "sleep", "600")]}, status=1)
        status = pod.file("profiling_status.json")
    assert (status["phase"], status["reason"]) == ("Failed", "TimedOut"), status


def nothing_that_works_is_a_failure_with_its_reason():
    with Pod() as pod:
        script = ("import json, os; json.dump({'error': {'reason': 'FrameworkUnavailable', 'message': 'install it'}}, "
                  "open(os.environ['SONDE_METRICS_FILE'], 'w')); raise SystemExit(1)")
        pod.measure({"iterations": 5, "algorithms": [command("spark", PYTHON, "-c", script)]}, status=1)
        status = pod.file("profiling_status.json")
        assert (status["phase"], status["reason"], status["error"]) == ("Failed", "FrameworkUnavailable", "install it")


def nobody_need_read_what_the_commands_say():
    with Pod() as pod:
        words = [POD, "probe", "--plan", json.dumps({"iterations": 2, "algorithms": [command("talks", "seq", "100000")]}),
                 "--dir", pod.run, "--ctl", pod.ctl]
        ours, theirs = os.pipe()
        os.close(ours)
        for more in ({"stdout": theirs}, {"preexec_fn": lambda: os.closerange(0, 3)}):
            child = subprocess.Popen(words, **more)
            pod.children.append(child)
            assert child.wait(timeout=HANG) == 0, more
            assert entry(pod.file("result.json"), "talks")["n"] == 2
        os.close(theirs)


def a_refused_plan_says_why():
    with Pod() as pod:
        child = pod.coordinator({"iterations": 5, "algorithms": []})
        child.communicate(timeout=HANG)
        assert child.returncode == 2
        assert pod.file("profiling_status.json")["reason"] == "InvalidPlan"


def runs_get_their_environment_and_their_metrics_come_back():
    with Pod() as pod:
        script = "import os; print('seed=' + os.environ['SONDE_SEED']); print('size=' + os.environ['SONDE_INPUT_SIZE']); print('given=$(GIVEN)')"
        result = pod.measure({"iterations": 2, "warmup": 0, "sizes": [7], "algorithms": [
            command("c", PYTHON, "-c", script, env=[{"name": "GIVEN", "value": "4$(TWO)"}, {"name": "TWO", "value": "2"}])]})
        metrics = entry(result, "c")["metrics"]
        assert metrics["size"] == 7 and metrics["seed"] > 0, metrics
        assert "given" not in metrics, metrics  # what comes later is not known: 4$(TWO) is no number


def workers_in_other_containers_run_their_own():
    with Pod() as pod:
        show = "import os; print('where=' + os.environ['WHERE'])"
        plan = {"iterations": 4, "algorithms": [
            command("here", PYTHON, "-c", "print('where=0')"),
            command("first", PYTHON, "-c", show, group=1), command("second", PYTHON, "-c", show, group=2)]}
        child = pod.coordinator(plan)
        workers = [pod.worker(1, WHERE="1"), pod.worker(2, WHERE="2")]
        _, err = child.communicate(timeout=HANG)
        assert child.returncode == 0, err
        result = pod.file("result.json")
        assert [entry(result, n)["metrics"]["where"] for n in ("here", "first", "second")] == [0, 1, 2], result
        assert [w.wait(timeout=HANG) for w in workers] == [0, 0]


def a_worker_that_goes_away_takes_only_its_own_along():
    with Pod() as pod:
        mark = os.path.join(pod.root, "runs")
        wait_long = f"import time; open({mark!r}, 'w').close(); time.sleep(600)"
        plan = {"iterations": 3, "warmup": 0, "parallel": True, "algorithms": [
            sorting("std"), command("gone", PYTHON, "-c", wait_long, group=1, image="registry/gone:1")]}
        child = pod.coordinator(plan)
        worker = pod.worker(1)
        wait(lambda: os.path.exists(mark), HANG, what="the worker runs")
        worker.kill()
        _, err = child.communicate(timeout=HANG)
        assert child.returncode == 0, err
        result = pod.file("result.json")
        assert entry(result, "std")["n"] == 3 and result["contended"], result
        error = entry(result, "gone")["error"]
        assert error["reason"] == "ContainerGone" and "registry/gone:1" in error["message"], error


def strangers_at_the_socket_change_nothing():
    with Pod() as pod:
        mark, go = os.path.join(pod.root, "runs"), os.path.join(pod.root, "go")
        script = (f"import os, time\nopen({mark!r}, 'w').close()\n"
                  f"while not os.path.exists({go!r}): time.sleep(0.01)\n")
        early = pod.worker(1)  # before anybody listens
        child = pod.coordinator({"iterations": 3, "warmup": 0, "algorithms": [
            command("here", "true"), command("there", PYTHON, "-c", script, group=1)]})
        wait(lambda: os.path.exists(mark), HANG, what="the worker runs")
        silent = [pod.stranger(b'{"hello": ') for _ in range(60)]
        for text in (b"garbage\n", b"\n", b'{"hello": {"group": 1}}\n', b'{"hello": {"group": 9}}\n',
                     b'{"sample": {"id": 1, "sample": {"wall": 1, "user": 1, "sys": 1, "exitCode": 0}}}\n', b"\0" * 70000 + b"\n"):
            with pod.stranger(text) as s:
                try:
                    assert s.recv(1) == b"", text  # turned away
                except ConnectionResetError:
                    pass
        with open(go, "w", encoding="utf-8"):
            pass
        _, err = child.communicate(timeout=HANG)
        assert child.returncode == 0, err
        assert [e["n"] for e in pod.file("result.json")["algorithms"]] == [3, 3], pod.file("result.json")
        assert early.wait(timeout=HANG) == 0
        for s in silent:
            s.close()


def a_pod_that_is_ended_loses_no_algorithm():
    """A pod whose worker ends first: the coordinator is told within two seconds, and gives nothing up"""
    with Pod() as pod:
        mark = os.path.join(pod.root, "runs")
        script = f"import os, time\nif os.environ['SONDE_ITERATION'] == '1': open({mark!r}, 'w').close(); time.sleep(600)"
        plan = {"iterations": 6, "warmup": 0, "algorithms": [command("a", "true"), command("b", PYTHON, "-c", script, group=1)]}
        child, worker = pod.coordinator(plan), pod.worker(1)
        wait(lambda: os.path.exists(mark), HANG, what="the second block runs")
        began = time.monotonic()
        worker.terminate()
        assert worker.wait(timeout=HANG) == 143
        child.terminate()
        child.terminate()
        in_time = time.monotonic() - began < 2  # else the worker may be given up, and rightly
        assert child.wait(timeout=HANG) == 143
        kept = pod.file("checkpoint.json")
    assert kept["rows"], kept
    assert not kept["reasons"] or not in_time, kept


def a_metrics_file_that_is_none_hurts_nobody():
    with Pod() as pod:
        path = "os.environ['SONDE_METRICS_FILE']"
        odd = {"fifo": f"os.mkfifo({path})", "directory": f"os.makedirs({path} + '/x')", "link": f"os.symlink('/dev/zero', {path})",
               "huge": f"open({path}, 'w').write('[' * 1000000)", "deep": f"open({path}, 'w').write('{{\"a\":' * 100000)",
               "endless": f"open({path}, 'w').write('{{\"region\": {{\"wall\": 1e200}}}}')"}
        result = pod.measure({"iterations": 2, "algorithms": [
            *(command(name, PYTHON, "-c", "import os; " + what) for name, what in odd.items()),
            command("good", PYTHON, "-c", f"import os; open({path}, 'w').write('{{\"score\": 4}}')")]})
        assert entry(result, "good")["n"] == 2 and entry(result, "good")["metrics"] == {"score": 4}, entry(result, "good")
        for name in odd:
            e = entry(result, name)
            assert e["n"] == (0 if name == "endless" else 2), e
            assert name == "endless" or any(w.startswith(name + ": metrics are left out") for w in result["warnings"]), result["warnings"]
        assert "executionTime" not in entry(result, "endless"), entry(result, "endless")


def metrics_beside_are_of_the_run_that_wrote_them():
    writes = command("writes", "sh", "-c", """echo '{"score": 4, "region": {"wall": 99}}' >metrics.json""")
    with Pod() as pod:
        result = pod.measure({"iterations": 5, "warmup": 0, "algorithms": [
            writes, command("silent", "true"), command("crashes", "sh", "-c", "kill -9 $$")]})
        assert entry(result, "writes")["metrics"] == {"score": 4} and entry(result, "writes")["executionTime"] == 99, result
        silent = entry(result, "silent")
        assert silent["n"] == 5 and "metrics" not in silent and silent["executionTime"] < 60, silent
        assert "metrics" not in entry(result, "crashes"), result
    with Pod() as pod:  # whose it is cannot be told: each is there until the other is
        both = "touch {0}; until test -e {1}; do sleep 0.01; done; "
        result = pod.measure({"iterations": 1, "warmup": 0, "parallel": True, "algorithms": [
            command("one", "sh", "-c", both.format("1", "2") + "echo '{\"score\": 4}' >metrics.json"),
            command("two", "sh", "-c", both.format("2", "1") + "until test -e metrics.json; do sleep 0.01; done")]})
        for name in ("one", "two"):
            assert entry(result, name)["n"] == 1 and "metrics" not in entry(result, name), entry(result, name)
            assert any(w.startswith(name + ": metrics.json is left out") for w in result["warnings"]), result["warnings"]


def a_command_that_is_too_long_is_not_run():
    with Pod() as pod:
        twice = [{"name": "V0", "value": "x" * 10}] + [{"name": f"V{i}", "value": f"$(V{i - 1})$(V{i - 1})"} for i in range(1, 30)]
        result = pod.measure({"iterations": 2, "algorithms": [
            sorting("std"), command("long", "echo", "$(V29)", env=twice), command("arg", "echo", "$(V14)", env=twice[:15])]})
        assert entry(result, "std")["n"] == 2
        for name in ("long", "arg"):
            assert entry(result, name)["error"]["reason"] == "NotStarted", entry(result, name)


def what_cannot_be_written_is_said():
    with Pod() as pod:
        os.makedirs(os.path.join(pod.run, "samples.json", "in the way"))
        result = pod.measure({"iterations": 2, "algorithms": [sorting("std")]})
        assert any("the samples are not kept" in w for w in result["warnings"]), result["warnings"]
    with Pod() as pod:
        os.makedirs(os.path.join(pod.run, "result.json", "in the way"))
        child = pod.coordinator({"iterations": 2, "algorithms": [sorting("std")]})
        child.communicate(timeout=HANG)
        assert child.returncode == 1 and pod.file("profiling_status.json")["reason"] == "ResultNotWritten"
        assert len(pod.file("checkpoint.json")["rows"]) == 3
    with Pod() as pod:
        os.makedirs(os.path.join(pod.ctl, "probe.sock", "in the way"))
        child = pod.coordinator({"iterations": 2, "algorithms": [sorting("std", group=1)]})
        child.communicate(timeout=HANG)
        assert child.returncode == 1 and pod.file("profiling_status.json")["reason"] == "NotStarted"


def a_killed_session_goes_on_where_it_stood():
    with Pod() as pod:
        log = os.path.join(pod.root, "log")
        script = f"open({log!r}, 'a').write('x')"
        held = os.path.join(pod.root, "held")
        hold = (f"import os, time\nopen({log!r}, 'a').write('y')\n"
                f"if os.environ['SONDE_ITERATION'] == '2' and not os.path.exists({held!r}):\n"
                f"    open({held!r}, 'w').close()\n    time.sleep(600)\n")
        plan = {"iterations": 4, "algorithms": [command("a", PYTHON, "-c", script), command("b", PYTHON, "-c", hold)]}
        child = pod.coordinator(plan)
        wait(lambda: os.path.exists(held), HANG, what="the third block's run is held")
        child.send_signal(signal.SIGKILL)
        child.wait()
        before = len(pod.file("checkpoint.json")["rows"])
        assert before in (6, 7), before
        result = pod.measure(plan)
        assert all(e["n"] == 4 for e in result["algorithms"]), result
        assert any("continued 1 time from" in w for w in result["warnings"]), result["warnings"]
        with open(log, encoding="utf-8") as f:
            text = f.read()
        assert text.count("x") == 5 and text.count("y") == 6, text  # only the one that was killed ran again


def told_to_end_it_ends_what_runs_and_keeps_the_rest():
    with Pod() as pod:
        mark = os.path.join(pod.root, "pid")
        script = (f"import os, time\nif os.environ['SONDE_ITERATION'] == '1':\n    open({mark!r} + '.new', 'w').write(str(os.getpid()))\n"
                  f"    os.rename({mark!r} + '.new', {mark!r})\n    time.sleep(600)\n")
        child = pod.coordinator({"iterations": 3, "algorithms": [command("a", PYTHON, "-c", script)]})
        wait(lambda: os.path.exists(mark), HANG, what="the second block runs")
        child.terminate()
        assert child.wait(timeout=HANG) == 143
        with open(mark, encoding="utf-8") as f:
            pid = int(f.read())
        wait(lambda: not os.path.exists(f"/proc/{pid}"), HANG, what="the command has ended")
        assert len(pod.file("checkpoint.json")["rows"]) == 2
        assert pod.file("result.json") is None


def pods_follow_one_another():
    with Pod() as pod:
        plan = {"iterations": 2, "pods": 2, "sizes": [50], "algorithms": [sorting("heap_sort"), sorting("std")]}
        assert pod.measure(plan) == {"morePods": 1}
        result = pod.measure(plan)
        assert result["unit"] == "pod" and result["pods"] == 2 and entry(result, "std")["n"] == 4, result


if __name__ == "__main__":
    main(sorting_grows_as_it_should,
         one_that_fails_and_one_that_is_not_there_leave_the_others_alone,
         one_that_does_not_end_in_time_is_ended,
         nothing_that_works_is_a_failure_with_its_reason,
         nobody_need_read_what_the_commands_say,
         a_refused_plan_says_why,
         runs_get_their_environment_and_their_metrics_come_back,
         workers_in_other_containers_run_their_own,
         a_worker_that_goes_away_takes_only_its_own_along,
         strangers_at_the_socket_change_nothing,
         a_pod_that_is_ended_loses_no_algorithm,
         a_metrics_file_that_is_none_hurts_nobody,
         metrics_beside_are_of_the_run_that_wrote_them,
         a_command_that_is_too_long_is_not_run,
         what_cannot_be_written_is_said,
         a_killed_session_goes_on_where_it_stood,
         told_to_end_it_ends_what_runs_and_keeps_the_rest,
         pods_follow_one_another)
