/*
 * run_rig.h - a view made of plain JSON (with ' for "), and what was decided on it.
 */
#pragma once

#include "unit/unit.h"

#include "kinds/kinds.h"

#define NOON    ((usec_t)1794744000 * USEC_PER_SEC) /* 2026-11-15T12:00:00Z */
#define OWNED   "'ownerReferences': [{'uid': 'uid-r', 'controller': true}]"
#define BY_JOB  "'ownerReferences': [{'uid': 'uid-job', 'controller': true}]"
#define OTHERS  "'ownerReferences': [{'uid': 'uid-other', 'controller': true}]"
#define REQUEST "{'metadata': {'namespace': 'ns', 'name': 'r', 'uid': 'uid-r', 'generation': 1}, 'spec': {}}"

static const struct kube_type RIG_TYPE = {"test.sonde.dev", "v1alpha1", "testruns", "TestRun", true, true};

struct rig {
        struct arena arena;
        struct view view;
        struct decision d;
        VEC(struct object) children;
        VEC(struct answer) answers;
        struct run_names names;
        struct run_seen seen;
};

static inline struct json *parse(struct rig *r, const char *text)
{
        char *copy = arena_strdup(&r->arena, text);
        struct err err = ERR_INIT;
        struct json *j;

        for (char *p = copy; *p; p++)
                *p = *p == '\'' ? '"' : *p;
        j = json_parse(&r->arena, str_of(copy), NULL, &err);
        if (!j)
                fail_msg("%s: %s", text, err.text);
        return j;
}

static inline int setup(void **state)
{
        struct rig *r = xcalloc(1, sizeof(*r));

        r->view.arena = &r->arena;
        r->view.now = NOON;
        r->view.type = &RIG_TYPE;
        r->view.request = parse(r, REQUEST);
        r->names = (struct run_names){"r-run", "r-status", "r-data", "r-access", 1};
        *state = r;
        return 0;
}

static inline int teardown(void **state)
{
        struct rig *r = *state;

        decision_done(&r->d);
        vec_done(&r->children);
        vec_done(&r->answers);
        arena_done(&r->arena);
        free(r);
        return 0;
}

static inline void request(struct rig *r, const char *status)
{
        struct json *j = parse(r, REQUEST);

        if (status)
                json_set(&r->arena, j, "status", parse(r, status));
        r->view.request = j;
}

static inline void child_json(struct rig *r, const struct kube_type *type, struct json *j)
{
        struct object *o = vec_push(&r->children);

        *o = (struct object){type, j, meta_str(j, "name"), meta_str(j, "uid")};
        r->view.children = r->children.v;
        r->view.n_children = r->children.n;
}

static inline void child(struct rig *r, const struct kube_type *type, const char *text)
{
        child_json(r, type, parse(r, text));
}

/* What the server says about an object; NULL: there is none. */
static inline void answer(struct rig *r, const struct kube_type *type, const char *name, const char *text,
                          const char *error)
{
        struct answer *a = vec_push(&r->answers);

        a->want = (struct want){.kind = WANT_OBJECT, .type = type, .name = name};
        a->json = text ? parse(r, text) : NULL;
        a->error = error;
        r->view.answers = r->answers.v;
        r->view.n_answers = r->answers.n;
}

static inline bool wanted(const struct rig *r, const struct kube_type *type, const char *name)
{
        for (size_t i = 0; i < r->d.n_wants; i++)
                if (r->d.wants[i].type == type && streq(r->d.wants[i].name, name))
                        return true;
        return false;
}

static inline struct json *planned(const struct rig *r, const struct kube_type *type, const char *name)
{
        vec_foreach (e, &r->d.exist)
                if (e->type == type && streq(meta_str(e->json, "name"), name))
                        return e->json;
        return NULL;
}

static inline void assert_json(struct rig *r, const struct json *is, const char *wanted_text)
{
        if (!is || !json_equal(is, parse(r, wanted_text)))
                fail_msg("%s is not %s", is ? json_print(&r->arena, is) : "(nothing)", wanted_text);
}

static inline const struct json *condition(const struct json *status, const char *type)
{
        json_foreach (c, json_at(status, "conditions"))
                if (streq(json_str(c, "type"), type))
                        return c;
        return NULL;
}

static inline void assert_condition(const struct json *status, const char *type, const char *value,
                                    const char *reason)
{
        const struct json *c = condition(status, type);

        if (!c)
                fail_msg("there is no condition %s", type);
        assert_string_equal(json_str(c, "status"), value);
        assert_string_equal(json_str(c, "reason"), reason);
}
