#include "unit/auth.h"

#include "kube/exec_private.h"

/* Plugins are real children: small shell scripts in the test's folder. */

/* Makes SCRIPT the plugin. It can count its runs: `echo run >> "$DIR/runs"`. */
static void use_plugin(struct fixture *f, const char *script)
{
        static char *env[2];

        f->exec.command = write_file(f, "plugin", arena_printf(&f->arena, "#!/bin/sh\n%s\n", script));
        assert_int_equal(chmod(f->exec.command, 0700), 0);
        f->exec.api_version = (char *)"client.authentication.k8s.io/v1";
        env[0] = arena_printf(&f->arena, "DIR=%s", f->dir);
        f->exec.env = env;
        f->config.exec = &f->exec;
}

#define ANSWER(status)                                                                 \
        "echo run >> \"$DIR/runs\"\n"                                                  \
        "echo "                                                                        \
        "'{\"kind\":\"ExecCredential\",\"apiVersion\":\"client.authentication.k8s.io/" \
        "v1\",\"status\":" status "}'\n"

static size_t runs(struct fixture *f)
{
        return strlen(read_file(f, "runs")) / 4;
}

static void assert_plugin_fails(struct fixture *f, const char *message)
{
        int before = f->ready;

        assert_int_equal(get(f), 0);
        wait_ready(f, before + 1);
        assert_fails(f, message);
}

static void test_a_plugin_gives_a_token(void **state)
{
        struct fixture *f = *state;

        use_plugin(f, ANSWER("{\"token\":\"from-plugin\"}"));
        assert_int_equal(get(f), 0);
        assert_int_equal(f->ready, 0); /* never from inside */
        wait_ready(f, 1);
        assert_header(f, "Bearer from-plugin");
        advance(f, 365 * 86400 * USEC_PER_SEC);
        assert_header(f, "Bearer from-plugin"); /* no expiry */
        assert_int_equal(runs(f), 1);
}

static void test_callers_wait_for_the_same_run(void **state)
{
        struct fixture *f = *state;

        use_plugin(f, ANSWER("{\"token\":\"t\"}"));
        for (int i = 0; i < 5; i++)
                assert_int_equal(get(f), 0);
        wait_ready(f, 5);
        assert_header(f, "Bearer t");
        assert_int_equal(runs(f), 1);
        assert_int_equal(f->ready, 5);
}

static void test_a_caller_that_cancels_is_not_called(void **state)
{
        struct fixture *f = *state;
        int other = 0;

        use_plugin(f, ANSWER("{\"token\":\"t\"}"));
        assert_int_equal(get(f), 0);
        assert_int_equal(kube_auth_get(f->auth, &f->got, on_ready, &other, &f->err), 0);
        kube_auth_cancel(f->auth, &other);
        wait_ready(f, 1);
        assert_int_equal(other, 0);
}

static void free_in_callback(void *arg)
{
        struct fixture *f = arg;

        f->ready++;
        kube_auth_free(f->auth);
        f->auth = NULL;
}

static void test_freed_inside_a_callback(void **state)
{
        struct fixture *f = *state;

        use_plugin(f, ANSWER("{\"token\":\"t\"}"));
        f->auth = kube_auth_new(f->loop, &f->config);
        assert_int_equal(kube_auth_get(f->auth, &f->got, free_in_callback, f, &f->err), 0);
        assert_int_equal(kube_auth_get(f->auth, &f->got, on_ready, f, &f->err), 0);
        while (f->auth)
                loop_turn(f->loop, false);
        assert_int_equal(f->ready, 1);
}

static void test_freed_while_the_plugin_runs(void **state)
{
        struct fixture *f = *state;

        use_plugin(f, "exec sleep 1000");
        assert_int_equal(get(f), 0);
        kube_auth_free(f->auth);
        f->auth = NULL;
        loop_turn(f->loop, false);
        assert_int_equal(f->ready, 0);
}

static void test_arguments_reach_the_plugin_without_a_shell(void **state)
{
        struct fixture *f = *state;
        char *args[] = {(char *)"get token", (char *)"$(touch pwned)", (char *)"; exit 1", (char *)"", NULL};

        use_plugin(f, "printf '<%s>' \"$@\" > \"$DIR/args\"\n" ANSWER("{\"token\":\"t\"}"));
        f->exec.args = args;
        assert_int_equal(get(f), 0);
        wait_ready(f, 1);
        assert_string_equal(read_file(f, "args"), "<get token><$(touch pwned)><; exit 1><>");
        assert_header(f, "Bearer t");
}

static void test_the_environment_of_a_plugin(void **state)
{
        struct fixture *f = *state;
        char *env[] = {arena_printf(&f->arena, "DIR=%s", f->dir), (char *)"OURS=first",
                       (char *)"OURS=kubeconfig", (char *)"HIDDEN=kubeconfig", NULL};

        setenv("HIDDEN", "process", 1);
        setenv("INHERITED", "process", 1);
        setenv("KUBERNETES_EXEC_INFO", "stale", 1);
        use_plugin(f, "echo \"$OURS $HIDDEN $INHERITED\" > \"$DIR/env\"\n"
                      "printf %s \"$KUBERNETES_EXEC_INFO\" > \"$DIR/info\"\n" ANSWER("{\"token\":\"t\"}"));
        f->exec.env = env;
        assert_int_equal(get(f), 0);
        wait_ready(f, 1);
        assert_string_equal(read_file(f, "env"), "kubeconfig kubeconfig process\n");
        assert_string_equal(read_file(f, "info"),
                            "{\"kind\":\"ExecCredential\",\"apiVersion\":\"client.authentication.k8s.io/v1\","
                            "\"spec\":{\"interactive\":false}}");
        unsetenv("KUBERNETES_EXEC_INFO");
}

static void test_a_plugin_that_wants_it_is_told_about_the_cluster(void **state)
{
        struct fixture *f = *state;
        _cleanup_(free_ptr) char *info = NULL;

        use_plugin(f, "");
        f->exec.provide_cluster_info = true;
        f->exec.cluster_config = (char *)"{\"audience\":\"x\"}";
        f->config.server = (char *)"https://k:6443";
        f->config.tls_server_name = (char *)"k";
        f->config.ca_file = write_file(f, "ca", "PEM");
        assert_int_equal(exec_info(&f->config, &info, &f->err), 0);
        assert_string_equal(info,
                            "KUBERNETES_EXEC_INFO={\"kind\":\"ExecCredential\",\"apiVersion\":"
                            "\"client.authentication.k8s.io/v1\",\"spec\":{\"cluster\":{\"server\":\"https://"
                            "k:6443\","
                            "\"tls-server-name\":\"k\",\"certificate-authority-data\":\"UEVN\",\"config\":"
                            "{\"audience\":\"x\"}},\"interactive\":false}}");
}

static void test_a_plugin_has_no_standard_input_and_default_signals(void **state)
{
        struct fixture *f = *state;
        uint64_t blocked;
        char *ignored;

        signal(SIGPIPE, SIG_IGN);
        use_plugin(f, "cat > \"$DIR/stdin\"\n"
                      "sed -n 's/^Sig\\(Blk\\|Ign\\):[[:blank:]]*//p' /proc/self/status > \"$DIR/signals\"\n"
                      "ls -l /proc/self/fd > \"$DIR/fds\"\n" ANSWER("{\"token\":\"t\"}"));
        assert_int_equal(get(f), 0);
        wait_ready(f, 1);
        assert_header(f, "Bearer t");
        assert_string_equal(read_file(f, "stdin"), "");
        blocked = strtoull(read_file(f, "signals"), &ignored, 16);
        assert_int_equal(blocked, 0);
        assert_int_equal(strtoull(ignored, NULL, 16) & 0x7fffffff, 0); /* above are the C library's own */
        assert_null(strstr(read_file(f, "fds"), "anon_inode"));        /* nothing of the loop's */
        signal(SIGPIPE, SIG_DFL);
}

static void test_a_credential_is_renewed_before_it_expires(void **state)
{
        struct fixture *f = *state;

        /* 1000 s of life: renewed after 900 */
        use_plugin(f, ANSWER("{\"token\":\"one\",\"expirationTimestamp\":\"2030-01-01T00:16:40Z\"}"));
        assert_int_equal(get(f), 0);
        wait_ready(f, 1);
        assert_header(f, "Bearer one");
        use_plugin(f, ANSWER("{\"token\":\"two\",\"expirationTimestamp\":\"2030-01-01T01:00:00Z\"}"));
        advance(f, 899 * USEC_PER_SEC);
        assert_header(f, "Bearer one");
        assert_int_equal(runs(f), 1);
        advance(f, 1 * USEC_PER_SEC);
        assert_header(f, "Bearer one"); /* still good: nobody waits */
        while (!streq(f->got.authorization, "Bearer two")) {
                loop_turn(f->loop, false);
                assert_int_equal(get(f), 1);
        }
        assert_int_equal(runs(f), 2);
        assert_int_equal(f->ready, 1);
}

static void test_an_expired_credential_is_not_given_out(void **state)
{
        struct fixture *f = *state;

        use_plugin(f, ANSWER("{\"token\":\"one\",\"expirationTimestamp\":\"2030-01-01T00:00:15Z\"}"));
        assert_int_equal(get(f), 0);
        wait_ready(f, 1);
        assert_header(f, "Bearer one");
        advance(f, 15 * USEC_PER_SEC);
        use_plugin(f, ANSWER("{\"token\":\"two\"}"));
        assert_int_equal(get(f), 0);
        wait_ready(f, 2);
        assert_header(f, "Bearer two");
}

static void test_a_very_short_life_is_used_for_half_of_it(void **state)
{
        struct fixture *f = *state;

        use_plugin(f, ANSWER("{\"token\":\"one\",\"expirationTimestamp\":\"2030-01-01T00:00:08Z\"}"));
        assert_int_equal(get(f), 0);
        wait_ready(f, 1);
        advance(f, 3 * USEC_PER_SEC);
        assert_header(f, "Bearer one");
        assert_int_equal(runs(f), 1);
        advance(f, 1 * USEC_PER_SEC);
        assert_header(f, "Bearer one"); /* and a new run has begun */
        while (runs(f) < 2)
                loop_turn(f->loop, false);
}

static void test_a_failing_renewal_keeps_the_old_credential_until_it_expires(void **state)
{
        struct fixture *f = *state;

        use_plugin(f, ANSWER("{\"token\":\"one\",\"expirationTimestamp\":\"2030-01-01T00:16:40Z\"}"));
        assert_int_equal(get(f), 0);
        wait_ready(f, 1);
        use_plugin(f, "echo run >> \"$DIR/runs\"; exit 3");
        advance(f, 960 * USEC_PER_SEC);
        assert_header(f, "Bearer one");
        while (runs(f) < 2)
                loop_turn(f->loop, false);
        assert_header(f, "Bearer one");
        advance(f, 40 * USEC_PER_SEC); /* the end of its life, not of the run's minute */
        /* whether its end was noticed already or not: what has expired is not given out */
        if (get(f) == 0) {
                wait_ready(f, 2);
                assert_int_equal(get(f), -1);
        }
        assert_non_null(strstr(f->err.text, "it failed with exit status 3"));
}

static void test_a_plugin_runs_again_when_refused(void **state)
{
        struct fixture *f = *state;

        use_plugin(f, ANSWER("{\"token\":\"one\"}"));
        assert_int_equal(get(f), 0);
        wait_ready(f, 1);
        use_plugin(f, ANSWER("{\"token\":\"two\"}"));
        advance(f, 60 * USEC_PER_SEC);
        assert_true(kube_auth_refused(f->auth));
        assert_int_equal(get(f), 0);
        assert_true(kube_auth_refused(f->auth)); /* a second call with the old credential */
        assert_int_equal(get(f), 0);
        wait_ready(f, 3);
        assert_header(f, "Bearer two");
        assert_true(kube_auth_refused(f->auth)); /* a third one, late: no further run */
        assert_header(f, "Bearer two");
        assert_int_equal(runs(f), 2);
}

static void test_a_failing_plugin_is_not_run_again_at_once(void **state)
{
        struct fixture *f = *state;
        usec_t delay = USEC_PER_SEC;
        char *message;

        use_plugin(f, "echo run >> \"$DIR/runs\"; echo 'please log in' >&2; exit 7");
        message = arena_printf(&f->arena,
                               "exec plugin '%s': it failed with exit status 7; it said: please log in",
                               f->exec.command);
        for (size_t i = 1; i <= 12; i++) {
                assert_plugin_fails(f, message);
                assert_int_equal(runs(f), i);
                assert_false(kube_auth_refused(f->auth));
                advance(f, delay - 1);
                assert_fails(f, message);
                assert_int_equal(runs(f), i);
                advance(f, 1);
                delay = MIN(delay * 2, 300 * USEC_PER_SEC);
        }
        use_plugin(f, ANSWER("{\"token\":\"t\"}"));
        assert_int_equal(get(f), 0);
        wait_ready(f, 13);
        assert_header(f, "Bearer t");
}

static void test_a_plugin_that_is_not_there(void **state)
{
        struct fixture *f = *state;

        use_plugin(f, "");
        f->exec.command = (char *)"sonde-no-such-plugin";
        f->exec.install_hint = (char *)"install it with apt";
        assert_fails(f, "exec plugin 'sonde-no-such-plugin': cannot be started: No such file or directory: "
                        "install it with apt");
        assert_fails(f, "exec plugin 'sonde-no-such-plugin': cannot be started: No such file or directory: "
                        "install it with apt");
        f->exec.command = write_file(f, "not-executable", "#!/bin/sh\n");
        f->exec.install_hint = NULL;
        advance(f, USEC_PER_SEC);
        assert_fails(f, arena_printf(&f->arena, "exec plugin '%s': cannot be started: Permission denied",
                                     f->exec.command));
}

static void test_a_plugin_found_in_path(void **state)
{
        struct fixture *f = *state;
        char *path = arena_strdup(&f->arena, getenv("PATH"));

        use_plugin(f, ANSWER("{\"token\":\"t\"}"));
        f->exec.command = (char *)"plugin";
        setenv("PATH", arena_printf(&f->arena, "%s:%s", f->dir, path), 1);
        assert_int_equal(get(f), 0);
        setenv("PATH", path, 1);
        wait_ready(f, 1);
        assert_header(f, "Bearer t");
}

static void test_a_plugin_has_one_minute(void **state)
{
        struct fixture *f = *state;
        usec_t start = f->clock.boot;

        use_plugin(f, "echo thinking >&2; echo $$ > \"$DIR/pid\"; sleep 1000 & wait");
        assert_int_equal(get(f), 0);
        while (!*read_file(f, "pid"))
                loop_turn(f->loop, false);
        while (!f->ready)
                loop_turn(f->loop, true); /* moves the clock to the limit */
        assert_int_equal(f->clock.boot - start, 60 * USEC_PER_SEC);
        assert_int_equal(get(f), -1);
        assert_non_null(strstr(f->err.text, "it gave no answer within a minute; it said: thinking"));
        while (kill((pid_t)strtol(read_file(f, "pid"), NULL, 10), 0) == 0)
                loop_turn(f->loop, false); /* it is ended and reaped */
}

static void test_a_plugin_that_prints_too_much(void **state)
{
        struct fixture *f = *state;

        use_plugin(f, "exec head -c 2000000 /dev/zero");
        assert_plugin_fails(
                f, arena_printf(&f->arena, "exec plugin '%s': it printed more than 1 MiB", f->exec.command));
}

static void test_only_the_end_of_the_complaint_is_kept(void **state)
{
        struct fixture *f = *state;

        use_plugin(f, "i=0; while [ $i -lt 2000 ]; do echo \"line $i\" >&2; i=$((i+1)); done; echo 'the end' "
                      ">&2; exit 1");
        assert_int_equal(get(f), 0);
        wait_ready(f, 1);
        assert_int_equal(get(f), -1);
        assert_non_null(strstr(f->err.text, "it failed with exit status 1; it said: "));
        assert_null(strstr(f->err.text, "line 1\n"));
        assert_non_null(strstr(f->err.text, "line 1950"));
        assert_true(str_has_suffix(str_of(f->err.text), STR("the end")));
}

static void test_something_left_behind_does_not_hold_the_result(void **state)
{
        struct fixture *f = *state;

        use_plugin(f, "sleep 1000 &\necho $! > \"$DIR/pid\"\n" ANSWER("{\"token\":\"t\"}"));
        assert_int_equal(get(f), 0);
        wait_ready(f, 1);
        assert_header(f, "Bearer t");
        assert_int_equal(kill((pid_t)strtol(read_file(f, "pid"), NULL, 10), SIGKILL), 0);
}

static void test_answers_that_are_refused(void **state)
{
        struct fixture *f = *state;
        static const struct {
                const char *answer, *message;
        } cases[] = {
                {"[]", "its answer is no ExecCredential"},
                {"{\"kind\":\"Pod\"}", "its answer is no ExecCredential"},
                {"{\"kind\":\"ExecCredential\",\"apiVersion\":\"client.authentication.k8s.io/"
                 "v1beta1\"}",
                 "its answer has apiVersion 'client.authentication.k8s.io/v1beta1', but the "
                 "kubeconfig says "
                 "'client.authentication.k8s.io/v1'"},
                {"{\"kind\":\"ExecCredential\",\"apiVersion\":\"client.authentication.k8s.io/v1\"}",
                 "its answer has no status"},
                {"{\"kind\":\"ExecCredential\",\"apiVersion\":\"client.authentication.k8s.io/"
                 "v1\",\"status\":{}}",
                 "its answer has neither a token nor a client certificate"},
                {"{\"kind\":\"ExecCredential\",\"apiVersion\":\"client.authentication.k8s.io/"
                 "v1\",\"status\":"
                 "{\"token\":\"t\",\"clientKeyData\":\"k\"}}",
                 "its answer has only one of clientCertificateData and clientKeyData"},
                {"{\"kind\":\"ExecCredential\",\"apiVersion\":\"client.authentication.k8s.io/"
                 "v1\",\"status\":"
                 "{\"token\":\"t\",\"expirationTimestamp\":\"tomorrow\"}}",
                 "its answer has the expirationTimestamp 'tomorrow', which is no time"},
        };

        for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
                struct exec_credential c = {0};

                assert_true(exec_credential_parse(str_of(cases[i].answer), "client.authentication.k8s.io/v1",
                                                  &c, &f->err) < 0);
                assert_string_equal(f->err.text, cases[i].message);
                assert_int_equal(f->err.code, E_AUTH);
        }
        use_plugin(f, "echo not json");
        assert_int_equal(get(f), 0);
        wait_ready(f, 1);
        assert_int_equal(get(f), -1);
        assert_non_null(strstr(f->err.text, "its answer is no JSON: "));
}

static void test_credentials_that_have_expired_already(void **state)
{
        struct fixture *f = *state;

        use_plugin(f, ANSWER("{\"token\":\"t\",\"expirationTimestamp\":\"2029-12-31T23:59:59Z\"}"));
        assert_plugin_fails(f, arena_printf(&f->arena,
                                            "exec plugin '%s': what it gave expired at 2029-12-31T23:59:59Z",
                                            f->exec.command));
        advance(f, 1 * USEC_PER_SEC);
        use_plugin(f, ANSWER("{\"token\":\"a b\"}"));
        assert_plugin_fails(f, "the token of the exec plugin holds characters that no token has");
}

/* Makes the plugin answer with STATUS, which holds line breaks and so comes from a file. */
static void answer_from_file(struct fixture *f, struct json *status)
{
        struct json *answer = json_build(&f->arena,
                                         "{'kind': 'ExecCredential', 'apiVersion': "
                                         "'client.authentication.k8s.io/v1', 'status': %p}",
                                         (void *)status);

        write_file(f, "answer", json_print(&f->arena, answer));
        use_plugin(f, "cat \"$DIR/answer\"");
}

static void test_a_client_certificate_from_a_plugin(void **state)
{
        struct fixture *f = *state;
        struct identity one = make_identity(f, "one"), two = make_identity(f, "two");

        f->config.server = (char *)"https://127.0.0.1:1";
        answer_from_file(f, json_build(&f->arena, "{'clientCertificateData': %s, 'clientKeyData': %s}",
                                       one.cert, one.key));
        assert_int_equal(get(f), 0);
        wait_ready(f, 1);
        assert_int_equal(get(f), 1);
        assert_null(f->got.authorization);
        assert_non_null(f->got.tls);
        assert_int_equal(f->got.tls_generation, 1);

        advance(f, 60 * USEC_PER_SEC);
        assert_true(kube_auth_refused(f->auth));
        assert_int_equal(get(f), 0);
        wait_ready(f, 2);
        assert_int_equal(get(f), 1);
        assert_int_equal(f->got.tls_generation, 1); /* the same certificate again */

        answer_from_file(f, json_build(&f->arena,
                                       "{'clientCertificateData': %s, 'clientKeyData': %s, 'token': 't'}",
                                       two.cert, two.key));
        advance(f, 60 * USEC_PER_SEC);
        assert_true(kube_auth_refused(f->auth));
        assert_int_equal(get(f), 0);
        wait_ready(f, 3);
        assert_header(f, "Bearer t");
        assert_int_equal(f->got.tls_generation, 2);
}

static void test_a_token_beside_a_plugin_is_used(void **state)
{
        struct fixture *f = *state;

        use_plugin(f, ANSWER("{\"token\":\"t\"}"));
        f->config.token = (char *)"static";
        assert_header(f, "Bearer static");
        assert_int_equal(runs(f), 0);
}

static const struct CMUnitTest tests[] = {
        AUTH_TEST(test_a_plugin_gives_a_token),
        AUTH_TEST(test_callers_wait_for_the_same_run),
        AUTH_TEST(test_a_caller_that_cancels_is_not_called),
        AUTH_TEST(test_freed_inside_a_callback),
        AUTH_TEST(test_freed_while_the_plugin_runs),
        AUTH_TEST(test_arguments_reach_the_plugin_without_a_shell),
        AUTH_TEST(test_the_environment_of_a_plugin),
        AUTH_TEST(test_a_plugin_that_wants_it_is_told_about_the_cluster),
        AUTH_TEST(test_a_plugin_has_no_standard_input_and_default_signals),
        AUTH_TEST(test_a_credential_is_renewed_before_it_expires),
        AUTH_TEST(test_an_expired_credential_is_not_given_out),
        AUTH_TEST(test_a_very_short_life_is_used_for_half_of_it),
        AUTH_TEST(test_a_failing_renewal_keeps_the_old_credential_until_it_expires),
        AUTH_TEST(test_a_plugin_runs_again_when_refused),
        AUTH_TEST(test_a_failing_plugin_is_not_run_again_at_once),
        AUTH_TEST(test_a_plugin_that_is_not_there),
        AUTH_TEST(test_a_plugin_found_in_path),
        AUTH_TEST(test_a_plugin_has_one_minute),
        AUTH_TEST(test_a_plugin_that_prints_too_much),
        AUTH_TEST(test_only_the_end_of_the_complaint_is_kept),
        AUTH_TEST(test_something_left_behind_does_not_hold_the_result),
        AUTH_TEST(test_answers_that_are_refused),
        AUTH_TEST(test_credentials_that_have_expired_already),
        AUTH_TEST(test_a_client_certificate_from_a_plugin),
        AUTH_TEST(test_a_token_beside_a_plugin_is_used),
};

UNIT_MAIN(tests)
