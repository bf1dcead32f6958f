#include "local/node_impl.h"

#include <dirent.h>
#include <errno.h>
#include <sys/inotify.h>
#include <unistd.h>

/* ---- pods come and go */

static bool is_ours(struct node *n, const struct cache_entry *e)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        const struct json *pod = cache_parse(n->pods, e, &a);

        return streq(json_str(json_at(pod, "spec"), "nodeName"), n->config.name);
}

static void look(struct node *n, const struct cache_entry *e)
{
        struct node_pod *p = map_get(&n->by_uid, str_of(e->uid));

        if (!p && !is_ours(n, e))
                return;
        node_bind_seen(n, e->uid);
        if (!p)
                p = node_pod_new(n, e);
        node_pod_look(p);
}

static void on_pod(void *arg, enum cache_change change, const struct cache_entry *before,
                   const struct cache_entry *after, bool initial)
{
        struct node *n = arg;
        struct node_pod *p;

        node_schedule_soon(n);
        if (!reflector_synced(n->reflector))
                return; /* all are looked at then */
        if (before && (!after || !streq(before->uid, after->uid))) {
                node_bind_seen(n, before->uid);
                p = map_get(&n->by_uid, str_of(before->uid));
                if (p)
                        timer_after(&p->retry, 0); /* the cache still has it during this call */
        }
        if (after)
                look(n, after);
}

/* The first list may be from a server's cache and older than what an earlier node knew: asked again, one by one. */
struct suspect {
        struct list link;
        struct node *n;
        char *uid;
        struct kube_call *call;
};

static void suspect_free(struct suspect *s)
{
        list_remove(&s->link);
        if (s->call)
                kube_cancel(s->call);
        free(s->uid);
        free(s);
}

static void on_suspect(void *arg, const struct kube_answer *answer, const struct err *err)
{
        struct suspect *s = arg;
        _cleanup_(doc_done) struct doc doc = DOC_INIT;
        bool gone = err && err->code == E_NOT_FOUND;

        s->call = NULL;
        if (!err && doc_parse(&doc, answer->body, NULL, NULL) == 0)
                gone = !streq(meta_str(doc.root, "uid"), s->uid);
        if (gone && !map_get(&s->n->by_uid, str_of(s->uid)))
                node_pod_orphan(s->n, s->uid);
        suspect_free(s);
}

static void suspect(struct node *n, const char *uid)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct json *plan = node_files_read(node_pod_dir(&a, n->config.dir, uid), "plan.json", &a, NULL);
        struct kube_request r = {.verb = KUBE_GET,
                                 .type = &KUBE_POD,
                                 .ns = json_str(plan, "namespace"),
                                 .name = json_str(plan, "name")};
        struct suspect *s;

        if (!r.ns || !r.name) { /* nothing was ever started there */
                node_pod_orphan(n, uid);
                return;
        }
        s = xcalloc(1, sizeof(*s));
        s->n = n;
        s->uid = xstrdup(uid);
        list_init(&s->link);
        list_append(&n->suspects, &s->link);
        s->call = kube_send(n->config.client, &r, on_suspect, s);
}

/* Directories of pods that the API does not know any more. */
static void sweep(struct node *n)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        DIR *dir = opendir(arena_printf(&a, "%s/pods", n->config.dir));
        struct dirent *entry;

        while (dir && (entry = readdir(dir)))
                if (entry->d_name[0] != '.' && !cache_get_uid(n->pods, entry->d_name) &&
                    !map_get(&n->by_uid, str_of(entry->d_name)))
                        suspect(n, entry->d_name);
        if (dir)
                closedir(dir);
}

static void on_synced(void *arg, bool first)
{
        struct node *n = arg;
        const struct cache_entry *e;
        size_t i = 0;

        while ((e = cache_next(n->pods, &i)))
                look(n, e);
        if (first)
                sweep(n);
        node_schedule_soon(n);
}

/* ---- states change */

static struct node_pod *by_watch(struct node *n, int watch)
{
        struct node_pod *p;

        map_foreach (i, &n->by_uid, p)
                if (p->watch == watch)
                        return p;
        return NULL;
}

static void on_inotify(struct io *io, uint32_t events)
{
        struct node *n = CONTAINER_OF(io, struct node, inotify);
        char buffer[4096] __attribute__((aligned(__alignof__(struct inotify_event))));
        ssize_t size = read(io->fd, buffer, sizeof(buffer));

        for (ssize_t at = 0; at < size;) {
                const struct inotify_event *e = (const void *)(buffer + at);
                struct node_pod *p = by_watch(n, e->wd);

                if (p && e->len && streq(e->name, "state.json"))
                        node_pod_state_changed(p);
                at += (ssize_t)(sizeof(*e) + e->len);
        }
}

/* ---- beginning and end */

static int read_server(struct node *n, const char *server, struct err *err)
{
        struct url url;

        if (!server)
                return 0;
        if (url_parse(str_of(server), &url, err) < 0)
                return err_wrap(err, "API server %s", server);
        n->service_host = xstrndup(url.host.p, url.host.n);
        n->service_port = xasprintf("%u", url.port);
        return 0;
}

static void copy_config(struct node *n, const struct node_config *config)
{
        n->config = *config;
        n->config.name = xstrdup(config->name);
        n->config.dir = xstrdup(config->dir);
        n->config.pod_image = xstrdup(config->pod_image);
        n->config.pod_program = xstrdup(config->pod_program);
        n->config.ca = xstrdup(config->ca);
        n->config.server = NULL;
}

static int prepare(struct node *n, struct err *err)
{
        _cleanup_(free_ptr) char *pods = xasprintf("%s/pods", n->config.dir);
        _cleanup_(buf_done) struct buf own = BUF_INIT(64 << 10);
        struct err why = ERR_INIT;
        int fd;

        if (dir_make(pods, 0755, err) < 0)
                return -1;
        if (file_read("/proc/self/cgroup", &own, NULL) == 0)
                cgroup_prepare(CGROUP_ROOT, buf_str(&own));
        if (root_try(&why) < 0) {
                n->mounts_forbidden = true;
                n->mounts_message = xstrdup(why.text);
                LOG_WARN(n->config.log, "Pods with volumes cannot run", F_ERR(&why));
        }
        fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
        if (fd < 0)
                return err_errno(err, E_IO, errno, "cannot watch files");
        io_add(n->loop, &n->inotify, fd, EPOLLIN, on_inotify);
        return 0;
}

static void on_node(void *arg, enum cache_change change, const struct cache_entry *before,
                    const struct cache_entry *after, bool initial)
{
        struct node *n = arg;

        doc_done(&n->node);
        n->node = (struct doc)DOC_INIT;
        if (after)
                n->node.root = cache_parse(n->nodes, after, &n->node.arena);
        else
                timer_after(&n->node_timer, 0); /* registered again */
        node_schedule_soon(n);
}

static void watch_node(struct node *n)
{
        struct cache_config cc = {.type = &KUBE_NODE};
        _cleanup_(free_ptr) char *selector = xasprintf("metadata.name=%s", n->config.name);
        struct reflector_config rc = {.kube = n->config.client, .field_selector = selector, .arg = n};

        rc.cache = n->nodes = cache_new(&cc);
        cache_listen(n->nodes, on_node, n);
        n->node_reflector = reflector_new(&rc);
}

static void watch_pods(struct node *n)
{
        struct cache_config cc = {.type = &KUBE_POD, .metrics = n->config.metrics};
        _cleanup_(free_ptr) char *selector = xasprintf("spec.nodeName=%s", n->config.name);
        struct reflector_config rc = {.kube = n->config.client,
                                      .field_selector = n->config.no_scheduler ? selector : NULL,
                                      .metrics = n->config.metrics,
                                      .on_synced = on_synced,
                                      .arg = n};
        struct events_config ec = {.kube = n->config.client,
                                   .controller = "sonde.dev/node",
                                   .instance = n->config.name,
                                   .metrics = n->config.metrics};

        n->events = events_new(&ec);
        rc.cache = n->pods = cache_new(&cc);
        cache_listen(n->pods, on_pod, n);
        n->reflector = reflector_new(&rc);
}

struct node *node_new(struct loop *loop, const struct node_config *config, struct err *err)
{
        struct node *n = xcalloc(1, sizeof(*n));

        n->loop = loop;
        n->node = (struct doc)DOC_INIT;
        list_init(&n->suspects);
        copy_config(n, config);
        node_measure(n);
        if (read_server(n, config->server, err) < 0 || prepare(n, err) < 0) {
                node_free(n);
                return NULL;
        }
        watch_pods(n);
        node_register(n);
        watch_node(n);
        return n;
}

void node_free(struct node *n)
{
        struct node_pod *p;
        size_t i = 0;

        if (!n)
                return;
        if (n->reflector)
                node_register_done(n);
        reflector_free(n->reflector);
        reflector_free(n->node_reflector);
        node_bind_done(n);
        list_foreach_safe (s, &n->suspects)
                suspect_free(CONTAINER_OF(s, struct suspect, link));
        while (map_next(&n->by_uid, &i, (void **)&p)) {
                node_pod_free(p);
                i = 0;
        }
        map_done(&n->by_uid);
        if (n->inotify.loop) {
                int fd = n->inotify.fd;

                io_remove(&n->inotify);
                fd_close(fd);
        }
        events_free(n->events);
        cache_free(n->pods);
        cache_free(n->nodes);
        free((char *)n->config.name);
        free((char *)n->config.dir);
        free((char *)n->config.pod_image);
        free((char *)n->config.pod_program);
        free((char *)n->config.ca);
        free(n->service_host);
        free(n->service_port);
        free(n->mounts_message);
        free(n);
}

void node_check_stopped(struct node *n)
{
        struct node_pod *p;
        void (*done)(void *arg) = n->stopped;

        if (!n->stopping || !done)
                return;
        map_foreach (i, &n->by_uid, p)
                if (node_pod_live(p) || p->report)
                        return;
        n->stopped = NULL;
        done(n->stopped_arg);
}

static void check_later(struct defer *d)
{
        node_check_stopped(CONTAINER_OF(d, struct node, scheduling));
}

void node_stop(struct node *n, void (*done)(void *arg), void *arg)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct node_pod **list;
        struct node_pod *p;
        size_t count = 0;

        n->stopping = true;
        n->stopped = done;
        n->stopped_arg = arg;
        list = arena_new_array(&a, struct node_pod *, n->by_uid.n + 1);
        map_foreach (i, &n->by_uid, p)
                list[count++] = p;
        for (size_t i = 0; i < count; i++)
                node_pod_look(list[i]);
        defer_cancel(&n->scheduling);
        defer_run(n->loop, &n->scheduling, check_later);
}

void node_hurry(struct node *n)
{
        struct node_pod *p;

        map_foreach (i, &n->by_uid, p)
                node_pod_stop(p, 0);
}

void node_doctor(struct buf *out)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        _cleanup_(buf_done) struct buf own = BUF_INIT(64 << 10);
        struct cgroup_limits tiny = {64 << 20, 1000};
        struct err err = ERR_INIT;
        struct json *group;

        if (root_try(&err) < 0)
                buf_printf(out, "%s\n", err.text);
        if (file_read("/proc/self/cgroup", &own, &err) < 0) {
                buf_printf(out, "%s\n", err.text);
                return;
        }
        group = cgroup_make(CGROUP_ROOT, buf_str(&own), arena_printf(&a, "doctor-%d", (int)getpid()), &tiny,
                            &a, &err);
        if (group)
                cgroup_remove(group);
        else
                buf_printf(out, "%s\n", err.text);
}
