/*
 * $(NAME) as the kubelet does it, and what a run is started with.
 */
#include "probe/session/internal.h"

/* What one word of a program may have, and all of them. */
enum { EXPANDED_MAX = 128 * 1024, EXPANDED_ALL_MAX = 8 * 1024 * 1024 };

static const char *value_of(const char *name, const struct session_env *env, size_t n_env,
                            const char *(*outer)(const char *name))
{
        for (size_t i = n_env; i-- > 0;)
                if (streq(env[i].name, name))
                        return env[i].value;
        return outer ? outer(name) : NULL;
}

/* What follows a '$' at AT: adds what it stands for and says how many bytes that were. */
static size_t expand_one(struct arena *a, const char *at, const struct session_env *env, size_t n_env,
                         const char *(*outer)(const char *name), struct buf *out)
{
        const char *end, *name, *value;

        if (at[0] == '$') {
                buf_addc(out, '$');
                return 1;
        }
        end = at[0] == '(' ? strchr(at, ')') : NULL;
        if (!end) {
                buf_addc(out, '$');
                return 0;
        }
        name = arena_strndup(a, at + 1, (size_t)(end - at - 1));
        value = value_of(name, env, n_env, outer);
        if (value)
                buf_adds(out, value);
        else
                buf_printf(out, "$(%s)", name);
        return (size_t)(end - at) + 1;
}

const char *expand_text(struct arena *a, const char *text, const struct session_env *env, size_t n_env,
                        const char *(*outer)(const char *name))
{
        _cleanup_(buf_done) struct buf out = BUF_INIT(EXPANDED_MAX);

        for (const char *p = text; *p;) {
                if (*p != '$') {
                        buf_addc(&out, *p++);
                        continue;
                }
                p++;
                p += expand_one(a, p, env, n_env, outer, &out);
        }
        return out.overflow ? NULL : arena_strndup(a, out.p ? out.p : "", out.n);
}

static const char *from_environment(const char *name)
{
        return getenv(name);
}

/* TEXT, with what it names if the job's are expanded; NULL: it, or all so far, is too long. */
static const char *job_text(struct arena *a, const struct session_job *job, const char *text,
                            const struct session_env *env, size_t n_env, size_t *all)
{
        if (job->expand)
                text = expand_text(a, text, env, n_env, from_environment);
        *all += text ? strlen(text) : 0;
        return *all <= EXPANDED_ALL_MAX ? text : NULL;
}

/* An entry's values may name those before it. */
static struct session_env *expanded_env(struct arena *a, const struct session_job *job, size_t *all)
{
        struct session_env *env = arena_new_array(a, struct session_env, job->n_env + 1);

        for (size_t i = 0; i < job->n_env; i++) {
                env[i] = (struct session_env){
                        .name = job->env[i].name,
                        .value = job_text(a, job, job->env[i].value, env, i, all),
                };
                if (!env[i].value)
                        return NULL;
        }
        return env;
}

char **job_argv(struct arena *a, const struct session_job *job)
{
        size_t n = 0, all = 0;
        struct session_env *env = expanded_env(a, job, &all);
        char **argv;

        if (!env)
                return NULL;
        while (job->command[n])
                n++;
        argv = arena_new_array(a, char *, n + 1);
        for (size_t i = 0; i < n; i++) {
                argv[i] = arena_strdup(a, job_text(a, job, job->command[i], env, job->n_env, &all));
                if (!argv[i])
                        return NULL;
        }
        return argv;
}

/* A variable that is named twice is the last one; ours are nobody's to set. */
static bool is_set_later(const struct session_env *env, size_t n, size_t i)
{
        for (size_t j = i + 1; j < n; j++)
                if (streq(env[i].name, env[j].name))
                        return true;
        return streq(env[i].name, "SONDE_INPUT_SIZE") || streq(env[i].name, "SONDE_SEED") ||
               streq(env[i].name, "SONDE_ITERATION") || streq(env[i].name, "SONDE_METRICS_FILE");
}

const char **job_env(struct arena *a, const struct session_job *job)
{
        size_t n = 0, all = 0;
        struct session_env *env = expanded_env(a, job, &all);
        const char **list = arena_new_array(a, const char *, job->n_env + 4);

        if (!env)
                return NULL;
        for (size_t i = 0; i < job->n_env; i++)
                if (!is_set_later(env, job->n_env, i))
                        list[n++] = arena_printf(a, "%s=%s", env[i].name, env[i].value);
        if (job->size > 0)
                list[n++] = arena_printf(a, "SONDE_INPUT_SIZE=%lld", (long long)job->size);
        list[n++] = arena_printf(a, "SONDE_SEED=%llu", (unsigned long long)job->seed);
        list[n++] = arena_printf(a, "SONDE_ITERATION=%d", job->iteration);
        return list;
}
