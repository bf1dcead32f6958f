#include "unit/fake_api.h"
#include "unit/unit.h"

#define PATH "/apis/coordination.k8s.io/v1/namespaces/sys/leases/sonde"
#define SEC  USEC_PER_SEC

/* A candidate, and what its callbacks said. */
struct candidate {
        struct lease *lease;
        const char *name;
        unsigned acquired, lost, released;
        char leaders[64]; /* on_new_leader, one after the other */
        usec_t lost_at;
        bool free_when_acquired, free_when_lost;
};

struct rig {
        struct clock clock;
        struct loop *loop;
        struct kube *api;
        struct metrics *metrics;
        struct candidate a, b;
        struct arena arena;
        struct buf log;
};

static struct rig *current;

static int setup(void **state)
{
        struct rig *r = xcalloc(1, sizeof(*r));

        r->loop = fake_loop(&r->clock);
        r->api = fake_new(r->loop);
        r->metrics = metrics_new();
        r->log = (struct buf)BUF_INIT(1 << 20);
        r->a.name = "a";
        r->b.name = "b";
        *state = current = r;
        return 0;
}

static int teardown(void **state)
{
        struct rig *r = *state;

        lease_free(r->a.lease);
        lease_free(r->b.lease);
        fake_free(r->api);
        metrics_free(r->metrics);
        loop_free(r->loop);
        arena_done(&r->arena);
        buf_done(&r->log);
        free(r);
        return 0;
}

static void on_acquired(void *arg)
{
        struct candidate *c = arg;

        c->acquired++;
        assert_true(lease_held(c->lease));
        if (c->free_when_acquired)
                lease_free(TAKE_PTR(c->lease));
}

static void on_lost(void *arg)
{
        struct candidate *c = arg;

        c->lost++;
        c->lost_at = current->clock.boot;
        assert_false(lease_held(c->lease));
        if (c->free_when_lost)
                lease_free(TAKE_PTR(c->lease));
}

static void on_new_leader(void *arg, const char *identity)
{
        struct candidate *c = arg;
        size_t n = strlen(c->leaders);

        snprintf(c->leaders + n, sizeof(c->leaders) - n, "%s ", identity);
}

static void on_released(void *arg)
{
        struct candidate *c = arg;

        c->released++;
}

static struct lease_config config_of(struct rig *r, struct candidate *c)
{
        return (struct lease_config){.kube = r->api,
                                     .ns = "sys",
                                     .name = "sonde",
                                     .identity = c->name,
                                     .metrics = r->metrics,
                                     .on_acquired = on_acquired,
                                     .on_lost = on_lost,
                                     .on_new_leader = on_new_leader,
                                     .arg = c};
}

static void join(struct rig *r, struct candidate *c)
{
        struct lease_config config = config_of(r, c);
        struct err err = ERR_INIT;

        c->lease = lease_new(&config, &err);
        assert_non_null(c->lease);
}

static void lead(struct rig *r, struct candidate *c)
{
        join(r, c);
        pass(r->loop, SEC);
        assert_int_equal(c->acquired, 1);
        fake_log(r->api, &r->log);
}

static struct json *spec(struct rig *r)
{
        return json_at(object_json(r->api, PATH, &r->arena), "spec");
}

static double metric(struct rig *r, const char *line_start)
{
        _cleanup_(buf_done) struct buf text = BUF_INIT(1 << 20);
        const char *found;

        metrics_write(r->metrics, &text);
        found = strstr(buf_cstr(&text), line_start);
        assert_non_null(found);
        return strtod(found + strlen(line_start), NULL);
}

static void test_a_missing_lease_is_created(void **state)
{
        struct rig *r = *state;

        join(r, &r->a);
        assert_false(lease_held(r->a.lease));
        pass(r->loop, SEC);
        assert_int_equal(r->a.acquired, 1);
        assert_true(lease_held(r->a.lease));
        assert_string_equal(lease_leader(r->a.lease), "a");
        assert_string_equal(r->a.leaders, "a ");
        assert_string_equal(json_str(spec(r), "holderIdentity"), "a");
        assert_int_equal(json_int(spec(r), "leaseDurationSeconds", 0), 15);
        assert_int_equal(json_int(spec(r), "leaseTransitions", -1), 0);
        /* MicroTime; the POST was written after the GET's two milliseconds */
        assert_string_equal(json_str(spec(r), "acquireTime"), "2026-11-15T21:43:48.125456Z");
        assert_string_equal(json_str(spec(r), "renewTime"), "2026-11-15T21:43:48.125456Z");
        assert_true(metric(r, "leader_election_master_status{name=\"sonde\"} ") == 1);
}

static void test_the_leader_renews_with_one_put_every_two_seconds(void **state)
{
        struct rig *r = *state;

        lead(r, &r->a);
        pass(r->loop, 10 * SEC);
        assert_string_equal(fake_log(r->api, &r->log),
                            "PUT " PATH "\nPUT " PATH "\nPUT " PATH "\nPUT " PATH "\nPUT " PATH "\n");
        assert_string_equal(json_str(spec(r), "acquireTime"), "2026-11-15T21:43:48.125456Z");
        assert_string_equal(json_str(spec(r), "renewTime"), "2026-11-15T21:43:58.125456Z");
        assert_int_equal(json_int(spec(r), "leaseTransitions", -1), 0);
        assert_int_equal(r->a.acquired, 1);
        assert_true(metric(r, "leader_election_slowpath_total{name=\"sonde\"} ") == 0);
}

static void test_what_others_put_into_the_lease_stays(void **state)
{
        struct rig *r = *state;

        object_patch(r->api, PATH,
                     "{'metadata': {'labels': {'team': 'x'}, 'managedFields': [1]}, 'spec': {'strategy': "
                     "'New'}}");
        lead(r, &r->a);
        pass(r->loop, 5 * SEC);
        assert_string_equal(json_str(spec(r), "strategy"), "New");
        assert_string_equal(json_str(spec(r), "holderIdentity"), "a");
        assert_string_equal(
                json_str(json_path(object_json(r->api, PATH, &r->arena), "metadata.labels"), "team"), "x");
        assert_null(json_path(object_json(r->api, PATH, &r->arena), "metadata.managedFields"));
}

static void test_a_follower_believes_its_own_clock_only(void **state)
{
        struct rig *r = *state;

        /* The times in the record are long past, then in the far future: neither matters. */
        object_patch(r->api, PATH,
                     "{'spec': {'holderIdentity': 'other', 'leaseDurationSeconds': 15, 'leaseTransitions': 3,"
                     " 'acquireTime': '2001-01-01T00:00:00.000000Z', 'renewTime': "
                     "'2001-01-01T00:00:00.000000Z'}}");
        join(r, &r->a);
        pass(r->loop, 12 * SEC);
        assert_int_equal(r->a.acquired, 0);
        assert_string_equal(lease_leader(r->a.lease), "other");
        object_patch(r->api, PATH, "{'spec': {'renewTime': '2999-01-01T00:00:00.000000Z'}}");
        pass(r->loop, 14 * SEC);
        assert_int_equal(r->a.acquired, 0);
        pass(r->loop, 6 * SEC); /* 15 s after it saw the change, at most 4.4 s after it was made */
        assert_int_equal(r->a.acquired, 1);
        assert_int_equal(json_int(spec(r), "leaseTransitions", -1), 4);
        assert_true(strncmp(json_str(spec(r), "acquireTime"), "2026-", 5) == 0);
        assert_string_equal(r->a.leaders, "other a ");
}

static void test_a_follower_is_there_when_the_lease_runs_out(void **state)
{
        struct rig *r = *state;

        object_patch(r->api, PATH, "{'spec': {'holderIdentity': 'other', 'leaseDurationSeconds': 15}}");
        join(r, &r->a);
        pass(r->loop, 14900 * USEC_PER_MS);
        assert_int_equal(r->a.acquired, 0);
        pass(r->loop, 200 * USEC_PER_MS);
        assert_int_equal(r->a.acquired, 1);
}

static void test_a_follower_polls_with_jitter(void **state)
{
        struct rig *r = *state;
        size_t before;

        lead(r, &r->b);
        join(r, &r->a);
        pass(r->loop, SEC);
        before = r->api->requests;
        pass(r->loop, 100 * SEC);
        /* 50 renewals, and a GET every 2 to 4.4 s */
        assert_in_range(r->api->requests - before - 50, 22, 51);
        assert_int_equal(r->a.acquired, 0);
        assert_int_equal(r->b.lost, 0);
}

static void test_of_two_that_create_one_leads(void **state)
{
        struct rig *r = *state;

        join(r, &r->a);
        join(r, &r->b);
        pass(r->loop, 5 * SEC);
        assert_int_equal(r->a.acquired + r->b.acquired, 1);
        assert_true(lease_held(r->a.lease) != lease_held(r->b.lease));
        assert_string_equal(lease_leader(r->a.lease), lease_leader(r->b.lease));
}

static void test_of_two_that_take_over_one_leads(void **state)
{
        struct rig *r = *state;

        object_patch(r->api, PATH, "{'spec': {'holderIdentity': '', 'leaseDurationSeconds': 1}}");
        /* Both read the same version before either writes. */
        fake_plan(r->api, (struct step){.there = SEC});
        fake_plan(r->api, (struct step){.there = SEC});
        join(r, &r->a);
        join(r, &r->b);
        pass(r->loop, 3 * SEC);
        assert_int_equal(r->a.acquired + r->b.acquired, 1);
        assert_int_equal(json_int(spec(r), "leaseTransitions", -1), 1);
}

static void test_a_leader_that_cannot_renew_gives_up_in_time(void **state)
{
        struct rig *r = *state;
        usec_t last_sent;

        lead(r, &r->a);
        last_sent = r->clock.boot - SEC +
                    2 * USEC_PER_MS; /* the POST left after the GET's two milliseconds */
        r->api->otherwise = (struct step){.fate = FATE_HANG};
        pass(r->loop, 8 * SEC + 500 * USEC_PER_MS);
        assert_true(lease_held(r->a.lease));
        assert_int_equal(r->a.lost, 0);
        pass(r->loop, SEC);
        assert_int_equal(r->a.lost, 1);
        assert_int_equal(r->a.lost_at, last_sent + 10 * SEC);
        assert_false(lease_held(r->a.lease));
        assert_true(metric(r, "leader_election_master_status{name=\"sonde\"} ") == 0);

        /* and it is over */
        fake_log(r->api, &r->log);
        r->api->otherwise = (struct step){.fate = FATE_OK};
        pass(r->loop, 60 * SEC);
        assert_string_equal(fake_log(r->api, &r->log), "");
        assert_int_equal(r->a.acquired, 1);
}

static void test_a_stopped_process_finds_out_before_anything_else(void **state)
{
        struct rig *r = *state;

        lead(r, &r->a);
        assert_true(lease_held(r->a.lease));
        r->clock.boot += 20 * SEC; /* SIGSTOP, SIGCONT: no timer has run yet */
        assert_false(lease_held(r->a.lease));
        fake_log(r->api, &r->log);
        pass(r->loop, SEC);
        assert_int_equal(r->a.lost, 1);
        assert_string_equal(fake_log(r->api, &r->log), ""); /* not even a renewal */
}

static void test_a_renewal_answered_after_a_stop_counts_from_when_it_left(void **state)
{
        struct rig *r = *state;

        lead(r, &r->a);
        r->api->otherwise = (struct step){.back = 500 * USEC_PER_MS};
        pass(r->loop, SEC + 200 * USEC_PER_MS); /* the renewal has arrived, its answer is under way */
        r->clock.boot += 9 * SEC;               /* past the end of the one before, not of this one */
        assert_false(lease_held(r->a.lease));
        pass(r->loop, 0);
        assert_true(lease_held(r->a.lease));
        assert_int_equal(r->a.lost, 0);
}

static void test_a_renewal_answered_too_late_is_none(void **state)
{
        struct rig *r = *state;

        lead(r, &r->a);
        r->api->otherwise = (struct step){.back = 500 * USEC_PER_MS};
        pass(r->loop, SEC + 200 * USEC_PER_MS);
        r->clock.boot += 11 * SEC;
        pass(r->loop, 0);
        assert_int_equal(r->a.lost, 1);
        assert_false(lease_held(r->a.lease));
}

static void test_a_slow_api_does_not_lose_the_lease(void **state)
{
        struct rig *r = *state;

        lead(r, &r->a);
        r->api->otherwise = (struct step){.there = 2 * SEC, .back = 2 * SEC};
        for (int i = 0; i < 600; i++) {
                pass(r->loop, 100 * USEC_PER_MS);
                assert_true(lease_held(r->a.lease));
        }
        assert_int_equal(r->a.lost, 0);
}

static void test_wall_clock_jumps_do_not_matter(void **state)
{
        struct rig *r = *state;

        lead(r, &r->a);
        join(r, &r->b);
        for (int i = 0; i < 4; i++) {
                r->clock.wall += (i % 2 ? -1 : 1) * (3600 * SEC);
                pass(r->loop, 10 * SEC);
                assert_true(lease_held(r->a.lease));
                assert_int_equal(r->b.acquired, 0);
        }
}

static void test_a_renewal_whose_answer_was_lost_is_recognised(void **state)
{
        struct rig *r = *state;

        lead(r, &r->a);
        fake_plan(r->api, (struct step){.fate = FATE_LOST_AFTER});
        pass(r->loop, 2 * SEC);
        assert_string_equal(fake_log(r->api, &r->log), "PUT " PATH "\nGET " PATH "\nPUT " PATH "\n");
        assert_true(lease_held(r->a.lease));
        assert_int_equal(json_int(spec(r), "leaseTransitions", -1), 0);
        assert_true(metric(r, "leader_election_slowpath_total{name=\"sonde\"} ") == 1);
        assert_int_equal(r->a.acquired, 1);
}

static void test_an_acquisition_whose_answer_was_lost_is_recognised(void **state)
{
        struct rig *r = *state;

        fake_plan(r->api, (struct step){.fate = FATE_OK}); /* the GET: 404 */
        fake_plan(r->api, (struct step){.fate = FATE_LOST_AFTER});
        join(r, &r->a);
        pass(r->loop, 6 * SEC);
        assert_int_equal(r->a.acquired, 1);
        assert_int_equal(json_int(spec(r), "leaseTransitions", -1), 0);
}

static void test_a_stolen_lease_is_lost_at_once(void **state)
{
        struct rig *r = *state;

        lead(r, &r->a);
        object_patch(r->api, PATH, "{'spec': {'holderIdentity': 'thief'}}");
        pass(r->loop, 2 * SEC);
        assert_int_equal(r->a.lost, 1);
        assert_string_equal(json_str(spec(r), "holderIdentity"), "thief");
        assert_string_equal(lease_leader(r->a.lease), "thief");
}

static void test_a_deleted_lease_is_made_again(void **state)
{
        struct rig *r = *state;

        lead(r, &r->a);
        object_delete(r->api, PATH);
        pass(r->loop, 2 * SEC);
        assert_string_equal(fake_log(r->api, &r->log),
                            "PUT " PATH "\nGET " PATH
                            "\nPOST /apis/coordination.k8s.io/v1/namespaces/sys/leases\n");
        assert_true(lease_held(r->a.lease));
        assert_int_equal(r->a.lost, 0);
        assert_string_equal(json_str(spec(r), "holderIdentity"), "a");
}

static void test_a_deleted_lease_that_another_made_is_lost(void **state)
{
        struct rig *r = *state;

        lead(r, &r->a);
        object_delete(r->api, PATH);
        join(r, &r->b);
        pass(r->loop, SEC);
        assert_int_equal(r->b.acquired, 1);
        pass(r->loop, 2 * SEC);
        assert_int_equal(r->a.lost, 1);
        assert_true(lease_held(r->b.lease));
}

static void test_release_lets_the_next_one_begin(void **state)
{
        struct rig *r = *state;

        lead(r, &r->a);
        lease_release(r->a.lease, on_released, &r->a);
        assert_false(lease_held(r->a.lease));
        assert_int_equal(r->a.released, 0); /* never from inside */
        pass(r->loop, 100 * USEC_PER_MS);
        assert_int_equal(r->a.released, 1);
        assert_int_equal(r->a.lost, 0);
        assert_string_equal(json_str(spec(r), "holderIdentity"), "");
        assert_int_equal(json_int(spec(r), "leaseDurationSeconds", 0), 1);
        assert_int_equal(json_int(spec(r), "leaseTransitions", -1), 0);
        join(r, &r->b);
        pass(r->loop, 100 * USEC_PER_MS);
        assert_int_equal(r->b.acquired, 1);
        assert_int_equal(json_int(spec(r), "leaseTransitions", -1), 1);
        pass(r->loop, 60 * SEC);
        assert_int_equal(r->a.acquired, 1);
        assert_int_equal(r->a.released, 1);
}

static void test_release_waits_for_a_renewal_under_way(void **state)
{
        struct rig *r = *state;

        lead(r, &r->a);
        r->api->otherwise = (struct step){.back = 300 * USEC_PER_MS};
        pass(r->loop, SEC + 100 * USEC_PER_MS);
        assert_string_equal(fake_log(r->api, &r->log), "PUT " PATH "\n");
        lease_release(r->a.lease, on_released, &r->a);
        pass(r->loop, SEC);
        assert_int_equal(r->a.released, 1);
        assert_string_equal(fake_log(r->api, &r->log), "PUT " PATH "\n");
        assert_string_equal(json_str(spec(r), "holderIdentity"), "");
}

static void test_release_while_the_acquisition_is_under_way(void **state)
{
        struct rig *r = *state;

        r->api->otherwise = (struct step){.back = 200 * USEC_PER_MS};
        join(r, &r->a);
        pass(r->loop, 300 * USEC_PER_MS);
        lease_release(r->a.lease, on_released, &r->a);
        pass(r->loop, SEC);
        assert_int_equal(r->a.released, 1);
        assert_int_equal(r->a.acquired, 0);
        assert_string_equal(json_str(spec(r), "holderIdentity"), "");
}

static void test_release_after_a_conflict_reads_and_tries_once_more(void **state)
{
        struct rig *r = *state;

        lead(r, &r->a);
        object_patch(r->api, PATH, "{'metadata': {'labels': {'x': 'y'}}}");
        lease_release(r->a.lease, on_released, &r->a);
        pass(r->loop, SEC);
        assert_int_equal(r->a.released, 1);
        assert_string_equal(fake_log(r->api, &r->log), "PUT " PATH "\nGET " PATH "\nPUT " PATH "\n");
        assert_string_equal(json_str(spec(r), "holderIdentity"), "");
}

static void test_release_never_touches_the_lease_of_another(void **state)
{
        struct rig *r = *state;

        lead(r, &r->a);
        object_patch(r->api, PATH, "{'spec': {'holderIdentity': 'thief'}}");
        lease_release(r->a.lease, on_released, &r->a);
        pass(r->loop, SEC);
        assert_int_equal(r->a.released, 1);
        assert_int_equal(r->a.lost, 0);
        assert_string_equal(json_str(spec(r), "holderIdentity"), "thief");
}

static void test_release_has_patience_for_two_seconds(void **state)
{
        struct rig *r = *state;

        lead(r, &r->a);
        r->api->otherwise = (struct step){.fate = FATE_HANG};
        lease_release(r->a.lease, on_released, &r->a);
        pass(r->loop, 1999 * USEC_PER_MS);
        assert_int_equal(r->a.released, 0);
        pass(r->loop, 2 * USEC_PER_MS);
        assert_int_equal(r->a.released, 1);
}

static void test_a_follower_has_nothing_to_release(void **state)
{
        struct rig *r = *state;

        lead(r, &r->b);
        join(r, &r->a);
        pass(r->loop, SEC);
        lease_release(r->a.lease, on_released, &r->a);
        pass(r->loop, 0);
        assert_int_equal(r->a.released, 1);
        assert_true(lease_held(r->b.lease));
        assert_string_equal(json_str(spec(r), "holderIdentity"), "b");
}

static void test_errors_are_retried_while_the_lease_lasts(void **state)
{
        struct rig *r = *state;

        lead(r, &r->a);
        r->api->otherwise = (struct step){.fate = FATE_ERROR, .code = E_SERVER};
        pass(r->loop, 6 * SEC);
        r->api->otherwise = (struct step){.fate = FATE_OK};
        pass(r->loop, 30 * SEC);
        assert_int_equal(r->a.lost, 0);
        assert_true(lease_held(r->a.lease));
}

static void test_an_unreachable_api_is_asked_with_pauses(void **state)
{
        struct rig *r = *state;

        r->api->otherwise = (struct step){.fate = FATE_ERROR, .code = E_CONNECT};
        join(r, &r->a);
        pass(r->loop, 100 * SEC);
        assert_in_range(r->api->requests, 22, 51);
        r->api->otherwise = (struct step){.fate = FATE_OK};
        pass(r->loop, 5 * SEC);
        assert_int_equal(r->a.acquired, 1);
}

static void test_a_callback_may_free_it(void **state)
{
        struct rig *r = *state;

        r->a.free_when_acquired = true;
        join(r, &r->a);
        pass(r->loop, 5 * SEC);
        assert_int_equal(r->a.acquired, 1);
        assert_null(r->a.lease);

        r->b.free_when_lost = true;
        object_delete(r->api, PATH);
        lead(r, &r->b);
        r->api->otherwise = (struct step){.fate = FATE_HANG};
        pass(r->loop, 20 * SEC);
        assert_int_equal(r->b.lost, 1);
        assert_null(r->b.lease);
}

static void test_a_config_that_cannot_be_safe_is_refused(void **state)
{
        struct rig *r = *state;
        struct lease_config c = config_of(r, &r->a);
        struct err err = ERR_INIT;

        c.duration = 10 * SEC; /* not longer than the default deadline */
        assert_null(lease_new(&c, &err));
        assert_int_equal(err.code, E_CONFIG);
        assert_string_equal(err.text, "lease sonde: the duration must be longer than the renew deadline");
        c = config_of(r, &r->a);
        c.retry_period = 9 * SEC;
        assert_null(lease_new(&c, &err));
        assert_string_equal(err.text,
                            "lease sonde: the renew deadline must be longer than 1.2 times the retry period");
        c = config_of(r, &r->a);
        c.identity = "";
        assert_null(lease_new(&c, &err));
        assert_string_equal(err.text, "a lease needs a namespace, a name and an identity");
}

static void test_an_answer_without_a_version_is_no_answer(void **state)
{
        struct rig *r = *state;
        struct object *o;

        object_patch(r->api, PATH, "{'spec': {}}");
        o = object_get(r->api, PATH);
        free(o->body);
        o->body = xstrdup("{\"metadata\": {\"name\": \"sonde\"}, \"spec\": {}}");
        join(r, &r->a);
        pass(r->loop, SEC);
        assert_string_equal(fake_log(r->api, &r->log), "GET " PATH "\n");
        free(o->body);
        o->body = xstrdup("<html>");
        pass(r->loop, 5 * SEC);
        assert_null(strstr(fake_log(r->api, &r->log), "PUT"));
        assert_int_equal(r->a.acquired, 0);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

static const struct CMUnitTest tests[] = {
        T(test_a_missing_lease_is_created),
        T(test_the_leader_renews_with_one_put_every_two_seconds),
        T(test_what_others_put_into_the_lease_stays),
        T(test_a_follower_believes_its_own_clock_only),
        T(test_a_follower_is_there_when_the_lease_runs_out),
        T(test_a_follower_polls_with_jitter),
        T(test_of_two_that_create_one_leads),
        T(test_of_two_that_take_over_one_leads),
        T(test_a_leader_that_cannot_renew_gives_up_in_time),
        T(test_a_stopped_process_finds_out_before_anything_else),
        T(test_a_renewal_answered_after_a_stop_counts_from_when_it_left),
        T(test_a_renewal_answered_too_late_is_none),
        T(test_a_slow_api_does_not_lose_the_lease),
        T(test_wall_clock_jumps_do_not_matter),
        T(test_a_renewal_whose_answer_was_lost_is_recognised),
        T(test_an_acquisition_whose_answer_was_lost_is_recognised),
        T(test_a_stolen_lease_is_lost_at_once),
        T(test_a_deleted_lease_is_made_again),
        T(test_a_deleted_lease_that_another_made_is_lost),
        T(test_release_lets_the_next_one_begin),
        T(test_release_waits_for_a_renewal_under_way),
        T(test_release_while_the_acquisition_is_under_way),
        T(test_release_after_a_conflict_reads_and_tries_once_more),
        T(test_release_never_touches_the_lease_of_another),
        T(test_release_has_patience_for_two_seconds),
        T(test_a_follower_has_nothing_to_release),
        T(test_errors_are_retried_while_the_lease_lasts),
        T(test_an_unreachable_api_is_asked_with_pauses),
        T(test_a_callback_may_free_it),
        T(test_a_config_that_cannot_be_safe_is_refused),
        T(test_an_answer_without_a_version_is_no_answer),
};

UNIT_MAIN(tests)
