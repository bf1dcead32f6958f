/*
 * What the profiler made: the deployment among other documents.
 *
 * It is the text of an image that somebody chose, so nothing in it is believed: it is read with limits, of the one
 * deployment only spec, labels and annotations are taken, and of all else only ConfigMaps, in the request's namespace and
 * under names that are not the run's own.
 *
 * workersImage goes to the workers and nowhere else, as upstream's description of the field has it: a frontend, a planner
 * and an endpoint picker keep the image that the profiler gave them. What has no type and no such name is a worker.
 */
#include "kinds/dgdr/spec_internal.h"
#include "kinds/run_internal.h"
#include "run/fence.h"

enum {
        TEXT_MAX = 4 << 20,     /* as the relay reads it */
        DGD_MAX = 256 << 10,    /* as it is printed: it becomes part of the status */
        MAP_MAX = 1 << 20,      /* as the API server has it */
        MARKS_MAX = 64,         /* labels, and annotations, of one document */
        MARKS_BYTES = 64 << 10, /* of them together */
        KEYS_MAX = 256,         /* of one ConfigMap */
        SHOWN_MAX = 63,
};

static const struct json_limits OUTPUT_LIMITS = {.bytes = TEXT_MAX, .depth = 64, .nodes = 100000};

/* ---- the text */

struct str dgdr_output_text(const struct view *v, const struct dgdr_spec *spec, const struct json *data_map,
                            const char **ret_key, struct err *err)
{
        const char *const keys[] = {spec->use_mocker ? "mocker_config_with_planner.yaml"
                                                     : "config_with_planner.yaml",
                                    "final_config.yaml"};

        for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
                struct err why = ERR_INIT;
                struct str text = run_data_text(v, data_map, keys[i], &why);

                *ret_key = keys[i];
                if (text.p)
                        return text;
                if (why.code != E_NOT_FOUND) {
                        err_set(err, why.code, "%s", why.text);
                        return STR_NULL;
                }
        }
        *ret_key = keys[0];
        if (data_map)
                err_set(err, E_NOT_FOUND, "the profiler ended without writing %s or %s", keys[0], keys[1]);
        else
                err_set(err, E_NOT_FOUND, "the ConfigMap with the profiler's output is gone");
        return STR_NULL;
}

/* ---- documents, and what is said of those that are not used */

struct reading {
        const struct view *v;
        const struct dgdr_spec *spec;
        struct dgdr_output *out;
        size_t at; /* the document, from 1 */
        size_t n_refused;
};

static const char *on_one_line(const struct reading *r, const char *text)
{
        return run_quote(r->v, str_n(text, utf8_cut(text, strlen(text), SHOWN_MAX)));
}

/* "Secret 'x'" */
static const char *title(const struct reading *r, const struct json *doc)
{
        const char *kind = json_str(doc, "kind"), *name = meta_str(doc, "name");

        if (!json_is(doc, JSON_OBJECT))
                return arena_printf(r->v->arena, "what is no object (%s)", json_type_name(doc->type));
        if (!kind || !*kind)
                return "what has no kind";
        return name ? arena_printf(r->v->arena, "%s '%s'", on_one_line(r, kind), on_one_line(r, name))
                    : on_one_line(r, kind);
}

static void refuse(struct reading *r, const struct json *doc, const char *why)
{
        struct dgdr_output *out = r->out;

        if (r->n_refused++ < DGDR_REFUSED_MAX)
                out->refused[out->n_refused++] = run_sentence(r->v, "document %zu: %s is not created: %s",
                                                              r->at, title(r, doc), why);
        else
                out->refused[DGDR_REFUSED_MAX - 1] = run_sentence(r->v, "%zu more documents are not created",
                                                                  r->n_refused - DGDR_REFUSED_MAX + 1);
}

static bool is_deployment(const struct json *doc)
{
        return streq(json_str(doc, "kind"), "DynamoGraphDeployment");
}

static bool is_known_version(const struct json *doc)
{
        return str_has_prefix(str_of(json_str(doc, "apiVersion")), STR("nvidia.com/v1"));
}

/* ---- labels and annotations */

static bool is_of_domain(struct str prefix, struct str domain)
{
        return str_has_suffix(prefix, domain) &&
               (prefix.n == domain.n || prefix.p[prefix.n - domain.n - 1] == '.');
}

/* Kubernetes' own, ours, and those that say whose a deployment is: nobody gets them from a document. */
static bool is_reserved(struct str prefix)
{
        static const char *const domains[] = {"kubernetes.io", "k8s.io", "sonde.dev", "dgdr.nvidia.com"};

        for (size_t i = 0; i < ARRAY_LEN(domains); i++)
                if (is_of_domain(prefix, str_of(domains[i])))
                        return true;
        return false;
}

static bool is_good_mark(const struct json *mark, bool label)
{
        struct str rest = str_of(mark->key), prefix = str_split(&rest, '/'), value = json_text(mark);

        if (strlen(mark->key) != mark->key_len || !is_qualified_name(mark->key))
                return false;
        return value.p && !(rest.p && is_reserved(prefix)) && (!label || name_valid(NAME_LABEL_VALUE, value));
}

/* Those of a document that the API server would take and that are not reserved; the others are left out. */
static struct json *take_marks(const struct view *v, const struct json *doc, const char *which)
{
        struct json *ret = json_object(v->arena);
        size_t bytes = 0;

        json_foreach (mark, json_at(json_at(doc, "metadata"), which)) {
                if (!is_good_mark(mark, streq(which, "labels")))
                        continue;
                bytes += mark->key_len + mark->len;
                if (json_len(ret) == MARKS_MAX || bytes > MARKS_BYTES)
                        break;
                json_set(v->arena, ret, mark->key, json_copy(v->arena, mark));
        }
        return ret;
}

static void add_marks(const struct view *v, struct json *to, const struct json *more)
{
        json_foreach (mark, more)
                if (json_is(mark, JSON_STRING))
                        json_set(v->arena, to, mark->key, json_copy(v->arena, mark));
}

/* As upstream has them: tools find a request's deployment and ConfigMaps by these. */
static void add_request(const struct view *v, struct json *labels)
{
        struct arena *a = v->arena;
        const char *name = meta_str(v->request, "name"), *ns = meta_str(v->request, "namespace");

        json_set(a, labels, "dgdr.nvidia.com/name",
                 json_string(a, name_fit(a, NAME_LABEL_VALUE, "", name ? name : "", "", NULL)));
        json_set(a, labels, "dgdr.nvidia.com/namespace",
                 json_string(a, name_fit(a, NAME_LABEL_VALUE, "", ns ? ns : "", "", NULL)));
}

/* ---- the deployment */

/* The member, made if there is none; NULL: there is something else. */
static struct json *member(struct arena *a, struct json *object, const char *key, enum json_type type)
{
        struct json *m = json_at(object, key);

        if (!json_is(object, JSON_OBJECT) || (m && !json_is(m, type)))
                return NULL;
        return m ? m : json_set(a, object, key, type == JSON_ARRAY ? json_array(a) : json_object(a));
}

static bool is_worker(const struct json *component, const char *type_key, const char *name)
{
        static const char *const others[] = {"frontend", "planner", "epp"};
        const char *type = json_str(component, type_key);
        struct str what = str_of(type && *type ? type : name ? name : "");

        for (size_t i = 0; i < ARRAY_LEN(others); i++)
                if (str_case_eq(what, str_of(others[i])))
                        return false;
        return true;
}

static struct json *main_container(struct arena *a, struct json *component)
{
        struct json *template = member(a, component, "podTemplate", JSON_OBJECT);
        struct json *spec = member(a, template, "spec", JSON_OBJECT);
        struct json *list = member(a, spec, "containers", JSON_ARRAY);
        struct json *c = json_find_named(list, "main");

        return c || !list ? c : json_append(list, json_build(a, "{'name': 'main'}"));
}

/* v1alpha1 has an object of services, v1beta1 a list of components. */
static void set_workers_image(const struct reading *r, struct json *spec)
{
        struct arena *a = r->v->arena;
        struct json *image = json_string(a, r->spec->workers_image);

        if (!image)
                return;
        json_foreach (service, json_at(spec, "services"))
                if (is_worker(service, "componentType", service->key)) {
                        struct json *pod = member(a, service, "extraPodSpec", JSON_OBJECT);
                        struct json *c = member(a, pod, "mainContainer", JSON_OBJECT);

                        if (c)
                                json_set(a, c, "image", json_copy(a, image));
                }
        json_foreach (component, json_at(spec, "components"))
                if (is_worker(component, "type", json_str(component, "name"))) {
                        struct json *c = main_container(a, component);

                        if (c)
                                json_set(a, c, "image", json_copy(a, image));
                }
}

static struct json *deployment_metadata(const struct reading *r, const struct json *doc)
{
        const struct view *v = r->v;
        struct json *labels = take_marks(v, doc, "labels"), *annotations = take_marks(v, doc, "annotations");

        add_marks(v, labels, r->spec->labels);
        add_request(v, labels);
        json_set(v->arena, labels, "nvidia.com/managed-by", json_string(v->arena, "dynamo-operator"));
        add_marks(v, annotations, r->spec->annotations);
        return json_build(v->arena, "{'name': %s, 'namespace': %s, 'labels': %p, 'annotations': %p}",
                          r->spec->deployment, meta_str(v->request, "namespace"), (void *)labels,
                          (void *)(json_len(annotations) ? annotations : NULL));
}

static bool fits(const struct json *j, size_t max)
{
        _cleanup_(buf_done) struct buf text = BUF_INIT(max);

        json_write(j, JSON_COMPACT, &text);
        return !text.overflow;
}

/* Members that are null say nothing, and a status with them would never be what was written: they go. */
static int read_deployment(struct reading *r, const struct json *doc, struct err *err)
{
        struct arena *a = r->v->arena;
        const struct json *spec = json_at(doc, "spec");
        struct json *copy;

        if (!json_is(spec, JSON_OBJECT))
                return err_set(err, E_INVALID, "document %zu: the DynamoGraphDeployment has no spec", r->at);
        if (!fits(spec, DGD_MAX))
                return err_set(err, E_TOO_LARGE,
                               "document %zu: the DynamoGraphDeployment has more than %d KiB", r->at,
                               DGD_MAX >> 10);
        copy = json_merge_patch(a, NULL, spec);
        set_workers_image(r, copy);
        r->out->dgd = json_build(
                a, "{'apiVersion': %s, 'kind': 'DynamoGraphDeployment', 'metadata': %p, 'spec': %p}",
                json_str(doc, "apiVersion"), (void *)deployment_metadata(r, doc), (void *)copy);
        if (!fits(r->out->dgd, DGD_MAX))
                return err_set(
                        err, E_TOO_LARGE,
                        "document %zu: the DynamoGraphDeployment has more than %d KiB with its labels, "
                        "annotations and images",
                        r->at, DGD_MAX >> 10);
        return 0;
}

/* ---- ConfigMaps */

static bool is_name_of_run(const char *name)
{
        return str_has_prefix(str_of(name), STR("dgdr-status-")) ||
               str_has_prefix(str_of(name), STR("dgdr-output-"));
}

static bool is_taken(const struct reading *r, const char *name)
{
        for (size_t i = 0; i < r->out->n_extras; i++)
                if (streq(meta_str(r->out->extras[i], "name"), name))
                        return true;
        return false;
}

/* Why it may not be made; NULL: it may. */
static const char *why_not_map(const struct reading *r, const struct json *doc)
{
        const struct json *ns = json_at(json_at(doc, "metadata"), "namespace");
        const char *name = meta_str(doc, "name");

        if (!streq(json_str(doc, "apiVersion"), "v1"))
                return "its apiVersion is not v1";
        if (ns && !json_is(ns, JSON_NULL) && !streq(json_cstr(ns), "") &&
            !streq(json_cstr(ns), meta_str(r->v->request, "namespace")))
                return "it is for another namespace than the request's";
        if (!name || !*name)
                return "it has no name";
        if (!name_valid(NAME_SUBDOMAIN, str_of(name)))
                return "that is no name for it";
        if (is_name_of_run(name))
                return "the name is one of the run's own";
        if (is_taken(r, name))
                return "there is one of that name before it";
        return r->out->n_extras == DGDR_EXTRAS_MAX ? "there are too many of them" : NULL;
}

static bool take_text(struct arena *a, const struct json *value, struct json **ret, size_t *bytes)
{
        if (!json_is(value, JSON_STRING))
                return false;
        *ret = json_copy(a, value);
        *bytes += value->len;
        return true;
}

/* Written anew: the API server knows fewer forms of base64 than we do. */
static bool take_binary(struct arena *a, const struct json *value, struct json **ret, size_t *bytes)
{
        _cleanup_(buf_done) struct buf raw = BUF_INIT(MAP_MAX), text = BUF_INIT(2 * MAP_MAX);

        if (!json_is(value, JSON_STRING) || !buf_add_unbase64(&raw, json_text(value)))
                return false;
        buf_add_base64(&text, buf_str(&raw));
        *ret = json_stringn(a, buf_str(&text));
        *bytes += raw.n;
        return true;
}

/* The members of data or binaryData; why they cannot be had, or NULL. OTHER: keys that must not be there again. */
static const char *take_values(const struct reading *r, const struct json *from, const struct json *other,
                               bool (*take)(struct arena *, const struct json *, struct json **, size_t *),
                               size_t *bytes, struct json **ret)
{
        struct arena *a = r->v->arena;

        *ret = NULL;
        if (!from || json_is(from, JSON_NULL))
                return NULL;
        if (!json_is(from, JSON_OBJECT))
                return "its data is no object";
        *ret = json_object(a);
        json_foreach (m, from) {
                struct str key = str_n(m->key, m->key_len);
                struct json *value;

                if (json_len(*ret) == KEYS_MAX)
                        return "it has too many keys";
                if (!run_key_valid(key) || json_get(other, key))
                        return "a key of its data is none that a ConfigMap takes";
                if (!take(a, m, &value, bytes))
                        return "a value of its data is none that a ConfigMap takes";
                *bytes += key.n;
                if (*bytes > MAP_MAX)
                        return "it is too large";
                json_setn(a, *ret, key, value);
        }
        return NULL;
}

static void read_map(struct reading *r, const struct json *doc)
{
        const struct view *v = r->v;
        struct json *data = NULL, *binary = NULL, *labels, *annotations;
        const char *why = why_not_map(r, doc);
        size_t bytes = 0;

        if (!why)
                why = take_values(r, json_at(doc, "data"), NULL, take_text, &bytes, &data);
        if (!why)
                why = take_values(r, json_at(doc, "binaryData"), data, take_binary, &bytes, &binary);
        if (why) {
                refuse(r, doc, why);
                return;
        }
        labels = take_marks(v, doc, "labels");
        add_request(v, labels);
        annotations = take_marks(v, doc, "annotations");
        r->out->extras[r->out->n_extras++] = json_build(
                v->arena,
                "{'apiVersion': 'v1', 'kind': 'ConfigMap', 'metadata': {'name': %s, 'namespace': %s, "
                "'labels': %p, "
                "'annotations': %p}, 'data': %p, 'binaryData': %p}",
                meta_str(doc, "name"), meta_str(v->request, "namespace"), (void *)labels,
                (void *)(json_len(annotations) ? annotations : NULL), (void *)data, (void *)binary);
}

/* ---- all documents */

/* The one deployment's place among N documents. */
static int find_deployment(const struct reading *r, struct json *const *docs, size_t n, size_t *ret,
                           struct err *err)
{
        size_t found = n, other = n;

        for (size_t i = 0; i < n; i++) {
                if (!is_deployment(docs[i]))
                        continue;
                if (!is_known_version(docs[i])) {
                        other = i;
                        continue;
                }
                if (found < n)
                        return err_set(
                                err, E_INVALID,
                                "more than one DynamoGraphDeployment found in YAML content: documents %zu "
                                "and %zu",
                                found + 1, i + 1);
                found = i;
        }
        *ret = found;
        if (found < n)
                return 0;
        if (other < n)
                return err_set(err, E_INVALID,
                               "document %zu: a DynamoGraphDeployment of apiVersion '%s' is not known",
                               other + 1, on_one_line(r, json_str_or(docs[other], "apiVersion", "")));
        return err_set(err, E_INVALID, "no DynamoGraphDeployment found in YAML content (%zu documents)", n);
}

static void read_other(struct reading *r, const struct json *doc)
{
        if (streq(json_str(doc, "kind"), "ConfigMap"))
                read_map(r, doc);
        else
                refuse(r, doc, "only ConfigMaps are");
}

int dgdr_output_read(const struct view *v, const struct dgdr_spec *spec, struct str text,
                     struct dgdr_output *ret, struct err *err)
{
        struct reading r = {.v = v, .spec = spec, .out = ret};
        struct json **docs;
        size_t n, which;

        memset(ret, 0, sizeof(*ret));
        if (yaml_parse_all(v->arena, text, &OUTPUT_LIMITS, &docs, &n, err) < 0 ||
            find_deployment(&r, docs, n, &which, err) < 0)
                return -1;
        r.at = which + 1;
        if (read_deployment(&r, docs[which], err) < 0)
                return -1;
        for (size_t i = 0; i < n; i++) {
                r.at = i + 1;
                if (i != which)
                        read_other(&r, docs[i]);
        }
        return 0;
}
