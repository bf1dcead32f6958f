#include "local/strategy_internal.h"

#include "local/api_internal.h"

enum { WORD_MAX = 128, MESSAGE_MAX = 1024 };

/* ---- validation: new events, those with a time of their own, must say more */

static void check_length(struct causes *c, const char *path, const char *text, size_t max)
{
        if (strlen(text) > max)
                bad_str(c, path, "", arena_printf(c->a, "can have at most %zu characters", max));
}

static void check_word(struct causes *c, const char *path, const char *text)
{
        if (!*text)
                bad_required(c, path, "");
        check_length(c, path, text, WORD_MAX);
}

static void check_new(struct causes *c, const struct json *e, const char *ns)
{
        const char *about = json_str_or(json_at(e, "involvedObject"), "namespace", "");
        const char *component = json_str_or(e, "reportingComponent", "");

        if (!*about && !streq(ns, "kube-system"))
                bad_str(c, "involvedObject.namespace", about, "does not match event.namespace");
        if (!*component)
                bad_required(c, "reportingController", "");
        check_value(c, "reportingController", component, check_qualified);
        check_word(c, "reportingInstance", json_str_or(e, "reportingInstance", ""));
        check_word(c, "action", json_str_or(e, "action", ""));
        check_word(c, "reason", json_str_or(e, "reason", ""));
        check_length(c, "message", json_str_or(e, "message", ""), MESSAGE_MAX);
}

static void check_old(struct causes *c, const struct json *e, const char *ns)
{
        const char *about = json_str_or(json_at(e, "involvedObject"), "namespace", "");

        if (*about ? !streq(about, ns) : *ns && !streq(ns, "default"))
                bad_str(c, "involvedObject.namespace", about, "does not match event.namespace");
}

static bool said(const struct json *e, const char *key)
{
        const struct json *v = json_at(e, key);

        return v && v->type != JSON_NULL;
}

/* What only the newer version of the API asks for. */
static void check_strictly(struct causes *c, const struct json *old, const struct json *e)
{
        static const char *const unset[] = {"firstTimestamp", "lastTimestamp"};
        const struct json *series = json_at(e, "series");
        const char *type = json_str_or(e, "type", "");

        if (series && !same(series, json_at(old, "series"))) {
                if (json_int(series, "count", 0) < 2)
                        bad_str(c, "series.count", "", "should be at least 2");
                if (!said(series, "lastObservedTime"))
                        bad_required(c, "series.lastObservedTime", "");
        }
        if (old)
                return;
        if (!said(e, "eventTime"))
                bad_required(c, "eventTime", "");
        if (!streq(type, "Normal") && !streq(type, "Warning"))
                bad_str(c, "type", "", arena_printf(c->a, "has invalid value: %s", type));
        for (size_t i = 0; i < ARRAY_LEN(unset); i++)
                if (said(e, unset[i]))
                        bad_str(c, unset[i], "", "needs to be unset");
        if (json_int(e, "count", 0) != 0)
                bad_str(c, "count", "", "needs to be unset");
        if (json_len(json_at(e, "source")) > 0)
                bad_str(c, "source", "", "needs to be unset");
}

static void validate(const struct strategy_context *ctx, const char *sub, const struct json *old,
                     const struct json *e, struct causes *c)
{
        const char *ns = meta_str(e, "namespace");

        ns = ns ? ns : "";
        if (said(e, "eventTime"))
                check_new(c, e, ns);
        else
                check_old(c, e, ns);
        if (*ctx->type->kube.group)
                check_strictly(c, old, e);
}

/* ---- selection */

static const char *field(const struct json *e, const char *path, struct arena *a)
{
        static const char *const about[] = {"kind",       "namespace",       "name",      "uid",
                                            "apiVersion", "resourceVersion", "fieldPath", NULL};
        static const char *const own[] = {"reason", "type", "reportingComponent", NULL};
        const char *source = json_str_or(json_at(e, "source"), "component", "");

        if (strncmp(path, "involvedObject.", 15) == 0 && str_in(about, path + 15))
                return json_str_or(json_at(e, "involvedObject"), path + 15, "");
        if (strncmp(path, "regarding.", 10) == 0 && str_in(about, path + 10))
                return json_str_or(json_at(e, "involvedObject"), path + 10, "");
        if (streq(path, "reportingController"))
                path = "reportingComponent";
        if (str_in(own, path))
                return json_str_or(e, path, "");
        if (streq(path, "source"))
                return *source ? source : json_str_or(e, "reportingComponent", "");
        return NULL;
}

const struct strategy STRATEGY_EVENT = {.validate = validate, .field = field, .row = event_row};

/* ---- two versions of one thing */

static const struct {
        const char *stored, *newer;
} NAMES[] = {
        {"involvedObject", "regarding"},
        {"message", "note"},
        {"source", "deprecatedSource"},
        {"firstTimestamp", "deprecatedFirstTimestamp"},
        {"lastTimestamp", "deprecatedLastTimestamp"},
        {"count", "deprecatedCount"},
        {"reportingComponent", "reportingController"},
};

static void rename_member(struct json *object, const char *from, const char *to, struct arena *a)
{
        struct json *value = json_remove(object, from);

        if (value)
                json_set(a, object, to, value);
}

void event_to_stored(const struct api_type *t, struct json *e, struct arena *a)
{
        normalize_builtin(t->shape, e, a);
        for (size_t i = 0; i < ARRAY_LEN(NAMES); i++)
                rename_member(e, NAMES[i].newer, NAMES[i].stored, a);
        default_str(a, e, "reportingComponent", "");
        default_str(a, e, "reportingInstance", "");
        json_set(a, e, "apiVersion", json_string(a, t->stored_version));
}

void event_from_stored(const struct api_type *t, struct json *e, struct arena *a)
{
        for (size_t i = 0; i < ARRAY_LEN(NAMES); i++)
                rename_member(e, NAMES[i].stored, NAMES[i].newer, a);
        if (!*json_str_or(e, "reportingController", ""))
                json_remove(e, "reportingController");
        if (!*json_str_or(e, "reportingInstance", ""))
                json_remove(e, "reportingInstance");
        json_set(a, e, "apiVersion", json_string(a, kube_api_version(&t->kube, a)));
}
