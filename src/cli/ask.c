#include "cli/ask.h"

struct waiting {
        bool done;
        int status;
        struct arena *a;
        struct str body;
        struct err err;
};

static void on_answer(void *arg, const struct kube_answer *answer, const struct err *err)
{
        struct waiting *w = arg;

        w->done = true;
        w->status = answer->status;
        w->body = str_n(arena_strndup(w->a, answer->body.p ? answer->body.p : "", answer->body.n),
                        answer->body.n);
        if (err)
                w->err = *err;
}

static int wait_for(struct kube *kube, const struct kube_request *request, const bool *stop,
                    struct waiting *w, struct err *err)
{
        struct kube_call *call = kube_send(kube, request, on_answer, w);

        while (!w->done && !(stop && *stop) && loop_turn(kube_loop(kube), true))
                continue;
        if (w->done)
                return 0;
        kube_cancel(call);
        return err_set(err, E_CANCELED, "interrupted");
}

/* Why it failed: in the server's words where it said any. */
static int fail(const struct waiting *w, const struct kube_request *request, bool *ret_unserved,
                struct err *err)
{
        struct kube_status why;

        if (!w->status) {
                *err = w->err;
                return -1;
        }
        kube_status_error(w->a, w->status, w->body, request->verb, &why, err);
        /* Of an object that is not there the server says what it is; of a kind it does not have, nothing. */
        *ret_unserved = w->status == 404 && !*why.kind;
        if (why.message[0])
                err_set(err, err->code, "%s", why.message);
        return -1;
}

int ask(struct kube *kube, const struct kube_request *request, const bool *stop, struct arena *a,
        struct asked *ret, struct err *err)
{
        struct waiting w = {.a = a, .err = ERR_INIT};

        *ret = (struct asked){0};
        if (wait_for(kube, request, stop, &w, err) < 0)
                return -1;
        ret->status = w.status;
        if (w.err.code != E_OK)
                return fail(&w, request, &ret->unserved, err);
        ret->doc = json_parse(a, w.body, NULL, err);
        return ret->doc ? 0 : -1;
}

int ask_text(struct kube *kube, const struct kube_request *request, const bool *stop, struct arena *a,
             struct str *ret, struct err *err)
{
        struct waiting w = {.a = a, .err = ERR_INIT};
        bool unserved;

        if (wait_for(kube, request, stop, &w, err) < 0)
                return -1;
        if (w.err.code != E_OK)
                return fail(&w, request, &unserved, err);
        *ret = w.body;
        return 0;
}
