#include "local/api_internal.h"

/* The engine has one user, who may do everything; the reviews say so. */

static struct json *access_status(struct call *c)
{
        return json_build(c->a, "{'allowed': %p}", json_truth(c->a, true));
}

static struct json *rules_status(struct call *c)
{
        return json_build(
                c->a,
                "{'resourceRules': [{'verbs': ['*'], 'apiGroups': ['*'], 'resources': ['*']}], "
                "'nonResourceRules': [{'verbs': ['*'], 'nonResourceURLs': ['*']}], 'incomplete': %p}",
                json_truth(c->a, false));
}

static int fail_review(struct call *c, const char *field, const char *fmt, const char *value)
{
        struct causes causes = {.a = c->a};

        causes_add(&causes, "FieldValueInvalid", field, "Invalid value: %s: %s", value, fmt);
        return fail_invalid(c, c->type->kube.group, "", "", &causes);
}

/* Exactly one thing is asked about. */
static int check_question(struct call *c, const struct json *spec)
{
        const struct json *resource = json_at(spec, "resourceAttributes"),
                          *path = json_at(spec, "nonResourceAttributes");

        if (resource && path)
                return fail_review(
                        c, "spec.nonResourceAttributes",
                        "cannot be specified in combination with resourceAttributes",
                        arena_printf(c->a, "authorization.NonResourceAttributes{Path:\"%s\", Verb:\"%s\"}",
                                     json_str_or(path, "path", ""), json_str_or(path, "verb", "")));
        if (!resource && !path)
                return fail_review(
                        c, "spec.resourceAttributes",
                        "exactly one of nonResourceAttributes or resourceAttributes must be specified",
                        "\"null\"");
        return 0;
}

void do_review(struct call *c)
{
        bool rules = streq(c->type->kube.plural, "selfsubjectrulesreviews");
        struct json *spec = json_at(c->body, "spec"), *answer;
        struct managed m = {.shape = c->type->shape,
                            .api_version = kube_api_version(&c->type->kube, c->a),
                            .kind = c->type->kube.kind,
                            .manager = c->manager,
                            .now = loop_wall(c->api->loop)};

        if (!rules && check_question(c, spec) < 0)
                return;
        answer = json_build(
                c->a, "{'kind': %s, 'apiVersion': %s, 'metadata': {'creationTimestamp': null}, 'spec': %p}",
                c->type->kube.kind, m.api_version, spec ? json_copy(c->a, spec) : json_object(c->a));
        normalize_builtin(c->type->shape, answer, c->a);
        managed_update(&m, NULL, answer, c->a);
        json_set(c->a, answer, "status", rules ? rules_status(c) : access_status(c));
        c->code = 201;
        c->answer = answer;
}

/* POST pods/NAME/binding: the scheduler's word. */
static void bind_pod(struct call *c)
{
        struct json *old = call_newest(c), *object;
        const char *node = json_str(json_at(c->body, "target"), "name");

        if (!old) {
                fail_not_found(c);
                return;
        }
        if (*json_str_or(json_at(old, "spec"), "nodeName", "")) {
                fail_conflict(c, "pod %s is already assigned to node \"%s\"", c->name,
                              json_str(json_at(old, "spec"), "nodeName"));
                return;
        }
        object = json_copy(c->a, old);
        json_path_set(c->a, object, "spec.nodeName", json_string(c->a, node));
        if (!c->dry_run && call_replace(c, object) < 0)
                return;
        c->code = 201;
        c->answer = json_build(
                c->a, "{'kind': 'Status', 'apiVersion': 'v1', 'metadata': {}, 'status': 'Success', 'code': "
                      "201}");
}

/* POST serviceaccounts/NAME/token: every account is the one user. */
static void issue_token(struct call *c)
{
        char expires[TIME_TEXT_MAX];
        int64_t seconds = json_int(json_at(c->body, "spec"), "expirationSeconds", 3600);

        if (!call_newest(c)) {
                fail_not_found(c);
                return;
        }
        time_format(loop_wall(c->api->loop) + (usec_t)seconds * USEC_PER_SEC, expires);
        c->code = 201;
        c->answer = json_build(
                c->a,
                "{'kind': 'TokenRequest', 'apiVersion': 'authentication.k8s.io/v1', 'metadata': "
                "{'creationTimestamp': null}, 'spec': {'audiences': ['sonde'], 'expirationSeconds': "
                "%lld}, 'status': {'token': %s, 'expirationTimestamp': %s}}",
                (long long)seconds, c->api->token, expires);
}

void do_subresource(struct call *c)
{
        if (streq(c->sub, "binding"))
                bind_pod(c);
        else if (streq(c->sub, "token"))
                issue_token(c);
        else
                fail_method(c);
}
