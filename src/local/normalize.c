/*
 * Decoding into Kubernetes' types and encoding again drops what a type does not have, and writes some of what was never
 * said. Which, depends on how the field is declared there: a field that is required is always written; so are structs
 * and times that are no pointers; of all others nothing is written that is empty or zero, unless they are pointers. The
 * tables name those that follow no rule.
 */
#include "kube/quantity.h"
#include "local/api_internal.h"

/* Scalars that are pointers wherever they are: zero, false and "" are said. */
static const char *const POINTERS[] = {
        "$ref",
        "activeDeadlineSeconds",
        "allocateLoadBalancerNodePorts",
        "allowPrivilegeEscalation",
        "appProtocol",
        "automountServiceAccountToken",
        "backoffLimit",
        "blockOwnerDeletion",
        "cachingMode",
        "completions",
        "controller",
        "defaultMode",
        "deletionGracePeriodSeconds",
        "deprecationWarning",
        "enableServiceLinks",
        "expirationSeconds",
        "fsGroup",
        "fsGroupChangePolicy",
        "gmsaCredentialSpec",
        "gmsaCredentialSpecName",
        "gracePeriodSeconds",
        "holderIdentity",
        "immutable",
        "initiatorName",
        "ipFamilyPolicy",
        "labelSelectorPath",
        "leaseDurationSeconds",
        "leaseTransitions",
        "localhostProfile",
        "lun",
        "manualSelector",
        "maxItems",
        "maxLength",
        "maxProperties",
        "maximum",
        "minItems",
        "minLength",
        "minProperties",
        "minimum",
        "mode",
        "mountPropagation",
        "multipleOf",
        "optional",
        "orphanDependents",
        "parallelism",
        "port",
        "preemptionPolicy",
        "privileged",
        "procMount",
        "propagationPolicy",
        "readOnlyRootFilesystem",
        "remainingItemCount",
        "runAsGroup",
        "runAsNonRoot",
        "runAsUser",
        "runAsUserName",
        "runtimeClassName",
        "setHostnameAsFQDN",
        "shareProcessNamespace",
        "started",
        "storageClassName",
        "terminationGracePeriodSeconds",
        "tolerationSeconds",
        "ttlSecondsAfterFinished",
        "volumeMode",
        "x-kubernetes-list-type",
        "x-kubernetes-map-type",
        "x-kubernetes-preserve-unknown-fields",
};

/* Those that are pointers in one type and none in another. */
static const struct {
        const char *type, *field;
} POINTERS_HERE[] = {
        {"AzureDiskVolumeSource", "fsType"},
        {"AzureDiskVolumeSource", "kind"},
        {"AzureDiskVolumeSource", "readOnly"},
        {"CSIVolumeSource", "fsType"},
        {"CSIVolumeSource", "readOnly"},
        {"ClientIPConfig", "timeoutSeconds"},
        {"HostPathVolumeSource", "type"},
        {"PodDNSConfigOption", "value"},
        {"PodSpec", "priority"},
        {"PortStatus", "error"},
        {"ServiceReference", "path"},
        {"WebhookClientConfig", "url"},
        {"TypedLocalObjectReference", "apiGroup"},
};

/* Structs that are no pointers wherever they are. */
static const char *const STRUCTS[] = {
        "acceptedNames",
        "daemonEndpoints",
        "deprecatedSource",
        "involvedObject",
        "kubeletEndpoint",
        "lastState",
        "loadBalancer",
        "metadata",
        "names",
        "nodeInfo",
        "podAffinityTerm",
        "preference",
        "regarding",
        "resources",
        "roleRef",
        "source",
        "spec",
        "state",
        "status",
        "target",
        "template",
};

/* Times that are pointers; all others are null when they are not known. */
static const char *const TIME_POINTERS[] = {
        "acquireTime", "completionTime", "deletionTimestamp", "renewTime", "startTime", "time", "timeAdded",
};

/* Written although nothing says that they are required. */
static const char *const WRITTEN[] = {
        "conditions/CustomResourceDefinitionStatus",
        "storedVersions/CustomResourceDefinitionStatus",
        "rules/ClusterRole",
        "rules/Role",
        "sources/ProjectedVolumeSource",
        "reportingComponent/Event",
        "reportingInstance/Event",
        "targetPort/ServicePort",
        "divisor/ResourceFieldSelector",
        "apiGroup/TypedLocalObjectReference",
};

static bool in_list(const char *const *list, size_t n, const char *word)
{
        for (size_t i = 0; i < n; i++)
                if (streq(list[i], word))
                        return true;
        return false;
}
#define IN(list, word) in_list(list, ARRAY_LEN(list), word)

/* "io.k8s.api.core.v1.PodSpec" -> "PodSpec" */
static const char *short_name(const struct shape *s)
{
        const char *dot = s->name ? strrchr(s->name, '.') : NULL;

        return dot ? dot + 1 : "";
}

static bool is_named(const struct shape *s, const char *name)
{
        return streq(short_name(s), name);
}

static bool is_pointer(const struct shape *type, const char *field)
{
        for (size_t i = 0; i < ARRAY_LEN(POINTERS_HERE); i++)
                if (streq(POINTERS_HERE[i].field, field) && is_named(type, POINTERS_HERE[i].type))
                        return true;
        return IN(POINTERS, field);
}

static bool is_time(const struct shape *s)
{
        return s->kind == SHAPE_STRING && s->name && streq(s->format, "date-time");
}

static bool is_written(const struct shape *type, const struct shape_field *f)
{
        size_t n = strlen(f->name);

        if (f->shape->kind == SHAPE_OBJECT)
                return IN(STRUCTS, f->name);
        if (is_time(f->shape))
                return !IN(TIME_POINTERS, f->name);
        if (f->required)
                return true;
        for (size_t i = 0; i < ARRAY_LEN(WRITTEN); i++)
                if (strncmp(WRITTEN[i], f->name, n) == 0 && WRITTEN[i][n] == '/' &&
                    is_named(type, WRITTEN[i] + n + 1))
                        return true;
        return false;
}

/* ---- values */

static bool is_zero(const struct json *v)
{
        switch (v->type) {
        case JSON_NULL:
                return true;
        case JSON_BOOL:
                return !v->truth;
        case JSON_NUMBER: {
                int64_t i;

                return json_to_i64(v, &i) && i == 0;
        }
        case JSON_STRING:
        case JSON_ARRAY:
        case JSON_OBJECT:
                return v->len == 0;
        default:
                return false;
        }
}

static struct json *zero_of(const struct shape *type, const struct shape_field *f, struct arena *a)
{
        if (is_pointer(type, f->name) || is_time(f->shape))
                return json_null(a);
        if (is_named(f->shape, "Quantity"))
                return json_string(a, "0");
        switch (f->shape->kind) {
        case SHAPE_STRING:
                return json_string(a, "");
        case SHAPE_INTEGER:
        case SHAPE_NUMBER:
        case SHAPE_INT_OR_STRING:
                return json_i64(a, 0);
        case SHAPE_BOOLEAN:
                return json_truth(a, false);
        case SHAPE_OBJECT:
                return json_object(a);
        default:
                return json_null(a);
        }
}

/* Puts a fresh value in the place of V, whose name and neighbours stay. */
static void assign(struct json *v, const struct json *fresh)
{
        struct json was = *v;

        *v = *fresh;
        v->next = was.next;
        v->key = was.key;
        v->key_len = was.key_len;
}

static void canonical_time(const struct shape *s, struct json *v, struct arena *a)
{
        char text[TIME_TEXT_MAX];
        usec_t at;

        if (!json_is(v, JSON_STRING) || !time_parse(json_text(v), &at))
                return;
        assign(v, json_string(a, is_named(s, "MicroTime") ? time_format_micro(at, text)
                                                          : time_format(at, text)));
}

static void canonical_quantity(struct json *v, struct arena *a)
{
        struct quantity q;

        if (quantity_of(v, &q))
                assign(v, json_string(a, quantity_print(&q, a)));
}

static void canonical_number(struct json *v, struct arena *a)
{
        struct json *shortest;
        double d;

        if (!json_is(v, JSON_NUMBER) || !json_to_double(v, &d))
                return;
        shortest = json_double(a, d);
        if (shortest)
                assign(v, shortest);
}

static void canonical_scalar(const struct shape *s, struct json *v, struct arena *a)
{
        if (is_time(s))
                canonical_time(s, v, a);
        else if (is_named(s, "Quantity"))
                canonical_quantity(v, a);
        else if (s->kind == SHAPE_NUMBER)
                canonical_number(v, a);
}

/* ---- containers */

static void normalize(const struct shape *s, const struct shape *parent, struct json *v, struct arena *a);
static void normalize_fields(const struct shape *s, struct json *object, struct arena *a);

static struct json *zero_element(const struct shape *elem, struct arena *a)
{
        switch (elem->kind) {
        case SHAPE_STRING:
                return json_string(a, is_named(elem, "Quantity") ? "0" : "");
        case SHAPE_INTEGER:
        case SHAPE_NUMBER:
                return json_i64(a, 0);
        case SHAPE_OBJECT:
                return json_object(a);
        default:
                return json_null(a);
        }
}

static void normalize_elements(const struct shape *elem, struct json *v, struct arena *a)
{
        if (elem->kind == SHAPE_ANY)
                return;
        json_foreach (child, v) {
                if (child->type == JSON_NULL)
                        assign(child, zero_element(elem, a));
                normalize(elem, NULL, child, a);
        }
}

/* What one schema may have instead of another schema: a truth value, names, or several of them. */
static bool is_schema_or(const struct shape *s)
{
        return strncmp(short_name(s), "JSONSchemaPropsOr", 17) == 0;
}

static void normalize_schema_or(const struct shape *schema, struct json *v, struct arena *a)
{
        if (!schema)
                return;
        if (v->type == JSON_OBJECT)
                normalize_fields(schema, v, a);
        if (v->type == JSON_ARRAY)
                json_foreach (child, v)
                        if (child->type == JSON_OBJECT)
                                normalize_fields(schema, child, a);
}

/* PARENT: the type that has the field; NULL for elements. */
static void normalize(const struct shape *s, const struct shape *parent, struct json *v, struct arena *a)
{
        if (is_schema_or(s))
                normalize_schema_or(parent, v, a);
        else if (s->kind == SHAPE_OBJECT && v->type == JSON_OBJECT)
                normalize_fields(s, v, a);
        else if ((s->kind == SHAPE_LIST && v->type == JSON_ARRAY) ||
                 (s->kind == SHAPE_MAP && v->type == JSON_OBJECT))
                normalize_elements(s->elem, v, a);
        else if (s->kind != SHAPE_ANY)
                canonical_scalar(s, v, a);
}

static void drop_unknown(const struct shape *s, struct json *object)
{
        for (struct json *m = json_first(object), *next; m; m = next) {
                next = json_next(object, m);
                if (m->type == JSON_NULL || !shape_find(s, str_n(m->key, m->key_len)))
                        json_take(object, m);
        }
}

static bool says_zero(const struct shape *type, const struct shape_field *f)
{
        return f->shape->kind == SHAPE_OBJECT || f->shape->kind == SHAPE_ANY ||
               f->shape->kind == SHAPE_INT_OR_STRING || is_pointer(type, f->name) ||
               is_named(f->shape, "CustomResourceSubresourceStatus");
}

static void normalize_fields(const struct shape *s, struct json *object, struct arena *a)
{
        drop_unknown(s, object);
        for (size_t i = 0; i < s->n_fields; i++) {
                const struct shape_field *f = &s->fields[i];
                struct json *v = json_at(object, f->name);

                if (v)
                        normalize(f->shape, s, v, a);
                if (v && (!is_zero(v) || says_zero(s, f)))
                        continue;
                if (v && v->type == JSON_ARRAY && is_written(s, f))
                        continue; /* who says that there is none owns that */
                if (!is_written(s, f)) {
                        json_remove(object, f->name);
                        continue;
                }
                v = json_set(a, object, f->name, zero_of(s, f, a));
                if (v->type == JSON_OBJECT)
                        normalize_fields(f->shape, v, a);
        }
}

/* What is written as text is kept as data. */
static void merge_string_data(struct json *secret, struct arena *a)
{
        struct json *from = json_remove(secret, "stringData"), *data = json_at(secret, "data");

        if (!json_is(from, JSON_OBJECT))
                return;
        if (json_len(from) > 0 && !json_is(data, JSON_OBJECT))
                data = json_set(a, secret, "data", json_object(a));
        json_foreach (m, from) {
                _cleanup_(buf_done) struct buf b = BUF_INIT(2 * API_BODY_MAX);

                buf_add_base64(&b, m->type == JSON_STRING ? json_text(m) : STR(""));
                json_setn(a, data, str_n(m->key, m->key_len), json_stringn(a, buf_str(&b)));
        }
}

void normalize_builtin(const struct shape *shape, struct json *object, struct arena *a)
{
        if (is_named(shape, "Secret"))
                merge_string_data(object, a);
        normalize_fields(shape, object, a);
}
