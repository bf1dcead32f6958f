/* A report made by hand: what the files and the table say of it. */
#include "unit/unit.h"

#include "probe/load/load.h"
#include "unit/dir.h"

#define MS(n) ((uint64_t)((n)*1000000))

enum { N = 6 };

/* Two that succeeded, two that failed, one that the end cut off, and one of the warm-up. */
struct made {
        struct load_config config;
        struct load_report report;
        struct load_record records[N];
};

static const uint64_t chunks_a[] = {MS(1010), MS(1020), MS(1040)};
static const uint64_t chunks_b[] = {MS(1120), MS(1130)};
static const char body_a[] = "{\"model\":\"m\",\"prompt\":\"one\"}", body_b[] = "{\"model\":\"m\"}";
static const struct str inputs[] = {{body_a, sizeof(body_a) - 1}, {body_b, sizeof(body_b) - 1}};
static const struct load_slo slos[] = {{LOAD_TTFT, 10}};

static const struct load_record records[N] = {
        {.warmup = true,
         .start = MS(900),
         .due = MS(900),
         .end = MS(950),
         .chunks = chunks_a,
         .n_chunks = 3,
         .osl = 3},
        {.number = 0,
         .worker = 1,
         .input = 0,
         .due = MS(999.5),
         .start = MS(1000),
         .ack = MS(1005),
         .end = MS(1041),
         .chunks = chunks_a,
         .n_chunks = 3,
         .isl = 50,
         .osl = 4,
         .osl_exact = true,
         .status = 200},
        {.number = 1,
         .input = 1,
         .due = MS(1100),
         .start = MS(1100),
         .ack = MS(1101),
         .end = MS(1141),
         .chunks = chunks_b,
         .n_chunks = 2,
         .isl = 100,
         .osl = 2,
         .osl_exact = true,
         .status = 200},
        {.number = 2,
         .due = MS(1150),
         .start = MS(1150),
         .end = MS(1160),
         .isl = 70,
         .status = 429,
         .error = "slow \"down\", please\nnow",
         .error_kind = "HTTP 429"},
        {.number = 3,
         .due = MS(1160),
         .start = MS(1160),
         .end = MS(1170),
         .isl = 70,
         .status = 200,
         .error = "the connection broke",
         .error_kind = "ConnectionLost"},
        {.number = 4, .due = MS(1200), .start = MS(1200), .end = MS(1300), .isl = 70, .canceled = true},
};

static void make(struct made *m)
{
        static const struct http_header secret = {{"Authorization", 13}, {"Bearer sesame", 13}};
        double stamps[] = {2, 4};

        *m = (struct made){
                .config = {.url = "http://user:open@host:8000/v1?key=sesame",
                           .model = "m",
                           .headers = &secret,
                           .n_headers = 1,
                           .rate = 10,
                           .pattern = ARRIVE_POISSON,
                           .concurrency = 3,
                           .requests = 5,
                           .osl = 4,
                           .seed = 9,
                           .slos = slos,
                           .n_slos = 1,
                           .stop_fd = -1},
                .report = {.n = N,
                           .inputs = inputs,
                           .n_inputs = 2,
                           .tokenizer = "builtin",
                           .kernel_stamps = true,
                           .wall_began = 1700000000ull * 1000000,
                           .clock_began = MS(500),
                           .cpu = 0.25,
                           .cpu_seconds = 1.5,
                           .chunks = 5},
        };
        memcpy(m->records, records, sizeof(records));
        m->report.records = m->records;
        assert_true(stats_summarize(stamps, 2, &m->report.stamp_error));
        assert_true(load_summarize(records, 1, slos, 1, &m->report.warmup));
        m->report.has_numbers = load_summarize(records + 1, N - 1, slos, 1, &m->report.summary);
}

static struct json *summary(struct arena *a, const struct made *m)
{
        return load_summary_json(a, &m->config, &m->report);
}

static double number(const struct json *object, const char *key)
{
        double value = -1;

        assert_true(json_to_double(json_at(object, key), &value));
        return value;
}

static void assert_near(double a, double b)
{
        if (!(a - b < 1e-6 && b - a < 1e-6))
                fail_msg("%.12g is not %.12g", a, b);
}

static void assert_single(const struct json *root, const char *tag, const char *unit, double avg)
{
        const struct json *metric = json_at(root, tag);

        assert_string_equal(json_str(metric, "unit"), unit);
        assert_near(number(metric, "avg"), avg);
        assert_int_equal(json_len(metric), 2);
}

static void test_the_summary_has_a_member_for_each_metric(void **state)
{
        static const char *const keys[] = {"avg", "min", "max", "p1",  "p5",  "p10",   "p25", "p50",
                                           "p75", "p90", "p95", "p99", "std", "count", "sum"};
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct made m;
        struct json *root, *ttft;

        make(&m);
        root = summary(&a, &m);
        ttft = json_at(root, "time_to_first_token");
        assert_string_equal(json_str(ttft, "unit"), "ms");
        for (size_t i = 0; i < ARRAY_LEN(keys); i++)
                (void)number(ttft, keys[i]);
        assert_near(number(ttft, "avg"), 15);
        assert_near(number(ttft, "min"), 10);
        assert_near(number(ttft, "p90"), 19);
        assert_near(number(ttft, "std"), 5);
        assert_near(number(json_at(root, "inter_token_latency"), "avg"), 10);
        assert_near(number(json_at(root, "inter_chunk_latency"), "count"), 3);
        assert_single(root, "request_count", "requests", 2);
        assert_single(root, "error_request_count", "requests", 2);
        assert_single(root, "good_request_count", "requests", 1);
        assert_single(root, "benchmark_duration", "sec", 0.141);
        assert_single(root, "request_throughput", "requests/sec", 2 / 0.141);
        assert_single(root, "output_token_throughput", "tokens/sec", 6 / 0.141);
        assert_single(root, "goodput", "requests/sec", 1 / 0.141);
        assert_single(root, "total_isl", "tokens", 150);
        assert_single(root, "total_osl", "tokens", 6);
        assert_near(number(json_at(json_at(root, "warmup_metrics"), "request_count"), "avg"), 1);
}

static void test_the_summary_says_what_failed_and_when_it_ran(void **state)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct made m;
        struct json *root, *errors, *first = NULL;

        make(&m);
        root = summary(&a, &m);
        errors = json_at(root, "error_summary");
        assert_int_equal(json_len(errors), 3);
        json_foreach (e, errors) {
                assert_int_equal(json_int(e, "count", 0), 1);
                if (json_int(json_at(e, "error_details"), "code", 0) == 429)
                        first = json_at(e, "error_details");
        }
        assert_string_equal(json_str(first, "type"), "HTTP 429");
        assert_string_equal(json_str(first, "message"), "slow \"down\", please\nnow");
        assert_false(json_bool(root, "was_cancelled", true));
        assert_string_equal(json_str(root, "start_time"), "2023-11-14T22:13:20.500000+00:00");
        assert_string_equal(json_str(root, "end_time"), "2023-11-14T22:13:20.800000+00:00");
}

static void test_what_is_ours_stands_by_itself(void **state)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct made m;
        struct json *ours;

        make(&m);
        ours = json_at(summary(&a, &m), "sonde");
        assert_true(json_is(json_at(ours, "invalid"), JSON_NULL));
        assert_null(json_at(ours, "simulated"));
        assert_true(json_bool(ours, "osl_exact", false));
        assert_true(json_bool(ours, "kernel_stamps", false));
        assert_near(number(json_at(ours, "lateness_us"), "max"), 500);
        assert_near(number(json_at(ours, "stamp_error_us"), "avg"), 3);
        assert_near(number(ours, "client_cpu"), 0.25);
        assert_int_equal(json_int(ours, "cancelled_request_count", 0), 1);

        assert_int_equal(json_int(ours, "unsent_request_count", -1), 0);
        assert_int_equal(json_int(ours, "requests_without_icl", -1), 0);
        assert_near(number(ours, "shared_first_reads"), 0);
        assert_true(json_is(json_at(ours, "ended_early"), JSON_NULL));

        m.report.simulated = true; /* the server's own word */
        assert_true(json_bool(json_at(summary(&a, &m), "sonde"), "simulated", false));
        m.report.simulated = false;
        m.report.invalid = "the client was late";
        m.report.ended_early = "memory";
        m.report.unsent = 7;
        m.config.simulated = true;
        ours = json_at(summary(&a, &m), "sonde");
        assert_int_equal(json_int(ours, "unsent_request_count", 0), 7);
        assert_string_equal(json_str(ours, "ended_early"), "memory");
        assert_false(json_bool(summary(&a, &m), "was_cancelled", true));
        assert_string_equal(json_str(ours, "invalid"), "the client was late");
        assert_true(json_bool(ours, "simulated", false));
}

static void test_no_secret_is_exported(void **state)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        _cleanup_(buf_done) struct buf table = BUF_INIT(1 << 16);
        struct made m;
        struct json *root;

        make(&m);
        root = summary(&a, &m);
        assert_string_equal(json_str(json_at(json_at(root, "input_config"), "endpoint"), "url"),
                            "http://host:8000/v1");
        assert_null(strstr(json_print(&a, root), "sesame"));
        assert_null(strstr(json_print(&a, root), "open@"));
        load_print(&m.config, &m.report, &table);
        assert_null(strstr(buf_cstr(&table), "sesame"));
}

static void test_a_run_in_which_all_failed(void **state)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        _cleanup_(buf_done) struct buf table = BUF_INIT(1 << 16);
        struct made m;
        struct json *root;

        make(&m);
        m.report.records += 3;
        m.report.n = 2;
        m.report.has_numbers = load_summarize(m.report.records, 2, slos, 1, &m.report.summary);
        m.report.warmup = (struct load_summary){0};
        assert_false(m.report.has_numbers);
        root = summary(&a, &m);
        assert_null(json_at(root, "time_to_first_token"));
        assert_null(json_at(root, "request_throughput"));
        assert_null(json_at(root, "warmup_metrics"));
        assert_single(root, "error_request_count", "requests", 2);
        load_print(&m.config, &m.report, &table);
        assert_non_null(strstr(buf_cstr(&table), "no request succeeded"));
}

/* ---- files */

static char *read_back(struct arena *a, const char *dir, const char *name)
{
        _cleanup_(buf_done) struct buf text = BUF_INIT(1 << 20);
        struct err err = ERR_INIT;

        if (file_read(arena_printf(a, "%s/%s", dir, name), &text, &err) < 0)
                fail_msg("%s", err.text);
        return arena_strdup(a, buf_cstr(&text));
}

static void export(const struct made *m, char dir[UNIT_DIR_LEN + 8])
{
        struct err err = ERR_INIT;
        char base[UNIT_DIR_LEN];

        unit_dir(base);
        snprintf(dir, UNIT_DIR_LEN + 8, "%s/a/b", base);
        if (load_export(&m->config, &m->report, dir, &err) < 0)
                fail_msg("%s", err.text);
}

static void test_the_file_of_the_summary_is_the_summary(void **state)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        char dir[UNIT_DIR_LEN + 8];
        struct made m;
        struct json *root;

        make(&m);
        export(&m, dir);
        root = json_parse(&a, str_of(read_back(&a, dir, "profile_export_aiperf.json")), NULL, NULL);
        assert_true(json_equal(root, summary(&a, &m)));
}

static struct json *line_of(struct arena *a, char *text, unsigned wanted)
{
        struct str rest = str_of(text);

        for (unsigned i = 0; rest.n; i++) {
                struct str line = str_split(&rest, '\n');
                struct json *j = json_parse(a, line, NULL, NULL);

                assert_non_null(j);
                if (i == wanted)
                        return j;
        }
        return NULL;
}

static void test_a_line_for_each_request_but_those_of_the_warm_up(void **state)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        char dir[UNIT_DIR_LEN + 8], *text;
        struct made m;
        struct json *one, *meta, *metrics, *gaps;

        make(&m);
        export(&m, dir);
        text = read_back(&a, dir, "profile_export.jsonl");
        assert_null(line_of(&a, text, 5));
        one = line_of(&a, text, 0);
        meta = json_at(one, "metadata");
        assert_int_equal(json_int(meta, "session_num", -1), 0);
        assert_string_equal(json_str(meta, "conversation_id"), "session_000000");
        assert_int_equal(json_int(meta, "request_start_ns", 0), 1700000000500000000);
        assert_int_equal(json_int(meta, "request_ack_ns", 0), 1700000000505000000);
        assert_int_equal(json_int(meta, "request_end_ns", 0), 1700000000541000000);
        assert_string_equal(json_str(meta, "worker_id"), "worker_1");
        assert_string_equal(json_str(meta, "benchmark_phase"), "profiling");
        assert_false(json_bool(meta, "was_cancelled", true));
        assert_true(json_is(json_at(meta, "cancellation_time_ns"), JSON_NULL));
        metrics = json_at(one, "metrics");
        assert_near(number(json_at(metrics, "time_to_first_token"), "value"), 10);
        assert_string_equal(json_str(json_at(metrics, "time_to_first_token"), "unit"), "ms");
        assert_near(number(json_at(metrics, "output_sequence_length"), "value"), 4);
        gaps = json_at(json_at(metrics, "inter_chunk_latency"), "value");
        assert_int_equal(json_len(gaps), 2);
        assert_string_equal(json_print(&a, gaps), "[10,20]");
        assert_true(json_is(json_at(one, "error"), JSON_NULL));
        assert_near(number(json_at(one, "sonde"), "lateness_us"), 500);
}

/* Written digit by digit, they are what their nanoseconds divided by a million are. */
static void test_gaps_of_any_length(void **state)
{
        static const uint64_t gaps[] = {
                1,       10,       100,       999999,     1000000,          1000001,
                1500000, 20000000, 123456789, 1000000000, 9007199254740993, 1000000000000000000};
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        char dir[UNIT_DIR_LEN + 8];
        uint64_t chunks[ARRAY_LEN(gaps) + 1] = {MS(1000)};
        struct json *list;
        struct made m;

        make(&m);
        for (size_t i = 0; i < ARRAY_LEN(gaps); i++)
                chunks[i + 1] = chunks[i] + gaps[i];
        m.records[1].chunks = chunks;
        m.records[1].n_chunks = ARRAY_LEN(chunks);
        export(&m, dir);
        list = json_at(json_at(json_at(line_of(&a, read_back(&a, dir, "profile_export.jsonl"), 0), "metrics"),
                               "inter_chunk_latency"),
                       "value");
        assert_string_equal(json_print(&a, list),
                            "[0.000001,0.00001,0.0001,0.999999,1,1.000001,1.5,20,123.456789,1000,"
                            "9007199254.740993,1000000000000]");
}

static void test_lines_of_requests_that_failed(void **state)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        char dir[UNIT_DIR_LEN + 8], *text;
        struct made m;
        struct json *refused, *lost, *cut;

        make(&m);
        m.report.invalid = "too slow";
        export(&m, dir);
        text = read_back(&a, dir, "profile_export.jsonl");
        refused = line_of(&a, text, 2);
        assert_int_equal(json_int(json_at(refused, "error"), "code", 0), 429);
        assert_near(number(json_at(json_at(refused, "metrics"), "error_isl"), "value"), 70);
        assert_int_equal(json_len(json_at(refused, "metrics")), 1);
        assert_true(json_is(json_at(json_at(refused, "metadata"), "request_ack_ns"), JSON_NULL));
        lost = line_of(&a, text, 3);
        assert_true(json_is(json_at(json_at(lost, "error"), "code"), JSON_NULL));
        assert_string_equal(json_str(json_at(lost, "error"), "type"), "ConnectionLost");
        cut = line_of(&a, text, 4);
        assert_true(json_bool(json_at(cut, "metadata"), "was_cancelled", false));
        assert_int_equal(json_int(json_at(cut, "error"), "code", 0), 499);
        assert_int_equal(json_int(json_at(cut, "metadata"), "cancellation_time_ns", 0), 1700000000800000000);
        assert_true(json_bool(json_at(cut, "sonde"), "invalid", false));
}

static void test_inputs_are_the_bodies(void **state)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        char dir[UNIT_DIR_LEN + 8];
        struct made m;
        struct json *data;

        make(&m);
        export(&m, dir);
        data = json_at(json_parse(&a, str_of(read_back(&a, dir, "inputs.json")), NULL, NULL), "data");
        assert_int_equal(json_len(data), 2);
        assert_string_equal(json_str(json_index(data, 1), "session_id"), "session_000001");
        assert_string_equal(json_str(json_index(json_at(json_index(data, 0), "payloads"), 0), "prompt"),
                            "one");

        m.report.n_inputs = 0;
        export(&m, dir);
        data = json_at(json_parse(&a, str_of(read_back(&a, dir, "inputs.json")), NULL, NULL), "data");
        assert_true(json_is(data, JSON_ARRAY));
}

static const char csv[] =
        "Metric,avg,min,max,p1,p5,p10,p25,p50,p75,p90,p95,p99,std\r\n"
        "Input Sequence Length "
        "(tokens),75.00,50.00,100.00,50.50,52.50,55.00,62.50,75.00,87.50,95.00,97.50,99.50,25.00\r\n"
        "Inter Chunk Latency "
        "(ms),13.33,10.00,20.00,10.00,10.00,10.00,10.00,10.00,15.00,18.00,19.00,19.80,4.71\r\n"
        "Inter Token Latency "
        "(ms),10.00,10.00,10.00,10.00,10.00,10.00,10.00,10.00,10.00,10.00,10.00,10.00,0.00\r\n"
        "Output Sequence Length (tokens),3.00,2.00,4.00,2.02,2.10,2.20,2.50,3.00,3.50,3.80,3.90,3.98,1.00\r\n"
        "Output Token Throughput Per User "
        "(tokens/sec/user),100.00,100.00,100.00,100.00,100.00,100.00,100.00,100.00,"
        "100.00,100.00,100.00,100.00,0.00\r\n"
        "Prefill Throughput "
        "(tokens/sec),5000.00,5000.00,5000.00,5000.00,5000.00,5000.00,5000.00,5000.00,5000.00,"
        "5000.00,5000.00,5000.00,0.00\r\n"
        "Request Latency "
        "(ms),35.00,30.00,40.00,30.10,30.50,31.00,32.50,35.00,37.50,39.00,39.50,39.90,5.00\r\n"
        "Time to First Token "
        "(ms),15.00,10.00,20.00,10.10,10.50,11.00,12.50,15.00,17.50,19.00,19.50,19.90,5.00\r\n"
        "Time to Second Token "
        "(ms),10.00,10.00,10.00,10.00,10.00,10.00,10.00,10.00,10.00,10.00,10.00,10.00,0.00\r\n"
        "\r\n"
        "Metric,Value\r\n"
        "Benchmark Duration (sec),0.14\r\n"
        "Error Request Count,2.00\r\n"
        "Good Request Count,1.00\r\n"
        "Goodput (requests/sec),7.09\r\n"
        "Output Token Throughput (tokens/sec),42.55\r\n"
        "Request Count,2.00\r\n"
        "Request Throughput (requests/sec),14.18\r\n"
        "Total Input Sequence Length (tokens),150.00\r\n"
        "Total Output Sequence Length (tokens),6.00\r\n";

static void test_the_csv_line_by_line(void **state)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        char dir[UNIT_DIR_LEN + 8];
        const char *text;
        struct made m;

        make(&m);
        export(&m, dir);
        assert_string_equal(read_back(&a, dir, "profile_export_aiperf.csv"), csv);

        m.report.invalid = "late, and \"busy\"";
        export(&m, dir);
        text = read_back(&a, dir, "profile_export_aiperf.csv");
        assert_memory_equal(text, csv, strlen(csv));
        assert_string_equal(text + strlen(csv),
                            "\r\n\r\nSonde,Value\r\nInvalid,\"late, and \"\"busy\"\"\"\r\n");
}

static void test_a_folder_that_cannot_be(void **state)
{
        struct err err = ERR_INIT;
        struct made m;

        make(&m);
        assert_true(load_export(&m.config, &m.report, "/dev/null/artifacts", &err) < 0);
        assert_int_equal(err.code, E_IO);
}

/* ---- people */

static void test_the_table(void **state)
{
        _cleanup_(buf_done) struct buf out = BUF_INIT(1 << 16);
        struct made m;

        make(&m);
        load_print(&m.config, &m.report, &out);
        assert_string_equal(
                buf_cstr(&out),
                "m at http://host:8000/v1 · poisson, 10 requests/s · concurrency 3\n"
                "\n"
                "                                     avg       p50       p90       p99       std\n"
                "Time to first token, ms            15.00     15.00     19.00     19.90     5.000\n"
                "Time to second token, ms           10.00     10.00     10.00     10.00         0\n"
                "Request latency, ms                35.00     35.00     39.00     39.90     5.000\n"
                "Inter-token latency, ms            10.00     10.00     10.00     10.00         0\n"
                "Inter-chunk latency, ms            13.33     10.00     18.00     19.80     4.714\n"
                "Output tokens/s per user           100.0     100.0     100.0     100.0         0\n"
                "Prefill tokens/s                   5 000     5 000     5 000     5 000         0\n"
                "Output length, tokens              3.000     3.000     3.800     3.980     1.000\n"
                "Input length, tokens               75.00     75.00     95.00     99.50     25.00\n"
                "\n"
                "2 requests in 0.1410 s · 14.18 requests/s · 42.55 tokens/s\n"
                "goodput: 1 request within the service levels · 7.092 requests/s\n"
                "failed: 1 ConnectionLost: the connection broke\n"
                "        1 HTTP 429: slow \"down\", please now\n"
                "        1 RequestCancellationError: the run ended before its answer\n"
                "client: CPU 25 % of its busiest worker · times of the kernel, read 3.000 us later\n"
                "        sent 0 us after the schedule, p99 480.0 us\n");
}

static void test_the_table_says_what_must_not_be_missed(void **state)
{
        _cleanup_(buf_done) struct buf out = BUF_INIT(1 << 16);
        struct made m;
        const char *text;

        make(&m);
        m.report.invalid = "p99 of lateness is 12 ms";
        m.report.stopped = true;
        m.report.summary.osl_exact = false;
        m.config.simulated = true;
        load_print(&m.config, &m.report, &out);
        text = buf_cstr(&out);
        assert_non_null(strstr(text, "\nINVALID: p99 of lateness is 12 ms\n"));
        assert_non_null(strstr(text, "SIMULATED"));
        assert_non_null(strstr(text, "stopped before the end"));
        assert_non_null(strstr(text, "estimated"));
}

static void test_many_kinds_of_failures_are_bounded(void **state)
{
        enum { MANY = 300 };
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        _cleanup_(buf_done) struct buf out = BUF_INIT(1 << 16);
        struct load_record *many = arena_new_array(&a, struct load_record, MANY);
        struct made m;
        struct json *errors;
        int64_t all = 0;

        make(&m);
        for (unsigned i = 0; i < MANY; i++)
                many[i] = (struct load_record){.error = arena_printf(&a, "failure %u", i),
                                               .error_kind = arena_printf(&a, "Kind%u", i)};
        m.report.records = many;
        m.report.n = MANY;
        errors = json_at(summary(&a, &m), "error_summary");
        assert_int_equal(json_len(errors), 100);
        json_foreach (e, errors)
                all += json_int(e, "count", 0);
        assert_int_equal(all, MANY);
        load_print(&m.config, &m.report, &out);
        assert_non_null(strstr(buf_cstr(&out), "of other kinds\n"));
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_summary_has_a_member_for_each_metric),
        cmocka_unit_test(test_the_summary_says_what_failed_and_when_it_ran),
        cmocka_unit_test(test_what_is_ours_stands_by_itself),
        cmocka_unit_test(test_no_secret_is_exported),
        cmocka_unit_test(test_a_run_in_which_all_failed),
        cmocka_unit_test(test_the_file_of_the_summary_is_the_summary),
        cmocka_unit_test(test_a_line_for_each_request_but_those_of_the_warm_up),
        cmocka_unit_test(test_gaps_of_any_length),
        cmocka_unit_test(test_lines_of_requests_that_failed),
        cmocka_unit_test(test_inputs_are_the_bodies),
        cmocka_unit_test(test_the_csv_line_by_line),
        cmocka_unit_test(test_a_folder_that_cannot_be),
        cmocka_unit_test(test_the_table),
        cmocka_unit_test(test_the_table_says_what_must_not_be_missed),
        cmocka_unit_test(test_many_kinds_of_failures_are_bounded),
};
UNIT_MAIN(tests)
