/*
 * process: a command of the user's, a process a candidate.
 */
#include "probe/sla/local.h"
#include "probe/sla/run_internal.h"

struct process_target {
        struct sla_target base;
        struct sla_target_config c;
        char **command;
        size_t n;
};

static struct process_target *of(struct sla_target *t)
{
        return CONTAINER_OF(t, struct process_target, base);
}

/* WORD with its {names} filled in. What stands in braces and is none of ours stays. */
static char *fill_in(struct arena *a, const char *word, const struct sla_config *config,
                     const struct sla_candidate *c, enum sla_role role, uint16_t port)
{
        const struct {
                const char *name, *value;
        } table[] = {
                {"{gpus}", arena_printf(a, "%u", c->gpus)},
                {"{mapping}", c->label},
                {"{tp}", arena_printf(a, "%u", c->mapping == SIM_DEP ? 1 : c->gpus)},
                {"{dp}", arena_printf(a, "%u", c->attn_dp)},
                {"{port}", arena_printf(a, "%u", port)},
                {"{role}", role == SLA_PREFILL ? "prefill" : "decode"},
                {"{model}", config->model ? config->model : ""},
        };
        _cleanup_(buf_done) struct buf out = BUF_INIT(65536);

        while (*word) {
                size_t i = 0, n = 0;

                for (; i < ARRAY_LEN(table); i++)
                        if (strncmp(word, table[i].name, n = strlen(table[i].name)) == 0)
                                break;
                if (i == ARRAY_LEN(table))
                        buf_addc(&out, *word++);
                else {
                        buf_adds(&out, table[i].value);
                        word += n;
                }
        }
        return arena_strndup(a, out.p ? out.p : "", out.n);
}

int local_start_candidate(const struct sla_target_config *c, char *const *argv,
                          const struct sla_candidate *candidate, enum sla_role role, uint16_t port,
                          struct sla_server *ret, struct err *err)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        _cleanup_(buf_done) struct buf output = BUF_INIT(2 << 20);
        struct local *l = xcalloc(1, sizeof(*l));
        const char *file = NULL;

        l->pidfd = l->log_fd = -1;
        ret->data = l;
        if (c->artifacts) {
                const char *dir = arena_join(&a, c->artifacts, "/",
                                             profiling_candidate_dir(&a, role, candidate));

                if (dir_make(dir, 0755, err) < 0)
                        return -1;
                file = arena_join(&a, dir, "/", "server.log");
        }
        if (local_start(argv, file, l, err) < 0 || local_wait(l, port, c, err) < 0)
                return -1;
        local_output(l, &output);
        ret->url = l->url;
        ret->kv_tokens = sla_kv_from_log(c->config->backend, buf_str(&output), candidate->attn_dp);
        return 0;
}

void local_stop_candidate(struct sla_target *t, struct sla_server *s)
{
        (void)t;
        if (s->data) {
                local_take_down(s->data);
                free(s->data);
        }
        s->data = NULL;
}

const char *local_why(struct sla_target *t, const struct sla_server *s, struct arena *a)
{
        (void)t;
        return s->data ? local_last_words(s->data, a) : NULL;
}

static int process_start(struct sla_target *t, const struct sla_candidate *c, enum sla_role role,
                         struct sla_server *ret, struct err *err)
{
        struct process_target *p = of(t);
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        char **argv = arena_new_array(&a, char *, p->n + 1);
        uint16_t port;

        if (local_port(&port, err) < 0)
                return -1;
        for (size_t i = 0; i < p->n; i++)
                argv[i] = fill_in(&a, p->command[i], p->c.config, c, role, port);
        return local_start_candidate(&p->c, argv, c, role, port, ret, err);
}

static void process_free(struct sla_target *t)
{
        struct process_target *p = of(t);

        for (size_t i = 0; i < p->n; i++)
                free(p->command[i]);
        free(p->command);
        free(p);
}

static const struct sla_target_ops process_ops = {
        .name = "process",
        .start = process_start,
        .stop = local_stop_candidate,
        .free = process_free,
        .why = local_why,
};

struct sla_target *sla_target_process(const struct sla_target_config *c, char *const *command,
                                      struct err *err)
{
        struct process_target *p;
        bool has_port = false;
        size_t n = 0;

        for (; command[n]; n++)
                has_port |= strstr(command[n], "{port}") != NULL;
        if (n == 0 || !has_port) {
                err_set(err, E_CONFIG,
                        n ? "the command has no {port}: how is its server to be reached?"
                          : "the target process needs a command: -- COMMAND...");
                return NULL;
        }
        p = xcalloc(1, sizeof(*p));
        p->base.ops = &process_ops;
        p->c = *c;
        p->command = xcalloc(n + 1, sizeof(char *));
        for (p->n = 0; p->n < n; p->n++)
                p->command[p->n] = xstrdup(command[p->n]);
        return &p->base;
}
