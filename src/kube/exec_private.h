/*
 * exec_private.h - one run of an exec credential plugin; for auth.c and its test.
 *
 * The plugin is started by posix_spawn() in a process group of its own, with its arguments as an array, nothing on
 * standard input, and the caller's environment with the kubeconfig's additions. It has one minute and 1 MiB of
 * output; of standard error the last 1 KiB is kept for the message. It is over when the plugin has ended, even if
 * something it left behind holds its output open.
 */
#pragma once

#include "kube/config.h"
#include "net/loop.h"

struct exec_credential {
        char *token;
        char *cert, *key; /* PEM; both or none */
        usec_t expires;   /* wall time; USEC_MAX: never */
};

void exec_credential_done(struct exec_credential *c); /* wipes */
/* Reads an ExecCredential of API_VERSION: with a token, a certificate and key, or all of them. */
int exec_credential_parse(struct str text, const char *api_version, struct exec_credential *ret,
                          struct err *err) _must_check_;

/* "KUBERNETES_EXEC_INFO={...}" for CONFIG's plugin; free() it. */
int exec_info(const struct kube_config *config, char **ret, struct err *err) _must_check_;

struct exec_run;
/* Once, from the loop. CREDENTIAL (NULL: failed, see ERR) is the callee's to take from. */
typedef void (*exec_done)(void *arg, struct exec_credential *credential, const struct err *err);

struct exec_run *exec_start(struct loop *loop, const struct kube_config *config, exec_done done, void *arg,
                            struct err *err) _must_check_;
void exec_cancel(struct exec_run *run); /* ends the plugin; no callback */

DEFINE_CLEANUP_STRUCT(struct exec_credential, exec_credential_done)
