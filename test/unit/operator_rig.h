/*
 * operator_rig.h - an operator with one controller, and an API server that a test plays by hand.
 *
 * Requests are Samples; each may have a ConfigMap of its name. What the controller decides is in struct mind.
 */
#pragma once

#include "unit/api_rig.h"
#include "unit/dir.h"

#include "operator/runtime.h"

#define SEC      USEC_PER_SEC
#define SAMPLES  "/apis/example.sonde.dev/v1/samples"
#define IN_NS    "/apis/example.sonde.dev/v1/namespaces/ns/samples"
#define MAPS     "/api/v1/configmaps"
#define JOBS     "/apis/batch/v1/jobs"
#define MAPS_NS  "/api/v1/namespaces/ns/configmaps"
#define ACCOUNTS "/api/v1/namespaces/ns/serviceaccounts"
#define EVENTS   "/apis/events.k8s.io/v1/namespaces/ns/events"

static const struct kube_type SAMPLE = {"example.sonde.dev", "v1", "samples", "Sample", true, true};

struct mind {
        struct clock *clock;
        bool child;         /* a ConfigMap must exist */
        bool gone;          /* none of them must */
        bool account;       /* a ServiceAccount must exist, which is not watched */
        const char *value;  /* data.v of it */
        const char *status; /* JSON with ' for "; NULL: as it is */
        usec_t again;       /* wall */
        usec_t costs;       /* time that one decision takes */
        unsigned wants;     /* look-ups of one more object each time */
        const char *shape;  /* priors of it are wanted first; NULL: none */
        bool row;           /* to be recorded before the status */
        bool rests;         /* its child is looked at no more */
        unsigned decisions;
        unsigned prior_runs;     /* that the last priors came from */
        const char *series[10];  /* wanted, all at once */
        size_t n_series, points; /* of all of them, as answered */
};

struct rig {
        struct api api;
        struct mind mind;
        struct child_kind kinds[1];
        struct controller controller;
        const struct controller *controllers[2]; /* the second: NULL, or without children */
        struct operator* op;
        struct admission_limits limits;
        struct history *history;
        char path[UNIT_DIR_LEN + 8]; /* of its file */
        struct request *watch, *maps_watch;
        unsigned drained, version;
        bool forbid, free_when_drained, wait_to_lead;
};

static inline void plan(const struct view *v, struct decision *d)
{
        struct mind *m = (struct mind *)v->settings;
        const char *name = meta_str(v->request, "name");

        m->decisions++;
        m->clock->boot += m->costs;
        d->rests = m->rests;
        if (m->child)
                decide_exist(d, &KUBE_CONFIGMAP,
                             json_build(v->arena, "{'metadata': {'name': %s}, 'data': {'v': %s}}", name,
                                        m->value ? m->value : "1"),
                             EXIST_APPLY);
        if (m->account)
                decide_exist(d, &KUBE_SERVICEACCOUNT,
                             json_build(v->arena, "{'metadata': {'name': %s, 'labels': {'v': %s}}}", name,
                                        m->value ? m->value : "1"),
                             EXIST_APPLY);
        for (size_t i = 0; m->gone && i < v->n_children; i++)
                decide_absent(d, &v->children[i]);
        if (m->wants && (!m->shape || v->n_answers)) { /* the priors come first */
                char *object = arena_printf(v->arena, "wanted-%u", (unsigned)v->n_answers);

                if (v->n_answers < m->wants)
                        decide_want(
                                d, v,
                                &(struct want){.kind = WANT_OBJECT, .type = &KUBE_CONFIGMAP, .name = object});
        }
}

static inline bool want_series(const struct view *v, struct decision *d, struct mind *m)
{
        bool all = true;

        m->points = 0;
        for (size_t i = 0; i < m->n_series; i++) {
                const struct answer *answer = decide_want(
                        d, v, &(struct want){.kind = WANT_SERIES, .name = m->series[i]});

                all = all && answer;
                for (size_t j = 0; answer && answer->series && j < answer->series->n; j++)
                        m->points += answer->series->points[j].uid && answer->series->points[j].name &&
                                     answer->series->points[j].value > 0;
        }
        return all;
}

static inline void settle(const struct view *v, struct decision *d)
{
        static const struct history_row row = {.uid = "uid-s",
                                               .attempt = 1,
                                               .kind = "Sample",
                                               .ns = "ns",
                                               .name = "s",
                                               .shape = "shape",
                                               .outcome = "Succeeded"};
        struct mind *m = (struct mind *)v->settings;
        const struct answer *answer =
                m->shape ? decide_want(d, v, &(struct want){.kind = WANT_PRIORS, .name = m->shape}) : NULL;

        if (m->shape && !answer)
                return;
        if (!want_series(v, d, m))
                return;
        m->prior_runs = answer && answer->priors ? answer->priors->phases[0].runs : 0;
        if (m->row)
                d->row = &row;

        if (m->again)
                decide_again_at(d, m->again);
        if (m->status) {
                char *text = arena_strdup(v->arena, m->status);

                for (char *p = text; *p; p++)
                        *p = *p == '\'' ? '"' : *p;
                d->status = json_parse(v->arena, str_of(text), NULL, NULL);
        }
}

static inline bool rig_may_send(void *arg)
{
        return !((struct rig *)arg)->forbid;
}

static inline int setup(void **state)
{
        struct rig *r = xcalloc(1, sizeof(*r));

        api_init(&r->api, NULL);
        r->version = 100;
        r->mind.clock = &r->api.net.clock;
        r->kinds[0] = (struct child_kind){.type = &KUBE_CONFIGMAP, .through = -1};
        r->controller = (struct controller){.name = "test",
                                            .type = &SAMPLE,
                                            .children = r->kinds,
                                            .n_children = 1,
                                            .settings = &r->mind,
                                            .plan = plan,
                                            .settle = settle};
        r->controllers[0] = &r->controller;
        *state = r;
        return 0;
}

static inline int teardown(void **state)
{
        struct rig *r = *state;

        operator_free(r->op);
        history_free(r->history);
        api_done(&r->api);
        free(r);
        return 0;
}

static inline void turns(struct rig *r)
{
        for (int i = 0; i < 30; i++)
                net_turn(&r->api.net);
}

/* In steps of at most a second, so that what a timer sets off can set the next one. */
static inline void pass(struct rig *r, usec_t time)
{
        turns(r);
        for (; time; time -= MIN(time, SEC)) {
                r->api.net.clock.boot += MIN(time, SEC);
                r->api.net.clock.wall += MIN(time, SEC);
                turns(r);
        }
}

/* ---- what the server says */

static inline char *sample(struct arena *a, const char *name, unsigned version, const char *status)
{
        return arena_printf(a,
                            "{\"apiVersion\":\"example.sonde.dev/"
                            "v1\",\"kind\":\"Sample\",\"metadata\":{\"namespace\":"
                            "\"ns\",\"name\":\"%s\",\"uid\":\"uid-%s\",\"resourceVersion\":\"%u\","
                            "\"generation\":1}%s%s}",
                            name, name, version, status ? ",\"status\":" : "", status ? status : "");
}

/* The ConfigMap of NAME, as created by the body of a POST or at another version. */
static inline char *map_of(struct arena *a, const char *body, const char *name, unsigned version)
{
        struct json *j = json_parse(a, str_of(body), NULL, NULL), *meta = json_at(j, "metadata");

        assert_non_null(meta);
        json_set(a, meta, "uid", json_string(a, arena_printf(a, "uid-map-%s", name)));
        json_set(a, meta, "resourceVersion", json_string(a, arena_printf(a, "%u", version)));
        return json_print(a, j);
}

static inline void say(struct rig *r, struct request *watch, const char *type, const char *object)
{
        api_say(&r->api, watch,
                arena_printf(&watch->arena, "{\"type\":\"%s\",\"object\":%s}\n", type, object));
        turns(r);
}

static inline void list_of(struct request *q, const char *kind, const char *items)
{
        api_answer(q, 200,
                   arena_printf(&q->arena,
                                "{\"kind\":\"%sList\",\"metadata\":{\"resourceVersion\":\"100\"},\"items\":[%"
                                "s]}",
                                kind, items));
}

/* An operator that has seen the requests ITEMS (JSON, comma-separated) and MAPS, and leads. */
static inline void begin_with(struct rig *r, const char *items, const char *maps)
{
        const char *children = r->kinds[0].type == &KUBE_JOB ? JOBS : MAPS;
        struct operator_config config = {.loop = r->api.net.loop,
                                         .kube = r->api.kube,
                                         .controllers = r->controllers,
                                         .n_controllers = r->controllers[1] ? 2 : 1,
                                         .instance = "test",
                                         .history = r->history,
                                         .limits = r->limits,
                                         .may_send = rig_may_send,
                                         .arg = r};

        r->op = operator_new(&config);
        if (!r->wait_to_lead)
                operator_lead(r->op);
        api_refuse(api_find(&r->api, "GET", SAMPLES), 422, "Invalid", NULL); /* no WatchList here */
        if (r->kinds[0].passing) {
                turns(r);
                assert_null(api_waiting(&r->api, "GET", children)); /* not before the rest is there */
                list_of(api_find(&r->api, "GET", SAMPLES), "Sample", items);
        }
        api_refuse(api_find(&r->api, "GET", children), 422, "Invalid", NULL);
        if (!r->kinds[0].passing)
                list_of(api_find(&r->api, "GET", SAMPLES), "Sample", items);
        list_of(api_find(&r->api, "GET", children), r->kinds[0].type->kind, maps);
        r->watch = api_find(&r->api, "GET", SAMPLES);
        r->maps_watch = api_find(&r->api, "GET", children);
        api_stream(&r->api, r->watch);
        api_stream(&r->api, r->maps_watch);
}

static inline void begin(struct rig *r)
{
        struct arena a = ARENA_INIT;

        begin_with(r, sample(&a, "s", 10, NULL), "");
        arena_done(&a);
}

static inline void on_drained(void *arg)
{
        struct rig *r = arg;

        r->drained++;
        if (r->free_when_drained)
                operator_free(TAKE_PTR(r->op));
}
