#include "kube/exec_private.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
        OUTPUT_MAX = 1 << 20,
        OUTPUT_USUAL = 16 << 10,
        COMPLAINT_MAX = 1024,
        EVIDENCE_MAX = 640,
        CA_MAX = 1 << 20,
        READ_SIZE = 4096
};

#define TIME_LIMIT (60 * USEC_PER_SEC)

struct exec_run {
        struct loop *loop;
        const struct kube_exec *exec;
        exec_done done;
        void *arg;
        pid_t pid;
        struct child *child; /* NULL: it has ended */
        struct timer timer;
        struct io out, complaint;
        struct buf output;
        char last[COMPLAINT_MAX]; /* of standard error */
        size_t n_last;
};

/* ---- what a plugin prints */

static void wipe_free(char *s)
{
        if (s)
                mem_wipe(s, strlen(s));
        free(s);
}

void exec_credential_done(struct exec_credential *c)
{
        wipe_free(c->token);
        wipe_free(c->key);
        free(c->cert);
        *c = (struct exec_credential){0};
}

static int read_status(const struct json *status, struct exec_credential *ret, struct err *err)
{
        const char *token = json_str_or(status, "token", "");
        const char *cert = json_str_or(status, "clientCertificateData", "");
        const char *key = json_str_or(status, "clientKeyData", "");
        const char *expires = json_str_or(status, "expirationTimestamp", "");

        if (!json_is(status, JSON_OBJECT))
                return err_set(err, E_AUTH, "its answer has no status");
        if (!cert[0] != !key[0])
                return err_set(err, E_AUTH,
                               "its answer has only one of clientCertificateData and clientKeyData");
        if (!token[0] && !cert[0])
                return err_set(err, E_AUTH, "its answer has neither a token nor a client certificate");
        ret->expires = USEC_MAX;
        if (expires[0] && !time_parse(str_of(expires), &ret->expires))
                return err_set(err, E_AUTH, "its answer has the expirationTimestamp '%s', which is no time",
                               expires);
        ret->token = token[0] ? xstrdup(token) : NULL;
        ret->cert = cert[0] ? xstrdup(cert) : NULL;
        ret->key = key[0] ? xstrdup(key) : NULL;
        return 0;
}

int exec_credential_parse(struct str text, const char *api_version, struct exec_credential *ret,
                          struct err *err)
{
        _cleanup_(arena_wipe) struct arena a = ARENA_INIT;
        struct err why = ERR_INIT;
        const struct json *j;

        j = json_parse(&a, text, NULL, &why);
        if (!j)
                return err_set(err, E_AUTH, "its answer is no JSON: %s", why.text);
        if (!streq(json_str(j, "kind"), "ExecCredential"))
                return err_set(err, E_AUTH, "its answer is no ExecCredential");
        if (!streq(json_str(j, "apiVersion"), api_version))
                return err_set(err, E_AUTH, "its answer has apiVersion '%s', but the kubeconfig says '%s'",
                               json_str_or(j, "apiVersion", ""), api_version);
        return read_status(json_at(j, "status"), ret, err);
}

/* ---- what a plugin is told */

static int add_ca(const struct kube_config *config, struct arena *a, struct json *cluster, struct err *err)
{
        _cleanup_(buf_done) struct buf pem = BUF_INIT(CA_MAX), text = BUF_INIT((size_t)CA_MAX * 2);

        if (config->ca)
                buf_adds(&pem, config->ca);
        else if (config->ca_file && file_read(config->ca_file, &pem, err) < 0)
                return err_wrap(err, "certificate authority");
        if (pem.n == 0)
                return 0;
        buf_add_base64(&text, buf_str(&pem));
        json_set(a, cluster, "certificate-authority-data", json_stringn(a, buf_str(&text)));
        return 0;
}

static int cluster_info(const struct kube_config *config, struct arena *a, struct json **ret, struct err *err)
{
        const char *extension = config->exec->cluster_config;
        struct json *cluster = json_object(a);

        json_set(a, cluster, "server", json_string(a, config->server));
        json_set(a, cluster, "tls-server-name", json_string(a, config->tls_server_name));
        json_set(a, cluster, "proxy-url", json_string(a, config->proxy));
        if (config->insecure)
                json_set(a, cluster, "insecure-skip-tls-verify", json_truth(a, true));
        if (add_ca(config, a, cluster, err) < 0)
                return -1;
        if (extension)
                json_set(a, cluster, "config", json_parse(a, str_of(extension), NULL, NULL));
        *ret = cluster;
        return 0;
}

int exec_info(const struct kube_config *config, char **ret, struct err *err)
{
        _cleanup_(arena_wipe) struct arena a = ARENA_INIT;
        struct json *cluster = NULL, *info;

        if (config->exec->provide_cluster_info && cluster_info(config, &a, &cluster, err) < 0)
                return -1;
        info = json_build(&a,
                          "{'kind': 'ExecCredential', 'apiVersion': %s, 'spec': {'cluster': %p, "
                          "'interactive': false}}",
                          config->exec->api_version, (void *)cluster);
        *ret = xasprintf("KUBERNETES_EXEC_INFO=%s", json_print(&a, info));
        return 0;
}

static bool same_name(const char *x, const char *y)
{
        struct str a = str_of(x), b = str_of(y);

        return str_eq(str_split(&a, '='), str_split(&b, '='));
}

static bool overridden(char *const *list, size_t n, const char *entry)
{
        for (size_t i = 0; i < n; i++)
                if (same_name(list[i], entry))
                        return true;
        return false;
}

/* Ours come first and hide what the environment says. The array is malloc'd, its strings are borrowed. */
static char **make_environment(const struct kube_exec *exec, char *info)
{
        size_t n = 0, ours, inherited = 0;
        char **env;

        while (exec->env && exec->env[n])
                n++;
        while (environ[inherited])
                inherited++;
        env = xcalloc(n + 1 + inherited + 1, sizeof(*env));
        ours = 0;
        env[ours++] = info;
        for (size_t i = n; i-- > 0;) /* of two with one name the last counts */
                if (!overridden(env, ours, exec->env[i]))
                        env[ours++] = exec->env[i];
        n = ours;
        for (size_t i = 0; i < inherited; i++)
                if (!overridden(env, ours, environ[i]))
                        env[n++] = environ[i];
        return env;
}

static char **make_arguments(const struct kube_exec *exec)
{
        size_t n = 0;
        char **argv;

        while (exec->args && exec->args[n])
                n++;
        argv = xcalloc(n + 2, sizeof(*argv));
        argv[0] = exec->command;
        for (size_t i = 0; i < n; i++)
                argv[i + 1] = exec->args[i];
        return argv;
}

/* ---- the end of a run */

static void close_io(struct io *io)
{
        io_remove(io);
        fd_close(io->fd);
        io->fd = -1;
}

static void run_free(struct exec_run *run)
{
        timer_cancel(&run->timer);
        if (run->child) {
                kill(-run->pid, SIGKILL);
                child_forget(run->child);
        }
        close_io(&run->out);
        close_io(&run->complaint);
        mem_wipe(run->output.p, run->output.n);
        buf_done(&run->output);
        free(run);
}

/* What the plugin said last; as much of it as leaves room in a message for the rest. */
static void add_evidence(const struct exec_run *run, struct err *err)
{
        struct str said = str_trim(str_n(run->last, run->n_last));
        char text[ERR_TEXT_MAX];

        if (said.n > EVIDENCE_MAX)
                said = str_n(said.p + said.n - EVIDENCE_MAX, EVIDENCE_MAX);
        while (said.n && ((unsigned char)said.p[0] & 0xC0) == 0x80)
                said = str_n(said.p + 1, said.n - 1);
        if (!said.n)
                return;
        snprintf(text, sizeof(text), "%s", err->text);
        err_set(err, err->code, "%s; it said: %.*s", text, STR_ARG(said));
}

static void end(struct exec_run *run, struct exec_credential *credential, struct err *failure)
{
        exec_done done = run->done;
        void *arg = run->arg;

        if (failure) {
                add_evidence(run, failure);
                err_wrap(failure, "exec plugin '%s'", run->exec->command);
        }
        run_free(run);
        done(arg, credential, failure);
}

static void fail(struct exec_run *run, const char *why)
{
        struct err err = ERR_INIT;

        err_set(&err, E_AUTH, "%s", why);
        end(run, NULL, &err);
}

static void finish(struct exec_run *run, int status)
{
        _cleanup_(exec_credential_done) struct exec_credential credential = {0};
        struct err err = ERR_INIT;

        if (WIFSIGNALED(status))
                err_set(&err, E_AUTH, "it was ended by signal %d", WTERMSIG(status));
        else if (WEXITSTATUS(status) != 0)
                err_set(&err, E_AUTH, "it failed with exit status %d", WEXITSTATUS(status));
        else if (exec_credential_parse(buf_str(&run->output), run->exec->api_version, &credential, &err) >=
                 0) {
                end(run, &credential, NULL);
                return;
        }
        end(run, NULL, &err);
}

/* ---- while it runs */

/* Below 0: over the limit. Bounded, so that an endless writer cannot hold the loop. */
static int read_output(struct exec_run *run)
{
        for (;;) {
                size_t room = MIN((size_t)READ_SIZE, OUTPUT_MAX - run->output.n);
                ssize_t n;

                if (!room)
                        return -1;
                n = read(run->out.fd, buf_reserve(&run->output, room), room);
                if (n < 0 && errno == EINTR)
                        continue;
                if (n == 0)
                        io_remove(&run->out);
                if (n <= 0)
                        return 0;
                run->output.n += (size_t)n;
        }
}

static void keep_last(struct exec_run *run, const char *text, size_t n)
{
        size_t kept;

        if (n > COMPLAINT_MAX) {
                text += n - COMPLAINT_MAX;
                n = COMPLAINT_MAX;
        }
        kept = MIN(run->n_last, COMPLAINT_MAX - n);
        memmove(run->last, run->last + (run->n_last - kept), kept);
        memcpy(run->last + kept, text, n);
        run->n_last = kept + n;
}

static void read_complaint(struct exec_run *run)
{
        char text[READ_SIZE];

        for (unsigned i = 0; i < 64; i++) {
                ssize_t n = read(run->complaint.fd, text, sizeof(text));

                if (n < 0 && errno == EINTR)
                        continue;
                if (n == 0)
                        io_remove(&run->complaint);
                if (n <= 0)
                        return;
                keep_last(run, text, (size_t)n);
        }
}

static void output_ready(struct io *io, uint32_t events)
{
        struct exec_run *run = CONTAINER_OF(io, struct exec_run, out);

        if (read_output(run) < 0)
                fail(run, "it printed more than 1 MiB");
}

static void complaint_ready(struct io *io, uint32_t events)
{
        read_complaint(CONTAINER_OF(io, struct exec_run, complaint));
}

static void plugin_ended(void *arg, int status)
{
        struct exec_run *run = arg;

        run->child = NULL;
        if (run->complaint.loop)
                read_complaint(run);
        if (run->out.loop && read_output(run) < 0)
                fail(run, "it printed more than 1 MiB");
        else
                finish(run, status);
}

static void time_is_up(struct timer *timer)
{
        fail(CONTAINER_OF(timer, struct exec_run, timer), "it gave no answer within a minute");
}

/* ---- the start */

static int spawn(const struct kube_config *config, int out, int complaint, pid_t *ret_pid, struct err *err)
{
        _cleanup_(free_ptr) char *info = NULL;
        _cleanup_(free_ptr) char **argv = make_arguments(config->exec), **env = NULL;
        posix_spawn_file_actions_t files;
        posix_spawnattr_t attr;
        sigset_t none, all;
        int result;

        if (exec_info(config, &info, err) < 0)
                return -1;
        env = make_environment(config->exec, info);
        sigemptyset(&none);
        sigfillset(&all);
        posix_spawn_file_actions_init(&files);
        posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
        posix_spawn_file_actions_adddup2(&files, out, STDOUT_FILENO);
        posix_spawn_file_actions_adddup2(&files, complaint, STDERR_FILENO);
        posix_spawnattr_init(&attr);
        posix_spawnattr_setsigmask(&attr, &none); /* the loop blocks the signals it reads */
        posix_spawnattr_setsigdefault(&attr, &all);
        posix_spawnattr_setpgroup(&attr, 0);
        posix_spawnattr_setflags(&attr,
                                 POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
        result = posix_spawnp(ret_pid, config->exec->command, &files, &attr, argv, env);
        posix_spawnattr_destroy(&attr);
        posix_spawn_file_actions_destroy(&files);
        if (result)
                return err_errno(err, E_AUTH, result, "cannot be started");
        return 0;
}

/* A pipe whose read end is RET_IO's and does not block; returns the write end. */
static int open_pipe(struct loop *loop, struct io *io, void (*fn)(struct io *io, uint32_t events),
                     struct err *err)
{
        int fds[2];

        if (pipe2(fds, O_CLOEXEC) < 0)
                return err_errno(err, E_IO, errno, "cannot make a pipe");
        io->fd = fds[0];
        if (fd_set_nonblock(fds[0]) < 0 || io_add(loop, io, fds[0], EPOLLIN, fn) < 0) {
                fd_close(fds[1]);
                return err_errno(err, E_IO, errno, "cannot watch a pipe");
        }
        return fds[1];
}

static int start(struct exec_run *run, const struct kube_config *config, struct err *err)
{
        _cleanup_(fd_close) int out = open_pipe(run->loop, &run->out, output_ready, err);
        _cleanup_(fd_close) int complaint = -1;

        if (out < 0)
                return -1;
        complaint = open_pipe(run->loop, &run->complaint, complaint_ready, err);
        if (complaint < 0 || spawn(config, out, complaint, &run->pid, err) < 0)
                return -1;
        run->child = child_watch(run->loop, run->pid, plugin_ended, run, err);
        if (!run->child) {
                kill(-run->pid, SIGKILL);
                waitpid(run->pid, NULL, 0);
                return -1;
        }
        timer_at(&run->timer, usec_add(clock_boot(loop_clock(run->loop)), TIME_LIMIT));
        return 0;
}

struct exec_run *exec_start(struct loop *loop, const struct kube_config *config, exec_done done, void *arg,
                            struct err *err)
{
        struct exec_run *run = xcalloc(1, sizeof(*run));
        struct err why = ERR_INIT;

        *run = (struct exec_run){.loop = loop, .exec = config->exec, .done = done, .arg = arg};
        run->output = (struct buf)BUF_INIT(OUTPUT_MAX);
        run->out.fd = run->complaint.fd = -1;
        timer_init(&run->timer, loop, time_is_up);
        /* Room for what plugins usually print, so that no copy of a secret stays behind in freed memory. */
        buf_reserve(&run->output, OUTPUT_USUAL);
        if (start(run, config, &why) >= 0)
                return run;
        run_free(run);
        err_set(err, E_AUTH, "exec plugin '%s': %s%s%s", config->exec->command, why.text,
                config->exec->install_hint ? ": " : "",
                config->exec->install_hint ? config->exec->install_hint : "");
        return NULL;
}

void exec_cancel(struct exec_run *run)
{
        if (run)
                run_free(run);
}
