/*
 * people.h - what the commands for people share: their options, the clusters they talk to, how a run is named and had.
 *
 *     struct people p = PEOPLE_INIT;
 *     const struct option_def options[] = {PEOPLE_SELECT_OPTIONS(&p), PEOPLE_CLUSTER_OPTIONS(&p), {0}};
 *     code = options_parse(options, &usage, &argc, argv);
 *     if (code < 0)
 *             code = people_open(&p, PEOPLE_ONE) < 0 ? 1 : ...;
 *     people_done(&p);
 *
 * A run is named KIND/NAME, KIND NAME or NAME. A name alone is looked for among all kinds; if several have it, it is refused
 * with the candidates. Kinds are named as kinds_named() has it. Functions that fail have said on standard error what was wrong,
 * except where they take a struct err.
 *
 *   ask.h        one request to the API
 *   show.h       text for people: colours, times, tables
 *   people.c     options and clusters
 *   people_find.c   runs: one by its name, all of them, changing one
 *   people_story.c  what is around a run: pods, events, how it came to where it is
 */
#pragma once

#include "cli/ask.h"
#include "cli/cli.h"
#include "cli/show.h"
#include "kinds/kinds.h"
#include "kube/kube.h"
#include "run/run.h"

/* One of those that --context names. */
struct people_cluster {
        const char *name; /* of its context, or where it was found */
        struct kube_config config;
        struct kube *kube;
        const char *ns; /* what is looked at: --namespace or the context's; NULL: all namespaces */
};

struct people {
        const char *ns, *selector, *output, *kubeconfig, *contexts;
        bool all_namespaces;
        usec_t request_timeout;

        struct arena arena; /* holds all that is found */
        struct loop *loop;
        VEC(struct people_cluster *) clusters;
        usec_t now; /* wall time when it was opened: ages of one table have one now */
};

#define PEOPLE_INIT                                                        \
        {                                                                  \
                .request_timeout = 30 * USEC_PER_SEC, .arena = ARENA_INIT, \
        }

/* Rows for a table of options: every command has those of a cluster, some show several clusters at once. */
#define PEOPLE_CLUSTER_OPTIONS(p) \
        PEOPLE_OPTIONS_(p, "NAME", "context of the kubeconfig (default: its current one)")
#define PEOPLE_CLUSTERS_OPTIONS(p) \
        PEOPLE_OPTIONS_(p, "A,B...", "contexts of the kubeconfig (default: its current one)")
/* clang-format off */
#define PEOPLE_OPTIONS_(p, context, context_help)                                                            \
        {"namespace", 'n', "NS", "namespace (default: the context's)", OPT_STR, &(p)->ns},                   \
        {"kubeconfig", 0, "FILE",                                                                            \
         "kubeconfig to use (default: $KUBECONFIG, the pod's account, ~/.kube, ~/.sonde)", OPT_STR,          \
         &(p)->kubeconfig},                                                                                  \
        {"context", 0, context, context_help, OPT_STR, &(p)->contexts},                                      \
        {"request-timeout", 0, "TIME", "longest wait for one answer (default: 30s)", OPT_DURATION,           \
         &(p)->request_timeout}
#define PEOPLE_SELECT_OPTIONS(p)                                                                             \
        {"all-namespaces", 'A', NULL, "of all namespaces", OPT_FLAG, &(p)->all_namespaces},                  \
        {"selector", 'l', "LABELS", "with these labels: team=a,tier!=test", OPT_STR, &(p)->selector}
#define PEOPLE_OUTPUT_OPTION(p, formats) {"output", 'o', "FORMAT", formats, OPT_STR, &(p)->output}
/* clang-format on */

enum people_how { PEOPLE_ONE /* context alone */, PEOPLE_SEVERAL };

/* Reads the kubeconfig and makes clients; nothing is sent yet. */
int people_open(struct people *p, enum people_how how) _must_check_;
void people_done(struct people *p);
/* The only cluster of PEOPLE_ONE. */
struct people_cluster *people_cluster(struct people *p);
/* What went wrong with a request to C, as one sentence with what to do, on standard error; "WHAT: " in front, NULL: none. */
void people_complain(const struct people_cluster *c, const char *what, const struct err *err);
/* "connection refused" of "cannot connect to 10.0.0.1 port 6443: Connection refused", to stand behind an address. */
const char *people_why(struct arena *a, const struct err *err);
/* Whether FORMAT is one of the words of FORMATS (ends with NULL): if not, that is said. */
bool people_check_output(const char *format, const char *const *formats);
/* Standard output is written out: CODE, or 1 when that did not work. */
int people_finish(int code);

/* ---- naming runs */

struct people_name {
        const struct kind *kind; /* NULL: any */
        const char *name;        /* NULL: all of the kind */
};

struct people_names {
        struct people_name *v;
        size_t n, cap;
};

/*
 * What ARGV[1..] name. NAMED: a kind without a name is refused, and so is nothing at all. Below 0: it was said, exit with
 * EXIT_USAGE. vec_done() it.
 */
int people_read_names(int argc, char **argv, bool named, struct people_names *ret) _must_check_;
/* The same where exactly one run is wanted. */
int people_read_name(int argc, char **argv, struct people_name *ret) _must_check_;

/* ---- runs */

struct people_run {
        struct people_cluster *cluster;
        const struct kind *kind;
        struct json *object;
        const char *label; /* "dgdr/llama-70b": how it is told, without its namespace */
        struct summary summary;
};

struct people_runs {
        struct people_run *v;
        size_t n, cap;
};

/* The one run of that name in C. Below 0: it was said. */
int people_find(struct people *p, struct people_cluster *c, const struct people_name *name,
                struct people_run *ret) _must_check_;
/* Adds those of NAMES (n 0: all) of C to RET, by kind, namespace and name. Below 0: it was said, and what there was is in RET. */
int people_list(struct people *p, struct people_cluster *c, const struct people_names *names,
                struct people_runs *ret) _must_check_;
/* For struct program: KIND/NAME of every run in the cluster and namespace that ARGV names, if it answers within 2 s. */
void people_list_names(int argc, char **argv);
/* RUN as the object says it now, of which OBJECT is kept. */
void people_take(struct people *p, struct people_cluster *c, const struct kind *kind, struct json *object,
                 struct people_run *ret);
/* Changes the run by a merge patch, only as long as it is the object that was found; RUN has what came of it. */
int people_patch(struct people *p, struct people_run *run, const struct json *patch, struct err *err)
        _must_check_;
/* Says that VERB is not for RUN, which is a result: nothing runs for it; what it came from is named. */
void people_refuse_result(const char *verb, const struct people_run *run);
/* Gets RUN once more. */
int people_refresh(struct people *p, struct people_run *run, struct err *err) _must_check_;
/* Objects of another type in the run's namespace, by a selector of labels or fields (NULL: none); at most 500. */
int people_list_of(struct people *p, struct people_cluster *c, const struct kube_type *type, const char *ns,
                   const char *labels, const char *fields, struct json **ret_items, struct err *err)
        _must_check_;

/* ---- what is around a run */

struct people_pod {
        const char *name, *node; /* node: "" before it has one */
        const char *phase;       /* the kubelet's: "Running" */
        const char *why;         /* what is wrong with it or its containers, or why it waits; NULL: nothing */
        usec_t created;
        const struct json *object;
};

struct people_event {
        usec_t when; /* the last time, if it came several times */
        int64_t count;
        bool warning;
        const char *reason, *message, *about; /* about: "pod/x" */
};

struct people_story {
        struct people_pod *pods; /* of the run's Jobs, oldest first */
        size_t n_pods;
        struct people_event *events; /* of the request, its Jobs and their pods, oldest first */
        size_t n_events;
        const struct json
                *status_map; /* the run's, of the attempt under way or the last one; NULL: it is not there */
};

/* What can be had of these: somebody may read runs and not pods, which is then none. Below 0: the cluster cannot be reached; it
 * was said. */
int people_story(struct people *p, const struct people_run *run, struct people_story *ret) _must_check_;

/* ---- how a run is shown */

enum tone people_tone(const struct summary *s);
/* The ETA column: "22m (18-31m)", "6m (not moving for 9m)", "starts ~22m", "-". */
const char *people_eta(struct people *p, const struct summary *s);
/* "5/12"; "-": not known. */
const char *people_step(struct arena *a, const struct summary *s);
/* "41"; "-": not known. */
const char *people_percent(struct arena *a, const struct summary *s);
/* Where a run of these is told a rough place in a queue ("10+") and all that wait may be listed: its exact one. */
void people_places(struct people *p, struct people_run *runs, size_t n);
/* The REASON column: why it waits or has failed, or what came out. "": there is nothing to say. */
const char *people_reason(struct arena *a, const struct summary *s);
/* people_table.c: all of them as `get` prints them, on SCREEN; WIDE: with more columns, and nothing cut. */
void people_table(struct people *p, const struct people_runs *runs, bool wide, const struct screen *screen);

/* "dgdr/NAME  STATE  PHASE 3/7  41 %  5/12  MESSAGE", for who tells one line a change; what it waits for stands in the place
 * of what is done. */
void people_line(struct buf *line, const char *label, const struct summary *s);
/* "  ETA 14:03:22Z" where that is known: it changes all the time, and is not what makes a line new. */
void people_line_eta(struct buf *line, const struct summary *s);

DEFINE_CLEANUP_STRUCT(struct people, people_done)
