#include "cli/results.h"

/* 1: it is there; 0: it is not, or may not be read; below 0: nobody could be asked. */
static int get(struct people *p, const struct people_run *run, const struct kube_type *type, const char *name,
               struct json **ret)
{
        struct kube_request r = {.verb = KUBE_GET,
                                 .type = type,
                                 .ns = run->summary.ns,
                                 .name = name,
                                 .timeout = p->request_timeout};
        struct err err = ERR_INIT;
        struct asked got;

        *ret = NULL;
        if (ask(run->cluster->kube, &r, NULL, &p->arena, &got, &err) == 0) {
                *ret = got.doc;
                return 1;
        }
        if (err.code == E_NOT_FOUND)
                return 0;
        people_complain(run->cluster, NULL, &err);
        if (err.code != E_FORBIDDEN)
                return -1;
        cli_error("so only what %s itself says of its run is known", run->label);
        return 0;
}

int results_fetch(struct people *p, const struct people_run *run, struct run_docs *ret)
{
        const char *profile = json_cstr(json_path(run->object, "status.profileName"));
        struct run_kind names;
        struct json *doc;

        *ret = (struct run_docs){.kind = run->kind, .object = run->object};
        if (run->kind->result)
                ret->profile = run->object;
        if (kinds_run(run->kind, run->object, &p->arena, &names)) {
                if (get(p, run, &KUBE_CONFIGMAP, names.data_map, &doc) < 0)
                        return -1;
                if (doc)
                        run_docs_take(ret, doc, &p->arena);
        }
        if (profile && *profile) {
                if (get(p, run, &WORKLOADPROFILE, profile, &doc) < 0)
                        return -1;
                ret->profile = doc;
        }
        return 0;
}
