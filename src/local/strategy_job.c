#include "local/strategy_internal.h"

static void defaults(const struct strategy_context *c, struct json *job)
{
        struct json *spec = child_object(c->a, job, "spec"), *template = child_object(c->a, spec, "template");
        struct json *labels = json_path(template, "metadata.labels"),
                    *meta = child_object(c->a, job, "metadata");

        if (!json_at(spec, "parallelism"))
                default_int(c->a, spec, "completions", 1);
        default_int(c->a, spec, "parallelism", 1);
        default_int(c->a, spec, "backoffLimit", 6);
        podspec_defaults(c->a, child_object(c->a, template, "spec"));
        if (json_len(labels) > 0 && json_len(json_at(meta, "labels")) == 0)
                json_set(c->a, meta, "labels", json_copy(c->a, labels));
}

/* ---- the labels by which a Job knows its pods */

static void generate_selector(struct arena *a, struct json *job)
{
        struct json *meta = json_at(job, "metadata"), *spec = json_at(job, "spec");
        struct json *template_meta = child_object(a, json_at(spec, "template"), "metadata");
        struct json *labels = child_object(a, template_meta, "labels");
        struct json *match = child_object(a, child_object(a, spec, "selector"), "matchLabels");
        bool as_template = json_len(json_at(meta, "labels")) == 0 || same(json_at(meta, "labels"), labels);
        const char *uid = meta_str(job, "uid"), *name = meta_str(job, "name");

        default_str(a, labels, "controller-uid", uid ? uid : "");
        default_str(a, labels, "job-name", name ? name : "");
        default_str(a, match, "controller-uid", uid ? uid : "");
        if (as_template) /* the server's Job and its template then share one set of labels */
                json_set(a, meta, "labels", json_copy(a, labels));
}

static void prepare(const struct strategy_context *c, const char *sub, const struct json *old,
                    struct json *job)
{
        struct json *spec = json_at(job, "spec");

        if (*sub || old)
                return;
        json_set(c->a, job, "status", json_object(c->a));
        if (!json_bool(spec, "manualSelector", false))
                generate_selector(c->a, job);
}

/* ---- validation */

static void check_has_label(struct causes *c, const struct json *labels, const char *key, const char *want)
{
        const char *path = path_map(c, "spec.template.metadata.labels", key), *is = json_str(labels, key);
        const char *detail = arena_printf(c->a, "must be '%s'", want);

        if (!is)
                bad_required(c, path, detail);
        else if (!streq(is, want))
                bad_raw(c, path, go_map(c, labels), detail);
}

static bool requirement_matches(const struct json *r, const struct json *labels)
{
        const char *op = json_str_or(r, "operator", ""), *value = json_str(labels, json_str_or(r, "key", ""));
        bool in = false;

        json_foreach (v, json_at(r, "values"))
                in |= value && streq(json_cstr(v), value);
        if (streq(op, "In"))
                return in;
        if (streq(op, "NotIn"))
                return !in;
        return streq(op, "Exists") ? value != NULL : value == NULL;
}

static bool selects(const struct json *selector, const struct json *labels)
{
        json_foreach (m, json_at(selector, "matchLabels"))
                if (!streq(json_str(labels, m->key), json_cstr(m)))
                        return false;
        json_foreach (r, json_at(selector, "matchExpressions"))
                if (!requirement_matches(r, labels))
                        return false;
        return true;
}

static void check_generated(struct causes *c, const struct json *job)
{
        const struct json *spec = json_at(job, "spec"), *selector = json_at(spec, "selector");
        const struct json *labels = json_path(spec, "template.metadata.labels"), *expected;
        const char *uid = meta_str(job, "uid"), *name = meta_str(job, "name");

        if (json_bool(spec, "manualSelector", false) || !selector)
                return;
        uid = uid ? uid : "";
        name = name ? name : "";
        check_has_label(c, labels, "controller-uid", uid);
        check_has_label(c, labels, "job-name", name);
        expected = json_build(c->a, "{'controller-uid': %s, 'job-name': %s}", uid, name);
        if (!selects(selector, expected))
                bad_raw(c, "spec.selector",
                        arena_printf(c->a,
                                     "v1.LabelSelector{MatchLabels:%s, "
                                     "MatchExpressions:[]v1.LabelSelectorRequirement(nil)}",
                                     go_map(c, json_at(selector, "matchLabels"))),
                        "`selector` not auto-generated");
}

static void validate_spec(struct causes *c, const struct json *spec)
{
        static const char *const counts[] = {"parallelism", "completions", "activeDeadlineSeconds",
                                             "backoffLimit", "ttlSecondsAfterFinished"};
        static const char *const restarts[] = {"OnFailure", "Never", NULL};
        const struct json *template = json_at(spec, "template"), *selector = json_at(spec, "selector");
        const char *policy = json_str_or(json_at(template, "spec"), "restartPolicy", "");

        for (size_t i = 0; i < ARRAY_LEN(counts); i++)
                check_not_negative(c, "spec", spec, counts[i]);
        template_validate(c, "spec.template", template);
        if (streq(policy, "Always") || !*policy)
                bad_required(c, "spec.template.spec.restartPolicy", "valid values: \"OnFailure\", \"Never\"");
        else if (!str_in(restarts, policy))
                bad_enum(c, "spec.template.spec.restartPolicy", policy, restarts);
        if (!selector)
                bad_required(c, "spec.selector", "");
        else
                check_label_selector(c, "spec.selector", selector);
        if (selector && !selects(selector, json_path(template, "metadata.labels")))
                bad_raw(c, "spec.template.metadata.labels", go_map(c, json_path(template, "metadata.labels")),
                        "`selector` does not match template `labels`");
}

static void validate_update(struct causes *c, const struct json *old, const struct json *spec)
{
        validate_spec(c, spec);
        if (!same(json_at(old, "completions"), json_at(spec, "completions"))) {
                if (json_at(spec, "completions"))
                        bad_int(c, "spec.completions", json_int(spec, "completions", 0), IMMUTABLE);
                else
                        bad_str(c, "spec.completions", "null", IMMUTABLE);
        }
        /* The server prints memory addresses of what it refuses: nobody can compare those. */
        if (!same(json_at(old, "selector"), json_at(spec, "selector")))
                bad_raw(c, "spec.selector",
                        arena_printf(c->a,
                                     "v1.LabelSelector{MatchLabels:%s, "
                                     "MatchExpressions:[]v1.LabelSelectorRequirement(nil)}",
                                     go_map(c, json_path(spec, "selector.matchLabels"))),
                        IMMUTABLE);
        if (!same(json_at(old, "template"), json_at(spec, "template")))
                bad_raw(c, "spec.template", "core.PodTemplateSpec{}", IMMUTABLE);
}

/* The server gives a Job without labels those of its template only after the checks: a name that is too long for a label
 * is told of the template alone. */
static void forget_label(struct causes *c, const struct json *job)
{
        size_t kept = 0;

        if (json_len(json_path(job, "spec.template.metadata.labels")) > 2)
                return;
        for (size_t i = 0; i < c->n; i++)
                if (!streq(c->list[i].field, "metadata.labels") ||
                    !strstr(c->list[i].message, "must be no more than 63 characters"))
                        c->list[kept++] = c->list[i];
        c->n = kept;
}

static void validate(const struct strategy_context *ctx, const char *sub, const struct json *old,
                     const struct json *job, struct causes *c)
{
        static const char *const counts[] = {"active", "succeeded", "failed"};

        if (streq(sub, "status")) {
                for (size_t i = 0; i < ARRAY_LEN(counts); i++)
                        check_not_negative(c, "status", json_at(job, "status"), counts[i]);
                return;
        }
        forget_label(c, job);
        check_generated(c, job);
        validate_spec(c, json_at(job, "spec"));
        if (old)
                validate_update(c, json_at(old, "spec"), json_at(job, "spec"));
}

static const char *field(const struct json *job, const char *path, struct arena *a)
{
        if (!streq(path, "status.successful"))
                return NULL;
        return arena_printf(a, "%lld", (long long)json_int(json_at(job, "status"), "succeeded", 0));
}

const struct strategy STRATEGY_JOB = {
        .defaults = defaults,
        .prepare = prepare,
        .validate = validate,
        .field = field,
        .row = job_row,
};
