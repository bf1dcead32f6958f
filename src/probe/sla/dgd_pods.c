/*
 * What the pods of a temporary deployment say.
 *
 * Some reasons to wait never pass by themselves within a candidate's time: a crash loop, an image that cannot be had, a
 * container that refers to what is not there. The candidate ends with the first pod that says one of them.
 */
#include "probe/sla/dgd_internal.h"

enum {
        TAIL_BYTES = 4096,
        WORDS_MAX = 240,
        LOG_BYTES = 4 << 20, /* of a worker: what it says of its KV cache comes early */
};

/* ---- logs */

/* The log of a container of POD; empty when it cannot be had. TAIL: its last lines, of the container's last life. */
static struct str read_log(struct dgd_target *t, struct arena *a, const struct json *pod,
                           const char *container, bool tail)
{
        _cleanup_(buf_done) struct buf path = BUF_INIT(4096);
        struct str text = STR_NULL;
        struct err err = ERR_INIT;

        kube_path(&path, &KUBE_POD, t->ns, meta_str(pod, "name"), "log");
        buf_adds(&path, "?container=");
        buf_add_urlencoded(&path, str_of(container));
        buf_printf(&path, tail ? "&previous=true&tailLines=20&limitBytes=%d" : "&limitBytes=%d",
                   tail ? TAIL_BYTES : LOG_BYTES);
        if (!buf_cstr(&path))
                return STR_NULL;
        if (kube_do(t->kube,
                    &(struct kube_request){
                            .verb = KUBE_GET, .path = buf_cstr(&path), .timeout = DGD_CALL_TIMEOUT},
                    a, &text, &err) < 0) {
                LOG_DEBUG(t->c.log, "No log of a pod", F_STR("pod", meta_str(pod, "name")), F_ERR(&err));
                return STR_NULL;
        }
        return text;
}

/* The last line that says something, cut, and without control characters. */
static const char *last_line(struct arena *a, struct str text)
{
        struct str line, best = STR_NULL;
        char *copy;

        while (text.n) {
                line = str_trim(str_split(&text, '\n'));
                best = line.n ? line : best;
        }
        if (!best.n)
                return NULL;
        copy = arena_strndup(a, best.p, utf8_cut(best.p, best.n, WORDS_MAX));
        for (char *p = copy; *p; p++)
                if ((unsigned char)*p < ' ' || *p == 0x7F)
                        *p = ' ';
        return copy;
}

/* ---- why one will never be ready */

struct fatal {
        const char *reason, *next;
        bool crashed;
};

static const struct fatal fatals[] = {
        {"CrashLoopBackOff", "see its log", true},
        {"ErrImagePull", "check the image's name and the pull secrets", false},
        {"ImagePullBackOff", "check the image's name and the pull secrets", false},
        {"InvalidImageName", "correct the image's name", false},
        {"ErrImageNeverPull", "load the image on the node, or allow to pull it", false},
        {"CreateContainerConfigError", "create what the container refers to, or correct the reference",
         false},
};

static const struct fatal *fatal_of(const char *reason)
{
        for (size_t i = 0; reason && i < ARRAY_LEN(fatals); i++)
                if (streq(fatals[i].reason, reason))
                        return &fatals[i];
        return NULL;
}

/* What a crashed container left: its own message, else the end of its log, and how it ended. */
static const char *last_words(struct dgd_target *t, struct arena *a, const struct json *pod,
                              const struct json *container)
{
        const struct json *ended = json_path(container, "lastState.terminated");
        const char *words = last_line(a, json_text(json_at(ended, "message")));
        const char *reason = json_str_or(ended, "reason", "Error");
        int64_t code = json_int(ended, "exitCode", -1);

        if (!words)
                words = last_line(a, read_log(t, a, pod, json_str_or(container, "name", ""), true));
        if (code < 0)
                return words ? words : "it says nothing";
        return arena_printf(a, "%s, exit code %lld%s%s", reason, (long long)code, words ? ": " : "",
                            words ? words : "");
}

static const char *container_fault(struct dgd_target *t, struct arena *a, const struct json *pod,
                                   const struct json *container)
{
        const struct json *waiting = json_path(container, "state.waiting");
        const struct fatal *f = fatal_of(json_str(waiting, "reason"));
        const char *words;

        if (!f)
                return NULL;
        words = f->crashed ? last_words(t, a, pod, container)
                           : last_line(a, json_text(json_at(waiting, "message")));
        return arena_printf(a, "pod %s: container %s is in %s (%s); %s", meta_str(pod, "name"),
                            json_str_or(container, "name", "?"), f->reason, words ? words : "no more is said",
                            f->next);
}

const char *dgd_pod_fault(struct dgd_target *t, struct arena *a, const struct json *pod)
{
        static const char *const lists[] = {"initContainerStatuses", "containerStatuses"};

        if (meta_str(pod, "deletionTimestamp"))
                return NULL; /* one that is being replaced */
        for (size_t i = 0; i < ARRAY_LEN(lists); i++)
                json_foreach (c, json_at(json_at(pod, "status"), lists[i])) {
                        const char *fault = container_fault(t, a, pod, c);

                        if (fault)
                                return fault;
                }
        return NULL;
}

const char *dgd_pod_waits(struct arena *a, const struct json *pod)
{
        const char *name = meta_str(pod, "name"), *words;

        json_foreach (c, json_path(pod, "status.conditions"))
                if (streq(json_str(c, "type"), "PodScheduled") && streq(json_str(c, "status"), "False")) {
                        words = last_line(a, json_text(json_at(c, "message")));
                        return arena_printf(a, "pod %s is not scheduled%s%s", name, words ? ": " : "",
                                            words ? words : "");
                }
        json_foreach (c, json_path(pod, "status.containerStatuses")) {
                const char *reason = json_str(json_path(c, "state.waiting"), "reason");

                if (reason)
                        return arena_printf(a, "container %s of pod %s is in %s", json_str_or(c, "name", "?"),
                                            name, reason);
                if (!json_bool(c, "ready", true))
                        return arena_printf(a, "container %s of pod %s is not ready",
                                            json_str_or(c, "name", "?"), name);
        }
        return NULL;
}

static const char *pod_why(struct dgd_target *t, struct arena *a, const struct json *pod)
{
        const char *fault = dgd_pod_fault(t, a, pod);

        if (fault)
                return fault;
        json_foreach (c, json_path(pod, "status.containerStatuses"))
                if (json_path(c, "lastState.terminated"))
                        return arena_printf(a, "container %s of pod %s was restarted (%s)",
                                            json_str_or(c, "name", "?"), meta_str(pod, "name"),
                                            last_words(t, a, pod, c));
        return NULL;
}

const char *dgd_pods_why(struct dgd_target *t, struct arena *a, const char *name)
{
        struct kube_request q = {.verb = KUBE_LIST,
                                 .type = &KUBE_POD,
                                 .ns = t->ns,
                                 .label_selector = arena_printf(a, DGD_POD_LABEL "=%s", name),
                                 .timeout = DGD_CALL_TIMEOUT};
        struct err err = ERR_INIT;
        struct json *list;
        struct str body;

        if (kube_do(t->kube, &q, a, &body, &err) < 0)
                return NULL;
        list = json_parse(a, body, &KUBE_OBJECT_LIMITS, &err);
        json_foreach (pod, json_at(list, "items")) {
                const char *why = pod_why(t, a, pod);

                if (why)
                        return why;
        }
        return NULL;
}

/* ---- the KV cache */

static const char *label(const struct json *pod, const char *name)
{
        return json_str_or(json_at(json_at(pod, "metadata"), "labels"), name, "");
}

/* Frontends, planners and the like have no engine. */
static bool is_worker(const struct json *pod)
{
        static const char *const others[] = {"frontend", "planner", "epp"};
        const char *type = label(pod, "nvidia.com/dynamo-component-type");
        const char *component = label(pod, "nvidia.com/dynamo-component");

        for (size_t i = 0; i < ARRAY_LEN(others); i++)
                if (str_case_eq(str_of(type), str_of(others[i])) ||
                    str_case_eq(str_of(component), str_of(others[i])))
                        return false;
        return true;
}

static void keep_log(struct dgd_target *t, const char *dir, const struct json *pod, struct str text)
{
        _cleanup_(free_ptr) char *path = xasprintf("%s/%s.log", dir, meta_str(pod, "name"));
        struct err err = ERR_INIT;

        if (dir_make(dir, 0755, &err) < 0 || file_replace(path, text, 0644, &err) < 0)
                LOG_WARN(t->c.log, "Could not keep the log of a pod", F_STR("pod", meta_str(pod, "name")),
                         F_ERR(&err));
}

static uint64_t kv_of_pod(struct dgd_target *t, const struct json *pod, const struct sla_candidate *c,
                          const char *dir)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        const struct json *first = json_first(json_path(pod, "spec.containers"));
        struct str text = read_log(t, &a, pod, json_str_or(first, "name", ""), false);

        if (!text.n)
                return 0;
        if (dir)
                keep_log(t, dir, pod, text);
        return sla_kv_from_log(t->c.config->backend, text, c->attn_dp);
}

uint64_t dgd_kv_tokens(struct dgd_target *t, const struct cache *pods, const struct sla_candidate *c,
                       const char *dir)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        VEC(const struct json *) workers = {0};
        const struct cache_entry *e;
        uint64_t kv = 0;
        size_t i = 0;

        /* First all of them: the cache changes while a log is read. */
        while ((e = cache_next(pods, &i))) {
                const struct json *pod = cache_parse(pods, e, &a);

                if (is_worker(pod) && !e->deleting)
                        *vec_push(&workers) = pod;
        }
        for (size_t w = 0; w < workers.n; w++) {
                uint64_t found = kv_of_pod(t, workers.v[w], c, dir);

                kv = kv ? kv : found;
        }
        vec_done(&workers);
        return kv;
}
