#include "kinds/kinds.h"

#include <strings.h>

#include "kinds/algorithm/internal.h"
#include "kinds/cuda/internal.h"
#include "kinds/dgdr/internal.h"

static struct controller make_dgdr(const struct kinds_settings *settings)
{
        return dgdr_controller(&settings->dgdr);
}

static struct controller make_cuda(const struct kinds_settings *settings)
{
        return cuda_controller(&settings->cuda);
}

static struct controller make_profiling(const struct kinds_settings *settings)
{
        return algorithm_profiling_controller(&settings->algorithm);
}

static struct controller make_comparison(const struct kinds_settings *settings)
{
        return algorithm_comparison_controller(&settings->algorithm);
}

static const char *const dgdr_final[] = {"Failed", "DeploymentDeleted", NULL};
static const char *const cuda_final[] = {"Succeeded", NULL};
static const char *const algorithm_final[] = {"Completed", "Cancelled", NULL};

static const struct {
        struct kind kind;
        /* Both NULL: of a result. */
        struct controller (*make)(const struct kinds_settings *settings);
        struct run_kind (*run)(const struct view *v);
} table[] = {
        {{&DGDR, "dgdr", NULL, "state", dgdr_final}, make_dgdr, dgdr_run_kind},
        {{&CUDAEXPERIMENT, "cudaexp", "cuda", "phase", cuda_final}, make_cuda, cuda_run_kind},
        {{&ALGORITHMPROFILING, "ap", "prof", "phase", algorithm_final}, make_profiling, algorithm_run_kind},
        {{&ALGORITHMCOMPARISON, "ac", "comp", "phase", algorithm_final}, make_comparison, algorithm_run_kind},
        {{&WORKLOADPROFILE, "wprof", NULL, NULL, NULL, .result = true}, NULL, NULL},
};

_Static_assert(ARRAY_LEN(table) <= KINDS_MAX, "the callers have room for all kinds");

size_t kinds_controllers(const struct kinds_settings *settings, struct controller ret[KINDS_MAX])
{
        size_t n = 0;

        for (size_t i = 0; i < ARRAY_LEN(table); i++)
                if (table[i].make)
                        ret[n++] = table[i].make(settings);
        return n;
}

static bool has_outcome(const struct json *request)
{
        return json_str(json_at(json_at(request, "status"), "run"), "outcome");
}

static bool is_result(const struct json *object)
{
        return true;
}

bool (*kinds_ended(const struct kube_type *type))(const struct json *object)
{
        for (size_t i = 0; i < ARRAY_LEN(table); i++)
                if (table[i].kind.type == type)
                        return table[i].kind.result ? is_result : has_outcome;
        return NULL;
}

const struct kind *kinds_at(size_t i)
{
        return i < ARRAY_LEN(table) ? &table[i].kind : NULL;
}

bool kinds_run(const struct kind *kind, const struct json *object, struct arena *a, struct run_kind *ret)
{
        const struct view v = {.request = object, .type = kind->type, .arena = a};

        for (size_t i = 0; i < ARRAY_LEN(table); i++)
                if (&table[i].kind == kind && table[i].run && meta_str(object, "name")) {
                        *ret = table[i].run(&v);
                        return true;
                }
        return false;
}

/* GROUP/VERSION, of a type that is in a group. */
static bool is_of(struct str api_version, const struct kube_type *type)
{
        struct str group = str_split(&api_version, '/');

        return str_eq(group, str_of(type->group)) && str_eq(api_version, str_of(type->version));
}

const struct kind *kinds_find(const char *api_version, const char *kind)
{
        for (size_t i = 0; api_version && kind && i < ARRAY_LEN(table); i++)
                if (is_of(str_of(api_version), table[i].kind.type) && streq(kind, table[i].kind.type->kind))
                        return &table[i].kind;
        return NULL;
}

static bool is_word(struct str word, const char *name)
{
        return name && word.n == strlen(name) && strncasecmp(word.p, name, word.n) == 0;
}

/* PLURAL.GROUP, as kubectl takes it. */
static bool is_qualified(struct str word, const struct kube_type *type)
{
        struct str plural = str_split(&word, '.');

        return is_word(plural, type->plural) && is_word(word, type->group);
}

const struct kind *kinds_named(struct str word)
{
        for (size_t i = 0; i < ARRAY_LEN(table); i++) {
                const struct kind *k = &table[i].kind;

                if (is_word(word, k->label) || is_word(word, k->alias) || is_word(word, k->type->kind) ||
                    is_word(word, k->type->plural) || is_qualified(word, k->type))
                        return k;
        }
        return NULL;
}
