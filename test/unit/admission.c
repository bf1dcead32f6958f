/*
 * Who may begin: requests that say what they want, and are told where they stand.
 */
#include "unit/unit.h"

#include "operator/admission.h"

#define MINUTE (60 * USEC_PER_SEC)
#define NOON   ((usec_t)1794744000 * USEC_PER_SEC)

enum { MAX_REQUESTS = 2500 };

struct req {
        char ns[8], key[24], uid[24];
        int64_t priority;
        usec_t since;
        enum admission_stand stand;
        bool there, dirty, admitted;
        usec_t ends;                   /* what is known of its end */
        char position[8], reason[256]; /* as it was told */
        usec_t starts;                 /* the same */
};

struct rig {
        struct admissions *s;
        struct admission_limits limits;
        struct metrics *metrics;
        struct arena arena;
        usec_t now;
        struct req reqs[MAX_REQUESTS];
        struct map by_key;
        size_t n;
        unsigned again; /* calls */
        size_t begun[MAX_REQUESTS], n_begun;
};

static struct rig *rig_of_callback;

static struct admission_id id_of(struct rig *r, const struct req *q)
{
        return (struct admission_id){r, "tr", str_of(q->key), q->uid};
}

static void on_again(void *of, struct str key)
{
        struct rig *r = of;
        struct req *q = map_get(&r->by_key, key);

        assert_ptr_equal(r, rig_of_callback);
        assert_non_null(q);
        q->dirty = true;
        r->again++;
}

static void limit(struct rig *r, unsigned runs, unsigned of_ns)
{
        const struct admissions_config config = {
                .limits = {runs, of_ns}, .again = on_again, .metrics = r->metrics};

        admissions_free(r->s);
        r->limits = config.limits;
        r->s = admissions_new(&config);
        rig_of_callback = r;
}

static int setup(void **state)
{
        struct rig *r = xcalloc(1, sizeof(*r));

        r->metrics = metrics_new();
        r->now = NOON;
        *state = r;
        return 0;
}

static int teardown(void **state)
{
        struct rig *r = *state;

        admissions_free(r->s);
        metrics_free(r->metrics);
        map_done(&r->by_key);
        arena_done(&r->arena);
        free(r);
        return 0;
}

static struct req *add(struct rig *r, const char *ns, const char *name, int64_t priority, usec_t since)
{
        struct req *q = &r->reqs[r->n++];

        assert_in_range(r->n, 1, MAX_REQUESTS);
        *q = (struct req){.priority = priority, .since = since, .stand = ADMISSION_WAITS, .there = true};
        snprintf(q->ns, sizeof(q->ns), "%s", ns);
        snprintf(q->key, sizeof(q->key), "%s/%s", ns, name);
        snprintf(q->uid, sizeof(q->uid), "uid-%zu", r->n);
        map_put(&r->by_key, str_of(q->key), q);
        return q;
}

static void tell(struct rig *r, struct req *q)
{
        const struct admission_id id = id_of(r, q);
        const struct admission_wish wish = {q->stand, q->priority, q->since, q->ends, r->now};

        admissions_tell(r->s, &id, &wish);
}

static struct admission place(struct rig *r, const struct req *q)
{
        const struct admission_id id = id_of(r, q);

        return admissions_place(r->s, &id, &r->arena);
}

/* As the operator does it. */
static void decide(struct rig *r, struct req *q)
{
        struct admission is;

        q->dirty = false;
        if (!q->there)
                return;
        tell(r, q);
        is = place(r, q);
        if (q->stand == ADMISSION_WAITS && is.admitted) {
                r->begun[r->n_begun++] = (size_t)(q - r->reqs);
                q->stand = ADMISSION_HOLDS;
                tell(r, q);
        }
        q->admitted = is.admitted;
        q->starts = is.starts;
        snprintf(q->position, sizeof(q->position), "%s", admission_position(is.position));
        snprintf(q->reason, sizeof(q->reason), "%s", is.reason ? is.reason : "");
        arena_reset(&r->arena, SIZE_MAX);
}

static void decide_dirty(struct rig *r)
{
        for (bool any = true; any;) {
                any = false;
                for (size_t i = 0; i < r->n; i++)
                        if (r->reqs[i].dirty) {
                                decide(r, &r->reqs[i]);
                                any = true;
                        }
        }
}

static void lead(struct rig *r)
{
        admissions_reset(r->s);
        for (size_t i = 0; i < r->n; i++) {
                const struct admission_id id = id_of(r, &r->reqs[i]);

                if (r->reqs[i].there)
                        admissions_await(r->s, &id);
        }
        admissions_all_known(r->s);
}

static struct req *make(struct rig *r, const char *ns, const char *name, int64_t priority, usec_t since)
{
        struct req *q = add(r, ns, name, priority, since);

        decide(r, q);
        decide_dirty(r);
        return q;
}

static void end(struct rig *r, struct req *q)
{
        q->stand = ADMISSION_NONE;
        decide(r, q);
        decide_dirty(r);
}

static void assert_told(const struct req *q, const char *position, const char *reason)
{
        assert_string_equal(q->position, position);
        assert_string_equal(q->reason, reason);
}

/* ---- when */

static void expect_end(struct rig *r, struct req *q, usec_t ends)
{
        q->ends = ends;
        decide(r, q);
        decide_dirty(r);
}

static void the_nth_in_line_begins_when_the_nth_ends(void **state)
{
        struct rig *r = *state;
        struct req *a, *b, *first, *second, *third;

        limit(r, 2, 0);
        lead(r);
        a = make(r, "a", "a", 5, NOON);
        b = make(r, "b", "b", 5, NOON);
        first = make(r, "a", "first", 5, NOON + 1);
        second = make(r, "b", "second", 5, NOON + 2);
        third = make(r, "b", "third", 5, NOON + 3);
        expect_end(r, a, NOON + 40 * MINUTE);
        assert_int_equal(first->starts, 0); /* the other one may end sooner */
        expect_end(r, b, NOON + 20 * MINUTE);
        assert_int_equal(first->starts, NOON + 20 * MINUTE);
        assert_int_equal(second->starts, NOON + 40 * MINUTE);
        assert_int_equal(third->starts, 0); /* nobody knows how long the first takes */
        end(r, b);
        assert_int_equal(first->stand, ADMISSION_HOLDS);
        assert_int_equal(second->starts, 0); /* the end of the one that has just begun is not known */
        assert_string_equal(second->position, "1");
        expect_end(r, first, NOON + 30 * MINUTE);
        assert_int_equal(second->starts, NOON + 30 * MINUTE);
        assert_int_equal(third->starts, NOON + 40 * MINUTE);
}

static void an_estimate_that_wavers_is_not_told_again(void **state)
{
        struct rig *r = *state;
        struct req *runs, *waits;
        unsigned told;

        limit(r, 0, 1);
        lead(r);
        runs = make(r, "a", "runs", 5, NOON);
        waits = make(r, "a", "waits", 5, NOON + 1);
        expect_end(r, runs, NOON + 10 * USEC_PER_SEC);
        assert_int_equal(waits->starts, 0); /* it begins before anybody has read it */
        expect_end(r, runs, NOON + 80 * MINUTE);
        assert_int_equal(waits->starts, NOON + 80 * MINUTE);
        told = r->again;
        for (int i = -8; i <= 8; i++)
                expect_end(r, runs, (usec_t)((int64_t)(NOON + 80 * MINUTE) + i * (int64_t)MINUTE));
        assert_int_equal(r->again, told);
        decide(r, waits); /* for whatever reason */
        assert_int_equal(waits->starts, NOON + 80 * MINUTE);
        expect_end(r, runs, NOON + 60 * MINUTE);
        assert_int_equal(waits->starts, NOON + 60 * MINUTE);
        assert_int_equal(r->again, told + 1);
}

static void a_start_that_is_not_known_any_more_is_taken_back(void **state)
{
        struct rig *r = *state;
        struct req *runs, *waits;

        limit(r, 1, 0);
        lead(r);
        runs = make(r, "a", "runs", 5, NOON);
        waits = make(r, "a", "waits", 5, NOON + 1);
        expect_end(r, runs, NOON + 80 * MINUTE);
        assert_int_equal(waits->starts, NOON + 80 * MINUTE);
        expect_end(r, runs, 0);
        assert_int_equal(waits->starts, 0);
        decide(r, waits);
        assert_int_equal(waits->starts, 0);
}

/* An hour ahead by mistake, and right again: what is left counts from what the clock says now. */
static void a_clock_that_was_ahead_is_forgotten(void **state)
{
        struct rig *r = *state;
        struct req *runs, *waits;

        limit(r, 1, 0);
        lead(r);
        runs = make(r, "a", "runs", 5, NOON);
        waits = make(r, "a", "waits", 5, NOON + 1);
        r->now = NOON + 60 * MINUTE;
        expect_end(r, runs, NOON + 140 * MINUTE);
        r->now = NOON;
        expect_end(r, runs, NOON + 80 * MINUTE);
        assert_int_equal(waits->starts, NOON + 80 * MINUTE);
        expect_end(r, runs, NOON + 75 * MINUTE); /* less than an eighth of 75 minutes, more than one of 15 */
        assert_int_equal(waits->starts, NOON + 80 * MINUTE);
}

static void with_both_limits_nobody_knows_when(void **state)
{
        struct rig *r = *state;
        struct req *runs, *waits;

        limit(r, 1, 1);
        lead(r);
        runs = make(r, "a", "runs", 5, NOON);
        waits = make(r, "b", "waits", 5, NOON);
        expect_end(r, runs, NOON + 80 * MINUTE);
        assert_int_equal(waits->starts, 0);
}

/* ---- order */

static void the_older_one_goes_first_and_priority_is_worth_ten_minutes_a_step(void **state)
{
        struct rig *r = *state;
        struct req *runs, *young, *old, *urgent, *ancient, *last;

        limit(r, 1, 0);
        lead(r);
        runs = make(r, "a", "runs", 5, NOON);
        assert_int_equal(runs->stand, ADMISSION_HOLDS);
        last = make(r, "a", "last", 0, NOON);
        young = make(r, "a", "young", 5, NOON + 9 * MINUTE);
        old = make(r, "a", "old", 5, NOON);
        urgent = make(r, "a", "urgent", 6, NOON + 9 * MINUTE);
        ancient = make(r, "a", "ancient", 0, NOON - 60 * MINUTE);
        assert_told(ancient, "1", "1 of 1 runs are under way (tr/runs)");
        assert_told(urgent, "2", "1 of 1 runs are under way (tr/runs)");
        assert_told(old, "3", "1 of 1 runs are under way (tr/runs)");
        assert_told(young, "4", "1 of 1 runs are under way (tr/runs)");
        assert_told(last, "5", "1 of 1 runs are under way (tr/runs)");
        end(r, runs);
        assert_int_equal(ancient->stand, ADMISSION_HOLDS);
        assert_told(urgent, "1", "1 of 1 runs are under way (tr/ancient)");
        assert_told(last, "4", "1 of 1 runs are under way (tr/ancient)");
}

static void of_one_second_by_name(void **state)
{
        struct rig *r = *state;
        struct req *b, *a;

        limit(r, 1, 0);
        lead(r);
        make(r, "x", "runs", 5, NOON);
        b = make(r, "x", "b", 5, NOON);
        a = make(r, "x", "a", 5, NOON);
        assert_string_equal(a->position, "1");
        assert_string_equal(b->position, "2");
}

static void another_priority_is_another_place(void **state)
{
        struct rig *r = *state;
        struct req *a, *b;

        limit(r, 1, 0);
        lead(r);
        make(r, "x", "runs", 5, NOON);
        a = make(r, "x", "a", 5, NOON);
        b = make(r, "x", "b", 5, NOON);
        b->priority = 10;
        decide(r, b);
        decide_dirty(r);
        assert_string_equal(a->position, "2");
        assert_string_equal(b->position, "1");
        b->priority = 99; /* nobody is above the highest */
        decide(r, b);
        assert_string_equal(b->position, "1");
}

/* ---- limits */

static void a_full_namespace_lets_others_pass(void **state)
{
        struct rig *r = *state;
        struct req *a1, *a2, *b1, *b2, *c1;

        limit(r, 3, 1);
        lead(r);
        a1 = make(r, "a", "1", 5, NOON);
        a2 = make(r, "a", "2", 5, NOON + 1);
        b1 = make(r, "b", "1", 5, NOON + 2);
        b2 = make(r, "b", "2", 5, NOON + 3);
        assert_told(a2, "1", "namespace a has 1 of 1 runs under way (tr/1)");
        assert_int_equal(b1->stand, ADMISSION_HOLDS);
        assert_told(b2, "2", "namespace b has 1 of 1 runs under way (tr/1)");
        c1 = make(r, "c", "1", 5, NOON + 4);
        assert_int_equal(c1->stand, ADMISSION_HOLDS);
        end(r, b1);
        assert_int_equal(b2->stand, ADMISSION_HOLDS);
        assert_int_equal(a2->stand, ADMISSION_WAITS);
        end(r, a1);
        assert_int_equal(a2->stand, ADMISSION_HOLDS);
        assert_int_equal(admissions_held(r->s), 3);
}

/* What others run is told by number alone. */
static void nobody_is_told_what_runs_elsewhere(void **state)
{
        struct rig *r = *state;
        struct req *q;

        limit(r, 6, 0);
        lead(r);
        make(r, "secret", "x", 5, NOON);
        for (int i = 0; i < 5; i++)
                make(r, "a", (const char *[]){"1", "2", "3", "4", "5"}[i], 5, NOON);
        q = make(r, "a", "q", 5, NOON);
        assert_told(q, "1", "6 of 6 runs are under way (tr/1, tr/2, tr/3 and 2 more, 1 in other namespaces)");
        q = make(r, "b", "q", 5, NOON);
        assert_told(q, "2", "6 of 6 runs are under way (6 in other namespaces)");
}

static void places_are_of_the_namespace_where_only_that_is_limited(void **state)
{
        struct rig *r = *state;
        struct req *a, *b;

        limit(r, 0, 1);
        lead(r);
        make(r, "a", "runs", 5, NOON);
        make(r, "b", "runs", 5, NOON);
        a = make(r, "a", "x", 5, NOON);
        b = make(r, "b", "x", 5, NOON + 1);
        assert_told(a, "1", "namespace a has 1 of 1 runs under way (tr/runs)");
        assert_told(b, "1", "namespace b has 1 of 1 runs under way (tr/runs)");
}

/* ---- who holds a slot */

static void nothing_is_admitted_before_all_that_were_there_are_known(void **state)
{
        struct rig *r = *state;
        struct req *waits, *runs, *over, *late;

        limit(r, 1, 0);
        waits = add(r, "a", "waits", 5, NOON);
        runs = add(r, "a", "runs", 5, NOON);
        over = add(r, "a", "over", 5, NOON);
        runs->stand = ADMISSION_HOLDS;
        over->stand = ADMISSION_NONE;
        decide(r, waits); /* before the lists are complete */
        assert_string_equal(waits->position, "0");
        for (size_t i = 0; i < r->n; i++) {
                const struct admission_id id = id_of(r, &r->reqs[i]);

                admissions_await(r->s, &id);
        }
        admissions_all_known(r->s);
        assert_false(admissions_settled(r->s));
        late = add(r, "a", "late", 10, NOON);
        decide(r, late);
        decide(r, over);
        assert_int_equal(late->stand, ADMISSION_WAITS);
        assert_string_equal(late->position, "0");
        decide(r, runs);
        assert_true(admissions_settled(r->s));
        decide_dirty(r);
        assert_told(late, "1", "1 of 1 runs are under way (tr/runs)");
        assert_string_equal(waits->position, "2");
        end(r, runs);
        assert_int_equal(late->stand, ADMISSION_HOLDS);
}

static void one_that_cannot_say_what_it_wants_is_not_waited_for(void **state)
{
        struct rig *r = *state;
        struct req *asks = add(r, "a", "asks", 5, NOON), *gone = add(r, "a", "gone", 5, NOON), *a;
        struct admission_id id = id_of(r, asks);

        limit(r, 1, 0);
        lead(r);
        a = make(r, "a", "a", 5, NOON);
        assert_int_equal(a->stand, ADMISSION_WAITS);
        admissions_heard(r->s, &id);
        id = id_of(r, gone);
        admissions_forget(r->s, &id);
        assert_true(admissions_settled(r->s));
        decide_dirty(r);
        assert_int_equal(a->stand, ADMISSION_HOLDS);
}

/* Limits were lowered, or it was stalled meanwhile: what is under way stays, and others begin when there is room again. */
static void what_is_under_way_holds_its_slot_above_the_limit(void **state)
{
        struct rig *r = *state;
        struct req *runs[3], *next;

        limit(r, 2, 0);
        for (size_t i = 0; i < 3; i++) {
                runs[i] = add(r, "a", (const char *[]){"1", "2", "3"}[i], 5, NOON);
                runs[i]->stand = ADMISSION_HOLDS;
        }
        lead(r);
        for (size_t i = 0; i < 3; i++)
                decide(r, runs[i]);
        next = make(r, "a", "next", 10, NOON);
        assert_told(next, "1", "3 of 2 runs are under way (tr/1, tr/2, tr/3)");
        end(r, runs[0]);
        assert_told(next, "1", "2 of 2 runs are under way (tr/2, tr/3)");
        end(r, runs[1]);
        assert_int_equal(next->stand, ADMISSION_HOLDS);
}

static void a_slot_is_taken_before_anything_is_written(void **state)
{
        struct rig *r = *state;
        struct req *a = add(r, "a", "a", 5, NOON), *b = add(r, "a", "b", 5, NOON);

        limit(r, 1, 0);
        lead(r);
        tell(r, b);
        tell(r, a);
        assert_true(place(r, a).admitted);
        tell(r, a); /* look-ups have failed: it is decided once more */
        assert_true(place(r, a).admitted);
        assert_false(place(r, b).admitted);
        assert_false(a->dirty); /* who is being decided need not be decided again */
        assert_true(b->dirty);
}

static void slots_come_back(void **state)
{
        struct rig *r = *state;
        struct req *a, *b, *c, *d;
        struct admission_id id;

        limit(r, 1, 0);
        lead(r);
        a = make(r, "a", "a", 5, NOON);
        b = make(r, "a", "b", 5, NOON);
        c = make(r, "a", "c", 5, NOON);
        d = make(r, "a", "d", 5, NOON);
        id = id_of(r, a);
        admissions_yield(r->s, &id); /* it is stalled */
        decide_dirty(r);
        assert_int_equal(b->stand, ADMISSION_HOLDS);
        decide(r, a); /* and goes on: whatever the limit says */
        assert_int_equal(admissions_held(r->s), 2);
        end(r, a);
        id = id_of(r, b);
        admissions_withdraw(r->s, &id); /* it is deleted, but runs on for a while */
        assert_int_equal(admissions_held(r->s), 1);
        id = id_of(r, c);
        admissions_withdraw(r->s, &id);
        c->there = false;
        id = id_of(r, b);
        admissions_forget(r->s, &id);
        b->there = false;
        decide_dirty(r);
        assert_int_equal(d->stand, ADMISSION_HOLDS);
        assert_int_equal(admissions_waiting(r->s), 0);
}

/* What could not be carried out takes its turn again, until something of it runs. */
static void one_that_yields_takes_its_turn_again(void **state)
{
        struct rig *r = *state;
        struct req *a, *b, *c;
        struct admission_id id;

        limit(r, 1, 0);
        lead(r);
        a = make(r, "a", "a", 5, NOON);
        b = make(r, "a", "b", 5, NOON + MINUTE);
        c = make(r, "a", "c", 5, NOON + 2 * MINUTE);
        id = id_of(r, a);
        admissions_yield(r->s, &id);
        decide_dirty(r);
        assert_int_equal(b->stand, ADMISSION_HOLDS);
        assert_true(admissions_yielded(r->s, &id));
        assert_int_equal(admissions_held(r->s), 1);
        a->stand = ADMISSION_WAITS;
        decide(r, a);
        decide_dirty(r);
        assert_told(a, "1", "1 of 1 runs are under way (tr/b)");
        assert_string_equal(c->position, "2");
        assert_true(admissions_yielded(r->s, &id));
        end(r, b);
        assert_int_equal(a->stand, ADMISSION_HOLDS);
        assert_false(admissions_yielded(r->s, &id));
        assert_int_equal(c->stand, ADMISSION_WAITS);
}

static void one_that_is_deleted_and_runs_is_counted_after_a_restart(void **state)
{
        struct rig *r = *state;
        struct req *going = add(r, "a", "going", 5, NOON), *a = add(r, "a", "a", 5, NOON);
        struct admission_id id = id_of(r, going);

        limit(r, 1, 0);
        lead(r);
        admissions_withdraw(r->s, &id);
        decide(r, a);
        assert_told(a, "1", "1 of 1 runs are under way (tr/going)");
        admissions_forget(r->s, &id);
        going->there = false;
        decide_dirty(r);
        assert_int_equal(a->stand, ADMISSION_HOLDS);
}

/* Deleted and made again under its name, and nobody has seen it gone: it takes its turn. */
static void another_request_of_that_name(void **state)
{
        struct rig *r = *state;
        struct req *a, *b;

        limit(r, 1, 0);
        lead(r);
        a = make(r, "a", "a", 5, NOON);
        b = make(r, "a", "b", 5, NOON + MINUTE);
        snprintf(a->uid, sizeof(a->uid), "another");
        a->since = NOON + 2 * MINUTE;
        a->stand = ADMISSION_WAITS;
        decide(r, a);
        decide_dirty(r);
        assert_int_equal(b->stand, ADMISSION_HOLDS);
        assert_told(a, "1", "1 of 1 runs are under way (tr/b)");
}

static void leading_again_everything_is_asked_anew(void **state)
{
        struct rig *r = *state;
        struct req *a, *b;

        limit(r, 1, 0);
        lead(r);
        a = make(r, "a", "a", 5, NOON);
        b = make(r, "a", "b", 5, NOON);
        a->stand = ADMISSION_NONE; /* it ended while another was leading */
        lead(r);
        decide(r, b);
        assert_int_equal(b->stand, ADMISSION_WAITS);
        decide(r, a);
        decide_dirty(r);
        assert_int_equal(b->stand, ADMISSION_HOLDS);
}

/* ---- many */

static int by_order(const void *x, const void *y)
{
        const struct req *a = *(struct req *const *)x, *b = *(struct req *const *)y;
        usec_t p = a->since + (usec_t)(10 - a->priority) * 10 * MINUTE;
        usec_t q = b->since + (usec_t)(10 - b->priority) * 10 * MINUTE;

        return p != q ? (p < q ? -1 : 1) : strcmp(a->key, b->key);
}

static size_t holders(const struct rig *r, const char *ns)
{
        size_t n = 0;

        for (size_t i = 0; i < r->n; i++)
                n += r->reqs[i].there && r->reqs[i].stand == ADMISSION_HOLDS &&
                     (!ns || streq(r->reqs[i].ns, ns));
        return n;
}

static size_t in_order(const struct rig *r, struct req **ret)
{
        size_t n = 0;

        for (size_t i = 0; i < r->n; i++)
                if (r->reqs[i].there && r->reqs[i].stand == ADMISSION_WAITS)
                        ret[n++] = (struct req *)&r->reqs[i];
        qsort(ret, n, sizeof(*ret), by_order);
        return n;
}

/* Everybody is told what is so, and nobody waits who need not. */
static void check(struct rig *r)
{
        struct req *waiting[MAX_REQUESTS];
        struct admission_queued queue[MAX_REQUESTS];
        size_t n = in_order(r, waiting);

        assert_int_equal(admissions_waiting(r->s), n);
        assert_int_equal(admissions_held(r->s), holders(r, NULL));
        assert_int_equal(admissions_queue(r->s, NULL, queue, MAX_REQUESTS, &r->arena), n);
        for (size_t i = 0; i < n; i++) {
                const struct req *q = waiting[i];
                bool full = r->limits.runs && holders(r, NULL) >= r->limits.runs;
                bool ns_full = r->limits.runs_per_namespace &&
                               holders(r, q->ns) >= r->limits.runs_per_namespace;
                size_t position = 1;

                for (size_t k = 0; k < i; k++)
                        position += r->limits.runs || streq(waiting[k]->ns, q->ns);
                if (!q)
                        abort(); /* the analyzer does not know that in_order() fills all */
                assert_true(full || ns_full);
                assert_string_equal(q->position, admission_position(position));
                assert_int_equal(queue[i].position, position);
                assert_string_equal(queue[i].name, q->key + strlen(q->ns) + 1);
                assert_string_equal(queue[i].ns, q->ns);
                assert_string_equal(queue[i].reason, q->reason);
        }
        arena_reset(&r->arena, SIZE_MAX);
}

static void change_something(struct rig *r, struct rng *rng)
{
        struct req *q = r->n ? &r->reqs[rng_below(rng, r->n)] : NULL;
        char ns[8], name[8];

        switch (rng_below(rng, 6)) {
        case 0:
        case 1:
                snprintf(ns, sizeof(ns), "n%llu", (unsigned long long)rng_below(rng, 4));
                snprintf(name, sizeof(name), "r%zu", r->n);
                make(r, ns, name, (int64_t)rng_below(rng, 11), NOON + rng_below(rng, 100) * MINUTE);
                return;
        case 2:
                if (q && q->there) {
                        const struct admission_id id = id_of(r, q);

                        q->there = false;
                        admissions_forget(r->s, &id);
                }
                break;
        case 3:
                if (q && q->stand == ADMISSION_WAITS)
                        q->priority = (int64_t)rng_below(rng, 11);
                break;
        default:
                if (q && q->stand != ADMISSION_NONE && rng_below(rng, 2))
                        q->stand = ADMISSION_NONE;
                break;
        }
        if (q && q->there)
                decide(r, q);
        decide_dirty(r);
}

static void whatever_happens_everybody_is_told_what_is_so(void **state)
{
        static const struct admission_limits limits[] = {{2, 0}, {0, 2}, {5, 2}};
        struct rng rng;

        for (size_t i = 0; i < ARRAY_LEN(limits); i++) {
                struct rig *r;
                void *fresh;

                setup(&fresh);
                r = fresh;
                rng_seed(&rng, 7 + i);
                limit(r, limits[i].runs, limits[i].runs_per_namespace);
                lead(r);
                for (int round = 0; round < 300; round++) {
                        change_something(r, &rng);
                        check(r);
                        if (round % 100 == 50) { /* another process takes over */
                                lead(r);
                                for (size_t k = 0; k < r->n; k++)
                                        if (r->reqs[k].there)
                                                decide(r, &r->reqs[k]);
                                decide_dirty(r);
                                check(r);
                        }
                }
                teardown(&fresh);
        }
        (void)state;
}

/* 2 000 in a queue: each in its turn, and the end of one is told to a dozen. */
static void two_thousand(void **state)
{
        enum { N = 2000, RUNS = 4 };
        struct rig *r = *state;
        struct req *order[MAX_REQUESTS];
        unsigned most = 0;
        struct rng rng;
        char name[8];

        rng_seed(&rng, 3);
        limit(r, RUNS, 0);
        for (size_t i = 0; i < N; i++) {
                snprintf(name, sizeof(name), "r%zu", i);
                add(r, "a", name, (int64_t)rng_below(&rng, 11), NOON + rng_below(&rng, 3600) * USEC_PER_SEC);
        }
        assert_int_equal(in_order(r, order), N);
        lead(r);
        for (size_t i = 0; i < N; i++)
                decide(r, &r->reqs[i]);
        decide_dirty(r);
        r->again = 0;
        for (size_t i = 0; i < RUNS; i++) { /* these began at once */
                assert_int_equal(order[i]->stand, ADMISSION_HOLDS);
                r->begun[i] = (size_t)(order[i] - r->reqs);
        }
        for (size_t i = 0; i < N; i++) {
                unsigned before = r->again;
                struct req *q = &r->reqs[r->begun[i]];

                assert_ptr_equal(q, order[i]);
                end(r, q);
                most = MAX(most, r->again - before);
        }
        assert_int_equal(r->n_begun, N);
        assert_in_range(most, 10, 15); /* one begins, ten move up, and one passes each round number */
        assert_int_equal(admissions_waiting(r->s) + admissions_held(r->s), 0);
}

static void metrics_tell_how_many(void **state)
{
        struct rig *r = *state;
        _cleanup_(buf_done) struct buf text = BUF_INIT(1 << 20);

        limit(r, 1, 0);
        lead(r);
        make(r, "a", "a", 5, NOON);
        make(r, "a", "b", 7, NOON);
        make(r, "a", "c", 7, NOON);
        metrics_write(r->metrics, &text);
        assert_non_null(strstr(buf_cstr(&text), "\nsonde_admission_waiting 2\n"));
        assert_non_null(strstr(buf_cstr(&text), "\nsonde_admission_held 1\n"));
        assert_non_null(strstr(buf_cstr(&text), "\ndprofiler_queue_depth{priority=\"7\"} 2\n"));
        assert_non_null(strstr(buf_cstr(&text), "\ndprofiler_queue_depth{priority=\"10\"} 0\n"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

static const struct CMUnitTest tests[] = {
        TEST(the_nth_in_line_begins_when_the_nth_ends),
        TEST(an_estimate_that_wavers_is_not_told_again),
        TEST(a_start_that_is_not_known_any_more_is_taken_back),
        TEST(a_clock_that_was_ahead_is_forgotten),
        TEST(with_both_limits_nobody_knows_when),
        TEST(the_older_one_goes_first_and_priority_is_worth_ten_minutes_a_step),
        TEST(of_one_second_by_name),
        TEST(another_priority_is_another_place),
        TEST(a_full_namespace_lets_others_pass),
        TEST(nobody_is_told_what_runs_elsewhere),
        TEST(places_are_of_the_namespace_where_only_that_is_limited),
        TEST(nothing_is_admitted_before_all_that_were_there_are_known),
        TEST(one_that_cannot_say_what_it_wants_is_not_waited_for),
        TEST(what_is_under_way_holds_its_slot_above_the_limit),
        TEST(a_slot_is_taken_before_anything_is_written),
        TEST(slots_come_back),
        TEST(one_that_yields_takes_its_turn_again),
        TEST(one_that_is_deleted_and_runs_is_counted_after_a_restart),
        TEST(another_request_of_that_name),
        TEST(leading_again_everything_is_asked_anew),
        TEST(whatever_happens_everybody_is_told_what_is_so),
        TEST(two_thousand),
        TEST(metrics_tell_how_many),
};

UNIT_MAIN(tests)
