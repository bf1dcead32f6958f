/*
 * sim: this program as `sim`, a process a candidate; or, for the truth, the model alone.
 */
#include "probe/sla/local.h"
#include "probe/sla/run_internal.h"

struct sim_target {
        struct sla_target base;
        struct sla_target_config c;
        struct doc model;       /* as given */
        struct arena arena;     /* of the server that is up */
        struct sim_model truth; /* of the server that is up */
};

static struct sim_target *of(struct sla_target *t)
{
        return CONTAINER_OF(t, struct sim_target, base);
}

/* The model of one candidate: its GPUs and mapping, and for prefill, as upstream's profiler has it, no prefix cache and one
 * request at a time on each rank, which is what TTFT of a burst is worked out from. */
static int candidate_model(struct sim_target *t, const struct sla_candidate *c, enum sla_role role,
                           struct json **ret, struct err *err)
{
        struct json *m;

        arena_reset(&t->arena, SIZE_MAX);
        m = json_copy(&t->arena, t->model.root);
        json_set(&t->arena, m, "gpus", json_u64(&t->arena, c->gpus));
        json_set(&t->arena, m, "mapping", json_string(&t->arena, sim_mappings[c->mapping]));
        if (role == SLA_PREFILL) {
                json_set(&t->arena, m, "prefixCache", json_truth(&t->arena, false));
                json_set(&t->arena, m, "maxBatch", json_u64(&t->arena, 1));
        }
        if (t->c.config->model)
                json_set(&t->arena, m, "model", json_string(&t->arena, t->c.config->model));
        if (t->c.config->backend)
                json_set(&t->arena, m, "backend", json_string(&t->arena, t->c.config->backend));
        *ret = m;
        return sim_model_read(&t->arena, m, "the simulation's model", &t->truth, err);
}

/* ---- processes */

static int sim_start(struct sla_target *target, const struct sla_candidate *c, enum sla_role role,
                     struct sla_server *ret, struct err *err)
{
        struct sim_target *t = of(target);
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct json *model;
        const char *dir, *file;
        uint16_t port;

        if (candidate_model(t, c, role, &model, err) < 0 || local_port(&port, err) < 0)
                return -1;
        dir = arena_join(&a, t->c.artifacts, "/", profiling_candidate_dir(&a, role, c));
        file = arena_join(&a, dir, "/", "sim.json");
        if (dir_make(dir, 0755, err) < 0 || file_replace(file, str_of(json_print(&a, model)), 0644, err) < 0)
                return -1;
        {
                char *argv[] = {arena_strdup(&a, "/proc/self/exe"),
                                arena_strdup(&a, "sim"),
                                arena_strdup(&a, "--listen"),
                                arena_printf(&a, "127.0.0.1:%u", port),
                                arena_strdup(&a, file),
                                NULL};

                if (local_start_candidate(&t->c, argv, c, role, port, ret, err) < 0)
                        return -1;
        }
        ret->model = &t->truth;
        if (!ret->kv_tokens)
                ret->kv_tokens = sim_rank_kv(&t->truth) * sim_ranks(&t->truth);
        return 0;
}

static void sim_free(struct sla_target *target)
{
        struct sim_target *t = of(target);

        doc_done(&t->model);
        arena_done(&t->arena);
        free(t);
}

static const struct sla_target_ops sim_ops = {
        .name = "sim",
        .simulated = true,
        .start = sim_start,
        .stop = local_stop_candidate,
        .free = sim_free,
        .why = local_why,
};

/* ---- the truth */

static int truth_start(struct sla_target *target, const struct sla_candidate *c, enum sla_role role,
                       struct sla_server *ret, struct err *err)
{
        struct sim_target *t = of(target);
        struct json *model;
        const char *words;

        if (candidate_model(t, c, role, &model, err) < 0)
                return -1;
        words = sim_fail_words(&t->truth);
        if (words)
                return err_set(err, E_SERVER, "the server exited with status 1: %s", words);
        ret->model = &t->truth;
        ret->kv_tokens = sim_rank_kv(&t->truth) * sim_ranks(&t->truth);
        return ret->kv_tokens
                       ? 0
                       : err_set(err, E_SERVER, "the weights do not fit into the memory of %u GPUs", c->gpus);
}

static void truth_stop(struct sla_target *t, struct sla_server *s)
{
        (void)t;
        (void)s;
}

static const struct sla_target_ops truth_ops = {
        .name = "sim",
        .simulated = true,
        .start = truth_start,
        .stop = truth_stop,
        .free = sim_free,
};

static struct sla_target *make(const struct sla_target_config *c, const struct sla_target_ops *ops,
                               struct str model, struct err *err)
{
        struct sim_target *t = xcalloc(1, sizeof(*t));
        struct sim_model checked;

        t->base.ops = ops;
        t->c = *c;
        t->model.root = yaml_parse(&t->model.arena, model, NULL, err);
        if (t->model.root &&
            sim_model_read(&t->arena, t->model.root, "the simulation's model", &checked, err) == 0)
                return &t->base;
        sim_free(&t->base);
        return NULL;
}

struct sla_target *sla_target_sim(const struct sla_target_config *c, struct str model, struct err *err)
{
        if (!c->artifacts) {
                err_set(err, E_CONFIG, "a simulation needs a directory for its processes");
                return NULL;
        }
        return make(c, &sim_ops, model, err);
}

struct sla_target *sla_target_truth(const struct sla_target_config *c, struct str model, struct err *err)
{
        return make(c, &truth_ops, model, err);
}
