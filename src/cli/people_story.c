#include "cli/people.h"

enum { JOBS_MAX = 2 };

/* As `kubectl describe` asks for them: selected by what they are about. */
static const struct kube_type events_type = {"", "v1", "events", "Event", .namespaced = true};

static usec_t time_at(const struct json *object, const char *member)
{
        struct str text = json_text(json_at(object, member));
        usec_t when;

        return text.p && time_parse(text, &when) ? when : 0;
}

/* A list of which nobody need have the right to read it: empty then. Below 0: no connection. */
static int list(struct people *p, const struct people_run *run, const struct kube_type *type,
                const char *labels, const char *fields, struct json **ret)
{
        struct err err = ERR_INIT;

        *ret = NULL;
        if (people_list_of(p, run->cluster, type, run->summary.ns, labels, fields, ret, &err) == 0)
                return 0;
        if (err.code == E_FORBIDDEN || err.code == E_NOT_FOUND)
                return 0;
        people_complain(run->cluster, NULL, &err);
        return -1;
}

/* ---- pods */

/* Why a container waits or how it ended badly; NULL: neither. */
static const char *why_of(struct arena *a, const struct json *status)
{
        const struct json *state = json_at(status, "state"), *waiting = json_at(state, "waiting");
        const struct json *ended = json_at(state, "terminated");
        const char *name = json_str_or(status, "name", ""), *message = json_str_or(waiting, "message", "");
        const char *reason = json_str(waiting, "reason");

        if (reason && !streq(reason, "PodInitializing") && !streq(reason, "ContainerCreating"))
                return arena_printf(a, "container %s waits: %s%s%s", name, reason, *message ? ": " : "",
                                    message);
        if (ended && json_int(ended, "exitCode", 0) != 0)
                return arena_printf(a, "container %s exited with status %lld (%s)", name,
                                    (long long)json_int(ended, "exitCode", 0),
                                    json_str_or(ended, "reason", "Error"));
        return NULL;
}

static const char *why_of_pod(struct arena *a, const struct json *pod)
{
        static const char *const lists[] = {"initContainerStatuses", "containerStatuses"};
        const struct json *status = json_at(pod, "status");
        const char *message = json_str_or(status, "message", "");

        if (json_str(status, "reason"))
                return arena_printf(a, "%s%s%s", json_str(status, "reason"), *message ? ": " : "", message);
        for (size_t i = 0; i < ARRAY_LEN(lists); i++)
                json_foreach (one, json_at(status, lists[i]))
                        if (why_of(a, one))
                                return why_of(a, one);
        json_foreach (c, json_at(status, "conditions"))
                if (streq(json_str(c, "type"), "PodScheduled") && streq(json_str(c, "status"), "False"))
                        return arena_printf(a, "%s: %s", json_str_or(c, "reason", "Unschedulable"),
                                            json_str_or(c, "message", ""));
        return NULL;
}

static int by_creation(const void *x, const void *y)
{
        const struct people_pod *a = x, *b = y;

        return a->created < b->created ? -1 : a->created > b->created ? 1 : strcmp(a->name, b->name);
}

/* The Jobs of a run, by the names that its status tells. */
static size_t jobs_of(const struct people_run *run, const char *ret[JOBS_MAX])
{
        const struct json *status = json_at(run->object, "status");
        const char *names[] = {json_str(json_at(status, "run"), "job"), json_str(status, "executionJobName")};
        size_t n = 0;

        for (size_t i = 0; i < ARRAY_LEN(names); i++)
                if (names[i] && *names[i])
                        ret[n++] = names[i];
        return n;
}

static int read_pods(struct people *p, const struct people_run *run, struct people_story *ret)
{
        const char *jobs[JOBS_MAX];
        char *selector = arena_strdup(&p->arena, "job-name in (");
        size_t n = jobs_of(run, jobs);
        struct json *pods;

        if (!n)
                return 0;
        for (size_t i = 0; i < n; i++)
                selector = arena_join(&p->arena, selector, i ? "," : "", jobs[i]);
        if (list(p, run, &KUBE_POD, arena_join(&p->arena, selector, ")", ""), NULL, &pods) < 0)
                return -1;
        ret->pods = arena_new_array(&p->arena, struct people_pod, json_len(pods));
        json_foreach (pod, pods)
                ret->pods[ret->n_pods++] = (struct people_pod){
                        .name = json_str_or(json_at(pod, "metadata"), "name", ""),
                        .node = json_str_or(json_at(pod, "spec"), "nodeName", ""),
                        .phase = json_str_or(json_at(pod, "status"), "phase", "Pending"),
                        .why = why_of_pod(&p->arena, pod),
                        .created = time_at(json_at(pod, "metadata"), "creationTimestamp"),
                        .object = pod,
                };
        if (ret->n_pods)
                qsort(ret->pods, ret->n_pods, sizeof(*ret->pods), by_creation);
        return 0;
}

/* ---- events */

static usec_t event_time(const struct json *e)
{
        const struct json *series = json_at(e, "series");
        usec_t when = time_at(series, "lastObservedTime");

        if (!when)
                when = time_at(e, "lastTimestamp");
        if (!when)
                when = time_at(e, "eventTime");
        return when ? when : time_at(json_at(e, "metadata"), "creationTimestamp");
}

static const char *about_of(struct arena *a, const struct json *about)
{
        const struct kind *kind = kinds_find(json_str(about, "apiVersion"), json_str(about, "kind"));
        const char *word = kind ? kind->label : json_str_or(about, "kind", "");
        char *label = arena_printf(a, "%s/%s", word, json_str_or(about, "name", ""));

        for (char *c = label; *c && *c != '/'; c++)
                if (*c >= 'A' && *c <= 'Z')
                        *c = (char)(*c - 'A' + 'a');
        return label;
}

static int by_time(const void *x, const void *y)
{
        const struct people_event *a = x, *b = y;

        return a->when < b->when ? -1 : a->when > b->when;
}

/* Those of the object of that uid (or of a Job, by its name). */
static int add_events(struct people *p, const struct people_run *run, const char *fields, struct json *all)
{
        struct json *events, *e;

        if (list(p, run, &events_type, NULL, fields, &events) < 0)
                return -1;
        while ((e = json_first(events)))
                json_append(all, json_take(events, e));
        return 0;
}

static int gather_events(struct people *p, const struct people_run *run, const struct people_story *story,
                         struct json *all)
{
        struct arena *a = &p->arena;
        const char *jobs[JOBS_MAX];
        size_t n = jobs_of(run, jobs);

        if (add_events(p, run, arena_printf(a, "involvedObject.uid=%s", run->summary.uid), all) < 0)
                return -1;
        for (size_t i = 0; i < n; i++)
                if (add_events(p, run,
                               arena_printf(a, "involvedObject.kind=Job,involvedObject.name=%s", jobs[i]),
                               all) < 0)
                        return -1;
        for (size_t i = 0; i < story->n_pods; i++)
                if (add_events(
                            p, run,
                            arena_printf(a, "involvedObject.uid=%s",
                                         json_str_or(json_at(story->pods[i].object, "metadata"), "uid", "")),
                            all) < 0)
                        return -1;
        return 0;
}

static int read_events(struct people *p, const struct people_run *run, struct people_story *ret)
{
        struct json *all = json_array(&p->arena);

        if (gather_events(p, run, ret, all) < 0)
                return -1;
        ret->events = arena_new_array(&p->arena, struct people_event, json_len(all));
        json_foreach (e, all) {
                int64_t count = json_int(json_at(e, "series"), "count", json_int(e, "count", 1));

                ret->events[ret->n_events++] = (struct people_event){
                        .when = event_time(e),
                        .count = MAX(count, (int64_t)1),
                        .warning = streq(json_str(e, "type"), "Warning"),
                        .reason = json_str_or(e, "reason", ""),
                        .message = json_str_or(e, "message", ""),
                        .about = about_of(&p->arena, json_at(e, "involvedObject")),
                };
        }
        if (ret->n_events)
                qsort(ret->events, ret->n_events, sizeof(*ret->events), by_time);
        return 0;
}

/* ---- phases */

/* Of ConfigMaps the names and owners alone are listed: what is in them may be large. */
static struct json *list_maps(struct people *p, const struct people_run *run)
{
        struct kube_request r = {.verb = KUBE_LIST,
                                 .type = &KUBE_CONFIGMAP,
                                 .ns = run->summary.ns,
                                 .label_selector = "sonde.dev/controller",
                                 .metadata_only = true,
                                 .timeout = p->request_timeout};
        struct err err = ERR_INIT;
        struct asked got;

        return ask(run->cluster->kube, &r, NULL, &p->arena, &got, &err) == 0 ? json_at(got.doc, "items")
                                                                             : NULL;
}

static const struct json *read_map(struct people *p, const struct people_run *run, const char *name)
{
        struct kube_request r = {.verb = KUBE_GET,
                                 .type = &KUBE_CONFIGMAP,
                                 .ns = run->summary.ns,
                                 .name = name,
                                 .timeout = p->request_timeout};
        struct err err = ERR_INIT;
        struct asked got;

        return ask(run->cluster->kube, &r, NULL, &p->arena, &got, &err) < 0 ? NULL : got.doc;
}

static const struct json *find_status_map(struct people *p, const struct people_run *run)
{
        struct json *maps = list_maps(p, run);

        json_foreach (map, maps) {
                const char *name = meta_str(map, "name");
                const struct json *found = NULL;

                if (name && strstr(name, "status") && streq(meta_controller_uid(map), run->summary.uid))
                        found = read_map(p, run, name);
                if (json_str(json_at(found, "data"), RUN_KEY_TRACK))
                        return found;
        }
        return NULL;
}

int people_story(struct people *p, const struct people_run *run, struct people_story *ret)
{
        *ret = (struct people_story){0};
        if (read_pods(p, run, ret) < 0 || read_events(p, run, ret) < 0)
                return -1;
        if (!run->kind->result)
                ret->status_map = find_status_map(p, run);
        return 0;
}
