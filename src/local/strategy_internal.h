/*
 * strategy_internal.h - what the strategies share.
 *
 *   strategy.c           which strategy a resource has; helpers
 *   strategy_podspec.c   defaults of pod specs, of pods and of Jobs' templates
 *   strategy_podcheck.c  what may be wrong with a pod spec; strategy_container.c with its containers, strategy_volume.c
 *                        with its volumes, strategy_place.c with tolerations and affinity
 *   strategy_pod.c       pods                  strategy_job.c       Jobs
 *   strategy_core.c      ConfigMaps, Secrets, Namespaces, ServiceAccounts, Leases, PersistentVolumeClaims
 *   strategy_quota.c     ResourceQuotas        strategy_service.c   Services
 *   strategy_node.c      Nodes                 strategy_rbac.c      roles and bindings
 *   strategy_event.c     events, in both of their versions
 *   strategy_crd.c       CustomResourceDefinitions; strategy_schema.c their schemas
 *   strategy_rows.c      what kubectl prints of pods, strategy_print.c of all others
 *
 * The order of causes is the API server's.
 */
#pragma once

#include "kube/quantity.h"
#include "local/check.h"
#include "local/strategy.h"

#define IMMUTABLE "field is immutable"

/* ---- defaults: only where nothing is yet */
void default_str(struct arena *a, struct json *object, const char *key, const char *value);
void default_int(struct arena *a, struct json *object, const char *key, int64_t value);
void default_bool(struct arena *a, struct json *object, const char *key, bool value);
/* The member, an object that is made when it is not there. */
struct json *child_object(struct arena *a, struct json *object, const char *key);

/* ---- causes */
const char *path_key(struct causes *c, const char *path, const char *key); /* path.key */
const char *path_index(struct causes *c, const char *path, size_t i);      /* path[i] */
const char *path_map(struct causes *c, const char *path, const char *key); /* path[key] */
void bad_required(struct causes *c, const char *path, const char *detail); /* DETAIL may be "" */
void bad_str(struct causes *c, const char *path, const char *value, const char *detail);
void bad_int(struct causes *c, const char *path, int64_t value, const char *detail);
/* A value that Kubernetes prints in the way of its language. */
/* The operators that selectors of labels and of nodes share: N values fit OP. False: it is another one. */
bool check_set_operator(struct causes *c, const char *values, const char *op, size_t n);
void bad_raw(struct causes *c, const char *path, const char *value, const char *detail);
const char *go_strings(struct causes *c, const struct json *list); /* []string{"a", "b"} */
const char *go_map(struct causes *c, const struct json *labels);   /* map[string]string{"a":"b"} */
const char *go_quantity(struct causes *c, const struct quantity *q);
void bad_forbidden(struct causes *c, const char *path, const char *detail);
void bad_duplicate(struct causes *c, const char *path, const char *value);
void bad_not_found(struct causes *c, const char *path, const char *value);
/* KNOWN is NULL-terminated, in the order in which the server lists it. */
void bad_enum(struct causes *c, const char *path, const char *value, const char *const *known);
/* The member must be one of KNOWN; a missing one is required. */
void check_enum(struct causes *c, const char *path, const char *value, const char *const *known);
void check_not_negative(struct causes *c, const char *path, const struct json *object, const char *key);
void check_port(struct causes *c, const char *path, int64_t port);
const char *check_port_name(struct str s, size_t nth);
void check_label_selector(struct causes *c, const char *path, const struct json *selector);
/* The members in the order of their names; NULL-terminated. */
const struct json **sorted_members(const struct json *object, struct arena *a);
bool str_in(const char *const *list, const char *word); /* NULL-terminated */
bool is_ip(const char *text);
bool same(const struct json *x, const struct json *y); /* nothing equals nothing */

/* ---- pod specs */
void podspec_defaults(struct arena *a, struct json *spec);
void podspec_requests(struct arena *a, struct json *spec); /* limits are requests too; of pods only */
void podspec_validate(struct causes *c, const char *path, const struct json *spec);
void template_validate(struct causes *c, const char *path, const struct json *template);
void containers_validate(struct causes *c, const char *path, const struct json *list,
                         const struct json *volumes, bool is_init);
void init_containers_validate(struct causes *c, const char *path, const struct json *spec,
                              const struct json *volumes);
/* Those of VOLUMES without a fault; containers may use only these. */
struct json *volumes_validate(struct causes *c, const char *path, const struct json *volumes);
void field_ref_validate(struct causes *c, const char *path, const struct json *ref, bool of_volume);
void resource_ref_validate(struct causes *c, const char *path, const struct json *ref, bool of_volume);
void check_relative_path(struct causes *c, const char *path, const char *value, bool reserved);
void tolerations_validate(struct causes *c, const char *path, const struct json *tolerations);
void affinity_validate(struct causes *c, const char *path, const struct json *affinity);
void spread_validate(struct causes *c, const char *path, const struct json *constraints);
const char *pod_qos(const struct json *spec);

/* ---- schemas of custom resources: openAPIV3Schema */
void crd_schema_validate(struct causes *c, const char *path, const struct json *schema);

/* ---- tables: cells that several rows have */
const char *cell_age(const struct strategy_context *c, const struct json *object);

/* ---- the resources: each has its own, and columns if it prints more than name and age */
extern const struct strategy STRATEGY_POD, STRATEGY_JOB, STRATEGY_CONFIGMAP, STRATEGY_SECRET,
        STRATEGY_NAMESPACE, STRATEGY_ACCOUNT, STRATEGY_LEASE, STRATEGY_CLAIM, STRATEGY_QUOTA,
        STRATEGY_SERVICE, STRATEGY_NODE, STRATEGY_ROLE, STRATEGY_BINDING, STRATEGY_EVENT, STRATEGY_CRD;

struct columns {
        const struct table_column *list;
        size_t n;
};
struct columns pod_columns(void), job_columns(void), configmap_columns(void), secret_columns(void),
        namespace_columns(void), account_columns(void), lease_columns(void), claim_columns(void),
        quota_columns(void), service_columns(void), node_columns(void), binding_columns(void),
        event_columns(void);
struct json *pod_row(const struct strategy_context *c, const struct json *object);
struct json *job_row(const struct strategy_context *c, const struct json *object);
struct json *configmap_row(const struct strategy_context *c, const struct json *object);
struct json *secret_row(const struct strategy_context *c, const struct json *object);
struct json *namespace_row(const struct strategy_context *c, const struct json *object);
struct json *account_row(const struct strategy_context *c, const struct json *object);
struct json *lease_row(const struct strategy_context *c, const struct json *object);
struct json *claim_row(const struct strategy_context *c, const struct json *object);
struct json *quota_row(const struct strategy_context *c, const struct json *object);
struct json *service_row(const struct strategy_context *c, const struct json *object);
struct json *node_row(const struct strategy_context *c, const struct json *object);
struct json *binding_row(const struct strategy_context *c, const struct json *object);
struct json *event_row(const struct strategy_context *c, const struct json *object);
