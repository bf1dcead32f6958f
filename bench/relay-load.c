/*
 * Runs that report once a second, seen from both ends; bench/relay.py runs it on both engines.
 *
 *   relay-load KUBECONFIG NAMESPACE FOLDER RUNS SECONDS
 *
 * FOLDER/0, FOLDER/1, ... are the run directories, each with a relay; run-0, run-1, ... their TestRuns. A process of its
 * own writes the status files, each once a second; this one watches the TestRuns, and a sample is the time from just
 * before rename() until the state (or a later one) is there in the watch; the same for the run's ConfigMap on its way.
 *
 * The floor, at the same time on the same server: the same two writes, bare. A JSON Patch of a ConfigMap as a relay sends
 * it, when that is answered an apply of a TestRun's status as the operator sends it, and the watch in which it comes.
 * ConfigMaps and TestRuns floor-0 ... must be there, in NAMESPACE-floor, which no operator looks at.
 *
 * Prints one line of JSON for each of the three: how many, median, 99th percentile and longest in microseconds.
 */
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kube/kube.h"
#include "run/run.h"

enum {
        RUNS_MAX = 200,
        SECONDS_MAX = 600,
        FLOORS = 4,
        FLOOR_EVERY = 25,
        TEXT_MAX = 1024,
        EVENT_MAX = 1 << 20,
        DRAIN = 5
};

static const struct kube_type TESTRUN = {"test.sonde.dev", "v1alpha1", "testruns", "TestRun", true, true};

/* When each state of each run was renamed into its place: the writing process fills it in. */
struct shared {
        _Atomic usec_t renamed[RUNS_MAX][SECONDS_MAX + 1];
};

/* Where states come in. */
struct arrivals {
        unsigned seen[RUNS_MAX]; /* the last state that came of each run */
        VEC(usec_t) latencies;
        uint64_t skipped; /* states that a later one overtook */
};

struct load;

struct floor {
        struct load *load;
        char name[32];
        struct run_fence fence;
        char uid[64], version[32]; /* of the TestRun; "": not seen yet */
        usec_t began;              /* 0: none under way */
};

struct load {
        struct loop *loop;
        struct kube *kube;
        struct clock clock;
        const char *ns, *folder;
        char floor_ns[64];
        unsigned n_runs, seconds;
        struct shared *shared;
        struct arrivals runs_at, maps_at;
        struct arena arena;
        struct json_split *runs_split, *maps_split, *floors_split;
        VEC(usec_t) floors;
        struct floor floor[FLOORS];
        unsigned next_floor;
        struct timer tick, end;
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

static int status_text(const struct load *l, char text[TEXT_MAX], unsigned run, unsigned number)
{
        char at[TIME_TEXT_MAX];

        return snprintf(
                text, TEXT_MAX,
                "{\"phase\": \"DecodeSweep\", \"phaseNumber\": 3, \"totalPhases\": 7, \"message\": \"run-%u "
                "state "
                "%u\", \"timestamp\": \"%s\", \"progress\": {\"currentStep\": %u, \"totalSteps\": %u, "
                "\"percentage\": 1.0, \"subPhase\": \"Benchmarking batch size 256\"}, \"gpuConfig\": "
                "{\"currentGpus\": 4, \"parallelMapping\": \"TP=2/DP=2\"}, \"sequence\": %u}",
                run, number, time_format(clock_wall(&l->clock), at), number, l->seconds, number);
}

static void write_state(const struct load *l, unsigned run, unsigned number)
{
        char path[512], temporary[512], text[TEXT_MAX];
        int n = status_text(l, text, run, number), fd;

        snprintf(path, sizeof(path), "%s/%u/profiling_status.json", l->folder, run);
        snprintf(temporary, sizeof(temporary), "%s/%u/.writing", l->folder, run);
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
                for (unsigned run = 0; run < l->n_runs; run++) {
                        usec_t when = began + number * USEC_PER_SEC + run * USEC_PER_SEC / l->n_runs;
                        usec_t wait = usec_sub(when, clock_boot(&l->clock));

                        if (wait > 0)
                                usleep((useconds_t)wait);
                        write_state(l, run, number);
                }
        exit(0);
}

/* ---- what comes in the watches of TestRuns and ConfigMaps */

static void state_came(struct load *l, struct arrivals *at, unsigned run, unsigned number, usec_t now)
{
        if (run >= l->n_runs || number > l->seconds || number <= at->seen[run])
                return;
        at->skipped += number - at->seen[run] - 1;
        for (unsigned i = at->seen[run] + 1; i <= number; i++)
                *vec_push(&at->latencies) = now - atomic_load(&l->shared->renamed[run][i]);
        at->seen[run] = number;
}

/* MESSAGE is that of an object of NAME, which begins with its run's. */
static void message_came(struct load *l, struct arrivals *at, const char *name, const char *message,
                         usec_t now)
{
        struct str owner = str_of(name), rest = str_of(message);
        unsigned run, number;

        if (!name || !message || !take_number(&rest, STR("run-"), &run) ||
            !take_number(&rest, STR("state "), &number))
                return;
        (void)str_split(&owner, '-');
        owner = str_split(&owner, '-');
        if (!str_eq(owner, str_of(arena_printf(&l->arena, "%u", run))))
                die("a run's state appeared on another");
        state_came(l, at, run, number, now);
}

static const struct json *object_of(struct load *l, struct str event, struct err *err)
{
        arena_reset(&l->arena, EVENT_MAX);
        return json_at(json_parse(&l->arena, event, NULL, err), "object");
}

static int on_run(void *arg, struct str value, struct err *err)
{
        struct load *l = arg;
        usec_t now = clock_boot(&l->clock);
        const struct json *object = object_of(l, value, err);

        if (!object)
                return -1;
        message_came(l, &l->runs_at, meta_str(object, "name"),
                     json_str(json_at(json_at(object, "status"), "progress"), "message"), now);
        return 0;
}

static int on_map(void *arg, struct str value, struct err *err)
{
        struct load *l = arg;
        usec_t now = clock_boot(&l->clock);
        const struct json *object = object_of(l, value, err);
        const char *status = json_str(json_at(object, "data"), "status.json");

        if (!object)
                return -1;
        if (status && status[0] == '{')
                message_came(l, &l->maps_at, meta_str(object, "name"),
                             json_str(json_parse(&l->arena, str_of(status), NULL, NULL), "message"), now);
        return 0;
}

/* ---- the floor */

static void floor_written(void *arg, const struct kube_answer *answer, const struct err *err)
{
        if (err)
                die(err->text);
}

/* As the operator's is. */
static struct json *status_of(struct arena *a, uint64_t round)
{
        static const char time[] = "2026-01-01T00:00:00Z";
        struct json *conditions = json_array(a);

        for (unsigned i = 0; i < 4; i++)
                json_append(
                        conditions,
                        json_build(
                                a,
                                "{'type': 'Type%u', 'status': 'False', 'observedGeneration': 1, "
                                "'lastTransitionTime': %s, 'reason': 'InProgress', 'message': 'the run has "
                                "not ended yet'}",
                                i, time));
        return json_build(
                a,
                "{'run': {'attempt': 1, 'job': 'floor-0-run', 'retries': 0, 'specHash': 'abcdefghij'}, "
                "'phase': 'Running', 'conditions': %p, 'attempt': %llu, "
                "'observedGeneration': 1, 'progress': {'attempt': 1, 'job': 'floor-0-run', 'pod': "
                "'floor-0-run-abcde', "
                "'podUID': '00000000-0000-0000-0000-000000000000', 'startedAt': %s, 'phase': 'DecodeSweep', "
                "'phaseNumber': 3, 'totalPhases': 7, 'step': '%llu/1000', 'currentStep': %llu, 'totalSteps': "
                "1000, "
                "'subPhase': 'Benchmarking batch size 256', 'message': 'floor state %llu', 'gpuConfig': "
                "{'currentGpus': 4, "
                "'parallelMapping': 'TP=2/DP=2'}, 'percent': 1, 'updatedAt': %s, 'estimatedCompletion': "
                "{'low': %s, "
                "'mid': %s, 'high': %s, 'basis': 'pace'}, 'eta': '15:12Z (15:08-15:21)'}}",
                (void *)conditions, (unsigned long long)round, time, (unsigned long long)round,
                (unsigned long long)round, (unsigned long long)round, time, time, time, time);
}

static void floor_patched(void *arg, const struct kube_answer *answer, const struct err *err)
{
        struct floor *f = arg;
        struct load *l = f->load;
        struct json *body;

        if (err)
                die(err->text);
        arena_reset(&l->arena, EVENT_MAX);
        body = json_build(
                &l->arena,
                "{'apiVersion': 'test.sonde.dev/v1alpha1', 'kind': 'TestRun', 'metadata': {'name': %s, "
                "'namespace': %s, 'uid': %s, 'resourceVersion': %s}, 'status': %p}",
                f->name, l->floor_ns, f->uid, f->version, (void *)status_of(&l->arena, f->fence.sequence));
        kube_send(l->kube,
                  &(struct kube_request){.verb = KUBE_APPLY,
                                         .type = &TESTRUN,
                                         .ns = l->floor_ns,
                                         .name = f->name,
                                         .subresource = "status",
                                         .field_manager = "floor",
                                         .force = true,
                                         .metadata_only = true,
                                         .body = str_of(json_print(&l->arena, body))},
                  floor_written, f);
}

static void begin_floor(struct floor *f)
{
        struct load *l = f->load;
        struct run_fence last = f->fence;
        char status[TEXT_MAX], at[TIME_TEXT_MAX];
        struct json *set;

        f->fence.sequence++;
        status_text(l, status, 0, (unsigned)f->fence.sequence);
        arena_reset(&l->arena, EVENT_MAX);
        set = json_build(
                &l->arena,
                "{'status.json': %s, 'heartbeat': %s, 'problem': '', 'track.json': "
                "'{\"started\":1794807874521,\"moved\":28999,\"said\":881453152,\"phases\":[{\"name\":"
                "\"DecodeSweep\",\"began\":0,\"total\":30,\"done\":29,\"sum\":28.999,\"longest\":1.007,"
                "\"share\":0.96667,\"step\":30,\"stepBegan\":28999,\"blocks\":[[4,3.999],[4,4.007],"
                "[4,3.993],[4,4],[2,2],[2,2],[2,2.001],[2,1.999],1,1,1,1,1]}]}'}",
                status, time_format(clock_wall(&l->clock), at));
        set = run_fence_patch(&l->arena, &last, &f->fence, NULL, set);
        f->began = clock_boot(&l->clock);
        kube_send(l->kube,
                  &(struct kube_request){.verb = KUBE_PATCH_JSON,
                                         .type = &KUBE_CONFIGMAP,
                                         .ns = l->floor_ns,
                                         .name = f->name,
                                         .field_manager = "floor",
                                         .metadata_only = true,
                                         .body = str_of(json_print(&l->arena, set))},
                  floor_patched, f);
}

static int on_floor(void *arg, struct str value, struct err *err)
{
        struct load *l = arg;
        usec_t now = clock_boot(&l->clock);
        const struct json *object = object_of(l, value, err);
        struct str name = str_of(meta_str(object, "name"));
        struct floor *f;
        unsigned number;

        if (!object)
                return -1;
        if (!take_number(&name, STR("floor-"), &number) || number >= FLOORS)
                return 0;
        f = &l->floor[number];
        snprintf(f->uid, sizeof(f->uid), "%s", meta_str(object, "uid"));
        snprintf(f->version, sizeof(f->version), "%s", meta_str(object, "resourceVersion"));
        if (f->began == 0 || json_int(json_at(object, "status"), "attempt", 0) != (int64_t)f->fence.sequence)
                return 0;
        *vec_push(&l->floors) = now - f->began;
        f->began = 0;
        return 0;
}

/* A sample begins at every tick at which the one before it in its place is over. */
static void on_tick(struct timer *t)
{
        struct load *l = CONTAINER_OF(t, struct load, tick);
        struct floor *f = &l->floor[l->next_floor++ % FLOORS];

        if (f->began == 0 && f->uid[0])
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

static void on_maps_data(void *arg, struct str chunk)
{
        struct load *l = arg;

        feed(l->maps_split, chunk);
}

static void on_floors_data(void *arg, struct str chunk)
{
        struct load *l = arg;

        feed(l->floors_split, chunk);
}

static void watch_ended(void *arg, const struct kube_answer *answer, const struct err *err)
{
        die(err ? err->text : "a watch ended");
}

static void watch(struct load *l, const struct kube_type *type, const char *ns,
                  void (*on_data)(void *, struct str))
{
        kube_stream(
                l->kube,
                &(struct kube_request){.verb = KUBE_WATCH, .type = type, .ns = ns, .timeout_seconds = 3600},
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
        l->maps_split = json_split_new(SPLIT_VALUES, EVENT_MAX, on_map, l);
        l->floors_split = json_split_new(SPLIT_VALUES, EVENT_MAX, on_floor, l);
}

static void run(struct load *l)
{
        watch(l, &TESTRUN, l->ns, on_runs_data);
        watch(l, &KUBE_CONFIGMAP, l->ns, on_maps_data);
        watch(l, &TESTRUN, l->floor_ns, on_floors_data);
        for (unsigned i = 0; i < FLOORS; i++) {
                l->floor[i] = (struct floor){
                        .load = l, .fence = {.attempt = 1, .pod = "floor-pod", .state = RUN_RUNNING}};
                snprintf(l->floor[i].name, sizeof(l->floor[i].name), "floor-%u", i);
        }
        timer_init(&l->tick, l->loop, on_tick);
        timer_init(&l->end, l->loop, on_end);
        timer_after(&l->tick, USEC_PER_SEC);
        timer_after(&l->end, (l->seconds + DRAIN) * USEC_PER_SEC);
        loop_run(l->loop);
        print("run", l->runs_at.latencies.v, l->runs_at.latencies.n, l->runs_at.skipped);
        print("map", l->maps_at.latencies.v, l->maps_at.latencies.n, l->maps_at.skipped);
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
        l.n_runs = number(argv[4], RUNS_MAX);
        l.seconds = number(argv[5], SECONDS_MAX);
        snprintf(l.floor_ns, sizeof(l.floor_ns), "%s-floor", l.ns);
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
