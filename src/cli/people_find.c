#include "cli/people.h"

enum { PAGE = 500 };

/* ---- names */

static const char *kind_words(struct arena *a)
{
        char *all = arena_strdup(a, "");

        for (size_t i = 0; kinds_at(i); i++)
                all = arena_join(a, all, i ? ", " : "", kinds_at(i)->label);
        return all;
}

static int no_kind(struct str word)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;

        cli_error("'%.*s' is no kind of ours; they are %s", STR_ARG(word), kind_words(&a));
        return -1;
}

/* KIND/NAME. */
static int read_slashed(const char *arg, struct people_name *ret)
{
        struct str name = str_of(arg), word = str_split(&name, '/');

        ret->kind = kinds_named(word);
        ret->name = name.p;
        if (!ret->kind)
                return no_kind(word);
        if (!name.n || memchr(name.p, '/', name.n)) {
                cli_error("'%s' names no run; KIND/NAME is wanted", arg);
                return -1;
        }
        return 0;
}

/* The first word may be a kind, of which all others are then names. */
static int read_plain(int argc, char **argv, struct people_names *ret)
{
        const struct kind *kind = kinds_named(str_of(argv[1]));

        if (kind && argc == 2)
                *vec_push(ret) = (struct people_name){.kind = kind};
        for (int i = kind ? 2 : 1; i < argc; i++) {
                struct people_name one = {.kind = kind, .name = argv[i]};

                if (strchr(argv[i], '/') && kind) {
                        cli_error("'%s %s' names a kind twice; KIND/NAME or KIND NAME is wanted", argv[1],
                                  argv[i]);
                        return -1;
                }
                if (strchr(argv[i], '/') && read_slashed(argv[i], &one) < 0)
                        return -1;
                *vec_push(ret) = one;
        }
        return 0;
}

static int check_named(char **argv, const struct people_names *names)
{
        if (!names->n) {
                cli_error("%s needs the name of a run: KIND/NAME or NAME; see '%s help %s'", argv[0],
                          cli_name(), argv[0]);
                return -1;
        }
        if (!names->v[0].name) {
                cli_error("%s needs the name of a run, and '%s' is a kind; '%s get %s' lists its runs",
                          argv[0], argv[1], cli_name(), argv[1]);
                return -1;
        }
        return 0;
}

int people_read_names(int argc, char **argv, bool named, struct people_names *ret)
{
        for (int i = 1; i < argc; i++)
                if (!*argv[i]) {
                        cli_error("%s: an empty name names nothing", argv[0]);
                        return -1;
                }
        if (argc > 1 && read_plain(argc, argv, ret) < 0)
                return -1;
        return named ? check_named(argv, ret) : 0;
}

int people_read_name(int argc, char **argv, struct people_name *ret)
{
        struct people_names names = {0};
        int r = people_read_names(argc, argv, true, &names);

        if (r == 0 && names.n > 1) {
                cli_error("%s takes one run, and %zu are named; see '%s help %s'", argv[0], names.n,
                          cli_name(), argv[0]);
                r = -1;
        }
        if (r == 0)
                *ret = names.v[0];
        vec_done(&names);
        return r;
}

/* ---- one run */

void people_take(struct people *p, struct people_cluster *c, const struct kind *kind, struct json *object,
                 struct people_run *ret)
{
        *ret = (struct people_run){.cluster = c, .kind = kind, .object = object};
        ret->label = arena_printf(&p->arena, "%s/%s", kind->label,
                                  json_str_or(json_at(object, "metadata"), "name", ""));
        summarize(kind, object, &p->arena, &ret->summary);
}

static int get(struct people *p, struct people_cluster *c, const struct kind *kind, const char *name,
               struct asked *ret, struct err *err)
{
        struct kube_request r = {.verb = KUBE_GET,
                                 .type = kind->type,
                                 .ns = c->ns,
                                 .name = name,
                                 .timeout = p->request_timeout};

        return ask(c->kube, &r, NULL, &p->arena, ret, err);
}

static void say_nothing_installed(const struct people_cluster *c)
{
        cli_error("none of our kinds is installed in the cluster at %s; next: %s manifests | kubectl apply "
                  "-f -",
                  c->config.server, cli_name());
}

static void say_not_found(struct people *p, const struct people_cluster *c, const struct people_name *name)
{
        const char *kind = name->kind ? name->kind->label : "run";
        const char *of = p->contexts ? " of " : "", *context = p->contexts ? c->name : "";

        if (kinds_named(str_of(name->name)))
                cli_error(
                        "there is no %s '%s' in namespace %s%s%s; of kinds, one alone is shown ('%s get %s') "
                        "or all",
                        kind, name->name, c->ns, of, context, cli_name(), name->name);
        else
                cli_error("there is no %s '%s' in namespace %s%s%s; '%s get -A' lists all", kind, name->name,
                          c->ns, of, context, cli_name());
}

static void say_ambiguous(struct people *p, const char *name, const struct people_runs *found)
{
        char *all = arena_strdup(&p->arena, "");

        for (size_t i = 0; i < found->n; i++)
                all = arena_join(&p->arena, all,
                                 !i                 ? ""
                                 : i + 1 < found->n ? ", "
                                                    : " or ",
                                 found->v[i].label);
        cli_error("'%s' is the name of several runs; say which: %s", name, all);
}

/* All runs of a name, whatever their kind: at most one of each. */
static int find_all(struct people *p, struct people_cluster *c, const struct people_name *name,
                    struct people_runs *ret)
{
        size_t served = 0;

        for (size_t i = 0; kinds_at(i); i++) {
                const struct kind *kind = kinds_at(i);
                struct err err = ERR_INIT;
                struct asked got;

                if (name->kind && name->kind != kind)
                        continue;
                if (get(p, c, kind, name->name, &got, &err) == 0)
                        people_take(p, c, kind, got.doc, vec_push(ret));
                else if (err.code != E_NOT_FOUND) {
                        people_complain(c, NULL, &err);
                        return -1;
                }
                served += !got.unserved;
        }
        if (!served && name->kind)
                cli_error("the cluster at %s does not have the kind %s; next: %s manifests | kubectl apply "
                          "-f -",
                          c->config.server, name->kind->type->kind, cli_name());
        else if (!served)
                say_nothing_installed(c);
        return served ? 0 : -1;
}

int people_find(struct people *p, struct people_cluster *c, const struct people_name *name,
                struct people_run *ret)
{
        struct people_runs found = {0};
        int r = find_all(p, c, name, &found);

        if (r == 0 && found.n != 1) {
                r = -1;
                if (found.n)
                        say_ambiguous(p, name->name, &found);
                else
                        say_not_found(p, c, name);
        }
        if (r == 0)
                *ret = found.v[0];
        vec_done(&found);
        return r;
}

int people_refresh(struct people *p, struct people_run *run, struct err *err)
{
        struct kube_request r = {.verb = KUBE_GET,
                                 .type = run->kind->type,
                                 .ns = run->summary.ns,
                                 .name = run->summary.name,
                                 .timeout = p->request_timeout};
        struct asked got;

        if (ask(run->cluster->kube, &r, NULL, &p->arena, &got, err) < 0)
                return -1;
        people_take(p, run->cluster, run->kind, got.doc, run);
        return 0;
}

int people_patch(struct people *p, struct people_run *run, const struct json *patch, struct err *err)
{
        struct kube_request r = {.verb = KUBE_PATCH_MERGE,
                                 .type = run->kind->type,
                                 .ns = run->summary.ns,
                                 .name = run->summary.name,
                                 .field_manager = "sonde",
                                 .timeout = p->request_timeout};
        struct json *body = json_copy(&p->arena, patch);
        struct asked got;

        json_path_set(&p->arena, body, "metadata.uid", json_string(&p->arena, run->summary.uid));
        r.body = str_of(json_print(&p->arena, body));
        if (ask(run->cluster->kube, &r, NULL, &p->arena, &got, err) < 0)
                return -1;
        people_take(p, run->cluster, run->kind, got.doc, run);
        return 0;
}

/* ---- many */

/* Every page of a list; ITEMS gets them all. */
static int list_pages(struct people *p, struct people_cluster *c, struct kube_request *r, struct json *items,
                      bool *ret_unserved, struct err *err)
{
        struct asked got;

        *ret_unserved = false;
        do {
                struct json *page, *item;

                if (ask(c->kube, r, NULL, &p->arena, &got, err) < 0) {
                        *ret_unserved = got.unserved;
                        return -1;
                }
                page = json_at(got.doc, "items");
                while ((item = json_first(page)))
                        json_append(items, json_take(page, item));
                r->continue_token = json_str(json_at(got.doc, "metadata"), "continue");
        } while (r->continue_token && *r->continue_token);
        return 0;
}

static bool is_wanted(const struct people_names *names, const struct kind *kind, const char *name)
{
        if (!names->n)
                return true;
        for (size_t i = 0; i < names->n; i++) {
                const struct people_name *one = &names->v[i];

                if ((!one->kind || one->kind == kind) && (!name || !one->name || streq(one->name, name)))
                        return true;
        }
        return false;
}

static int list_kind(struct people *p, struct people_cluster *c, const struct kind *kind,
                     const struct people_names *names, struct people_runs *ret, bool *ret_unserved,
                     struct err *err)
{
        struct kube_request r = {.verb = KUBE_LIST,
                                 .type = kind->type,
                                 .ns = c->ns,
                                 .label_selector = p->selector,
                                 .limit = PAGE,
                                 .timeout = p->request_timeout};
        struct json *items = json_array(&p->arena);

        if (list_pages(p, c, &r, items, ret_unserved, err) < 0)
                return -1;
        json_foreach (item, items)
                if (is_wanted(names, kind, meta_str(item, "name")))
                        people_take(p, c, kind, item, vec_push(ret));
        return 0;
}

/* Each name that was given has a run, or that is said. */
static int check_found(struct people *p, const struct people_cluster *c, const struct people_names *names,
                       const struct people_runs *found, size_t from)
{
        int r = 0;

        for (size_t i = 0; i < names->n; i++) {
                const struct people_name *one = &names->v[i];
                bool seen = !one->name;

                for (size_t k = from; !seen && k < found->n; k++)
                        seen = (!one->kind || one->kind == found->v[k].kind) &&
                               streq(one->name, found->v[k].summary.name);
                if (seen)
                        continue;
                if (c->ns)
                        say_not_found(p, c, one);
                else
                        cli_error("there is no %s '%s' in any namespace",
                                  one->kind ? one->kind->label : "run", one->name);
                r = -1;
        }
        return r;
}

int people_list(struct people *p, struct people_cluster *c, const struct people_names *names,
                struct people_runs *ret)
{
        size_t served = 0, from = ret->n;

        for (size_t i = 0; kinds_at(i); i++) {
                const struct kind *kind = kinds_at(i);
                struct err err = ERR_INIT;
                bool unserved = false;

                if (!is_wanted(names, kind, NULL))
                        continue;
                if (list_kind(p, c, kind, names, ret, &unserved, &err) < 0 && !unserved) {
                        people_complain(c, NULL, &err);
                        return -1;
                }
                served += !unserved;
        }
        if (!served) {
                say_nothing_installed(c);
                return -1;
        }
        return check_found(p, c, names, ret, from);
}

int people_list_of(struct people *p, struct people_cluster *c, const struct kube_type *type, const char *ns,
                   const char *labels, const char *fields, struct json **ret_items, struct err *err)
{
        struct kube_request r = {.verb = KUBE_LIST,
                                 .type = type,
                                 .ns = ns,
                                 .label_selector = labels,
                                 .field_selector = fields,
                                 .limit = PAGE,
                                 .timeout = p->request_timeout};
        struct asked got;

        if (ask(c->kube, &r, NULL, &p->arena, &got, err) < 0)
                return -1;
        *ret_items = json_at(got.doc, "items");
        return 0;
}

/* ---- for shells */

/* The value of the option in ARGV, of the forms that options_parse() takes; NULL: it is not there. */
static const char *option_in(int argc, char **argv, const char *name, char short_name)
{
        for (int i = 0; i < argc; i++) {
                const char *arg = argv[i];
                struct str value = str_of(arg), word = str_split(&value, '=');
                bool is_long = str_has_prefix(word, STR("--")) && streq(arg + 2, name);
                bool is_short = short_name && arg[0] == '-' && arg[1] == short_name;

                if (str_has_prefix(word, STR("--")) && value.p &&
                    str_eq(str_n(word.p + 2, word.n - 2), str_of(name)))
                        return value.p;
                if (is_short && arg[2])
                        return arg + 2;
                if ((is_long || is_short) && i + 1 < argc)
                        return argv[i + 1];
        }
        return NULL;
}

void people_list_names(int argc, char **argv)
{
        _cleanup_(people_done) struct people p = PEOPLE_INIT;
        struct people_names all = {0};
        struct people_runs runs = {0};

        p.ns = option_in(argc, argv, "namespace", 'n');
        p.kubeconfig = option_in(argc, argv, "kubeconfig", 0);
        p.contexts = option_in(argc, argv, "context", 0);
        p.request_timeout = 2 * USEC_PER_SEC;
        if (people_open(&p, PEOPLE_ONE) == 0 && people_list(&p, people_cluster(&p), &all, &runs) == 0)
                for (size_t i = 0; i < runs.n; i++)
                        printf("%s\t%s\n", runs.v[i].label, text_clean(&p.arena, runs.v[i].summary.phase));
        vec_done(&runs);
}
