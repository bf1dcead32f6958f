#include "cli/people.h"
#include "cli/trouble.h"

enum { EXIT_TIMED_OUT = 124 /* as timeout(1) has it */, LINE_MAX_TEXT = 600 };

static const struct usage usage = {
        "wait KIND/NAME... [OPTION]...",
        "Waits for the end of runs, by a watch, and tells meanwhile what changes. Exit status: 0 when all "
        "have "
        "succeeded;\n"
        "1 when one has failed, was cancelled or deleted; 124 when --timeout has passed.\n\n"
        "  --for ended             the default\n"
        "  --for running           begun, however it goes on\n"
        "  --for suspended\n"
        "  --for deleted\n"
        "  --for condition=TYPE    a condition that is True; condition=TYPE=STATUS: another status\n\n"
        "Examples:\n"
        "  sonde wait dgdr/llama-70b --timeout 4h && sonde results dgdr/llama-70b\n"
        "  sonde wait ac/sorts ap/matmul -q\n"
        "  sonde wait dgdr/llama-70b --for condition=DeploymentReady\n",
};

enum verdict { NOT_YET, MET, NEVER };

struct wait;

/* One of those that are waited for. */
struct waited {
        struct wait *all;
        struct people_run run;
        struct cache *cache;
        struct reflector *reflector;
        char *told; /* the last line, without the expected end */
        bool over;
};

struct wait {
        struct people p;
        struct people_names names;
        const char *goal;
        usec_t timeout;
        bool quiet;
        VEC(struct waited *) list;
        struct timer deadline;
        struct trouble trouble;
        size_t open;
        int code;
};

/* ---- what is waited for */

static enum verdict is_ended(const struct summary *s)
{
        return !summary_over(s) ? NOT_YET : s->life == SUMMARY_SUCCEEDED ? MET : NEVER;
}

static enum verdict is_running(const struct summary *s)
{
        return s->life == SUMMARY_RUNNING ? MET : is_ended(s);
}

static enum verdict is_suspended(const struct summary *s)
{
        return s->life == SUMMARY_SUSPENDED ? MET : summary_over(s) ? NEVER : NOT_YET;
}

static enum verdict is_deleted(const struct summary *s)
{
        return NOT_YET;
}

static const struct {
        const char *name;
        enum verdict (*judge)(const struct summary *s);
} goals[] = {
        {"ended", is_ended},
        {"running", is_running},
        {"suspended", is_suspended},
        {"deleted", is_deleted},
};

/* TYPE or TYPE=STATUS of "condition=..."; false: GOAL is none of these. */
static bool condition_of(struct arena *a, const char *goal, const char **ret_type, const char **ret_status)
{
        struct str rest = str_of(goal), word = str_split(&rest, '='), type = str_split(&rest, '=');

        if (!str_eq(word, STR("condition")) || !type.n)
                return false;
        *ret_type = arena_strndup(a, type.p, type.n);
        *ret_status = rest.n ? arena_strndup(a, rest.p, rest.n) : "True";
        return true;
}

static enum verdict judge(struct wait *w, const struct json *object, const struct summary *s, struct arena *a)
{
        const char *type, *status;
        const struct json *c;

        for (size_t i = 0; i < ARRAY_LEN(goals); i++)
                if (streq(w->goal, goals[i].name))
                        return goals[i].judge(s);
        if (!condition_of(a, w->goal, &type, &status))
                return NEVER;
        c = summary_condition(object, type, NULL);
        if (c && str_case_eq(str_of(json_str_or(c, "status", "")), str_of(status)))
                return MET;
        return summary_over(s) && s->life != SUMMARY_SUCCEEDED ? NEVER : NOT_YET;
}

static bool check_goal(const char *goal)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        const char *type, *status;

        for (size_t i = 0; i < ARRAY_LEN(goals); i++)
                if (streq(goal, goals[i].name))
                        return true;
        if (condition_of(&a, goal, &type, &status))
                return true;
        cli_error("--for: '%s' is nothing to wait for; ended, running, suspended, deleted or condition=TYPE "
                  "is wanted",
                  goal);
        return false;
}

/* ---- what happens */

static void end(struct waited *o, bool well)
{
        struct wait *w = o->all;

        o->over = true;
        if (!well)
                w->code = 1;
        fflush(stdout);
        if (--w->open > 0)
                return;
        timer_cancel(&w->deadline); /* it may be due in this very turn */
        loop_stop(w->p.loop, w->code);
}

static void tell(struct waited *o, const struct summary *s)
{
        _cleanup_(buf_done) struct buf line = BUF_INIT(LINE_MAX_TEXT);
        _cleanup_(arena_done) struct arena a = ARENA_INIT;

        people_line(&line, o->run.label, s);
        if (o->all->quiet || !buf_cstr(&line) || streq(buf_cstr(&line), o->told))
                return;
        free(o->told);
        o->told = xstrdup(buf_cstr(&line));
        people_line_eta(&line, s);
        if (buf_cstr(&line))
                printf("%s\n", text_clean(&a, buf_cstr(&line)));
        fflush(stdout);
}

/* What is waited for has come, or will not. */
static void tell_end(struct waited *o, enum verdict verdict, const struct summary *s, struct arena *a)
{
        const char *why = text_clean(a, people_reason(a, s));

        if (verdict == NEVER)
                cli_error("%s %s%s%s", o->run.label, summary_life_name(s->life), *why ? ": " : "", why);
        else if (summary_over(s))
                printf("%s %s%s%s\n", o->run.label, summary_life_name(s->life), *why ? ": " : "", why);
        else
                printf("%s is %s\n", o->run.label,
                       streq(o->all->goal, "running") || streq(o->all->goal, "suspended") ? o->all->goal
                                                                                          : "as asked for");
        end(o, verdict == MET);
}

static void look_at(struct waited *o, const struct json *object)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct summary s;
        enum verdict verdict;

        summarize(o->run.kind, object, &a, &s);
        tell(o, &s);
        verdict = judge(o->all, object, &s, &a);
        if (verdict != NOT_YET)
                tell_end(o, verdict, &s, &a);
}

static void gone(struct waited *o)
{
        bool wanted = streq(o->all->goal, "deleted");

        if (wanted)
                printf("%s is deleted\n", o->run.label);
        else
                cli_error("%s was deleted", o->run.label);
        end(o, wanted);
}

static void on_change(void *arg, enum cache_change change, const struct cache_entry *before,
                      const struct cache_entry *after, bool initial)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct waited *o = arg;

        if (o->over)
                return;
        /* Another one of that name is not the one that is waited for. */
        if (after && streq(after->uid, o->run.summary.uid))
                look_at(o, cache_parse(o->cache, after, &a));
        else if (!after || before)
                gone(o);
}

static void on_synced(void *arg, bool first)
{
        struct waited *o = arg;

        if (!o->over && !cache_get_uid(o->cache, o->run.summary.uid))
                gone(o);
}

static void on_deadline(struct timer *t)
{
        struct wait *w = CONTAINER_OF(t, struct wait, deadline);

        for (size_t i = 0; i < w->list.n; i++) {
                struct waited *o = w->list.v[i];

                if (!o->over)
                        cli_error("%s: not %s within %s; it goes on", o->run.label, w->goal,
                                  show_duration(&w->p.arena, w->timeout));
        }
        loop_stop(w->p.loop, EXIT_TIMED_OUT);
}

static void on_hopeless(void *arg)
{
        struct wait *w = arg;

        loop_stop(w->p.loop, 1);
}

/* ---- all */

static void watch(struct waited *o)
{
        struct arena *a = &o->all->p.arena;
        struct reflector_config rc = {
                .kube = o->run.cluster->kube,
                .ns = o->run.summary.ns,
                .field_selector = arena_printf(a, "metadata.name=%s", o->run.summary.name),
                .on_synced = on_synced,
                .arg = o,
        };

        rc.cache = o->cache = cache_new(&(struct cache_config){.type = o->run.kind->type});
        cache_listen(o->cache, on_change, o);
        o->reflector = reflector_new(&rc);
        trouble_watch(&o->all->trouble, o->run.cluster, o->reflector);
}

static int run(struct wait *w)
{
        for (size_t i = 0; i < w->names.n; i++) {
                struct waited *o = *vec_push(&w->list) = xcalloc(1, sizeof(*o));

                o->all = w;
                if (people_find(&w->p, people_cluster(&w->p), &w->names.v[i], &o->run) < 0)
                        return 1;
        }
        w->open = w->list.n;
        timer_init(&w->deadline, w->p.loop, on_deadline);
        if (w->timeout)
                timer_after(&w->deadline, w->timeout);
        trouble_begin(&w->trouble, w->p.loop);
        for (size_t i = 0; i < w->list.n; i++)
                watch(w->list.v[i]);
        return people_finish(loop_run(w->p.loop));
}

static void done(struct wait *w)
{
        if (w->p.loop && w->deadline.loop)
                timer_cancel(&w->deadline);
        trouble_done(&w->trouble);
        for (size_t i = 0; i < w->list.n; i++) {
                reflector_free(w->list.v[i]->reflector);
                cache_free(w->list.v[i]->cache);
                free(w->list.v[i]->told);
                free(w->list.v[i]);
        }
        vec_done(&w->list);
        vec_done(&w->names);
        people_done(&w->p);
}

int cmd_wait(int argc, char **argv)
{
        struct wait w = {.p = PEOPLE_INIT, .goal = "ended"};
        const struct option_def options[] = {
                {"for", 0, "WHAT", "what is waited for (default: ended)", OPT_STR, &w.goal},
                {"timeout", 0, "TIME", "give up after so long, with exit status 124 (default: never)",
                 OPT_DURATION, &w.timeout},
                {"quiet", 'q', NULL, "tell the end alone", OPT_FLAG, &w.quiet},
                PEOPLE_CLUSTER_OPTIONS(&w.p),
                {0},
        };
        int code = options_parse(options, &usage, &argc, argv);

        w.trouble = (struct trouble){.on_hopeless = on_hopeless, .arg = &w};
        if (code < 0 && (!check_goal(w.goal) || people_read_names(argc, argv, true, &w.names) < 0))
                code = EXIT_USAGE;
        if (code < 0)
                code = people_open(&w.p, PEOPLE_ONE) < 0 ? 1 : run(&w);
        done(&w);
        return code;
}
