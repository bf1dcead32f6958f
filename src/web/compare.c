/*
 * Comparisons: dProfiler's POST makes an AlgorithmComparison.
 */
#include "probe/probe.h"
#include "web/dprofiler.h"

/* ---- POST /api/v1/compare */

static void tell_created(struct call *c, const struct json *object, const struct summary *s)
{
        call_reply(c, 200,
                   json_build(&c->arena,
                              "{'comparison_id': '%s.%s', 'algorithms': %p, 'input_size': %p, 'status': %s}",
                              s->ns, s->name, (void *)json_copy(&c->arena, json_at(c->body, "algorithms")),
                              (void *)json_copy(&c->arena, json_at(c->body, "input_size")), job_status(s)));
}

/* Checks and adds the I-th one. False: it is answered. */
static bool add_algorithm(struct call *c, struct json *list, const char *name, const struct json *parameters)
{
        struct arena *a = &c->arena;
        struct err err = ERR_INIT;

        if (algorithm_check(name, NULL, &err) < 0) {
                call_fail_field(c, "body", "algorithms", err.text);
                return false;
        }
        if (algorithm_check(name, parameters, &err) < 0) {
                call_fail_field(c, "body", "parameters_list", err.text);
                return false;
        }
        json_append(list, json_build(a, "{'name': %s, 'type': 'sorting', 'parameters': %p}", name,
                                     (void *)json_copy(a, parameters)));
        return true;
}

void serve_compare_create(struct call *c)
{
        struct arena *a = &c->arena;
        const struct json *names = json_at(c->body, "algorithms"),
                          *parameters = json_at(c->body, "parameters_list");
        struct json *list = json_array(a);
        size_t i = 0;

        if (parameters && json_len(parameters) != json_len(names)) {
                call_fail_field(c, "body", "parameters_list",
                                "Input should have one entry for each algorithm");
                return;
        }
        json_foreach (name, names)
                if (!add_algorithm(c, list, json_cstr(name), json_index(parameters, i++)))
                        return;
        job_create(c, kinds_named(str_of(ALGORITHMCOMPARISON.plural)),
                   json_build(a,
                              "{'apiVersion': 'dprofiler.io/v1alpha1', 'kind': 'AlgorithmComparison', "
                              "'metadata': {'generateName': 'compare-', 'labels': {'app': 'dprofiler'}}, "
                              "'spec': {'algorithms': %p, 'inputSize': %p, 'iterations': %p}}",
                              (void *)list, (void *)json_copy(a, json_at(c->body, "input_size")),
                              (void *)json_copy(a, json_at(c->body, "iterations"))),
                   false, tell_created);
}

/* ---- GET /api/v1/algorithms */

void serve_algorithms(struct call *c)
{
        struct json *list = json_array(&c->arena);
        const struct algorithm *al;

        for (size_t i = 0; (al = algorithm_at(i)); i++)
                json_append(list,
                            json_build(&c->arena,
                                       "{'name': %s, 'description': %s, 'category': 'sorting', 'parameters': "
                                       "{}}",
                                       algorithm_name(al), algorithm_about(al)));
        call_reply(c, 200, list);
}
