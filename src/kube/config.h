/*
 * config.h - kubeconfig and in-cluster configuration.
 *
 * Where the configuration comes from, in kubectl's order: --kubeconfig; the files of KUBECONFIG, merged (the first that
 * names a thing wins); inside a pod the service account; ~/.kube/config. Relative paths in a kubeconfig are relative to
 * the file that holds them. What a file says inline (…-data) wins over a file name, as with kubectl.
 *
 * The result is plain data: no connection is made, no plugin is run, and token files are not read yet.
 */
#pragma once

#include "json/json.h"

struct kube_exec {
        char *api_version; /* client.authentication.k8s.io/v1, v1beta1 or v1alpha1 */
        char *command; /* with a '/' or looked up in PATH; relative ones resolved against the kubeconfig's folder */
        char **args; /* NULL-terminated, or NULL */
        char **env;  /* "NAME=value", NULL-terminated, or NULL */
        char *install_hint;
        bool provide_cluster_info;
        char *cluster_config; /* what the cluster's extension client.authentication.k8s.io/exec holds, as JSON, or NULL */
};

struct kube_config {
        char *source; /* for messages: "context prod of ~/.kube/config", "service account" */
        char *context;
        char *server;
        char *ns; /* default namespace; "default" if nothing says otherwise */
        char *proxy;
        char *tls_server_name;
        bool insecure;

        char *ca, *cert, *key;                /* PEM text, or NULL */
        char *ca_file, *cert_file, *key_file; /* re-read when they change; NULL when the text is inline */

        char *token, *token_file; /* a file wins, as in client-go */
        char *username, *password;
        struct kube_exec *exec;
};

struct kube_config_sources {
        const char *kubeconfig;                  /* --kubeconfig, or NULL */
        const char *context;                     /* --context, or NULL: the current one */
        const char *ns;                          /* --namespace, or NULL */
        bool insecure;                           /* --insecure-skip-tls-verify */
        const char *env_kubeconfig;              /* $KUBECONFIG */
        const char *home;                        /* $HOME */
        const char *service_host, *service_port; /* $KUBERNETES_SERVICE_HOST, …_PORT */
        const char *account_dir;                 /* NULL: /var/run/secrets/kubernetes.io/serviceaccount */
};

/* Fills in what the environment says; the flags stay as they are. */
void kube_config_from_env(struct kube_config_sources *sources);
int kube_config_load(const struct kube_config_sources *sources, struct kube_config *ret, struct err *err)
        _must_check_;
/* One kubeconfig given as text; DIR is what its relative paths are relative to. Also the fuzzer's door. */
int kube_config_parse(struct str text, const char *dir, const char *context, struct kube_config *ret,
                      struct err *err) _must_check_;
/* The same server without any credentials: for requests that bring their own. */
void kube_config_bare(const struct kube_config *config, struct kube_config *ret);
void kube_config_done(struct kube_config *config); /* wipes secrets */

DEFINE_CLEANUP_STRUCT(struct kube_config, kube_config_done)
