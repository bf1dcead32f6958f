#include "cli/people.h"
#include "cli/phases.h"

#include <math.h>

enum { VALUE_WIDTH = 100, TEXT_MAX = 64 << 10 };

static const struct usage usage = {
        "describe KIND/NAME [OPTION]...",
        "Tells the whole story of a run: what was asked for, where it is and how it came there, phase by "
        "phase, "
        "its\n"
        "conditions, pods and events, and what came out.\n\n"
        "Example:\n"
        "  sonde describe dgdr/llama-70b\n",
};

struct describe {
        struct people p;
        struct people_name which;
        struct people_run run;
        struct people_story story;
        struct screen screen;
};

/* ---- the head */

static void fact(struct describe *d, const char *word, enum tone tone, const char *text)
{
        if (text && *text)
                printf("  %-10s %s%s%s\n", word, screen_tone(&d->screen, tone), text_clean(&d->p.arena, text),
                       screen_plain(&d->screen));
}

static const char *ago(struct describe *d, usec_t when)
{
        struct arena *a = &d->p.arena;

        return when ? arena_printf(a, "%s, %s ago", show_clock(a, d->p.now, when),
                                   show_age(a, usec_sub(d->p.now, when)))
                    : NULL;
}

static const char *phase_of(struct describe *d)
{
        const struct summary *s = &d->run.summary;
        char *text = arena_strdup(&d->p.arena, s->deleting ? "Deleting" : s->phase);

        if (s->life == SUMMARY_RUNNING && s->phase_number > 0 && s->phase_number <= s->phases)
                text = arena_printf(&d->p.arena, "%s (%lld of %lld)", text, (long long)s->phase_number,
                                    (long long)s->phases);
        if (s->steps > 0)
                text = arena_join(&d->p.arena, text, ", step ", people_step(&d->p.arena, s));
        if (isfinite(s->percent))
                text = arena_printf(&d->p.arena, "%s, %s %%", text, show_percent(&d->p.arena, s->percent));
        return s->not_measured ? arena_join(&d->p.arena, text, " (simulated or replayed values)", "") : text;
}

static void print_head(struct describe *d)
{
        const struct summary *s = &d->run.summary;
        const struct json *run = json_at(json_at(d->run.object, "status"), "run");
        struct arena *a = &d->p.arena;

        printf("%s%s%s  %s in namespace %s\n", screen_tone(&d->screen, TONE_BOLD), d->run.label,
               screen_plain(&d->screen), d->run.kind->type->kind, s->ns);
        fact(d, "phase", people_tone(s), phase_of(d));
        if (!summary_over(s))
                fact(d, "now", TONE_PLAIN, s->message);
        fact(d, s->life == SUMMARY_SUCCEEDED ? "outcome" : "reason", TONE_PLAIN,
             s->sentence || s->queue ? people_reason(a, s) : s->reason);
        if (s->eta_mid || s->starts)
                fact(d, s->starts ? "begins" : "left", TONE_PLAIN, people_eta(&d->p, s));
        if (s->attempt)
                fact(d, "attempt", TONE_PLAIN,
                     arena_printf(a, "%llu, Job %s, %lld retried", (unsigned long long)s->attempt,
                                  json_str_or(run, "job", "-"), (long long)json_int(run, "retries", 0)));
        fact(d, "created", TONE_PLAIN, ago(d, s->created));
        fact(d, "started", TONE_PLAIN, ago(d, s->started));
        fact(d, "ended", TONE_PLAIN, ago(d, s->ended));
        if (s->started && s->ended > s->started)
                fact(d, "took", TONE_PLAIN, show_duration(a, s->ended - s->started));
}

/* ---- members of an object in short */

static void section(struct describe *d, const char *title)
{
        printf("\n%s%s%s\n", screen_tone(&d->screen, TONE_BOLD), title, screen_plain(&d->screen));
}

/* A string as it is, anything else as compact JSON, cut. */
static const char *value_of(struct arena *a, const struct json *value)
{
        const char *text = json_cstr(value) ? json_cstr(value) : json_print(a, value);

        return text_fit(a, text_clean(a, text), VALUE_WIDTH);
}

static bool is_in(const char *key, const char *const *names)
{
        for (size_t i = 0; names[i]; i++)
                if (streq(key, names[i]))
                        return true;
        return false;
}

/* The members of OBJECT but for those of LEFT_OUT, a line each; lists of objects by how many they have. */
static void print_members(struct describe *d, const char *title, const struct json *object,
                          const char *const *left_out)
{
        struct arena *a = &d->p.arena;
        bool begun = false;

        json_foreach (m, object) {
                if (is_in(m->key, left_out))
                        continue;
                if (!begun)
                        section(d, title);
                begun = true;
                if (json_is(m, JSON_ARRAY) && json_is(json_first(m), JSON_OBJECT) && json_len(m) > 3)
                        printf("  %s: %zu of them\n", text_clean(a, m->key), json_len(m));
                else
                        printf("  %s: %s\n", text_clean(a, m->key), value_of(a, m));
        }
}

/* ---- how it came there */

static void print_phases(struct describe *d)
{
        struct phases phases = {.kind = d->run.kind,
                                .object = d->run.object,
                                .label = d->run.label,
                                .status_map = d->story.status_map,
                                .now = d->p.now,
                                .screen = d->screen};
        _cleanup_(buf_done) struct buf text = BUF_INIT(TEXT_MAX);

        if (!phases.screen.width)
                phases.screen.width = VALUE_WIDTH;
        phases_draw_tree(&phases, &d->p.arena, &text);
        if (!text.n)
                return;
        section(d, "Phases");
        fwrite(text.p, 1, text.n, stdout);
}

static usec_t time_at(const struct json *object, const char *member)
{
        struct str text = json_text(json_at(object, member));
        usec_t when;

        return text.p && time_parse(text, &when) ? when : 0;
}

static void print_conditions(struct describe *d)
{
        static const struct table_column columns[] = {
                {"  TYPE"}, {"STATUS"}, {"SINCE", .right = true}, {"REASON"}, {"MESSAGE"}};
        const struct json *conditions = json_at(json_at(d->run.object, "status"), "conditions");
        _cleanup_(table_done) struct table t;
        struct arena *a = &d->p.arena;

        if (!json_len(conditions))
                return;
        section(d, "Conditions");
        table_init(&t, a, columns, ARRAY_LEN(columns));
        json_foreach (c, conditions) {
                usec_t since = time_at(c, "lastTransitionTime");

                table_add(&t, TONE_PLAIN, arena_join(a, "  ", json_str_or(c, "type", ""), ""));
                table_add(&t, TONE_PLAIN, json_str_or(c, "status", ""));
                table_add(&t, TONE_PLAIN, since ? show_age(a, usec_sub(d->p.now, since)) : "-");
                table_add(&t, TONE_PLAIN, json_str_or(c, "reason", ""));
                table_add(&t, TONE_PLAIN, json_str_or(c, "message", ""));
        }
        table_print(&t, &d->screen, true);
}

static void print_pods(struct describe *d)
{
        static const struct table_column columns[] = {
                {"  POD"}, {"PHASE"}, {"NODE"}, {"AGE", .right = true}, {"WHY"}};
        _cleanup_(table_done) struct table t;
        struct arena *a = &d->p.arena;

        if (!d->story.n_pods)
                return;
        section(d, "Pods");
        table_init(&t, a, columns, ARRAY_LEN(columns));
        for (size_t i = 0; i < d->story.n_pods; i++) {
                const struct people_pod *pod = &d->story.pods[i];

                table_add(&t, TONE_PLAIN, arena_join(a, "  ", pod->name, ""));
                table_add(&t, TONE_PLAIN, pod->phase);
                table_add(&t, TONE_PLAIN, *pod->node ? pod->node : "-");
                table_add(&t, TONE_PLAIN, show_age(a, usec_sub(d->p.now, pod->created)));
                table_add(&t, TONE_PLAIN, pod->why);
        }
        table_print(&t, &d->screen, true);
}

static void print_events(struct describe *d)
{
        static const struct table_column columns[] = {
                {"  AGE", .right = true}, {"TYPE"}, {"REASON"}, {"ABOUT"}, {"MESSAGE"}};
        _cleanup_(table_done) struct table t;
        struct arena *a = &d->p.arena;

        section(d, "Events");
        if (!d->story.n_events) {
                printf("  none are kept\n");
                return;
        }
        table_init(&t, a, columns, ARRAY_LEN(columns));
        for (size_t i = 0; i < d->story.n_events; i++) {
                const struct people_event *e = &d->story.events[i];
                const char *age = show_age(a, usec_sub(d->p.now, e->when));

                table_add(&t, TONE_PLAIN,
                          e->count > 1 ? arena_printf(a, "  %s (x%lld)", age, (long long)e->count)
                                       : arena_join(a, "  ", age, ""));
                table_add(&t, e->warning ? TONE_WARN : TONE_PLAIN, e->warning ? "Warning" : "Normal");
                table_add(&t, TONE_PLAIN, e->reason);
                table_add(&t, TONE_PLAIN, e->about);
                table_add(&t, TONE_PLAIN, e->message);
        }
        table_print(&t, &d->screen, true);
}

/* ---- all */

static int run(struct describe *d)
{
        static const char *const nothing[] = {NULL};
        /* What is told above, each in its own way. */
        static const char *const told[] = {
                "conditions", "progress",  "profilingProgress", "run", "queue", "observedGeneration", "phase",
                "state",      "startTime", "completionTime",    NULL};

        if (people_find(&d->p, people_cluster(&d->p), &d->which, &d->run) < 0 ||
            people_story(&d->p, &d->run, &d->story) < 0)
                return 1;
        d->screen = screen_of(stdout);
        print_head(d);
        print_members(d, "Labels", json_at(json_at(d->run.object, "metadata"), "labels"), nothing);
        print_members(d, "Spec", json_at(d->run.object, "spec"), nothing);
        print_phases(d);
        print_conditions(d);
        print_pods(d);
        print_events(d);
        print_members(d, "Results", json_at(d->run.object, "status"), told);
        if (d->run.summary.life == SUMMARY_SUCCEEDED)
                printf("\nin full: %s results %s\n", cli_name(), d->run.label);
        return people_finish(0);
}

int cmd_describe(int argc, char **argv)
{
        struct describe d = {.p = PEOPLE_INIT};
        const struct option_def options[] = {PEOPLE_CLUSTER_OPTIONS(&d.p), {0}};
        int code = options_parse(options, &usage, &argc, argv);

        if (code < 0 && people_read_name(argc, argv, &d.which) < 0)
                code = EXIT_USAGE;
        if (code < 0)
                code = people_open(&d.p, PEOPLE_ONE) < 0 ? 1 : run(&d);
        people_done(&d.p);
        return code;
}
