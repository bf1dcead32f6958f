/*
 * auth.h - credentials that are renewed: token files, exec plugins, certificates.
 *
 * Token files are read again after 60 s and whenever the server said 401. Exec plugins (client-go's ExecCredential
 * protocol) run as children of the loop, argv without a shell, KUBERNETES_EXEC_INFO in their environment, output
 * bounded at 1 MiB and one minute; the result is kept until its expirationTimestamp (less a tenth, at least 10 s before)
 * or until a 401. A plugin that fails is not run again before a backoff of 1 s doubling to 5 min. Certificate files are
 * looked at every 60 s. One plugin at a time: callers wait for the same run.
 */
#pragma once

#include "kube/config.h"
#include "net/net.h"

struct kube_auth;

/* CONFIG is borrowed and outlives it. */
struct kube_auth *kube_auth_new(struct loop *loop, const struct kube_config *config);
void kube_auth_free(struct kube_auth *a);

struct kube_credentials {
        const char *authorization; /* value of the header, or NULL; borrowed until the next kube_auth_get() */
        struct tls *tls;           /* NULL for http; borrowed until the next kube_auth_get() */
        uint64_t tls_generation;   /* changes whenever tls does */
};

/*
 * Above 0: RET is filled in. 0: not yet; ON_READY(ARG) will be called once (never from inside this function), then ask
 * again. Below 0: no credentials can be had now (E_AUTH, E_CONFIG, E_TLS).
 */
int kube_auth_get(struct kube_auth *a, struct kube_credentials *ret, void (*on_ready)(void *arg), void *arg,
                  struct err *err) _must_check_;
/* Takes the callback of ARG back. */
void kube_auth_cancel(struct kube_auth *a, void *arg);
/* The server refused what kube_auth_get() gave (401). True: there may be something newer, ask again. */
bool kube_auth_refused(struct kube_auth *a);

DEFINE_CLEANUP_PTR(struct kube_auth *, kube_auth_free)
