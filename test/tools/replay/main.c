/*
 * Replays recorded runs: replay --table FILE... prints how good the ETA was; replay --trace
 * [HISTORY...] FILE prints it at every event of the last one.
 */
#include <stdio.h>

#include "replay/replay.h"

static void print(void *arg, const char *text)
{
        fprintf(arg, "%s\n", text);
}

static int print_table(const char *const *paths, size_t n, struct err *err)
{
        _cleanup_(replay_table_done) struct replay_table table = {.rows = {.n = 0}};

        if (replay_all(paths, n, &table, err) < 0)
                return -1;
        replay_print(&table, print, stdout);
        return 0;
}

static void print_event(const struct replay_run *run, const struct replay_event *e, const struct progress *p)
{
        double now = (double)(e->at - run->begin) / 1e6, end = (double)(run->end - run->begin) / 1e6;

        printf("%8.1f s %5.1f %%  %-22s %3lld/%-3lld  %5.1f %%  left %8.1f", now, 100 * now / end,
               e->status.phase, (long long)e->status.current_step, (long long)e->status.total_steps,
               p->percent, end - now);
        if (p->eta.known)
                printf("  %8.1f %8.1f %8.1f  %s%s", (double)(p->eta.low - e->at) / 1e6,
                       (double)(p->eta.mid - e->at) / 1e6, (double)(p->eta.high - e->at) / 1e6, p->eta.basis,
                       p->eta.low <= run->end && run->end <= p->eta.high ? "" : "  MISSED");
        putchar('\n');
}

/* The last of PATHS; those before it are its history. */
static int print_trace(const char *const *paths, size_t n, struct err *err)
{
        _cleanup_(replay_done) struct replay_run run = {.begin = 0};
        struct priors priors = {.n = 0};
        struct track track = {.n = 0};

        for (size_t i = 0; i + 1 < n; i++) {
                _cleanup_(replay_done) struct replay_run before = {.begin = 0};
                struct replay_result result;

                if (replay_load(paths[i], &before, err) < 0)
                        return -1;
                replay_measure(&before, NULL, &result);
                priors_add_track(&priors, &result.track);
        }
        if (replay_load(paths[n - 1], &run, err) < 0)
                return -1;
        vec_foreach (e, &run.events) {
                struct progress p;

                track_event(&track, &e->status, e->at);
                track_progress(&track, e->plan, &priors, e->at, &p);
                print_event(&run, e, &p);
        }
        return 0;
}

int main(int argc, char **argv)
{
        struct err err = ERR_INIT;
        int r;

        if (argc > 2 && streq(argv[1], "--table")) {
                r = print_table((const char *const *)argv + 2, (size_t)argc - 2, &err);
        } else if (argc > 2 && streq(argv[1], "--trace")) {
                r = print_trace((const char *const *)argv + 2, (size_t)argc - 2, &err);
        } else {
                fprintf(stderr, "usage: replay --table FILE... | --trace [HISTORY...] FILE\n");
                return 2;
        }
        if (r < 0)
                fprintf(stderr, "replay: %s\n", err.text);
        return r < 0;
}
