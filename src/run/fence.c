/*
 * What may follow what in the status ConfigMap.
 */
#include "run/fence.h"

#include "run/status.h"

static const char *const state_names[RUN_STATE_MAX_] = {
        [RUN_PENDING] = "Pending",
        [RUN_RUNNING] = "Running",
        [RUN_SUCCEEDED] = "Succeeded",
        [RUN_FAILED] = "Failed",
};

enum { FENCE_KEYS = 4, OWNER_KEYS = 2 /* of them: attempt and pod */, NUMBER_MAX = 24 };

/* The four values as they stand in a ConfigMap; numbers need room of their own. */
struct fence_text {
        struct {
                const char *key, *value;
        } v[FENCE_KEYS];
        char attempt[NUMBER_MAX], sequence[NUMBER_MAX];
};

const char *run_state_name(enum run_state state)
{
        return state_names[state];
}

bool run_key_valid(struct str key)
{
        static const char allowed[] = "-._0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

        for (size_t i = 0; i < key.n; i++)
                if (!memchr(allowed, key.p[i], sizeof(allowed) - 1))
                        return false;
        return key.n > 0 && key.n <= RUN_KEY_MAX && !str_eq(key, STR(".")) && !str_has_prefix(key, STR(".."));
}

static void fence_text(struct fence_text *t, const struct run_fence *f)
{
        *t = (struct fence_text){0};
        snprintf(t->attempt, sizeof(t->attempt), "%llu", (unsigned long long)f->attempt);
        snprintf(t->sequence, sizeof(t->sequence), "%llu", (unsigned long long)f->sequence);
        t->v[0].key = RUN_KEY_ATTEMPT;
        t->v[0].value = t->attempt;
        t->v[1].key = RUN_KEY_POD;
        t->v[1].value = f->pod;
        t->v[2].key = RUN_KEY_SEQUENCE;
        t->v[2].value = t->sequence;
        t->v[3].key = RUN_KEY_STATE;
        t->v[3].value = run_state_name(f->state);
}

struct json *run_fence_data(struct arena *a, uint64_t attempt)
{
        struct run_fence first = {.attempt = attempt, .state = RUN_PENDING};
        struct json *data = json_object(a);
        struct fence_text t;

        fence_text(&t, &first);
        for (size_t i = 0; i < FENCE_KEYS; i++)
                json_set(a, data, t.v[i].key, json_string(a, t.v[i].value));
        return data;
}

static int read_number(const struct json *data, const char *key, uint64_t min, uint64_t *ret, struct err *err)
{
        struct str text = json_text(json_at(data, key));

        if (!str_to_u64(text, ret) || *ret < min || *ret > RUN_SEQUENCE_MAX)
                return err_set(err, E_INVALID, "key '%s' is %s", key, text.p ? "no such number" : "missing");
        return 0;
}

static int read_state(const struct json *data, enum run_state *ret, struct err *err)
{
        const char *name = json_str(data, RUN_KEY_STATE);

        for (size_t i = 0; i < RUN_STATE_MAX_; i++)
                if (streq(name, state_names[i])) {
                        *ret = (enum run_state)i;
                        return 0;
                }
        return err_set(err, E_INVALID, "key '%s' is %s", RUN_KEY_STATE, name ? "no such state" : "missing");
}

int run_fence_read(const struct json *data, struct run_fence *ret, struct err *err)
{
        const char *pod = json_str(data, RUN_KEY_POD);
        struct run_fence f = {0};

        if (read_number(data, RUN_KEY_ATTEMPT, 1, &f.attempt, err) < 0 ||
            read_number(data, RUN_KEY_SEQUENCE, 0, &f.sequence, err) < 0 ||
            read_state(data, &f.state, err) < 0)
                return -1;
        if (!pod || strlen(pod) >= sizeof(f.pod))
                return err_set(err, E_INVALID, "key '%s' is %s", RUN_KEY_POD, pod ? "too long" : "missing");
        memcpy(f.pod, pod, strlen(pod) + 1);
        *ret = f;
        return 0;
}

bool run_fence_follows(const struct run_fence *old, const struct run_fence *next)
{
        if (next->attempt != old->attempt)
                return next->attempt > old->attempt;
        if (old->pod[0] && !streq(old->pod, next->pod))
                return false;
        return next->sequence > old->sequence && !run_state_terminal(old->state);
}

static void add_op(struct arena *a, struct json *patch, const char *op, const char *key, struct json *value)
{
        struct json *o = json_append(patch, json_object(a));

        json_set(a, o, "op", json_string(a, op));
        json_set(a, o, "path", json_string(a, arena_join(a, "/data/", key, "")));
        json_set(a, o, "value", value);
}

static void add_tests(struct arena *a, struct json *patch, const struct fence_text *t, size_t n)
{
        for (size_t i = 0; i < n; i++)
                add_op(a, patch, "test", t->v[i].key, json_string(a, t->v[i].value));
}

static void add_members(struct arena *a, struct json *patch, const struct json *present,
                        const struct json *set)
{
        json_foreach (member, set) {
                if (!json_is(member, JSON_NULL))
                        add_op(a, patch, "add", member->key, json_stringn(a, json_text(member)));
                else if (json_at(present, member->key))
                        add_op(a, patch, "remove", member->key, NULL);
        }
}

struct json *run_fence_patch(struct arena *a, const struct run_fence *old, const struct run_fence *next,
                             const struct json *present, const struct json *set)
{
        struct json *patch = json_array(a);
        struct fence_text was, is;

        fence_text(&was, old);
        fence_text(&is, next);
        add_tests(a, patch, &was, FENCE_KEYS);
        for (size_t i = 0; i < FENCE_KEYS; i++)
                if (!streq(was.v[i].value, is.v[i].value))
                        add_op(a, patch, "replace", is.v[i].key, json_string(a, is.v[i].value));
        add_members(a, patch, present, set);
        return patch;
}

struct json *run_fence_note(struct arena *a, const struct run_fence *fence, const struct json *set)
{
        struct json *patch = json_array(a);
        struct fence_text t;

        fence_text(&t, fence);
        add_tests(a, patch, &t, OWNER_KEYS);
        add_members(a, patch, NULL, set);
        return patch;
}
