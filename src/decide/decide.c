#include "decide/decide.h"

const struct json *view_condition(const struct view *v, const char *type)
{
        json_foreach (c, json_at(json_at(v->request, "status"), "conditions"))
                if (streq(json_str(c, "type"), type))
                        return c;
        return NULL;
}

const struct object *view_child(const struct view *v, const struct kube_type *type, const char *name)
{
        for (size_t i = 0; i < v->n_children; i++)
                if (v->children[i].type == type && streq(v->children[i].name, name))
                        return &v->children[i];
        return NULL;
}

const char *admission_position(size_t position)
{
        static const char *const exact[] = {"0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10"};

        if (position < ARRAY_LEN(exact))
                return exact[position];
        return position <= 100 ? "10+" : position <= 1000 ? "100+" : "1000+";
}

static bool want_equal(const struct want *a, const struct want *b)
{
        return a->kind == b->kind && a->type == b->type && streq(a->name, b->name) && streq(a->uid, b->uid) &&
               streq(a->container, b->container);
}

/* NULL: it was not asked yet. */
static const struct answer *view_answer(const struct view *v, const struct want *want)
{
        for (size_t i = 0; i < v->n_answers; i++)
                if (want_equal(&v->answers[i].want, want))
                        return &v->answers[i];
        return NULL;
}

void decision_done(struct decision *d)
{
        vec_done(&d->exist);
        vec_done(&d->absent);
        vec_done(&d->events);
        *d = (struct decision){0};
}

void decide_exist(struct decision *d, const struct kube_type *type, struct json *json, enum exist_how how)
{
        decide_exist_with_status(d, type, json, how, NULL);
}

void decide_exist_with_status(struct decision *d, const struct kube_type *type, struct json *json,
                              enum exist_how how, struct json *status)
{
        *vec_push(&d->exist) = (struct must_exist){type, json, how, status};
}

void decide_absent(struct decision *d, const struct object *object)
{
        *vec_push(&d->absent) = (struct must_not_exist){.object = object};
}

void decide_absent_foreground(struct decision *d, const struct object *object)
{
        *vec_push(&d->absent) = (struct must_not_exist){.object = object, .propagation = "Foreground"};
}

void decide_again_at(struct decision *d, usec_t when)
{
        if (!d->again_at || when < d->again_at)
                d->again_at = when;
}

const struct answer *decide_want(struct decision *d, const struct view *v, const struct want *want)
{
        const struct answer *answer = view_answer(v, want);

        if (answer)
                return answer;
        for (size_t i = 0; i < d->n_wants; i++)
                if (want_equal(&d->wants[i], want))
                        return NULL;
        answer = v->recall ? v->recall(v->recall_arg, want) : NULL;
        if (answer)
                return answer;
        if (d->n_wants < WANTS_MAX)
                d->wants[d->n_wants++] = *want;
        return NULL;
}

void decide_event(struct decision *d, const struct view *v, enum event_type type, const char *reason,
                  const char *fmt, ...)
{
        va_list ap;
        char *note;

        va_start(ap, fmt);
        note = arena_vprintf(v->arena, fmt, ap);
        va_end(ap);
        *vec_push(&d->events) = (struct event){.type = type, .reason = reason, .note = note};
}

static struct json *find_condition(const struct json *status, const char *type)
{
        json_foreach (c, json_at(status, "conditions"))
                if (streq(json_str(c, "type"), type))
                        return c;
        return NULL;
}

void decide_condition(const struct view *v, struct json *status, const char *type, const char *value,
                      const char *reason, const char *message)
{
        struct arena *a = v->arena;
        const struct json *before = find_condition(json_at(v->request, "status"), type);
        const char *since = json_str(before, "lastTransitionTime");
        int64_t generation = json_int(json_at(v->request, "metadata"), "generation", 0);
        struct json *list = json_at(status, "conditions"), *condition;
        char now[TIME_TEXT_MAX];

        if (!json_is(list, JSON_ARRAY)) /* also when somebody else wrote something odd */
                list = json_set(a, status, "conditions", json_array(a));
        if (!since || !streq(json_str(before, "status"), value))
                since = time_format(v->now, now);
        condition = find_condition(status, type);
        if (!condition)
                condition = json_append(list, json_build(a, "{'type': %s}", type));
        json_set(a, condition, "status", json_string(a, value));
        json_set(a, condition, "observedGeneration", json_i64(a, generation));
        json_set(a, condition, "lastTransitionTime", json_string(a, since));
        json_set(a, condition, "reason", json_string(a, reason));
        json_set(a, condition, "message", json_string(a, message));
}
