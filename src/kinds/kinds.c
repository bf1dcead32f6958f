#include "kinds/kinds.h"

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
        struct controller (*make)(const struct kinds_settings *settings);
} table[] = {
        {{&DGDR, "dgdr", "state", dgdr_final}, make_dgdr},
        {{&CUDAEXPERIMENT, "cudaexp", "phase", cuda_final}, make_cuda},
        {{&ALGORITHMPROFILING, "ap", "phase", algorithm_final}, make_profiling},
        {{&ALGORITHMCOMPARISON, "ac", "phase", algorithm_final}, make_comparison},
};

_Static_assert(ARRAY_LEN(table) <= KINDS_MAX, "the callers have room for all kinds");

size_t kinds_controllers(const struct kinds_settings *settings, struct controller ret[KINDS_MAX])
{
        for (size_t i = 0; i < ARRAY_LEN(table); i++)
                ret[i] = table[i].make(settings);
        return ARRAY_LEN(table);
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
