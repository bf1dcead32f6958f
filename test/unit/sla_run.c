/*
 * The runner over a target of the test's own: what is deployed, what is told, what a restart does again.
 */
#include "unit/unit.h"

#include <ftw.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "probe/sla/run_internal.h"

struct fake {
        struct sla_target target;
        struct sla_target *truth; /* whose models answer */
        unsigned starts, stops, up, cleans;
        const char *fail_label; /* does not start */
        unsigned stop_at;       /* the start at which the run is told to stop; 0: none */
        int stop_fd;
        void (*look)(struct fake *f, const char *sub_phase, enum sla_role role); /* at each start and stop */
        enum sla_role role;
};

static struct fake *of(struct sla_target *t)
{
        return CONTAINER_OF(t, struct fake, target);
}

static int fake_clean(struct sla_target *t, struct err *err)
{
        (void)err;
        of(t)->cleans++;
        return 0;
}

static int fake_start(struct sla_target *t, const struct sla_candidate *c, enum sla_role role,
                      struct sla_server *ret, struct err *err)
{
        struct fake *f = of(t);

        f->starts++;
        f->role = role;
        assert_int_equal(f->up++, 0);
        if (f->look)
                f->look(f, "Deploying", role);
        if (f->stop_at == f->starts) {
                assert_int_equal(eventfd_write(f->stop_fd, 1), 0);
                return err_set(err, E_CANCELED, "told to stop");
        }
        if (streq(f->fail_label, c->label))
                return err_set(err, E_SERVER, "CrashLoopBackOff");
        return f->truth->ops->start(f->truth, c, role, ret, err);
}

static void fake_stop(struct sla_target *t, struct sla_server *s)
{
        (void)s;
        of(t)->stops++;
        if (of(t)->look)
                of(t)->look(of(t), "Cleanup", of(t)->role);
        assert_int_equal(of(t)->up--, 1);
}

static const struct sla_target_ops fake_ops = {
        .name = "fake", .simulated = true, .clean = fake_clean, .start = fake_start, .stop = fake_stop};

/* One run, in a directory of its own. */
struct world {
        struct arena arena;
        struct sla_config config;
        struct fake fake;
        struct clock clock;
        struct run_reporter reporter;
        char dir[64];
        struct sla_run run;
};

static const char config_text[] =
        "{deployment: {model: llama, namespace: test}, engine: {backend: vllm, maxContextLength: 4096}, "
        "hardware: {minNumGpusPerEngine: 1, maxNumGpusPerEngine: 4, numGpusPerNode: 8}, "
        "sla: {isl: 1000, osl: 100, ttft: 20, itl: 8}, planner: {maxGpuBudget: 16}}";
static const char model_text[] =
        "{prefill: {baseMs: 2, perTokenUs: 20}, decode: {baseMs: 4, perRequestUs: 50}}";

static void begin(struct world *w)
{
        struct err err = ERR_INIT;
        struct json *raw;

        *w = (struct world){.clock = {.manual = true, .wall = 1000000000000, .boot = 1}, .dir = ""};
        /* in memory where there is room for it: a run without waiting is all fsync */
        snprintf(w->dir, sizeof(w->dir), "%s/sonde-sla-XXXXXX",
                 access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
        assert_non_null(mkdtemp(w->dir));
        raw = yaml_parse(&w->arena, str_of(config_text), NULL, &err);
        assert_non_null(raw);
        assert_int_equal(sla_config_parse(&w->arena, raw, &w->config, &err), 0);
        w->reporter = (struct run_reporter){.dir = w->dir, .clock = &w->clock};
        w->fake.target.ops = &fake_ops;
        w->fake.stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        w->run = (struct sla_run){
                .config = &w->config,
                .target = &w->fake.target,
                .services = {.config = &w->config, .stop_fd = w->fake.stop_fd},
                .truth = true,
                .reporter = &w->reporter,
                .dir = w->dir,
                .what = "test",
        };
        w->fake.truth = sla_target_truth(&w->run.services, str_of(model_text), &err);
        assert_non_null(w->fake.truth);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
        (void)st;
        (void)type;
        (void)ftw;
        return remove(path);
}

static void end(struct world *w)
{
        assert_int_equal(w->fake.starts, w->fake.stops);
        assert_int_equal(w->fake.up, 0);
        w->fake.truth->ops->free(w->fake.truth);
        close(w->fake.stop_fd);
        arena_done(&w->arena);
        nftw(w->dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static struct json *file_of(struct world *w, const char *name)
{
        _cleanup_(buf_done) struct buf text = BUF_INIT(8 << 20);
        struct json *root;

        assert_int_equal(file_read(arena_join(&w->arena, w->dir, "/", name), &text, NULL), 0);
        root = json_parse(&w->arena, buf_str(&text), NULL, NULL);
        assert_non_null(root);
        return root;
}

static void every_candidate_is_deployed_once_a_sweep_and_once_a_curve(void **state)
{
        struct world w;
        struct json *result;

        (void)state;
        begin(&w);
        assert_int_equal(sla_run(&w.run, NULL), 0);
        assert_int_equal(w.fake.starts, 3 + 3 + 2);
        assert_int_equal(w.fake.cleans, 1);
        result = file_of(&w, RUN_RESULT_FILE);
        assert_int_equal(json_int(json_at(result, "deployments"), "made", 0), 8);
        assert_string_equal(json_str(json_at(result, "prefill"), "label"), "TP=2");
        assert_string_equal(json_str(file_of(&w, RUN_STATUS_FILE), "phase"), "Complete");
        end(&w);
}

/* The status file when a server is started or stopped: the phase, its message and how far it is. */
static void look_at_status(struct fake *f, const char *sub_phase, enum sla_role role)
{
        struct world *w = CONTAINER_OF(f, struct world, fake);
        const struct json *status = file_of(w, RUN_STATUS_FILE), *progress = json_at(status, "progress"),
                          *gpus = json_at(status, "gpuConfig");
        bool sweep = f->starts <= 6;
        unsigned number = (unsigned)json_int(gpus, "currentGpus", 0);
        const char *message;

        assert_string_equal(json_str(status, "phase"),
                            arena_printf(&w->arena, "%s%s", role == SLA_PREFILL ? "Prefill" : "Decode",
                                         sweep ? "Sweep" : "Interpolation"));
        if (!sweep)
                message = arena_printf(&w->arena, "Building %s for %u GPU config",
                                       role == SLA_PREFILL ? "TTFT curve" : "throughput curves", number);
        else if (role == SLA_PREFILL)
                message = arena_printf(&w->arena, "Profiling prefill with %u GPUs (TP=%u)", number, number);
        else
                message = arena_printf(&w->arena, "Profiling decode with %u GPUs, TP=%u", number, number);
        assert_string_equal(json_str(status, "message"), message);
        if (sweep)
                assert_int_equal(number, 1u << (f->starts - 1) % 3);
        assert_string_equal(json_str(progress, "subPhase"), sub_phase);
        assert_in_range(json_int(progress, "currentStep", -1), 0, json_int(progress, "totalSteps", -1));
        if (streq(sub_phase, "Cleanup") && (f->starts == 3 || f->starts >= 6)) /* the phase is over */
                assert_int_equal(json_int(progress, "currentStep", -1), json_int(progress, "totalSteps", -2));
}

static void the_status_says_what_is_started_and_stopped(void **state)
{
        struct world w;

        (void)state;
        begin(&w);
        w.fake.look = look_at_status;
        assert_int_equal(sla_run(&w.run, NULL), 0);
        assert_int_equal(w.fake.stops, 8);
        end(&w);
}

static void a_restart_deploys_nothing_again(void **state)
{
        struct world w;
        struct json *first;

        (void)state;
        begin(&w);
        assert_int_equal(sla_run(&w.run, NULL), 0);
        first = file_of(&w, RUN_RESULT_FILE);
        w.fake.starts = w.fake.stops = 0;
        assert_int_equal(sla_run(&w.run, NULL), 0);
        assert_int_equal(w.fake.starts, 0);
        assert_true(json_equal(first, file_of(&w, RUN_RESULT_FILE)));
        /* another model: all of it */
        w.run.what = "another";
        assert_int_equal(sla_run(&w.run, NULL), 0);
        assert_int_equal(w.fake.starts, 8);
        end(&w);
}

static void stopped_at_any_deployment_it_goes_on_to_the_same_end(void **state)
{
        struct world whole;
        struct json *undisturbed;

        (void)state;
        begin(&whole);
        assert_int_equal(sla_run(&whole.run, NULL), 0);
        undisturbed = file_of(&whole, RUN_RESULT_FILE);
        for (unsigned at = 1; at <= 8; at += unit_extent(3, 1, 1)) {
                struct err err = ERR_INIT;
                eventfd_t value;
                struct world w;

                begin(&w);
                w.fake.stop_at = at;
                assert_int_equal(sla_run(&w.run, &err), -1);
                assert_int_equal(err.code, E_CANCELED);
                assert_int_equal(w.fake.up, 0);
                assert_string_not_equal(json_str(file_of(&w, RUN_STATUS_FILE), "phase"), "Failed");
                assert_int_equal(eventfd_read(w.fake.stop_fd, &value), 0);
                assert_int_equal(sla_run(&w.run, NULL), 0);
                assert_int_equal(w.fake.starts, 9); /* the one that was stopped twice */
                assert_true(json_equal(undisturbed, file_of(&w, RUN_RESULT_FILE)));
                end(&w);
        }
        end(&whole);
}

static void a_candidate_that_fails_costs_itself_only(void **state)
{
        struct world w;
        struct json *result;

        (void)state;
        begin(&w);
        w.fake.fail_label = "TP=2";
        assert_int_equal(sla_run(&w.run, NULL), 0);
        result = file_of(&w, RUN_RESULT_FILE);
        assert_string_equal(json_str(json_at(result, "prefill"), "label"), "TP=4");
        assert_string_equal(json_cstr(json_index(json_at(result, "notes"), 0)),
                            "prefill: TP=2 was skipped: CrashLoopBackOff");
        assert_string_equal(json_cstr(json_index(json_at(result, "notes"), 1)),
                            "decode: TP=2 was skipped: CrashLoopBackOff");
        /* and it is not tried again */
        w.fake.starts = w.fake.stops = 0;
        assert_int_equal(sla_run(&w.run, NULL), 0);
        assert_int_equal(w.fake.starts, 0);
        end(&w);
}

static void without_any_row_it_fails_and_says_why(void **state)
{
        struct err err = ERR_INIT;
        struct world w;

        (void)state;
        begin(&w);
        w.config.max_gpus = 1;
        w.fake.fail_label = "TP=1";
        assert_int_equal(sla_run(&w.run, &err), -1);
        assert_string_equal(err.text, "Profiler failed: no prefill results produced: TP=1: CrashLoopBackOff");
        assert_string_equal(
                json_str(file_of(&w, RUN_STATUS_FILE), "message"),
                "Profiling failed: Profiler failed: no prefill results produced: TP=1: CrashLoopBackOff");
        end(&w);
}

static void targets_that_nothing_meets_are_said_plainly(void **state)
{
        struct world w;
        struct json *result;

        (void)state;
        begin(&w);
        w.config.ttft = 1;
        w.config.itl = 0.5;
        assert_int_equal(sla_run(&w.run, NULL), 0);
        result = file_of(&w, RUN_RESULT_FILE);
        assert_false(json_bool(result, "feasible", true));
        assert_string_equal(json_cstr(json_index(json_at(result, "notes"), 0)),
                            "no prefill configuration meets the TTFT target of 1 ms: the best is 7.743 ms, "
                            "with TP=4 on 4 "
                            "GPUs");
        assert_non_null(strstr(json_cstr(json_index(json_at(result, "notes"), 1)),
                               "no decode configuration meets the ITL target of 0.5 ms: the best is 4.0"));
        assert_non_null(
                strstr(json_str(file_of(&w, RUN_STATUS_FILE), "message"),
                       "Profiling completed successfully, but the targets cannot be met: no prefill"));
        end(&w);
}

static void a_dry_run_deploys_nothing(void **state)
{
        struct world w;
        struct json *result;

        (void)state;
        begin(&w);
        w.config.dry_run = true;
        w.config.min_gpus = 2;
        assert_int_equal(sla_run(&w.run, NULL), 0);
        assert_int_equal(w.fake.starts, 0);
        assert_int_equal(w.fake.cleans, 0);
        result = file_of(&w, RUN_RESULT_FILE);
        assert_string_equal(json_str(json_at(result, "prefill"), "label"), "TP=2");
        assert_null(json_at(json_at(result, "prefill"), "ttft"));
        assert_false(json_bool(json_at(result, "prefill"), "measured", true));
        assert_null(json_at(result, "feasible"));
        assert_null(json_at(result, "costPer1000Requests"));
        assert_int_equal(json_len(json_at(json_at(result, "sweep"), "prefill")), 0);
        assert_int_equal(access(arena_join(&w.arena, w.dir, "/", "decode_4gpus_tp4/config.yaml"), F_OK), 0);
        assert_int_equal(access(arena_join(&w.arena, w.dir, "/", "config_with_planner.yaml"), F_OK), 0);
        end(&w);
}

/* 3 GPUs at least: TP=3 is no candidate. */
static void a_dry_run_takes_a_candidate(void **state)
{
        struct world w;

        (void)state;
        begin(&w);
        w.config.dry_run = true;
        w.config.min_gpus = 3;
        assert_int_equal(sla_run(&w.run, NULL), 0);
        assert_string_equal(json_str(json_at(file_of(&w, RUN_RESULT_FILE), "decode"), "label"), "TP=4");
        end(&w);
}

static void a_run_needs_a_model(void **state)
{
        struct err err = ERR_INIT;
        struct world w;

        (void)state;
        begin(&w);
        w.config.model = NULL;
        assert_int_equal(sla_run(&w.run, &err), -1);
        assert_int_equal(err.code, E_CONFIG);
        assert_int_equal(w.fake.starts, 0);
        end(&w);
}

/* TP=2 and TP=1 would be taken. */
static void only_what_fits_into_the_budget_is_chosen(void **state)
{
        struct err err = ERR_INIT;
        struct world w;
        struct json *result;

        (void)state;
        begin(&w);
        w.config.budget = 2;
        assert_int_equal(sla_run(&w.run, NULL), 0);
        result = file_of(&w, RUN_RESULT_FILE);
        assert_string_equal(json_str(json_at(result, "prefill"), "label"), "TP=1");
        assert_string_equal(json_str(json_at(result, "decode"), "label"), "TP=1");
        assert_int_equal(json_int(json_at(result, "replicas"), "gpus", 0), 2);
        assert_non_null(strstr(json_print(&w.arena, json_at(result, "notes")), "the budget has 2"));
        assert_non_null(strstr(json_print(&w.arena, json_at(result, "notes")),
                               "no prefill configuration that fits into the budget meets the TTFT target"));
        end(&w);

        begin(&w);
        w.config.budget = 1;
        assert_int_equal(sla_run(&w.run, &err), -1);
        assert_int_equal(err.code, E_CONFIG);
        assert_non_null(strstr(err.text, "a budget of 1 GPUs is too small"));
        assert_int_not_equal(access(arena_join(&w.arena, w.dir, "/", "config_with_planner.yaml"), F_OK), 0);
        end(&w);
}

static void a_budget_that_nobody_said_is_told_to_the_planner(void **state)
{
        _cleanup_(buf_done) struct buf text = BUF_INIT(1 << 20);
        struct world w;
        struct json *result;

        (void)state;
        begin(&w);
        w.config.budget_said = false;
        w.config.budget = 2;
        assert_int_equal(sla_run(&w.run, NULL), 0);
        result = file_of(&w, RUN_RESULT_FILE);
        assert_string_equal(json_str(json_at(result, "prefill"), "label"), "TP=2");
        assert_int_equal(json_int(json_at(result, "replicas"), "gpus", 0), 3);
        assert_int_equal(file_read(arena_join(&w.arena, w.dir, "/", "config_with_planner.yaml"), &text, NULL),
                         0);
        assert_non_null(strstr(buf_cstr(&text), "--max-gpu-budget=3"));
        end(&w);
}

static void a_run_with_too_many_points_is_refused_before_anything_is_deployed(void **state)
{
        struct err err = ERR_INIT;
        struct world w;

        (void)state;
        begin(&w);
        w.config.decode_granularity = 200;
        assert_int_equal(sla_run(&w.run, &err), -1);
        assert_int_equal(err.code, E_CONFIG);
        assert_non_null(strstr(err.text, "points to measure, and 4000 is the most"));
        assert_int_equal(w.fake.starts, 0);
        end(&w);
}

static void what_cannot_be_kept_ends_the_run(void **state)
{
        struct err err = ERR_INIT;
        struct world w;

        (void)state;
        begin(&w);
        /* a directory where the checkpoint must go: no rename will replace it */
        assert_int_equal(dir_make(arena_join(&w.arena, w.dir, "/", RUN_CHECKPOINT_FILE "/x"), 0755, NULL), 0);
        assert_int_equal(sla_run(&w.run, &err), -1);
        assert_int_equal(err.code, E_IO);
        assert_non_null(strstr(err.text, "cannot keep what was measured"));
        assert_string_equal(json_str(file_of(&w, RUN_STATUS_FILE), "phase"), "Failed");
        assert_int_equal(w.fake.starts, 1);
        end(&w);
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_candidate_is_deployed_once_a_sweep_and_once_a_curve),
        cmocka_unit_test(the_status_says_what_is_started_and_stopped),
        cmocka_unit_test(a_restart_deploys_nothing_again),
        cmocka_unit_test(stopped_at_any_deployment_it_goes_on_to_the_same_end),
        cmocka_unit_test(a_candidate_that_fails_costs_itself_only),
        cmocka_unit_test(without_any_row_it_fails_and_says_why),
        cmocka_unit_test(targets_that_nothing_meets_are_said_plainly),
        cmocka_unit_test(a_dry_run_deploys_nothing),
        cmocka_unit_test(a_dry_run_takes_a_candidate),
        cmocka_unit_test(a_run_needs_a_model),
        cmocka_unit_test(only_what_fits_into_the_budget_is_chosen),
        cmocka_unit_test(a_budget_that_nobody_said_is_told_to_the_planner),
        cmocka_unit_test(a_run_with_too_many_points_is_refused_before_anything_is_deployed),
        cmocka_unit_test(what_cannot_be_kept_ends_the_run),
};

UNIT_MAIN(tests)
