/*
 * What a pod refers to, one object after the other.
 */
#include "local/node_impl.h"

static const struct kube_type SECRET = {"", "v1", "secrets", "Secret", .namespaced = true};

static void fetch_next(struct node_pod *p);

/* Clusters have it in every namespace; here it would say the same everywhere. */
static struct json *stand_in(struct node_pod *p, const struct pod_source *s)
{
        if (s->kind != SOURCE_CONFIGMAP || !p->n->config.ca || !streq(s->name, "kube-root-ca.crt"))
                return NULL;
        return json_build(&p->fetched, "{'data': {'ca.crt': %s}}", p->n->config.ca);
}

static void on_fetched(void *arg, const struct kube_answer *answer, const struct err *err)
{
        struct node_pod *p = arg;
        struct pod_source *s = &p->sources[p->at];

        p->fetch = NULL;
        if (err && err->code != E_NOT_FOUND) {
                LOG_WARN(p->n->config.log, "Cannot get what a pod refers to", F_STR("pod", p->name),
                         F_STR("object", s->name), F_ERR(err));
                if (p->refresh) {
                        p->refresh = false;
                        timer_after(&p->rotate, 30 * USEC_PER_SEC);
                        return;
                }
                node_pod_event(p, true, "FailedMount", err->text);
                node_pod_missing(p, "ContainerCreating", NULL, NULL);
                return;
        }
        s->object = err ? stand_in(p, s) : json_parse(&p->fetched, answer->body, NULL, NULL);
        p->at++;
        fetch_next(p);
}

static const char *token_request(struct node_pod *p, const struct pod_source *s, struct arena *a)
{
        struct json *audiences = s->audience ? json_build(a, "[%s]", s->audience) : NULL;

        return json_print(
                a, json_build(a,
                              "{'apiVersion': 'authentication.k8s.io/v1', 'kind': 'TokenRequest', 'spec': "
                              "{'audiences': %p, 'expirationSeconds': %lld, 'boundObjectRef': {'kind': "
                              "'Pod', 'apiVersion': 'v1', 'name': %s, 'uid': %s}}}",
                              (void *)(audiences ? audiences : json_array(a)), (long long)s->expires, p->name,
                              p->uid));
}

static void fetch_next(struct node_pod *p)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        static const struct kube_type *const types[] = {[SOURCE_CONFIGMAP] = &KUBE_CONFIGMAP,
                                                        [SOURCE_SECRET] = &SECRET,
                                                        [SOURCE_TOKEN] = &KUBE_SERVICEACCOUNT};
        struct kube_request r = {.verb = KUBE_GET, .ns = p->ns};
        const struct pod_source *s;

        if (p->at == p->n_sources) {
                node_pod_fetched(p);
                return;
        }
        s = &p->sources[p->at];
        r.type = types[s->kind];
        r.name = s->name;
        if (s->kind == SOURCE_TOKEN) {
                r.verb = KUBE_CREATE;
                r.subresource = "token";
                r.body = str_of(token_request(p, s, &a));
        }
        p->fetch = kube_send(p->n->config.client, &r, on_fetched, p);
}

void node_pod_fetch(struct node_pod *p, const struct json *pod)
{
        struct json *copy;

        if (p->fetch)
                return;
        arena_wipe(&p->fetched);
        p->fetched = (struct arena)ARENA_INIT;
        copy = json_copy(&p->fetched, pod); /* names in the sources are the pod's */
        p->sources = pod_sources(copy, &p->fetched, &p->n_sources);
        p->at = 0;
        if (!p->refresh)
                p->step = POD_FETCHING;
        fetch_next(p);
}
