/*
 * One pod on the node: from the object to a supervisor, and back.
 *
 * A pod's directory is claimed by its supervisor, not by the node: a node that was killed after it made the directory
 * may start a supervisor again, and of two supervisors only one goes on. Once there is a claim, the pod is only
 * watched: its supervisor runs, or left a final state, or was killed, and then the pod has failed.
 */
#include "local/node_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/inotify.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

static const usec_t FIRST_RETRY = 1 * USEC_PER_SEC, LAST_RETRY = 30 * USEC_PER_SEC;
enum { CLAIM_TRIES = 20, DEFAULT_GRACE = 30, KILL_ROUNDS = 100 };
static const usec_t CLAIM_WAIT = 250 * USEC_PER_MS;

bool node_pod_live(const struct node_pod *p)
{
        return p->step == POD_RUNNING;
}

/* ---- the supervisor */

static void unwatch(struct node_pod *p)
{
        if (p->pidfd.loop) {
                int fd = p->pidfd.fd;

                io_remove(&p->pidfd);
                fd_close(fd);
        }
        if (p->watch >= 0)
                inotify_rm_watch(p->n->inotify.fd, p->watch);
        p->watch = -1;
}

/* Everything of the pod that may still run, by what its state says and by what is mounted. */
static void kill_rest(const char *uid, const struct json *state)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        char *mark = proc_mark(&a, uid, NULL, 0);

        json_foreach (c, json_at(state, "containers")) {
                struct proc_id id = {(pid_t)json_int(c, "pid", 0), (uint64_t)json_int(c, "start", 0)};

                if (json_at(c, "cgroup"))
                        cgroup_kill(json_at(c, "cgroup"));
                if (proc_alive(id))
                        kill(id.pid, SIGKILL);
        }
        for (int i = 0; i < KILL_ROUNDS && proc_kill_members(mark, 0, SIGKILL); i++)
                usleep(1000);
        json_foreach (c, json_at(state, "containers"))
                cgroup_remove(json_at(c, "cgroup"));
}

static void read_state(struct node_pod *p)
{
        struct doc fresh = DOC_INIT;

        fresh.root = node_files_read(p->dir, "state.json", &fresh.arena, NULL);
        if (!fresh.root) {
                doc_done(&fresh);
                return;
        }
        node_pod_tell(p, p->state.root, fresh.root);
        doc_done(&p->state);
        p->state = fresh;
}

static bool same_boot(const struct json *state)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;

        return streq(json_str(state, "boot"), proc_boot_id(&a));
}

static void lost(struct node_pod *p)
{
        struct err err = ERR_INIT;

        LOG_WARN(p->n->config.log, "A pod's supervisor is gone", F_STR("pod", p->name), F_STR("uid", p->uid));
        if (!p->state.root)
                p->state.root = json_build(&p->state.arena, "{'containers': []}");
        if (same_boot(p->state.root))
                kill_rest(p->uid, p->state.root);
        state_mark_lost(p->state.root, loop_wall(p->n->loop), &p->state.arena);
        if (node_files_save(p->dir, "state.json", p->state.root, &err) < 0)
                LOG_WARN(p->n->config.log, "Cannot write a pod's state", F_ERR(&err));
}

static void on_supervisor_exit(struct io *io, uint32_t events)
{
        struct node_pod *p = CONTAINER_OF(io, struct node_pod, pidfd);
        struct node *n = p->n;

        (void)!waitpid(p->supervisor.pid, NULL, WNOHANG);
        unwatch(p);
        read_state(p);
        if (!state_is_final(p->state.root))
                lost(p);
        p->step = POD_ENDED;
        timer_cancel(&p->rotate);
        node_schedule_soon(n);
        node_pod_look(p); /* it may be gone after this */
        node_check_stopped(n);
}

static bool watch_supervisor(struct node_pod *p)
{
        int fd = pidfd_open(p->supervisor.pid, 0);

        if (fd < 0)
                return false;
        io_add(p->n->loop, &p->pidfd, fd, EPOLLIN, on_supervisor_exit);
        p->watch = inotify_add_watch(p->n->inotify.fd, p->dir, IN_MOVED_TO);
        p->step = POD_RUNNING;
        return true;
}

static int spawn(struct node_pod *p, pid_t *ret, struct err *err)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        char name[] = "sonde", command[] = "node-pod";
        char *argv[] = {name, command, p->dir, NULL}, *env[] = {NULL};
        posix_spawn_file_actions_t files;
        posix_spawnattr_t attr;
        sigset_t none, all;
        int r;

        sigemptyset(&none);
        sigfillset(&all);
        posix_spawnattr_init(&attr);
        posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
        posix_spawnattr_setsigmask(&attr, &none);
        posix_spawnattr_setsigdefault(&attr, &all);
        posix_spawn_file_actions_init(&files);
        posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
        posix_spawn_file_actions_addopen(&files, 1, "/dev/null", O_WRONLY, 0);
        posix_spawn_file_actions_addopen(&files, 2, arena_printf(&a, "%s/supervisor.log", p->dir),
                                         O_WRONLY | O_CREAT | O_APPEND, 0600);
        r = posix_spawn(ret, "/proc/self/exe", &files, &attr, argv, env);
        posix_spawn_file_actions_destroy(&files);
        posix_spawnattr_destroy(&attr);
        return r ? err_errno(err, E_IO, r, "cannot start the supervisor of pod %s", p->name) : 0;
}

/* ---- starting */

void node_pod_missing(struct node_pod *p, const char *reason, const char *message, const char *container)
{
        usec_t delay = MIN(FIRST_RETRY << MIN(p->tries, 10U), LAST_RETRY);

        free(p->waiting_reason);
        free(p->waiting_message);
        free(p->waiting_container);
        p->waiting_reason = xstrdup(reason);
        p->waiting_message = xstrdup(message);
        p->waiting_container = xstrdup(container);
        p->step = POD_WAITING;
        p->tries++;
        timer_after(&p->retry, delay);
        node_pod_report(p);
}

static void refuse(struct node_pod *p, const char *reason, const char *message)
{
        free(p->failed_reason);
        free(p->failed_message);
        p->failed_reason = xstrdup(reason);
        p->failed_message = xstrdup(message);
        p->step = POD_ENDED;
        node_pod_event(p, true, reason, message);
        node_pod_report(p);
}

static struct pod_context context_of(struct node_pod *p, const struct json *pod, struct arena *a)
{
        const struct node *n = p->n;

        return (struct pod_context){.pod = pod,
                                    .sources = p->sources,
                                    .n_sources = p->n_sources,
                                    .dir = p->dir,
                                    .node = n->config.name,
                                    .host_ip = HOST_IP,
                                    .pod_image = n->config.pod_image,
                                    .pod_program = n->config.pod_program,
                                    .service_host = n->service_host,
                                    .service_port = n->service_port,
                                    .cpu_milli = n->cpu_milli,
                                    .memory = n->memory,
                                    .root = geteuid() == 0,
                                    .a = a};
}

/* Tokens are renewed when 80 % of their time has passed. */
static void rotate_later(struct node_pod *p)
{
        int64_t soonest = 0;

        for (size_t i = 0; i < p->n_sources; i++)
                if (p->sources[i].kind == SOURCE_TOKEN && (!soonest || p->sources[i].expires < soonest))
                        soonest = p->sources[i].expires;
        if (soonest)
                timer_after(&p->rotate, (usec_t)MAX(soonest, (int64_t)60) * USEC_PER_SEC * 8 / 10);
}

static void refreshed(struct node_pod *p, const struct json *pod, struct arena *a)
{
        struct pod_context c = context_of(p, pod, a);
        struct err err = ERR_INIT;
        struct json *plan = pod_plan(&c, &err);

        p->refresh = false;
        json_foreach (v, json_at(plan, "volumes"))
                if (streq(json_str(v, "kind"), "files") &&
                    node_files_volume(p->dir, v, json_int(plan, "fsGroup", -1), &err) < 0)
                        LOG_WARN(p->n->config.log, "Cannot renew a volume", F_STR("pod", p->name),
                                 F_ERR(&err));
        if (!plan)
                LOG_WARN(p->n->config.log, "Cannot renew the pod's tokens", F_STR("pod", p->name),
                         F_ERR(&err));
        rotate_later(p);
}

static const struct json *config_error(const struct json *plan)
{
        json_foreach (c, json_at(plan, "containers"))
                if (streq(json_str(json_at(c, "error"), "reason"), "CreateContainerConfigError"))
                        return c;
        return NULL;
}

static int launch(struct node_pod *p, struct json *plan, struct arena *a, struct err *err)
{
        if (node_files_prepare(p->dir, plan, a, err) < 0 || spawn(p, &p->supervisor.pid, err) < 0)
                return -1;
        (void)!proc_identify(p->supervisor.pid, &p->supervisor);
        if (!watch_supervisor(p))
                return err_errno(err, E_IO, errno, "cannot watch the supervisor");
        p->tries = 0;
        LOG_INFO(p->n->config.log, "Started a pod", F_STR("namespace", p->ns), F_STR("pod", p->name),
                 F_STR("uid", p->uid));
        rotate_later(p);
        read_state(p);
        return 0;
}

static void tell_passed_over(struct node_pod *p, const struct json *pod, struct arena *a)
{
        const char *what = pod_passed_over(pod, a);

        if (what)
                node_pod_event(p, true, "FieldsIgnored", what);
}

void node_pod_fetched(struct node_pod *p)
{
        _cleanup_(arena_wipe) struct arena a = ARENA_INIT;
        const struct cache_entry *e = cache_get_uid(p->n->pods, p->uid);
        const struct json *pod = e ? cache_parse(p->n->pods, e, &a) : NULL, *wrong;
        struct pod_context c;
        struct err err = ERR_INIT;
        struct json *plan;

        if (!pod)
                return;
        if (p->refresh) {
                refreshed(p, pod, &a);
                return;
        }
        c = context_of(p, pod, &a);
        p->step = POD_NEW;
        if (p->n->stopping || json_at(json_at(pod, "metadata"), "deletionTimestamp")) {
                node_pod_look(p);
                return;
        }
        plan = pod_plan(&c, &err);
        if (!plan) {
                node_pod_event(p, true, "FailedMount", err.text);
                node_pod_missing(p, "ContainerCreating", NULL, NULL);
        } else if ((wrong = config_error(plan))) {
                const struct json *error = json_at(wrong, "error");

                node_pod_event(p, true, "Failed", json_str_or(error, "message", ""));
                node_pod_missing(p, json_str(error, "reason"), json_str(error, "message"),
                                 json_str(wrong, "name"));
        } else if (p->n->mounts_forbidden && pod_has_mounts(plan)) {
                refuse(p, "MountsForbidden", p->n->mounts_message);
        } else if (launch(p, plan, &a, &err) < 0) {
                node_pod_event(p, true, "FailedCreatePodSandBox", err.text);
                node_pod_missing(p, "ContainerCreating", NULL, NULL);
        } else {
                tell_passed_over(p, pod, &a);
                node_pod_report(p);
        }
}

/* ---- found again */

static bool claimed(const struct node_pod *p)
{
        _cleanup_(free_ptr) char *path = xasprintf("%s/claim", p->dir);

        return access(path, F_OK) == 0;
}

/* The pod has a claim: a supervisor runs, or ran. */
static void adopt(struct node_pod *p)
{
        uint64_t start = 0;

        p->state.root = node_files_read(p->dir, "state.json", &p->state.arena, NULL);
        if (!p->state.root && p->tries++ < CLAIM_TRIES) { /* it may be just about to write */
                p->step = POD_WAITING;
                timer_after(&p->retry, CLAIM_WAIT);
                return;
        }
        (void)!json_to_u64(json_at(p->state.root, "start"), &start);
        p->supervisor = (struct proc_id){(pid_t)json_int(p->state.root, "pid", 0), start};
        if (!state_is_final(p->state.root)) {
                if (p->state.root && same_boot(p->state.root) && proc_alive(p->supervisor) &&
                    watch_supervisor(p)) {
                        read_state(p); /* what changed before it was watched */
                        timer_after(&p->rotate, 0);
                        return;
                }
                lost(p);
        }
        p->step = POD_ENDED;
}

/* ---- stopping */

void node_pod_stop(struct node_pod *p, int64_t grace)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct err err = ERR_INIT;

        if (p->step != POD_RUNNING || (p->stopping >= 0 && p->stopping <= grace))
                return;
        if (p->stopping < 0)
                json_foreach (c, json_at(p->state.root, "containers"))
                        if (json_at(json_at(c, "state"), "running"))
                                node_pod_event(
                                        p, false, "Killing",
                                        arena_printf(&a, "Stopping container %s", json_str(c, "name")));
        p->stopping = grace;
        if (node_files_save(p->dir, "stop.json", json_build(&a, "{'grace': %lld}", (long long)grace), &err) <
            0)
                LOG_WARN(p->n->config.log, "Cannot say how long a pod has to end", F_ERR(&err));
        (void)!pidfd_send_signal(p->pidfd.fd, SIGTERM, NULL, 0);
}

void node_pod_orphan(struct node *n, const char *uid)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        char *dir = node_pod_dir(&a, n->config.dir, uid);
        struct json *state = node_files_read(dir, "state.json", &a, NULL);
        uint64_t start = 0;
        struct proc_id id;

        (void)!json_to_u64(json_at(state, "start"), &start);
        id = (struct proc_id){(pid_t)json_int(state, "pid", 0), start};
        LOG_INFO(n->config.log, "Ending what is left of a pod", F_STR("uid", uid));
        if (state && same_boot(state)) {
                if (proc_alive(id))
                        kill(id.pid, SIGKILL);
                kill_rest(uid, state);
        }
        node_files_remove(dir);
}

/* ---- looking */

static bool was_started(const struct json *status)
{
        json_foreach (c, json_at(status, "containerStatuses"))
                if (json_str(c, "containerID"))
                        return true;
        return false;
}

/* A pod that ran here once, and whose directory is gone: it is never started again. */
static void look_without_claim(struct node_pod *p, const struct json *pod)
{
        const struct json *status = json_at(pod, "status");
        const char *phase = json_str_or(status, "phase", "");

        if (streq(phase, "Succeeded") || streq(phase, "Failed")) {
                p->reported_before = true;
                p->step = POD_ENDED;
        } else if (was_started(status)) {
                refuse(p, "NodeLost", "The pod ran on this node before and its directory is gone");
        }
}

void node_pod_state_changed(struct node_pod *p)
{
        if (p->step != POD_RUNNING)
                return;
        read_state(p);
        node_pod_report(p);
}

static void gone(struct node_pod *p, int64_t grace)
{
        struct node *n = p->n;

        p->gone = true;
        if (p->step == POD_RUNNING) {
                node_pod_stop(p, grace);
                return;
        }
        node_files_remove(p->dir);
        node_pod_free(p);
        node_check_stopped(n); /* a report of it may have been waited for */
}

void node_pod_look(struct node_pod *p)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        const struct cache_entry *e = cache_get_uid(p->n->pods, p->uid);
        const struct json *pod = e ? cache_parse(p->n->pods, e, &a) : NULL, *meta = json_at(pod, "metadata");
        int64_t grace = json_int(json_at(pod, "spec"), "terminationGracePeriodSeconds", DEFAULT_GRACE);

        if (!pod) {
                gone(p, DEFAULT_GRACE);
                return;
        }
        if (p->step == POD_NEW && claimed(p))
                adopt(p);
        else if (p->step == POD_NEW)
                look_without_claim(p, pod);
        if (json_at(meta, "deletionTimestamp")) {
                grace = json_int(meta, "deletionGracePeriodSeconds", grace);
                if (p->step == POD_RUNNING)
                        node_pod_stop(p, grace);
                else if (p->step == POD_NEW || (p->step == POD_WAITING && !claimed(p)))
                        refuse(p, "Terminated", "The pod was deleted before it was started");
        } else if (p->n->stopping) {
                node_pod_stop(p, grace);
        } else if (p->step == POD_NEW) {
                node_pod_fetch(p, pod);
        }
        if (p->step == POD_ENDED || p->step == POD_RUNNING || p->step == POD_FETCHING)
                node_pod_report(p);
}

static void on_retry(struct timer *t)
{
        struct node_pod *p = CONTAINER_OF(t, struct node_pod, retry);

        if (p->step == POD_WAITING)
                p->step = POD_NEW;
        node_pod_look(p);
}

static void on_report_again(struct timer *t)
{
        node_pod_report(CONTAINER_OF(t, struct node_pod, report_again));
}

static void on_rotate(struct timer *t)
{
        struct node_pod *p = CONTAINER_OF(t, struct node_pod, rotate);
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        const struct cache_entry *e = cache_get_uid(p->n->pods, p->uid);

        if (!e || p->step != POD_RUNNING || p->fetch)
                return;
        p->refresh = true;
        node_pod_fetch(p, cache_parse(p->n->pods, e, &a));
}

struct node_pod *node_pod_new(struct node *n, const struct cache_entry *e)
{
        struct node_pod *p = xcalloc(1, sizeof(*p));

        *p = (struct node_pod){.n = n,
                               .uid = xstrdup(e->uid),
                               .ns = xstrdup(e->ns),
                               .name = xstrdup(e->name),
                               .dir = xasprintf("%s/pods/%s", n->config.dir, e->uid),
                               .stopping = -1,
                               .watch = -1,
                               .state = DOC_INIT};
        timer_init(&p->retry, n->loop, on_retry);
        timer_init(&p->rotate, n->loop, on_rotate);
        timer_init(&p->report_again, n->loop, on_report_again);
        map_put(&n->by_uid, str_of(p->uid), p);
        return p;
}

void node_pod_free(struct node_pod *p)
{
        map_remove(&p->n->by_uid, str_of(p->uid));
        unwatch(p);
        timer_cancel(&p->retry);
        timer_cancel(&p->rotate);
        timer_cancel(&p->report_again);
        if (p->fetch)
                kube_cancel(p->fetch);
        if (p->report)
                kube_cancel(p->report);
        arena_wipe(&p->fetched);
        doc_done(&p->state);
        free(p->waiting_reason);
        free(p->waiting_message);
        free(p->waiting_container);
        free(p->failed_reason);
        free(p->failed_message);
        free(p->uid);
        free(p->ns);
        free(p->name);
        free(p->dir);
        free(p);
}
