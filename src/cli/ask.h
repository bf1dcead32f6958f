/*
 * ask.h - one request to the API, with the loop running until its answer is there.
 */
#pragma once

#include "kube/kube.h"

struct asked {
        int status;       /* of HTTP; 0: none */
        struct json *doc; /* what came; NULL of a failure */
        bool unserved;    /* 404 because the server does not have the kind at all */
};

/*
 * 0: RET has what came, in the arena. Below 0: ERR has the server's own sentence, or why there is no answer. STOP becomes true
 * from the loop: give up, E_CANCELED; NULL: nobody interrupts.
 */
int ask(struct kube *kube, const struct kube_request *request, const bool *stop, struct arena *a,
        struct asked *ret, struct err *err);
/* The same for what is not JSON, such as logs. */
int ask_text(struct kube *kube, const struct kube_request *request, const bool *stop, struct arena *a,
             struct str *ret, struct err *err);
