#include "cli/people.h"

#include <math.h>

static const struct usage usage = {
        "explain KIND/NAME [OPTION]...",
        "Says why a run waits, does not move or has failed: the cause, what shows it, what to do about it, "
        "and "
        "what\n"
        "then. Of one that is all right it says that.\n\n"
        "Example:\n"
        "  sonde explain cuda/vectoradd\n",
};

/* What is told, in this order; NULL: not told. */
struct telling {
        const char *head, *cause, *fix, *then;
        VEC(const char *) evidence;
};

struct explain {
        struct people p;
        struct people_name which;
        struct people_run run;
        struct people_story story;
        struct telling answer;
};

/*
 * What helps against a reason where its sentence does not say it. The sentences of all others end with what to do, after their
 * last semicolon; of those marked WHOLE the semicolons are between several causes.
 */
static const struct remedy {
        const char *reason;
        bool whole;
        const char *fix;
} remedies[] = {
        {"Queued", true,
         "it begins by itself when its turn comes; a higher spec.priority (0 to 10) is sooner"},
        {"Retrying", false, "nothing: another attempt follows by itself"},
        {"Resumed", true, "nothing: it goes on by itself"},
        {"Edited", true, "nothing: it begins anew by itself, with the changed spec"},
        {"NextPod", true, "nothing: the next pod follows by itself"},
        {"PodNotCreated", false, "look at what keeps the Job from making its pod: its events tell"},
        {"ContainerWaiting", false, "it begins by itself when its container can start"},
        {"Unschedulable", false, "free what it asks for, or ask for less"},
        {"ImagePullFailed", false, "check the image's name and that the nodes may pull it"},
        {"ContainerConfigError", false, "create what the pod refers to: its ConfigMaps, Secrets, volumes"},
        {"WorkloadFailed", false, "see what it wrote last"},
        {"ExitCode", false, "see what it wrote last, and run its command by hand"},
        {"Signal", false, "see what it wrote last; a crash of its own leaves a core where those are kept"},
        {"OutOfMemory", false, "raise resources.limits.memory or have it use less"},
        {"DeadlineExceeded", false, "allow more time by spec.timeout, or have it do less"},
        {"Evicted", false, "run it again when the node can bear it"},
        {"NodeLost", false, "run it again, on another node"},
        {"Interrupted", false, "run it again"},
        {"JobDeleted", false, "run it again, and leave its Job alone"},
        {"JobFailed", false, "run it again"},
        {"PodFailed", false, "see the pod's events"},
        {"Cancelled", false, "nothing: that is what was asked for"},
        {"Suspended", false, "let it go on when you want it to"},
        {"Invalid", true, "correct the spec"},
        {"ValidationFailed", true, "correct the spec"},
        {"ProfilingForbidden", true,
         "use a namespace that allows what profiling needs, or set "
         "spec.profiling.permission to none"},
        {"ProfilerPermission", false,
         "set spec.profiling.permission: sysAdmin, or load the driver with "
         "NVreg_RestrictProfilingToAdminUsers=0"},
        {"NameConflict", false, "delete or rename the object of that name, which is not the run's"},
        {"KindNotInstalled", false, "install the kind it needs in the cluster"},
        {"KindOutdated", false, "install the present definitions: sonde manifests | kubectl apply -f -"},
        {"Forbidden", false, "grant the operator's account what it lacks"},
        {"HistoryUnavailable", false, "see that the operator reaches its history (--history)"},
        {"HistoryRefused", false, "see why the history's database refuses the row; the run itself is done"},
        {"ResultMissing", false, "see what the workload wrote, and why it left no result"},
        {"ProfileSummaryMissing", true, "see what the profiler wrote, and why it left no summary"},
        {"InvalidProfileSummary", true, "see what wrote the summary"},
        {"GenerationFailed", false, "see what the profiler wrote"},
        {"DeploymentRejected", true, "correct what the cluster refuses in status.generatedDeployment"},
        {"NotMoving", false,
         "see what it does now; if it hangs, suspend and resume it: what was measured is kept"},
};

static const struct remedy *remedy_of(const char *reason)
{
        for (size_t i = 0; reason && i < ARRAY_LEN(remedies); i++)
                if (streq(remedies[i].reason, reason))
                        return &remedies[i];
        return NULL;
}

/* ---- cause, evidence, fix */

/* The sentence up to its last semicolon is the cause, what follows what to do about it. */
static void split(struct explain *x, const char *reason, const char *sentence)
{
        const struct remedy *remedy = remedy_of(reason);
        const char *last = NULL;

        for (const char *at = sentence; (at = strstr(at, "; ")); at += 2)
                last = at;
        x->answer.cause = sentence;
        if (last && !(remedy && remedy->whole)) {
                x->answer.cause = arena_strndup(&x->p.arena, sentence, (size_t)(last - sentence));
                x->answer.fix = last + 2;
        } else if (remedy) {
                x->answer.fix = remedy->fix;
        }
}

static void add_evidence(struct explain *x, const char *text)
{
        *vec_push(&x->answer.evidence) = text;
}

/* What is in the cause already is no evidence for it. */
static bool is_told(const struct explain *x, const char *text)
{
        return x->answer.cause && *text && strstr(x->answer.cause, text);
}

static void add_pods(struct explain *x)
{
        struct arena *a = &x->p.arena;
        const struct people_pod *last = x->story.n_pods ? &x->story.pods[x->story.n_pods - 1] : NULL;
        const char *said = last && last->why ? strstr(last->why, ": ") : NULL;

        if (last && last->why && !(said && is_told(x, said + 2)))
                add_evidence(x, arena_printf(a, "pod %s%s%s: %s", last->name, *last->node ? " on " : "",
                                             last->node, last->why));
        else if (last)
                add_evidence(x, arena_printf(a, "pod %s is %s%s%s", last->name, last->phase,
                                             *last->node ? " on " : "", last->node));
}

/* The latest that warn, newest first: each reason once. */
static void add_warnings(struct explain *x)
{
        enum { WARNINGS_MAX = 3 };
        const char *seen[WARNINGS_MAX];
        size_t n = 0;

        for (size_t i = x->story.n_events; i-- > 0 && n < WARNINGS_MAX;) {
                const struct people_event *e = &x->story.events[i];
                bool again = !e->warning || is_told(x, e->message);

                for (size_t k = 0; k < n; k++)
                        again = again || streq(seen[k], e->reason);
                if (again)
                        continue;
                seen[n++] = e->reason;
                add_evidence(x, arena_printf(&x->p.arena, "event %s of %s, %s ago: %s", e->reason, e->about,
                                             show_age(&x->p.arena, usec_sub(x->p.now, e->when)), e->message));
        }
}

/* ---- the headline, by how it stands */

static const char *since(struct explain *x, usec_t when)
{
        return when ? show_age(&x->p.arena, usec_sub(x->p.now, when)) : NULL;
}

/* " in DecodeSweep (3 of 7)"; "": it is in none. */
static const char *place(struct explain *x)
{
        const struct summary *s = &x->run.summary;
        const char *doing = s->doing && !streq(s->doing, "Failed") ? s->doing : NULL;
        const char *failed = json_str(json_at(json_at(x->run.object, "status"), "profilingProgress"),
                                      "failedPhase");

        if (!doing)
                doing = failed;
        if (!doing)
                return "";
        if (s->phases > 0 && s->phase_number > 0 && s->phase_number <= s->phases)
                return arena_printf(&x->p.arena, " in %s (%lld of %lld)", doing, (long long)s->phase_number,
                                    (long long)s->phases);
        return arena_printf(&x->p.arena, " in %s", doing);
}

static void explain_failed(struct explain *x)
{
        const struct summary *s = &x->run.summary;
        const char *ago = since(x, s->ended), *label = x->run.label;
        bool ran = json_at(json_at(x->run.object, "status"), "run") != NULL;
        struct arena *a = &x->p.arena;

        x->answer.head = arena_printf(a, "%s failed%s%s%s%s.", label, place(x), ago ? ", " : "",
                                      ago ? ago : "", ago ? " ago" : "");
        split(x, s->reason,
              s->sentence ? s->sentence
              : s->reason ? s->reason
                          : "its status does not say why");
        add_pods(x);
        add_warnings(x);
        if (ran)
                x->answer.then = arena_printf(a, "%s rerun %s", cli_name(), label);
        else
                x->answer.then = arena_printf(
                        a, "%s apply -f FILE: nothing of it has run, so a changed spec is taken", cli_name());
}

static void explain_cancelled(struct explain *x)
{
        const struct summary *s = &x->run.summary;
        const char *ago = since(x, s->ended);

        x->answer.head = arena_printf(&x->p.arena, "%s was cancelled%s%s%s.", x->run.label, ago ? ", " : "",
                                      ago ? ago : "", ago ? " ago" : "");
        split(x, "Cancelled", s->sentence ? s->sentence : "spec.cancel is true");
        x->answer.fix = "nothing: that is what was asked for";
        x->answer.then = arena_printf(&x->p.arena, "%s rerun %s", cli_name(), x->run.label);
}

/* Nobody has said anything about it yet. */
static void explain_unseen(struct explain *x)
{
        const char *ago = since(x, x->run.summary.created);

        x->answer.head = arena_printf(&x->p.arena, "%s was created %s ago, and nobody has taken it up yet.",
                                      x->run.label, ago ? ago : "some time");
        x->answer.cause = "no operator has written its status";
        add_warnings(x);
        x->answer.fix = arena_printf(&x->p.arena,
                                     "see that the operator runs ('%s operator', or 'sonde up' on one "
                                     "machine) and looks at this namespace",
                                     cli_name());
}

static void explain_pending(struct explain *x)
{
        const struct summary *s = &x->run.summary;
        const char *ago = since(x, s->created);
        struct arena *a = &x->p.arena;

        if (!json_first(json_at(x->run.object, "status"))) {
                explain_unseen(x);
                return;
        }
        people_places(&x->p, &x->run, 1);
        if (s->queue)
                x->answer.head = arena_printf(
                        a, "%s waits at position %s of the queue, %s after it was created%s%s.", x->run.label,
                        s->queue, ago ? ago : "some time", s->starts ? "; it " : "",
                        s->starts ? show_start(a, x->p.now, s->starts) : "");
        else
                x->answer.head = arena_printf(a, "%s has not begun, %s after it was created.", x->run.label,
                                              ago ? ago : "some time");
        split(x, s->reason, s->sentence ? s->sentence : "its pod is being made");
        if (s->retried)
                add_evidence(x, "the operator tries again by itself");
        add_pods(x);
        add_warnings(x);
        if (!x->answer.fix)
                x->answer.fix = "nothing yet: it begins by itself";
        x->answer.then = arena_printf(a, "%s wait %s --for running", cli_name(), x->run.label);
}

static void explain_running(struct explain *x)
{
        const struct summary *s = &x->run.summary;
        struct arena *a = &x->p.arena;
        const char *eta = people_eta(&x->p, s), *at = place(x);
        const char *far = isfinite(s->percent) ? arena_printf(a, ", %s %%", show_percent(a, s->percent)) : "";

        if (s->stuck)
                x->answer.head = arena_printf(a, "%s does not move%s%s.", x->run.label, at, far);
        else
                x->answer.head = arena_printf(a, "%s runs%s%s%s%s.", x->run.label, at, far,
                                              streq(eta, "-") ? "" : "; left: ", streq(eta, "-") ? "" : eta);
        if (s->stuck || s->retried) {
                split(x, s->reason, s->sentence ? s->sentence : "it has not reported anything for long");
                add_pods(x);
                add_warnings(x);
                x->answer.then = arena_printf(a, "%s logs --tail 20 %s", cli_name(), x->run.label);
                return;
        }
        if (s->message)
                add_evidence(x, s->message);
        add_pods(x);
        x->answer.fix = "nothing: it is all right";
        x->answer.then = arena_printf(a, "%s watch %s", cli_name(), x->run.label);
}

static void explain_suspended(struct explain *x)
{
        const struct summary *s = &x->run.summary;

        x->answer.head = arena_printf(&x->p.arena, "%s is suspended%s.", x->run.label, place(x));
        split(x, "Suspended", s->sentence ? s->sentence : "spec.suspend is true");
        x->answer.then = arena_printf(&x->p.arena, "%s resume %s", cli_name(), x->run.label);
}

static void explain_scheduled(struct explain *x)
{
        const struct json *spec = json_at(x->run.object, "spec"), *schedule = json_at(spec, "schedule");
        bool suspended = json_bool(spec, "suspend", false) || json_bool(schedule, "suspend", false);
        struct arena *a = &x->p.arena;

        x->answer.head = arena_printf(a, "%s is a schedule (%s %s)%s.", x->run.label,
                                      json_str_or(schedule, "cron", "?"),
                                      json_str_or(schedule, "timeZone", "UTC"),
                                      suspended ? ", suspended: it begins nothing" : ", and all right");
        if (x->run.summary.sentence)
                x->answer.cause = x->run.summary.sentence;
        add_warnings(x);
        x->answer.then = suspended
                                 ? arena_printf(a, "%s resume %s", cli_name(), x->run.label)
                                 : arena_printf(a, "%s rerun %s runs it once now", cli_name(), x->run.label);
}

static void explain_succeeded(struct explain *x)
{
        const struct summary *s = &x->run.summary;
        const char *ago = since(x, s->ended);
        struct arena *a = &x->p.arena;

        if (x->run.kind->result)
                x->answer.head = arena_printf(a, "%s is a result: nothing runs for it.", x->run.label);
        else
                x->answer.head = arena_printf(
                        a, "%s succeeded%s%s%s%s%s.", x->run.label, ago ? ", " : "", ago ? ago : "",
                        ago ? " ago" : "", s->started && s->ended > s->started ? ", after " : "",
                        s->started && s->ended > s->started ? show_duration(a, s->ended - s->started) : "");
        if (s->sentence)
                add_evidence(x, s->sentence);
        x->answer.then = arena_printf(a, "%s results %s", cli_name(), x->run.label);
}

/* ---- telling it */

static void print_one(const struct screen *s, struct arena *a, const char *word, enum tone tone,
                      const char *text)
{
        if (text && *text)
                fprintf(s->to, "  %-9s %s%s%s\n", word, screen_tone(s, tone), text_clean(a, text),
                        screen_plain(s));
}

static void print_answer(struct explain *x)
{
        struct screen s = screen_of(stdout);
        struct arena *a = &x->p.arena;

        printf("%s%s%s\n", screen_tone(&s, people_tone(&x->run.summary)), text_clean(a, x->answer.head),
               screen_plain(&s));
        print_one(&s, a, "cause", TONE_PLAIN, x->answer.cause);
        for (size_t i = 0; i < x->answer.evidence.n; i++)
                print_one(&s, a, i ? "" : "evidence", TONE_PLAIN, x->answer.evidence.v[i]);
        print_one(&s, a, "fix", TONE_BOLD, x->answer.fix);
        print_one(&s, a, "then", TONE_PLAIN, x->answer.then);
}

static int run(struct explain *x)
{
        static void (*const by_life[])(struct explain * x) = {
                [SUMMARY_PENDING] = explain_pending,     [SUMMARY_RUNNING] = explain_running,
                [SUMMARY_SUSPENDED] = explain_suspended, [SUMMARY_SCHEDULED] = explain_scheduled,
                [SUMMARY_SUCCEEDED] = explain_succeeded, [SUMMARY_FAILED] = explain_failed,
                [SUMMARY_CANCELLED] = explain_cancelled,
        };

        if (people_find(&x->p, people_cluster(&x->p), &x->which, &x->run) < 0 ||
            people_story(&x->p, &x->run, &x->story) < 0)
                return 1;
        by_life[x->run.summary.life](x);
        if (x->run.summary.deleting)
                add_evidence(x, "it is being deleted");
        print_answer(x);
        return people_finish(0);
}

int cmd_explain(int argc, char **argv)
{
        struct explain x = {.p = PEOPLE_INIT};
        const struct option_def options[] = {PEOPLE_CLUSTER_OPTIONS(&x.p), {0}};
        int code = options_parse(options, &usage, &argc, argv);

        if (code < 0 && people_read_name(argc, argv, &x.which) < 0)
                code = EXIT_USAGE;
        if (code < 0)
                code = people_open(&x.p, PEOPLE_ONE) < 0 ? 1 : run(&x);
        vec_done(&x.answer.evidence);
        people_done(&x.p);
        return code;
}
