#include "local/strategy_internal.h"

#include "local/api_internal.h"

#define NAME_COLUMN                                                     \
        {                                                               \
                "Name", "string", "name", "The object's name.", 0, NULL \
        }
#define AGE_COLUMN                                                          \
        {                                                                   \
                "Age", "string", "", "The time since it was made.", 0, NULL \
        }
#define COLUMNS(list) ((struct columns){list, ARRAY_LEN(list)})

/* ---- cells */

static const char *cell_since(const struct strategy_context *c, const struct json *time)
{
        usec_t at;

        if (!json_is(time, JSON_STRING) || !time_parse(json_text(time), &at))
                return "<unknown>";
        /* A clock that was set back makes an age negative: up to a second of that is an age of nothing. */
        return at > c->now + USEC_PER_SEC ? "<invalid>" : human_duration(usec_sub(c->now, at), c->a);
}

const char *cell_age(const struct strategy_context *c, const struct json *object)
{
        return cell_since(c, json_at(json_at(object, "metadata"), "creationTimestamp"));
}

static const char *name_of(const struct json *object)
{
        const char *name = meta_str(object, "name");

        return name ? name : "";
}

static const char *or_none(const char *text)
{
        return text && *text ? text : "<none>";
}

static const char *finish(struct buf *b, struct arena *a)
{
        return b->n ? arena_strndup(a, b->p, b->n) : "";
}

/* "a,b": strings of an array. */
static const char *join(const struct json *list, struct arena *a)
{
        _cleanup_(buf_done) struct buf b = BUF_INIT(1 << 16);

        json_foreach (s, list) {
                if (b.n)
                        buf_addc(&b, ',');
                buf_addstr(&b, json_text(s));
        }
        return finish(&b, a);
}

/* "a=b,c=d" */
static void add_labels(struct buf *b, const struct json *labels, struct arena *a)
{
        const struct json **list = sorted_members(labels, a);

        for (; *list; list++) {
                if (b->n)
                        buf_addc(b, ',');
                buf_printf(b, "%s=%s", (*list)->key, json_cstr(*list) ? json_cstr(*list) : "");
        }
}

static void add_requirement(struct buf *b, const struct json *r, struct arena *a)
{
        const char *op = json_str_or(r, "operator", ""), *key = json_str_or(r, "key", "");

        if (b->n)
                buf_addc(b, ',');
        if (streq(op, "Exists"))
                buf_adds(b, key);
        else if (streq(op, "DoesNotExist"))
                buf_printf(b, "!%s", key);
        else
                buf_printf(b, "%s %s (%s)", key, streq(op, "In") ? "in" : "notin",
                           join(json_at(r, "values"), a));
}

static const char *cell_selector(const struct json *selector, struct arena *a)
{
        _cleanup_(buf_done) struct buf b = BUF_INIT(1 << 16);

        add_labels(&b, json_at(selector, "matchLabels"), a);
        json_foreach (r, json_at(selector, "matchExpressions"))
                add_requirement(&b, r, a);
        return or_none(finish(&b, a));
}

/* ---- small ones */

struct columns namespace_columns(void)
{
        static const struct table_column list[] = {
                NAME_COLUMN, {"Status", "string", "", "Active, or Terminating.", 0, NULL}, AGE_COLUMN};

        return COLUMNS(list);
}

struct json *namespace_row(const struct strategy_context *c, const struct json *o)
{
        return json_build(c->a, "[%s, %s, %s]", name_of(o), json_str_or(json_at(o, "status"), "phase", ""),
                          cell_age(c, o));
}

struct columns configmap_columns(void)
{
        static const struct table_column list[] = {
                NAME_COLUMN, {"Data", "string", "", "How many keys it has.", 0, NULL}, AGE_COLUMN};

        return COLUMNS(list);
}

struct json *configmap_row(const struct strategy_context *c, const struct json *o)
{
        return json_build(c->a, "[%s, %zu, %s]", name_of(o),
                          json_len(json_at(o, "data")) + json_len(json_at(o, "binaryData")), cell_age(c, o));
}

struct columns secret_columns(void)
{
        static const struct table_column list[] = {NAME_COLUMN,
                                                   {"Type", "string", "", "What it is used for.", 0, NULL},
                                                   {"Data", "string", "", "How many keys it has.", 0, NULL},
                                                   AGE_COLUMN};

        return COLUMNS(list);
}

struct json *secret_row(const struct strategy_context *c, const struct json *o)
{
        return json_build(c->a, "[%s, %s, %zu, %s]", name_of(o), json_str_or(o, "type", ""),
                          json_len(json_at(o, "data")), cell_age(c, o));
}

struct columns account_columns(void)
{
        static const struct table_column list[] = {
                NAME_COLUMN, {"Secrets", "string", "", "How many secrets it has.", 0, NULL}, AGE_COLUMN};

        return COLUMNS(list);
}

struct json *account_row(const struct strategy_context *c, const struct json *o)
{
        return json_build(c->a, "[%s, %zu, %s]", name_of(o), json_len(json_at(o, "secrets")), cell_age(c, o));
}

struct columns lease_columns(void)
{
        static const struct table_column list[] = {
                NAME_COLUMN, {"Holder", "string", "", "Who holds it.", 0, NULL}, AGE_COLUMN};

        return COLUMNS(list);
}

struct json *lease_row(const struct strategy_context *c, const struct json *o)
{
        return json_build(c->a, "[%s, %s, %s]", name_of(o),
                          json_str_or(json_at(o, "spec"), "holderIdentity", ""), cell_age(c, o));
}

/* ---- Jobs */

struct columns job_columns(void)
{
        static const struct table_column list[] = {
                NAME_COLUMN,
                {"Completions", "string", "", "Pods that succeeded, of those that must.", 0, NULL},
                {"Duration", "string", "", "From its start to its end, or until now.", 0, NULL},
                AGE_COLUMN,
                {"Containers", "string", "", "Names of the containers.", 1, NULL},
                {"Images", "string", "", "Images of the containers.", 1, NULL},
                {"Selector", "string", "", "The labels by which it knows its pods.", 1, NULL},
        };

        return COLUMNS(list);
}

static const char *job_duration(const struct strategy_context *c, const struct json *status)
{
        usec_t start, end = c->now;

        if (!time_parse(json_text(json_at(status, "startTime")), &start))
                return "";
        (void)time_parse(json_text(json_at(status, "completionTime")), &end);
        return human_duration(usec_sub(end, start), c->a);
}

static const char *job_completions(const struct strategy_context *c, const struct json *job)
{
        const struct json *spec = json_at(job, "spec");
        long long done = json_int(json_at(job, "status"), "succeeded", 0);
        long long parallelism = json_int(spec, "parallelism", 0);

        if (json_at(spec, "completions"))
                return arena_printf(c->a, "%lld/%lld", done, (long long)json_int(spec, "completions", 0));
        return parallelism > 1 ? arena_printf(c->a, "%lld/1 of %lld", done, parallelism)
                               : arena_printf(c->a, "%lld/1", done);
}

static const char *members(const struct json *containers, const char *key, struct arena *a)
{
        _cleanup_(buf_done) struct buf b = BUF_INIT(1 << 16);

        json_foreach (ctr, containers) {
                if (ctr != json_first(containers))
                        buf_addc(&b, ',');
                buf_adds(&b, json_str_or(ctr, key, ""));
        }
        return finish(&b, a);
}

struct json *job_row(const struct strategy_context *c, const struct json *job)
{
        const struct json *containers = json_path(job, "spec.template.spec.containers");

        return json_build(c->a, "[%s, %s, %s, %s, %s, %s, %s]", name_of(job), job_completions(c, job),
                          job_duration(c, json_at(job, "status")), cell_age(c, job),
                          members(containers, "name", c->a), members(containers, "image", c->a),
                          cell_selector(json_path(job, "spec.selector"), c->a));
}

/* ---- Services */

struct columns service_columns(void)
{
        static const struct table_column list[] = {
                NAME_COLUMN,
                {"Type", "string", "", "How it is reached.", 0, NULL},
                {"Cluster-IP", "string", "", "Its address in the cluster.", 0, NULL},
                {"External-IP", "string", "", "Its addresses outside.", 0, NULL},
                {"Port(s)", "string", "", "Its ports.", 0, NULL},
                AGE_COLUMN,
                {"Selector", "string", "", "The labels of its pods.", 1, NULL},
        };

        return COLUMNS(list);
}

static const char *ingress(const struct json *service, struct arena *a)
{
        _cleanup_(buf_done) struct buf b = BUF_INIT(1 << 16);

        json_foreach (i, json_path(service, "status.loadBalancer.ingress")) {
                const char *ip = json_str(i, "ip");

                if (b.n)
                        buf_addc(&b, ',');
                buf_adds(&b, ip ? ip : json_str_or(i, "hostname", ""));
        }
        return finish(&b, a);
}

static const char *external(const struct json *service, struct arena *a)
{
        const struct json *spec = json_at(service, "spec");
        const char *type = json_str_or(spec, "type", ""), *ips = join(json_at(spec, "externalIPs"), a),
                   *balancer;

        if (streq(type, "ClusterIP") || streq(type, "NodePort"))
                return or_none(ips);
        if (streq(type, "ExternalName"))
                return json_str_or(spec, "externalName", "");
        if (!streq(type, "LoadBalancer"))
                return "<unknown>";
        balancer = ingress(service, a);
        if (*balancer && *ips)
                return arena_join(a, balancer, ",", ips);
        return *balancer ? balancer : (*ips ? ips : "<pending>");
}

static const char *ports(const struct json *spec, struct arena *a)
{
        _cleanup_(buf_done) struct buf b = BUF_INIT(1 << 16);

        json_foreach (p, json_at(spec, "ports")) {
                long long port = json_int(p, "port", 0), node = json_int(p, "nodePort", 0);

                if (b.n)
                        buf_addc(&b, ',');
                if (node > 0)
                        buf_printf(&b, "%lld:%lld/%s", port, node, json_str_or(p, "protocol", ""));
                else
                        buf_printf(&b, "%lld/%s", port, json_str_or(p, "protocol", ""));
        }
        return or_none(finish(&b, a));
}

struct json *service_row(const struct strategy_context *c, const struct json *o)
{
        _cleanup_(buf_done) struct buf selector = BUF_INIT(1 << 16);
        const struct json *spec = json_at(o, "spec"), *ips = json_at(spec, "clusterIPs");
        const char *ip = json_len(ips) ? json_cstr(json_index(ips, 0)) : "<none>";

        add_labels(&selector, json_at(spec, "selector"), c->a);
        return json_build(c->a, "[%s, %s, %s, %s, %s, %s, %s]", name_of(o), json_str_or(spec, "type", ""), ip,
                          external(o, c->a), ports(spec, c->a), cell_age(c, o),
                          or_none(finish(&selector, c->a)));
}

/* ---- Nodes */

struct columns node_columns(void)
{
        static const struct table_column list[] = {
                NAME_COLUMN,
                {"Status", "string", "", "Whether it can run pods.", 0, NULL},
                {"Roles", "string", "", "Its roles.", 0, NULL},
                AGE_COLUMN,
                {"Version", "string", "", "The version of what runs its pods.", 0, NULL},
                {"Internal-IP", "string", "", "Its address in the cluster.", 1, NULL},
                {"External-IP", "string", "", "Its address outside.", 1, NULL},
                {"OS-Image", "string", "", "Its operating system.", 1, NULL},
                {"Kernel-Version", "string", "", "Its kernel.", 1, NULL},
                {"Container-Runtime", "string", "", "What runs its containers.", 1, NULL},
        };

        return COLUMNS(list);
}

static const char *node_status(const struct json *node, struct arena *a)
{
        const char *status = "Unknown";

        json_foreach (cond, json_path(node, "status.conditions"))
                if (streq(json_str(cond, "type"), "Ready"))
                        status = streq(json_str(cond, "status"), "True") ? "Ready" : "NotReady";
        return json_bool(json_at(node, "spec"), "unschedulable", false)
                       ? arena_join(a, status, ",SchedulingDisabled", "")
                       : status;
}

static int by_text(const void *x, const void *y)
{
        return strcmp(*(const char *const *)x, *(const char *const *)y);
}

static const char *node_roles(const struct json *node, struct arena *a)
{
        static const char prefix[] = "node-role.kubernetes.io/";
        const struct json *labels = json_path(node, "metadata.labels");
        const char **roles = arena_new_array(a, const char *, json_len(labels) + 1);
        _cleanup_(buf_done) struct buf b = BUF_INIT(1 << 16);
        size_t n = 0;

        json_foreach (l, labels) {
                if (strncmp(l->key, prefix, sizeof(prefix) - 1) == 0 && l->key[sizeof(prefix) - 1])
                        roles[n++] = l->key + sizeof(prefix) - 1;
                else if (streq(l->key, "kubernetes.io/role") && json_text(l).n)
                        roles[n++] = json_cstr(l);
        }
        if (n)
                qsort(roles, n, sizeof(*roles), by_text);
        for (size_t i = 0; i < n; i++)
                if (i == 0 || !streq(roles[i], roles[i - 1]))
                        buf_printf(&b, "%s%s", b.n ? "," : "", roles[i]);
        return or_none(finish(&b, a));
}

static const char *node_address(const struct json *node, const char *type)
{
        json_foreach (address, json_path(node, "status.addresses"))
                if (streq(json_str(address, "type"), type))
                        return json_str_or(address, "address", "");
        return "<none>";
}

static const char *or_unknown(const struct json *info, const char *key)
{
        const char *text = json_str_or(info, key, "");

        return *text ? text : "<unknown>";
}

struct json *node_row(const struct strategy_context *c, const struct json *o)
{
        const struct json *info = json_path(o, "status.nodeInfo");

        return json_build(c->a, "[%s, %s, %s, %s, %s, %s, %s, %s, %s, %s]", name_of(o), node_status(o, c->a),
                          node_roles(o, c->a), cell_age(c, o), json_str_or(info, "kubeletVersion", ""),
                          node_address(o, "InternalIP"), node_address(o, "ExternalIP"),
                          or_unknown(info, "osImage"), or_unknown(info, "kernelVersion"),
                          or_unknown(info, "containerRuntimeVersion"));
}

/* ---- claims */

struct columns claim_columns(void)
{
        static const struct table_column list[] = {
                NAME_COLUMN,
                {"Status", "string", "", "Whether it has a volume.", 0, NULL},
                {"Volume", "string", "", "The name of its volume.", 0, NULL},
                {"Capacity", "string", "", "The size of its volume.", 0, NULL},
                {"Access Modes", "string", "", "How its volume may be mounted.", 0, NULL},
                {"StorageClass", "string", "", "The class that it asks for.", 0, NULL},
                AGE_COLUMN,
                {"VolumeMode", "string", "", "A file system or a block device.", 1, NULL},
        };

        return COLUMNS(list);
}

static const char *access_modes(const struct json *modes, struct arena *a)
{
        static const char *const known[][2] = {
                {"ReadWriteOnce", "RWO"}, {"ReadOnlyMany", "ROX"}, {"ReadWriteMany", "RWX"}};
        const char *all = "";

        for (size_t i = 0; i < ARRAY_LEN(known); i++)
                json_foreach (m, modes)
                        if (streq(json_cstr(m), known[i][0])) {
                                all = *all ? arena_join(a, all, ",", known[i][1]) : known[i][1];
                                break;
                        }
        return all;
}

struct json *claim_row(const struct strategy_context *c, const struct json *o)
{
        const struct json *spec = json_at(o, "spec"), *status = json_at(o, "status");
        const char *volume = json_str_or(spec, "volumeName", ""), *phase = json_str_or(status, "phase", "");
        const char *class = json_str(json_path(o, "metadata.annotations"),
                                     "volume.beta.kubernetes.io/storage-class");
        const char *size = json_str_or(json_at(status, "capacity"), "storage", "0");

        if (meta_str(o, "deletionTimestamp"))
                phase = "Terminating";
        return json_build(c->a, "[%s, %s, %s, %s, %s, %s, %s, %s]", name_of(o), phase, volume,
                          *volume ? size : "",
                          *volume ? access_modes(json_at(status, "accessModes"), c->a) : "",
                          class ? class : json_str_or(spec, "storageClassName", ""), cell_age(c, o),
                          json_str_or(spec, "volumeMode", "<unset>"));
}

/* ---- quotas */

struct columns quota_columns(void)
{
        static const struct table_column list[] = {
                NAME_COLUMN,
                AGE_COLUMN,
                {"Request", "string", "", "What is used, of what may be, by requests and counts.", 0, NULL},
                {"Limit", "string", "", "What is used, of what may be, by limits.", 0, NULL},
        };

        return COLUMNS(list);
}

struct json *quota_row(const struct strategy_context *c, const struct json *o)
{
        _cleanup_(buf_done) struct buf requests = BUF_INIT(1 << 16), limits = BUF_INIT(1 << 16);
        const struct json *used = json_path(o, "status.used");
        const struct json **hard = sorted_members(json_path(o, "status.hard"), c->a);

        for (; *hard; hard++) {
                struct buf *b = strncmp((*hard)->key, "limits.", 7) == 0 ? &limits : &requests;

                buf_printf(b, "%s%s: %s/%s", b->n ? ", " : "", (*hard)->key,
                           json_str_or(used, (*hard)->key, "0"), json_cstr(*hard));
        }
        return json_build(c->a, "[%s, %s, %s, %s]", name_of(o), cell_age(c, o), finish(&requests, c->a),
                          finish(&limits, c->a));
}

/* ---- bindings */

struct columns binding_columns(void)
{
        static const struct table_column list[] = {
                NAME_COLUMN,
                {"Role", "string", "", "The role that it gives.", 0, NULL},
                AGE_COLUMN,
                {"Users", "string", "", "Users that have it.", 1, NULL},
                {"Groups", "string", "", "Groups that have it.", 1, NULL},
                {"ServiceAccounts", "string", "", "Accounts that have it.", 1, NULL},
        };

        return COLUMNS(list);
}

static const char *subjects(const struct json *binding, const char *kind, struct arena *a)
{
        _cleanup_(buf_done) struct buf b = BUF_INIT(1 << 16);

        json_foreach (s, json_at(binding, "subjects")) {
                if (!streq(json_str(s, "kind"), kind))
                        continue;
                if (b.n)
                        buf_adds(&b, ", ");
                if (streq(kind, "ServiceAccount"))
                        buf_printf(&b, "%s/", json_str_or(s, "namespace", ""));
                buf_adds(&b, json_str_or(s, "name", ""));
        }
        return finish(&b, a);
}

struct json *binding_row(const struct strategy_context *c, const struct json *o)
{
        const struct json *role = json_at(o, "roleRef");

        return json_build(c->a, "[%s, '%s/%s', %s, %s, %s, %s]", name_of(o), json_str_or(role, "kind", ""),
                          json_str_or(role, "name", ""), cell_age(c, o), subjects(o, "User", c->a),
                          subjects(o, "Group", c->a), subjects(o, "ServiceAccount", c->a));
}

/* ---- events */

struct columns event_columns(void)
{
        static const struct table_column list[] = {
                {"Last Seen", "string", "", "The time since it was last seen.", 0, NULL},
                {"Type", "string", "", "Normal, or Warning.", 0, NULL},
                {"Reason", "string", "", "Why it happened, in one word.", 0, NULL},
                {"Object", "string", "", "What it happened to.", 0, NULL},
                {"Subobject", "string", "", "The part that it happened to.", 1, NULL},
                {"Source", "string", "", "Who tells it.", 1, NULL},
                {"Message", "string", "", "What happened.", 0, NULL},
                {"First Seen", "string", "", "The time since it was first seen.", 1, NULL},
                {"Count", "string", "", "How often it was seen.", 1, NULL},
                {"Name", "string", "name", "The object's name.", 1, NULL},
        };

        return COLUMNS(list);
}

/* A member by its name in either version. */
static const struct json *either(const struct json *e, const char *stored, const char *newer)
{
        const struct json *v = json_at(e, stored);

        return v ? v : json_at(e, newer);
}

static const char *either_str(const struct json *e, const char *stored, const char *newer)
{
        const char *text = json_cstr(either(e, stored, newer));

        return text ? text : "";
}

static const char *event_source(const struct json *e, struct arena *a)
{
        const struct json *source = either(e, "source", "deprecatedSource");
        const char *component = json_str_or(source, "component", ""), *host = json_str_or(source, "host", "");

        component = *component ? component : either_str(e, "reportingComponent", "reportingController");
        host = *host ? host : json_str_or(e, "reportingInstance", "");
        return *host ? arena_join(a, component, ", ", host) : component;
}

static const char *event_target(const struct json *e, struct arena *a)
{
        const struct json *about = either(e, "involvedObject", "regarding");
        const char *name = json_str_or(about, "name", "");
        char *kind = arena_strdup(a, json_str_or(about, "kind", ""));

        for (char *p = kind; *p; p++)
                if (*p >= 'A' && *p <= 'Z')
                        *p = (char)(*p - 'A' + 'a');
        return *name ? arena_join(a, kind, "/", name) : kind;
}

struct json *event_row(const struct strategy_context *c, const struct json *e)
{
        const struct json *series = json_at(e, "series"), *about = either(e, "involvedObject", "regarding");
        const struct json *first_time = either(e, "firstTimestamp", "deprecatedFirstTimestamp");
        const struct json *last_time = either(e, "lastTimestamp", "deprecatedLastTimestamp");
        const char *first = cell_since(c, json_is(first_time, JSON_STRING) ? first_time
                                                                           : json_at(e, "eventTime"));
        const char *last = json_is(last_time, JSON_STRING) ? cell_since(c, last_time) : first;
        struct str message = str_trim(str_of(either_str(e, "message", "note")));
        int64_t count = json_int(e, "count", json_int(e, "deprecatedCount", 0));

        if (series) {
                last = cell_since(c, json_at(series, "lastObservedTime"));
                count = json_int(series, "count", 0) + 1;
        } else if (count == 0) {
                count = 1;
        }
        return json_build(c->a, "[%s, %s, %s, %s, %s, %s, %.*s, %s, %lld, %s]", last,
                          json_str_or(e, "type", ""), json_str_or(e, "reason", ""), event_target(e, c->a),
                          json_str_or(about, "fieldPath", ""), event_source(e, c->a), STR_ARG(message), first,
                          (long long)count, name_of(e));
}
