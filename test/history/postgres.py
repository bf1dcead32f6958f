#!/usr/bin/python3
"""The history in PostgreSQL: Debian's server, started here, stopped, killed, full of others' rights."""

import concurrent.futures
import json
import os
import random
import shutil
import signal
import string
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
from postgres_server import PASSWORD, Postgres, make_certificate
from sonde_test import ROOT, Process, main, program, wait


class Exercise(Process):
    """test/history-exercise: what it is told, it does."""

    def __init__(self, url, *arguments, env=None):
        super().__init__(program("test/history-exercise"), url, *arguments, stdin=subprocess.PIPE,
                         env={"PGPASSWORD": PASSWORD, **(env or {})})
        self.began = self.expect("^(ready|refused .*)$", 120)[1]

    def tell(self, line, answer=None, seconds=120):
        start = len(self.lines)
        self.popen.stdin.write((line + "\n").encode())
        self.popen.stdin.flush()
        return self.expect(answer, seconds, start) if answer else None

    def end(self):
        self.popen.stdin.close()
        code = self.wait(120)
        assert code == 0, self.lines
        assert not any(PASSWORD in line for line in self.lines), self.lines


def run(*arguments, password=PASSWORD, env=None):
    """Exit status, standard output, standard error of sonde."""
    env = {**os.environ, "HOME": "/nonexistent", **({"PGPASSWORD": password} if password else {}), **(env or {})}
    done = subprocess.run([program("sonde"), *arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120,
                          env=env, check=False)
    assert PASSWORD not in done.stdout + done.stderr, (done.stdout, done.stderr)
    return done.returncode, done.stdout, done.stderr


# --- the same as in a file ------------------------------------------------------


def unit(name):
    done = subprocess.run([program("test/unit-" + name)], cwd=ROOT, capture_output=True, text=True, timeout=400, check=False,
                          env={**os.environ, "SONDE_TEST_HISTORY": server.url(), "PGPASSWORD": PASSWORD})
    assert done.returncode == 0, done.stdout + done.stderr


def the_history_s_own_tests_pass():
    unit("history")


def the_rows_own_tests_pass():
    unit("history_rows")


def runs_are_listed_by_their_labels():
    url = server.url("listed")
    with Exercise(url) as x:
        x.tell("record one s 1.5", "^recorded one$")
        x.tell("record two t 2", "^recorded two$")
        x.end()
    status, out, err = run("history", "--history", url, "-l", "team=a", "-o", "json")
    assert (status, err) == (0, ""), err
    runs = json.loads(out)["runs"]
    assert [r["uid"] for r in runs] == ["two", "one"] and runs[0]["labels"] == {"team": "a"}, out
    assert json.loads(run("history", "--history", url, "-l", "team=b", "-o", "json")[1])["runs"] == []
    one = json.loads(run("history", "--history", url, "--uid", "one", "-o", "json")[1])["runs"]
    assert one[0]["samples"] == [1, 2] and one[0]["measures"][0]["seconds"] == 1.5, one
    assert run("results", "--uid", "one", "--history", url, "-o", "csv") == (0, "algorithm,size,time,runs\na,0,1.5,1\n", "")
    status, out, err = run("results", "--uid", "nix", "--history", url)
    assert (status, out) == (1, "") and err.startswith("sonde: results: ") and err.count("\n") == 1, (status, out, err)
    status, out, err = run("history", "--history", url, "--series", "s")
    assert (status, err) == (0, "") and len(out.splitlines()) == 2 and "a: 1.5 s" in out, out


def a_name_that_no_index_takes_holds_no_row():
    odd = "cpu-" + "".join(random.Random(1).choices(string.ascii_letters, k=10240))
    with Exercise(server.url("odd")) as x:
        x.tell("record a s 1")
        x.tell(f"record b {odd} 2")
        x.tell("record c s 3")
        for name in "abc":
            x.expect(f"^recorded {name}$", 120)
        assert x.tell(f"series {odd}", "^series cpu-[^ ]*(.*)")[1] == " 2"
        x.end()


# --- a server that comes and goes -----------------------------------------------


def a_server_that_was_killed_is_found_again():
    with Exercise(server.url("killed")) as x:
        x.tell("record a s 1", "^recorded a$")
        server.stop(signal.SIGKILL)
        said = x.tell("record b s 2", "^failed b (.*)")[1]
        assert f"the history postgres://sonde@127.0.0.1:{server.port}/sonde: " in said and "refused" in said, said
        x.tell("record c s 3", "^failed c .*refused")
        assert x.tell("series s", "^series s(.*)")[1] == ""  # not known now
        server.start()
        wait(lambda: x.tell("record b s 2", "^(recorded|failed) b")[1] == "recorded", 90, every=0.5)
        x.tell("record c s 3", "^recorded c$")
        assert x.tell("series s", "^series s(.*)")[1] == " 1 2 3"
        x.end()
        for word in "cannot be reached", "is there again":
            assert len([line for line in x.lines if word in line]) == 1, x.lines


def a_server_that_was_restarted_meanwhile_is_not_noticed():
    with Exercise(server.url("restarted")) as x:
        x.tell("record a s 1", "^recorded a$")
        server.stop()
        server.start()
        assert x.tell("series s", "^series s(.*)")[1] == " 1"
        server.stop()
        server.start()
        x.tell("record b s 2", "^(recorded|failed) b$")
        assert x.tell("list", "^list (.*)")[1] == "b a"
        x.end()


def a_server_that_is_killed_between_rows_loses_none_that_was_told():
    told = []
    with Exercise(server.url("between")) as x:
        for round_ in range(3):
            start = len(x.lines)
            for i in range(40):
                x.tell(f"record r{round_}-{i} s 1")
            server.stop(signal.SIGQUIT)
            x.expect(f"^(recorded|failed) r{round_}-39", 120, start)
            server.start()
            wait(lambda: x.tell(f"record end{round_} s 1", f"^(recorded|failed) end{round_}")[1] == "recorded", 90, every=0.5)
        told = [line.split()[1] for line in x.lines if line.startswith("recorded ")]
        kept = x.tell("list", "^list (.*)")[1].split()
        assert len(kept) == len(set(kept)) and set(told) <= set(kept), (told, kept)
        x.end()


def a_server_that_stops_answering_is_given_up():
    with Exercise(server.url("stopped")) as x:
        x.tell("record a s 1", "^recorded a$")
        server.signal_all(signal.SIGSTOP)
        try:
            said = x.tell("record b s 2", "^failed b (.*)")[1]
        finally:
            server.signal_all(signal.SIGCONT)
        assert "has not answered for 15 s" in said or "timeout expired" in said, said
        wait(lambda: x.tell("record b s 2", "^(recorded|failed) b")[1] == "recorded", 90, every=0.5)
        x.end()


def a_server_that_is_not_there_yet_is_waited_for():
    url = server.url("later")
    server.stop()
    status, out, err = run("history", "--history", url)
    assert (status, out) == (1, "") and "cannot open the history" in err and "refused" in err and err.count("\n") == 1, err
    with Exercise(url) as x:
        x.expect("cannot be reached; trying again.*refused", 120)
        x.tell("record a s 1", "^failed a .*refused")
        server.start()
        wait(lambda: x.tell("record a s 1", "^(recorded|failed) a")[1] == "recorded", 90, every=0.5)
        x.end()


def a_lock_that_is_held_too_long_fails_the_row_alone():
    url = server.url("locked")
    with Exercise(url) as x:
        x.tell("record a s 1", "^recorded a$")
        with Process("psql", "-X", "-q", f"host=127.0.0.1 port={server.port} user=postgres dbname=sonde", "-c", "BEGIN", "-c",
                     "LOCK TABLE locked.run", "-c", r"\echo locked", "-c", "SELECT pg_sleep(300)",
                     env={"PGPASSWORD": PASSWORD + "-root"}) as psql:
            psql.expect("^locked$", 90)
            # Ours is held up, or the server: then the row fails for want of an answer, before the lock's time is over.
            wait(lambda: "lock timeout" in x.tell("record b s 2", "^failed b (.*)")[1], 120, "the row to fail for the lock")
        server.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE '%pg_sleep%' AND pid <> pg_backend_pid()")
        wait(lambda: x.tell("record b s 2", "^(recorded|failed) b")[1] == "recorded", 90)
        x.end()


# --- several of us ---------------------------------------------------------------


def several_operators_make_the_tables_once_and_write_side_by_side():
    url = server.url("several")
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        several = list(pool.map(Exercise, [url] * 4))
    try:
        assert [x.began for x in several] == ["ready"] * 4, [x.lines for x in several]
        for i in range(60):
            for n, x in enumerate(several):
                x.tell(f"record own{n}-{i} s{n} 1")
                x.tell(f"record common-{i} s 1")
        for n, x in enumerate(several):
            x.expect("^(recorded|failed) common-59", 120)
            wait(lambda x=x: len([line for line in x.lines if line.startswith(("recorded", "failed"))]) == 120, 120)
            assert not [line for line in x.lines if line.startswith("failed")], x.lines
        assert len(several[0].tell("list", "^list (.*)")[1].split()) == 5 * 60
        assert server.sql("SELECT version FROM several.history_version", database="sonde") == ["2"]
        for x in several:
            x.end()
    finally:
        for x in several:
            x.stop()


# --- who may ----------------------------------------------------------------------


def refused(url, *arguments, env=None):
    with Exercise(url, *arguments, env=env) as x:
        x.end()
    return x.began


def a_wrong_password_is_told_and_never_shown():
    said = refused(server.url(password="sesame-x"))
    assert "password authentication failed" in said and "--history-password-file" in said, said
    assert f"postgres://sonde@127.0.0.1:{server.port}/sonde" in said and "sesame" not in said, said
    wrong = server.file("wrong", "sesame-y\n")
    status, out, err = run("history", "--history", server.url(), "--history-password-file", wrong)
    assert (status, out) == (1, "") and "password authentication failed" in err and "sesame" not in err, err
    said = refused(server.url(), env={"PGPASSWORD": ""})
    assert "no password supplied" in said and "$PGPASSWORD" in said, said
    empty = server.file("empty", "\n")
    assert "is empty" in refused(server.url(), empty)
    assert "No such file" in refused(server.url(), "/nonexistent")


def the_password_comes_from_a_file_the_url_or_the_environment():
    url = server.url("by_file")
    assert refused(url, server.password_file, env={"PGPASSWORD": "wrong"}) == "ready"
    assert refused(url) == "ready"
    assert refused(server.url("by_url", password=PASSWORD), env={"PGPASSWORD": "wrong"}) == "ready"


def nowhere():
    """A kubeconfig of a cluster that is not there."""
    return server.file("kubeconfig", json.dumps({
        "apiVersion": "v1", "kind": "Config", "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:1"}}], "users": [{"name": "u", "user": {}}]}))


def the_operator_does_not_start_with_a_wrong_password():
    wrong = server.file("wrong", "sesame-y\n")
    status, _, err = run("operator", "--kubeconfig", nowhere(), "--health-probe-bind-address", "0", "--history", server.url(),
                         "--history-password-file", wrong)
    assert status == 1 and "password authentication failed" in err and "sesame" not in err, err


def a_database_that_is_not_there_or_speaks_no_utf8_is_refused():
    assert "does not exist" in refused(server.url(database="nowhere"))
    server.sql("CREATE DATABASE ascii OWNER sonde TEMPLATE template0 ENCODING 'SQL_ASCII'")
    assert "ENCODING 'UTF8'" in refused(server.url(database="ascii"))


def rows_need_no_right_to_make_tables_and_readers_none_to_write():
    url = server.url("rights")
    server.sql(f"CREATE ROLE writer LOGIN PASSWORD '{PASSWORD}'", f"CREATE ROLE reader LOGIN PASSWORD '{PASSWORD}'",
               "GRANT USAGE ON SCHEMA rights TO writer, reader", database="sonde")
    as_writer, as_reader = url.replace("sonde@", "writer@"), url.replace("sonde@", "reader@")
    assert "permission denied" in refused(as_writer)
    assert refused(url) == "ready"
    server.sql("GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA rights TO writer",
               "GRANT SELECT ON ALL TABLES IN SCHEMA rights TO reader", database="sonde")
    with Exercise(as_writer) as x:
        x.tell("record a s 1", "^recorded a$")
        x.tell("record a s 2", "^recorded a$")
        x.end()
    with Exercise(as_reader) as x:
        assert "permission denied" in x.tell("record b s 1", "^failed b (.*)")[1]
        x.end()
    status, out, err = run("history", "--history", as_reader)
    assert (status, err) == (0, "") and len(out.splitlines()) == 2, (out, err)


def who_reads_makes_no_tables():
    url = server.url("empty")
    status, _, err = run("history", "--history", url)
    assert status == 1 and "holds no history" in err, err
    assert server.sql("SELECT count(*) FROM pg_tables WHERE schemaname = 'empty'", database="sonde") == ["0"]


def the_api_alone_is_there_before_the_tables_and_without_the_server():
    words = ["operator", "--api-only", "--listen", "127.0.0.1:0", "--kubeconfig", nowhere(), "--health-probe-bind-address", "0",
             "--history-password-file", server.password_file, "--history", server.url("unmade")]
    for why in "holds no history", "refused":
        with Process(program("sonde"), *words) as api:
            api.expect("The history cannot be reached.*" + why, 60)
            api.expect('"msg":"Started"', 60)
            assert api.stop(60) == 0, api.lines
        if server.process:
            server.stop()


def tls_is_what_the_url_says():
    url = server.url("tls")
    assert refused(f"{url}&sslmode=verify-full&sslrootcert={server.authority}") == "ready"
    other = os.path.join(server.dir, "other.crt")
    make_certificate(other + ".key", other)
    said = refused(f"{url}&sslmode=verify-ca&sslrootcert={other}")
    assert "certificate verify failed" in said, said
    said = refused(f"{url}&sslmode=verify-ca&sslrootcert=/nonexistent")
    assert "/nonexistent" in said, said


def the_systems_certificates_are_trusted_where_nobody_names_others():
    url = server.url("system")
    home = os.path.join(server.dir, "home")
    os.makedirs(os.path.join(home, ".postgresql"))
    other = os.path.join(server.dir, "another.crt")
    make_certificate(other + ".key", other)
    signed, unsigned = ({"HOME": "/nonexistent", "SSL_CERT_FILE": bundle} for bundle in (server.authority, other))
    for mode in "verify-ca", "verify-full":
        assert refused(f"{url}&sslmode={mode}", env=signed) == "ready", mode
        assert "certificate verify failed" in refused(f"{url}&sslmode={mode}", env=unsigned), mode
    assert refused(url, env={**signed, "PGSSLMODE": "verify-full"}) == "ready"
    # the package's bundle, when nothing is said; it does not have ours
    assert "certificate verify failed" in refused(f"{url}&sslmode=verify-full", env={**signed, "SSL_CERT_FILE": ""})
    # whoever names others is believed, in each of libpq's ways
    assert "certificate verify failed" in refused(f"{url}&sslmode=verify-full&sslrootcert={other}", env=signed)
    assert "certificate verify failed" in refused(f"{url}&sslmode=verify-full", env={**signed, "PGSSLROOTCERT": other})
    shutil.copy(other, os.path.join(home, ".postgresql", "root.crt"))
    assert "certificate verify failed" in refused(f"{url}&sslmode=verify-full", env={**signed, "HOME": home})
    # what is only to be encrypted is not verified
    assert refused(f"{url}&sslmode=require", env=unsigned) == "ready"


def a_backup_is_restored_elsewhere():
    """`pg_dump --schema` of the page has all of a history: another server's database goes on with it"""
    url = server.url("backup")
    with Exercise(url) as x:
        x.tell("record a s 1", "^recorded a$")
        x.end()
    there = ["-h", "127.0.0.1", "-p", str(server.port), "-U", "sonde"]
    env = {**os.environ, "PGPASSWORD": PASSWORD}
    dumped = subprocess.run(["pg_dump", *there, "--schema=backup", "sonde"], env=env, check=True, stdout=subprocess.PIPE).stdout
    server.sql("CREATE DATABASE restored OWNER sonde")
    subprocess.run(["psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", *there, "restored"], input=dumped, env=env, check=True,
                   stdout=subprocess.DEVNULL)
    with Exercise(url.replace("/sonde?", "/restored?")) as x:
        assert x.tell("list", "^list (.*)")[1] == "a"
        x.tell("record b s 2", "^recorded b$")
        x.end()


def without_the_library_it_is_said_what_to_install():
    folder = os.path.join(server.dir, "lib")
    os.mkdir(folder)
    with open(folder + "/libpq.so.5", "w", encoding="utf-8") as f:
        f.write("no library")
    said = refused(server.url(), env={"LD_LIBRARY_PATH": folder})
    assert "client library cannot be loaded" in said and "libpq5" in said, said
    status, _, err = run("history", "--history", server.url(), env={"LD_LIBRARY_PATH": folder})
    assert status == 1 and "libpq5" in err, err


with Postgres() as server:
    main(the_history_s_own_tests_pass, the_rows_own_tests_pass, runs_are_listed_by_their_labels, a_name_that_no_index_takes_holds_no_row,
         a_server_that_was_killed_is_found_again,
         a_server_that_was_restarted_meanwhile_is_not_noticed, a_server_that_is_killed_between_rows_loses_none_that_was_told,
         a_server_that_stops_answering_is_given_up, a_server_that_is_not_there_yet_is_waited_for,
         the_api_alone_is_there_before_the_tables_and_without_the_server,
         a_lock_that_is_held_too_long_fails_the_row_alone, several_operators_make_the_tables_once_and_write_side_by_side,
         a_wrong_password_is_told_and_never_shown, the_password_comes_from_a_file_the_url_or_the_environment,
         the_operator_does_not_start_with_a_wrong_password, a_database_that_is_not_there_or_speaks_no_utf8_is_refused,
         rows_need_no_right_to_make_tables_and_readers_none_to_write, who_reads_makes_no_tables, tls_is_what_the_url_says,
         the_systems_certificates_are_trusted_where_nobody_names_others, a_backup_is_restored_elsewhere,
         without_the_library_it_is_said_what_to_install)
