/*
 * Runs that report once a second, seen from both ends; bench/relay.py runs it on both engines.
 *
 *   relay-load KUBECONFIG NAMESPACE FOLDER RUNS SECONDS
 *
 * FOLDER/0, FOLDER/1, ... are the run directories, each with a relay; run-0, run-1, ... their TestRuns. A process of its
 * own writes the status files, each once a second; this one watches the TestRuns, and a sample is the time from just
 * before rename() until the state (or a later one) is there in the watch.
 *
 * The floor, at the same time on the same server: a JSON Patch of a ConfigMap, with the tests that a relay's has, when
 * that is answered a merge patch of a custom resource's status, and the watch in which it comes: two bare writes one
 * after the other, and a delivery. Objects floor-0 ... (ConfigMaps and Samples) must be there.
 *
 * Prints one line of JSON for each of the two: how many, median, 99th percentile and longest in microseconds.
 */
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kube/kube.h"

enum {
        RUNS_MAX = 200,
        SECONDS_MAX = 600,
        FLOORS = 4,
        FLOOR_EVERY = 25,
        FILLER = 500,
        EVENT_MAX = 1 << 20,
        DRAIN = 5
};

static const struct kube_type TESTRUN = {"test.sonde.dev", "v1alpha1", "testruns", "TestRun", true, true};
static const struct kube_type SAMPLE = {"example.sonde.dev", "v1", "samples", "Sample", true, true};

/* When each state of each run was renamed into its place: the writing process fills it in. */
struct shared {
        _Atomic usec_t renamed[RUNS_MAX][SECONDS_MAX + 1];
};

struct load;

struct floor {
        struct load *load;
        unsigned number;
        uint64_t round;
        usec_t began; /* 0: none under way */
};

struct load {
        struct loop *loop;
        struct kube *kube;
        struct clock clock;
        const char *ns, *folder;
        unsigned runs, seconds;
        struct shared *shared;
        unsigned seen[RUNS_MAX]; /* the last state that came of each run */
        struct arena arena;
        struct json_split *runs_split, *samples_split;
        VEC(usec_t) latencies;
        VEC(usec_t) floors;
        uint64_t skipped; /* states that a later one overtook */
        struct floor floor[FLOORS];
        unsigned next_floor;
        struct timer tick, end;
        char filler[FILLER + 1];
};

static _noreturn_ void die(const char *what)
{
        fprintf(stderr, "relay-load: %s\n", what);
        exit(1);
}

/* The number that follows PREFIX in TEXT, up to a blank; what is after that stays in *TEXT. */
static bool take_number(struct str *text, struct str prefix, unsigned *ret)
{
        uint64_t n;

        if (!str_has_prefix(*text, prefix))
                return false;
        *text = str_n(text->p + prefix.n, text->n - prefix.n);
        if (!str_to_u64(str_split(text, ' '), &n) || n > UINT32_MAX)
                return false;
        *ret = (unsigned)n;
        return true;
}

/* ---- the writing process */

static void write_state(const struct load *l, unsigned run, unsigned number)
{
        char path[512], temporary[512], text[1024], at[TIME_TEXT_MAX];
        int n, fd;

        snprintf(path, sizeof(path), "%s/%u/profiling_status.json", l->folder, run);
        snprintf(temporary, sizeof(temporary), "%s/%u/.writing", l->folder, run);
        n = snprintf(text, sizeof(text),
                     "{\"phase\": \"DecodeSweep\", \"phaseNumber\": 3, \"totalPhases\": 7, \"message\": "
                     "\"run-%u state %u\", "
                     "\"timestamp\": \"%s\", \"progress\": {\"currentStep\": %u, \"totalSteps\": %u, "
                     "\"percentage\": 1.0, "
                     "\"subPhase\": \"Benchmarking batch size 256\"}, \"gpuConfig\": {\"currentGpus\": 4, "
                     "\"parallelMapping\": \"TP=2/DP=2\"}, \"sequence\": %u}",
                     run, number, time_format(clock_wall(&l->clock), at), number, l->seconds, number);
        fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
        if (fd < 0 || write(fd, text, (size_t)n) != n || fsync(fd) < 0 || close(fd) < 0)
                die("a status file cannot be written");
        atomic_store(&l->shared->renamed[run][number], clock_boot(&l->clock));
        if (rename(temporary, path) < 0)
                die("a status file cannot be renamed");
}

/* Every run once a second, evenly spread over it. */
static _noreturn_ void write_states(const struct load *l)
{
        usec_t began = clock_boot(&l->clock);

        for (unsigned number = 1; number <= l->seconds; number++)
                for (unsigned run = 0; run < l->runs; run++) {
                        usec_t when = began + number * USEC_PER_SEC + run * USEC_PER_SEC / l->runs;
                        usec_t wait = usec_sub(when, clock_boot(&l->clock));

                        if (wait > 0)
                                usleep((useconds_t)wait);
                        write_state(l, run, number);
                }
        exit(0);
}

/* ---- what comes in the watch of TestRuns */

static void state_came(struct load *l, unsigned run, unsigned number, usec_t now)
{
        if (run >= l->runs || number > l->seconds || number <= l->seen[run])
                return;
        l->skipped += number - l->seen[run] - 1;
        for (unsigned i = l->seen[run] + 1; i <= number; i++)
                *vec_push(&l->latencies) = now - atomic_load(&l->shared->renamed[run][i]);
        l->seen[run] = number;
}

static int on_run(void *arg, struct str value, struct err *err)
{
        struct load *l = arg;
        usec_t now = clock_boot(&l->clock);
        const struct json *object;
        struct str message, name;
        unsigned run, owner, number;
        struct json *event;

        arena_reset(&l->arena, EVENT_MAX);
        event = json_parse(&l->arena, value, NULL, err);
        if (!event)
                return -1;
        object = json_at(event, "object");
        name = str_of(meta_str(object, "name"));
        message = str_of(json_str(json_at(json_at(object, "status"), "progress"), "message"));
        if (!take_number(&name, STR("run-"), &owner) || !take_number(&message, STR("run-"), &run) ||
            !take_number(&message, STR("state "), &number))
                return 0;
        if (run != owner)
                die("a run's state appeared on another");
        state_came(l, run, number, now);
        return 0;
}

/* ---- the floor */

static void floor_written(void *arg, const struct kube_answer *answer, const struct err *err)
{
        if (err)
                die(err->text);
}

static void floor_patched(void *arg, const struct kube_answer *answer, const struct err *err)
{
        struct floor *f = arg;
        struct load *l = f->load;
        char name[32], body[FILLER + 128];
        int n;

        if (err)
                die(err->text);
        snprintf(name, sizeof(name), "floor-%u", f->number);
        n = snprintf(body, sizeof(body), "{\"status\": {\"copy\": \"%s\", \"keys\": %llu}}", l->filler,
                     (unsigned long long)f->round);
        kube_send(l->kube,
                  &(struct kube_request){.verb = KUBE_PATCH_MERGE,
                                         .type = &SAMPLE,
                                         .ns = l->ns,
                                         .name = name,
                                         .subresource = "status",
                                         .body = str_n(body, (size_t)n)},
                  floor_written, f);
}

static void begin_floor(struct floor *f)
{
        struct load *l = f->load;
        char name[32], body[FILLER + 512];
        unsigned long long last = f->round, next = ++f->round;
        int n;

        snprintf(name, sizeof(name), "floor-%u", f->number);
        n = snprintf(body, sizeof(body),
                     "[{\"op\": \"test\", \"path\": \"/data/sequence\", \"value\": \"%llu\"}, "
                     "{\"op\": \"test\", \"path\": \"/data/state\", \"value\": \"Running\"}, "
                     "{\"op\": \"replace\", \"path\": \"/data/sequence\", \"value\": \"%llu\"}, "
                     "{\"op\": \"replace\", \"path\": \"/data/status.json\", \"value\": \"%s\"}]",
                     last, next, l->filler);
        f->began = clock_boot(&l->clock);
        kube_send(l->kube,
                  &(struct kube_request){.verb = KUBE_PATCH_JSON,
                                         .type = &KUBE_CONFIGMAP,
                                         .ns = l->ns,
                                         .name = name,
                                         .body = str_n(body, (size_t)n)},
                  floor_patched, f);
}

static int on_sample(void *arg, struct str value, struct err *err)
{
        struct load *l = arg;
        usec_t now = clock_boot(&l->clock);
        const struct json *object;
        struct str name;
        unsigned number;
        struct json *event;

        arena_reset(&l->arena, EVENT_MAX);
        event = json_parse(&l->arena, value, NULL, err);
        if (!event)
                return -1;
        object = json_at(event, "object");
        name = str_of(meta_str(object, "name"));
        if (!take_number(&name, STR("floor-"), &number) || number >= FLOORS)
                return 0;
        if (l->floor[number].began == 0 ||
            json_int(json_at(object, "status"), "keys", 0) != (int64_t)l->floor[number].round)
                return 0;
        *vec_push(&l->floors) = now - l->floor[number].began;
        l->floor[number].began = 0;
        return 0;
}

/* A sample begins at every tick at which the one before it in its place is over. */
static void on_tick(struct timer *t)
{
        struct load *l = CONTAINER_OF(t, struct load, tick);
        struct floor *f = &l->floor[l->next_floor++ % FLOORS];

        if (f->began == 0)
                begin_floor(f);
        timer_after(t, FLOOR_EVERY * USEC_PER_MS);
}

/* ---- watches */

static void feed(struct json_split *split, struct str chunk)
{
        struct err err = ERR_INIT;

        if (json_split_feed(split, chunk, &err) < 0)
                die(err.text);
}

static void on_runs_data(void *arg, struct str chunk)
{
        struct load *l = arg;

        feed(l->runs_split, chunk);
}

static void on_samples_data(void *arg, struct str chunk)
{
        struct load *l = arg;

        feed(l->samples_split, chunk);
}

static void watch_ended(void *arg, const struct kube_answer *answer, const struct err *err)
{
        die(err ? err->text : "a watch ended");
}

static void watch(struct load *l, const struct kube_type *type, void (*on_data)(void *, struct str))
{
        kube_stream(l->kube,
                    &(struct kube_request){
                            .verb = KUBE_WATCH, .type = type, .ns = l->ns, .timeout_seconds = 3600},
                    on_data, watch_ended, l);
}

/* ---- the front */

static int by_size(const void *a, const void *b)
{
        const usec_t *x = a, *y = b;

        return (*x > *y) - (*x < *y);
}

static void print(const char *what, usec_t *v, size_t n, uint64_t skipped)
{
        if (n == 0)
                die("not one sample came");
        qsort(v, n, sizeof(*v), by_size);
        printf("{\"what\": \"%s\", \"count\": %zu, \"median\": %llu, \"p99\": %llu, \"max\": %llu, "
               "\"skipped\": %llu}\n",
               what, n, (unsigned long long)v[n / 2], (unsigned long long)v[n * 99 / 100],
               (unsigned long long)v[n - 1], (unsigned long long)skipped);
}

static void on_end(struct timer *t)
{
        loop_stop(CONTAINER_OF(t, struct load, end)->loop, 0);
}

static void connect_to(struct load *l, const struct kube_config *config)
{
        struct err err = ERR_INIT;

        l->loop = loop_new(NULL, NULL, &err);
        if (!l->loop)
                die(err.text);
        l->kube = kube_new(l->loop, config, &(struct kube_options){.user_agent = "relay-load"}, &err);
        if (!l->kube)
                die(err.text);
        l->runs_split = json_split_new(SPLIT_VALUES, EVENT_MAX, on_run, l);
        l->samples_split = json_split_new(SPLIT_VALUES, EVENT_MAX, on_sample, l);
}

static void run(struct load *l)
{
        watch(l, &TESTRUN, on_runs_data);
        watch(l, &SAMPLE, on_samples_data);
        for (unsigned i = 0; i < FLOORS; i++)
                l->floor[i] = (struct floor){.load = l, .number = i};
        timer_init(&l->tick, l->loop, on_tick);
        timer_init(&l->end, l->loop, on_end);
        timer_after(&l->tick, USEC_PER_SEC);
        timer_after(&l->end, (l->seconds + DRAIN) * USEC_PER_SEC);
        loop_run(l->loop);
        print("run", l->latencies.v, l->latencies.n, l->skipped);
        print("floor", l->floors.v, l->floors.n, 0);
}

static unsigned number(const char *text, unsigned max)
{
        uint64_t n;

        if (!str_to_u64(str_of(text), &n) || n == 0 || n > max)
                die("a number is wrong; see the head of the source");
        return (unsigned)n;
}

int main(int argc, char **argv)
{
        static struct load l = {.clock = CLOCK_REAL};
        _cleanup_(kube_config_done) struct kube_config config = {0};
        struct err err = ERR_INIT;
        pid_t writer;

        if (argc != 6)
                die("usage: relay-load KUBECONFIG NAMESPACE FOLDER RUNS SECONDS");
        l.ns = argv[2];
        l.folder = argv[3];
        l.runs = number(argv[4], RUNS_MAX);
        l.seconds = number(argv[5], SECONDS_MAX);
        memset(l.filler, 'x', FILLER);
        l.shared = mmap(NULL, sizeof(*l.shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (l.shared == MAP_FAILED)
                die("no memory to share");
        if (kube_config_load(&(struct kube_config_sources){.kubeconfig = argv[1]}, &config, &err) < 0)
                die(err.text);
        writer = fork();
        if (writer < 0)
                die("cannot fork");
        if (writer == 0) {
                prctl(PR_SET_PDEATHSIG, SIGKILL);
                write_states(&l);
        }
        connect_to(&l, &config);
        run(&l);
        waitpid(writer, NULL, 0);
        exit(0);
}
