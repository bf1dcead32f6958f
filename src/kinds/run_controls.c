/*
 * The controls of a request: what they are, what is wrong with them, and what the request says of its run.
 */
#include "kinds/run_internal.h"

enum { USER_MAX = INT32_MAX };

#define TIMEOUT_MAX (365 * 86400 * USEC_PER_SEC)

/* Members of every kind's spec that may be changed at any time. */
static const char *const controls[] = {"suspend",           "cancel",   "timeout", "retries", "priority",
                                       "priorityClassName", "runAsUser"};

static const struct json *spec_of(const struct view *v)
{
        return json_at(v->request, "spec");
}

bool run_timeout_of(struct str text, usec_t *ret)
{
        uint64_t bare;

        return !str_to_u64(text, &bare) && str_to_duration(text, ret) && *ret && *ret <= TIMEOUT_MAX;
}

static struct run_controls read_controls(const struct json *spec)
{
        int64_t retries = json_int(spec, "retries", RUN_RETRIES_DEFAULT);
        int64_t user = json_int(spec, "runAsUser", -1);
        int64_t rank = json_int(spec, "priority", ADMISSION_PRIORITY_DEFAULT);
        const char *priority = json_str(spec, "priorityClassName");
        usec_t timeout = 0;

        if (!run_timeout_of(json_text(json_at(spec, "timeout")), &timeout))
                timeout = 0;
        return (struct run_controls){
                .suspend = json_bool(spec, "suspend", false),
                .cancel = json_bool(spec, "cancel", false),
                .timeout = timeout,
                .retries = retries < 0 || retries > RUN_RETRIES_MAX ? RUN_RETRIES_DEFAULT : retries,
                .priority = rank < 0 || rank > ADMISSION_PRIORITY_MAX ? ADMISSION_PRIORITY_DEFAULT : rank,
                .priority_class = priority && *priority ? priority : NULL,
                .run_as_user = user > USER_MAX ? -1 : user,
        };
}

static const char *wrong_truth(const struct view *v, const char *name)
{
        const struct json *value = json_at(spec_of(v), name);

        return value && value->type != JSON_BOOL && value->type != JSON_NULL
                       ? run_sentence(v, "spec.%s: is neither true nor false", name)
                       : NULL;
}

static const char *wrong_number(const struct view *v, const char *name, int64_t max)
{
        const struct json *value = json_at(spec_of(v), name);
        int64_t number;

        if (!value || value->type == JSON_NULL ||
            (json_to_i64(value, &number) && number >= 0 && number <= max))
                return NULL;
        return run_sentence(v, "spec.%s: is no whole number from 0 to %lld", name, (long long)max);
}

static const char *wrong_timeout(const struct view *v)
{
        const struct json *value = json_at(spec_of(v), "timeout");
        usec_t timeout;

        if (!value || value->type == JSON_NULL || run_timeout_of(json_text(value), &timeout))
                return NULL;
        return run_sentence(
                v,
                "spec.timeout: '%s' is no time above 0 and up to a year; write it like 90s, 30m or "
                "1h30m",
                run_quote(v, json_text(value)));
}

static const char *wrong_priority(const struct view *v)
{
        const struct json *value = json_at(spec_of(v), "priorityClassName");

        if (!value || value->type == JSON_NULL || streq(json_cstr(value), "") ||
            (json_cstr(value) && name_valid(NAME_SUBDOMAIN, json_text(value))))
                return NULL;
        return run_sentence(v, "spec.priorityClassName: '%s' is no name of a PriorityClass",
                            run_quote(v, json_text(value)));
}

size_t run_controls_check(const struct view *v, const char **ret, size_t max)
{
        const char *const wrong[] = {wrong_truth(v, "suspend"),
                                     wrong_truth(v, "cancel"),
                                     wrong_timeout(v),
                                     wrong_number(v, "retries", RUN_RETRIES_MAX),
                                     wrong_number(v, "priority", ADMISSION_PRIORITY_MAX),
                                     wrong_priority(v),
                                     wrong_number(v, "runAsUser", USER_MAX)};
        size_t n = 0;

        for (size_t i = 0; i < ARRAY_LEN(wrong) && n < max; i++)
                if (wrong[i])
                        ret[n++] = wrong[i];
        return n;
}

/* ---- what the request says */

static int by_key(const void *x, const void *y)
{
        return strcmp((*(struct json *const *)x)->key, (*(struct json *const *)y)->key);
}

/*
 * VALUE in a form for which the order of members does not count: no server promises to keep that in which they came. An object
 * becomes {"": [[key, value], …]}, which is made in no time however many there are.
 */
static struct json *in_order(struct arena *a, const struct json *value)
{
        struct json *list, *object;
        const struct json **members;
        size_t n = 0;

        if (!json_is(value, JSON_OBJECT) && !json_is(value, JSON_ARRAY))
                return json_copy(a, value);
        list = json_array(a);
        members = arena_alloc(a, (json_len(value) + 1) * sizeof(*members));
        json_foreach (member, value)
                members[n++] = member;
        if (json_is(value, JSON_ARRAY)) {
                for (size_t i = 0; i < n; i++)
                        json_append(list, in_order(a, members[i]));
                return list;
        }
        qsort(members, n, sizeof(*members), by_key);
        for (size_t i = 0; i < n; i++) {
                struct json *pair = json_append(list, json_array(a));

                json_append(pair, json_string(a, members[i]->key));
                json_append(pair, in_order(a, members[i]));
        }
        object = json_object(a);
        json_set(a, object, "", list);
        return object;
}

/* "name", or "part.name". */
static void remove_member(struct json *spec, const char *path)
{
        struct str name = str_of(path), part = str_split(&name, '.');
        struct json *of = name.p ? json_get(spec, part) : spec;

        if (json_is(of, JSON_OBJECT))
                json_remove(of, name.p ? name.p : path);
}

const char *run_spec_hash(const struct view *v, const char *const *free)
{
        struct json *spec = json_is(spec_of(v), JSON_OBJECT) ? json_copy(v->arena, spec_of(v))
                                                             : json_object(v->arena);

        for (size_t i = 0; i < ARRAY_LEN(controls); i++)
                json_remove(spec, controls[i]);
        for (; free && *free; free++)
                remove_member(spec, *free);
        return name_hash(v->arena, str_of(json_print(v->arena, in_order(v->arena, spec))));
}

/*
 * Nobody has edited it whose generation is known already, whatever the hash says: a new default of the server's is no change.
 * One that was refused stays one.
 */
static bool may_be_edited(const struct view *v)
{
        const struct json *status = json_at(v->request, "status");
        int64_t generation = json_int(json_at(v->request, "metadata"), "generation", 0);

        return json_int(status, "observedGeneration", -1) != generation ||
               streq(json_str(view_condition(v, "SpecAccepted"), "status"), "False");
}

void run_read(const struct view *v, const struct run_kind *kind, struct run *ret)
{
        const struct json *run = json_at(json_at(v->request, "status"), "run");
        int64_t attempt = json_int(run, "attempt", 1), retries = json_int(run, "retries", 0);

        *ret = (struct run){
                .kind = kind,
                .controls = read_controls(spec_of(v)),
                .names = {.job = json_str(run, "job"),
                          .status_map = kind->status_map,
                          .data_map = kind->data_map,
                          .access = kind->access,
                          .attempt = (uint64_t)MAX(attempt, (int64_t)1)},
                .retries = MAX(retries, (int64_t)0),
                .spec_hash = run_spec_hash(v, kind->free),
                .suspended = run_condition(v->request, "Suspended"),
                .over = json_str(run, "outcome"),
        };
        ret->changed = ret->names.job && !streq(json_str(run, "specHash"), ret->spec_hash) &&
                       may_be_edited(v);
}
