#include "unit/dir.h"
#include "unit/unit.h"

#include <fcntl.h>
#include <signal.h>
#include <sqlite3.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "local/store_internal.h"

/* A store in a folder of its own, a loop with a manual clock, and a line for everything heard. */
struct rig {
        char dir[UNIT_DIR_LEN];
        char path[UNIT_DIR_LEN + 16];
        struct clock clock;
        struct loop *loop;
        struct store *s;
        struct store_config config;
        struct buf heard;
        struct store_listener listener;
        int failures;
        struct err err;
};

static void on_failure(void *arg, const struct err *err)
{
        struct rig *r = arg;

        r->failures++;
        r->err = *err;
}

static void describe(struct buf *b, const struct change *c)
{
        const char *what = c->is_delete ? "-" : c->before ? "*" : "+";

        buf_printf(b, "%s%llu:%s ", what, (unsigned long long)c->rev, c->after->name);
}

static void on_change(struct store_listener *l, const struct change *c)
{
        struct rig *r = CONTAINER_OF(l, struct rig, listener);

        assert_int_equal(store_rev(r->s), c->rev);
        describe(&r->heard, c);
}

static void on_replay(void *arg, const struct change *c)
{
        describe(arg, c);
}

static void open_store(struct rig *r)
{
        struct err err = ERR_INIT;

        r->s = store_open(r->loop, &r->config, &err);
        if (!r->s)
                fail_msg("%s", err.text);
        store_listen(r->s, &r->listener);
}

static void rig_open(struct rig *r, size_t history)
{
        struct err err = ERR_INIT;

        *r = (struct rig){.clock = {.manual = true, .boot = 1000, .wall = 1000},
                          .heard = BUF_INIT(1 << 20),
                          .listener.fn = on_change};
        unit_dir(r->dir);
        snprintf(r->path, sizeof(r->path), "%s/store.db", r->dir);
        r->config = (struct store_config){
                .path = r->path, .history = history, .on_failure = on_failure, .arg = r};
        r->loop = loop_new(&r->clock, NULL, &err);
        assert_non_null(r->loop);
        open_store(r);
}

static void rig_done(struct rig *r)
{
        store_close(r->s);
        loop_free(r->loop);
        buf_done(&r->heard);
}

static void reopen(struct rig *r)
{
        store_close(r->s);
        open_store(r);
}

static uint64_t put(struct rig *r, const char *ns, const char *name, const char *text)
{
        return store_stage(
                r->s, &(struct store_write){.type = "pods", .ns = ns, .name = name, .text = str_of(text)},
                NULL, NULL);
}

static uint64_t del(struct rig *r, const char *ns, const char *name)
{
        return store_stage(
                r->s,
                &(struct store_write){
                        .type = "pods", .ns = ns, .name = name, .text = STR("gone"), .is_delete = true},
                NULL, NULL);
}

/* Until everything staged is durable; the clock stands still. */
static void settle(struct rig *r)
{
        while (store_rev(r->s) + 1 != store_next_rev(r->s) || r->s->committing || r->s->turn_end.pending)
                loop_turn(r->loop, true);
}

static const char *heard(struct rig *r)
{
        const char *text = buf_cstr(&r->heard);

        r->heard.n = 0;
        return text ? text : "";
}

static bool add_name(void *arg, struct object *o)
{
        buf_printf(arg, "%s%s%s=%s ", o->ns, *o->ns ? "/" : "", o->name, o->text.p);
        return true;
}

/* What a list says, as one line; what went wrong in brackets. Until the next call. */
static const char *list_range(struct rig *r, const struct store_range *range)
{
        struct err err = ERR_INIT;

        r->heard.n = 0;
        if (store_list(r->s, range, add_name, &r->heard, &err) < 0)
                buf_printf(&r->heard, "[%s]", err_code_name(err.code));
        return heard(r);
}

static const char *list_at(struct rig *r, uint64_t rev)
{
        return list_range(r, &(struct store_range){.type = "pods", .rev = rev});
}

static const char *replay(struct rig *r, uint64_t rev)
{
        struct err err = ERR_INIT;

        r->heard.n = 0;
        if (store_replay(r->s, rev, on_replay, &r->heard, &err) < 0)
                buf_printf(&r->heard, "[%s]", err_code_name(err.code));
        return heard(r);
}

/* ---- versions */

static void labels_are_found_in_the_text(void **state)
{
        static const struct {
                struct str text, labels;
        } cases[] = {
                {STR("{\"kind\":\"Pod\",\"metadata\":{\"name\":\"a\",\"labels\":{\"x\":\"}\\\"\"},\"uid\":"
                     "\"1\"}}"),
                 STR("{\"x\":\"}\\\"\"}")},
                {STR("{\"labels\":{\"not\":\"these\"},\"metadata\":{\"annotations\":{\"labels\":\"x\"},"
                     "\"labels\":{}}}"),
                 STR("{}")},
                {STR("{\"spec\":[{\"metadata\":{\"labels\":{\"a\":\"b\"}}}],\"metadata\":{\"name\":\"x\"}}"),
                 STR("")},
                {STR("{\"metadata\":{\"labels\":null}}"), STR("")},
                {STR("{\"metadata\":[]}"), STR("")},
                {STR("{}"), STR("")},
                {STR(""), STR("")},
        };

        for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
                struct str found = object_find_labels(cases[i].text);

                assert_int_equal(found.n, cases[i].labels.n);
                if (found.n)
                        assert_memory_equal(found.p, cases[i].labels.p, found.n);
                /* Cut off anywhere: nothing is read beyond the end. */
                for (size_t n = 0; n < cases[i].text.n; n++) {
                        char *part = n ? xmemdup(cases[i].text.p, n) : NULL;

                        object_find_labels(str_n(part, n));
                        free(part);
                }
        }
}

static void a_version_carries_its_names_and_its_text(void **state)
{
        struct rig r;
        struct object *o;

        rig_open(&r, 0);
        put(&r, "default", "a", "{\"metadata\":{\"labels\":{\"app\":\"x\"}}}");
        settle(&r);
        o = object_ref(store_get(r.s, "pods", "default", "a"));
        assert_non_null(o);
        assert_int_equal(o->rev, 2);
        assert_ptr_equal(o->type, store_type(r.s, "pods"));
        assert_string_equal(o->ns, "default");
        assert_string_equal(o->name, "a");
        assert_str(object_find_labels(o->text), "{\"app\":\"x\"}");
        assert_int_equal(o->text.p[o->text.n], 0);
        /* It is there as long as somebody has it. */
        rig_done(&r);
        assert_str(object_find_labels(o->text), "{\"app\":\"x\"}");
        object_unref(o);
        object_unref(NULL);
}

/* ---- writes */

static void readers_see_what_is_durable_and_writers_what_is_newest(void **state)
{
        struct rig r;

        rig_open(&r, 0);
        assert_int_equal(store_rev(r.s), 1);
        assert_int_equal(store_next_rev(r.s), 2);
        assert_int_equal(put(&r, "default", "a", "1"), 2);
        assert_null(store_get(r.s, "pods", "default", "a"));
        assert_str(store_newest(r.s, "pods", "default", "a")->text, "1");
        assert_string_equal(list_at(&r, 0), "");
        assert_string_equal(list_range(&r, &(struct store_range){.type = "pods", .newest = true}),
                            "default/a=1 ");
        assert_int_equal(store_count(r.s, "pods", NULL), 0);
        settle(&r);
        assert_string_equal(heard(&r), "+2:a ");
        assert_str(store_get(r.s, "pods", "default", "a")->text, "1");

        put(&r, "default", "a", "2");
        put(&r, "default", "a", "3");
        del(&r, "default", "a");
        assert_null(store_newest(r.s, "pods", "default", "a"));
        assert_str(store_get(r.s, "pods", "default", "a")->text, "1");
        put(&r, "default", "a", "5");
        assert_str(store_newest(r.s, "pods", "default", "a")->text, "5");
        settle(&r);
        assert_string_equal(heard(&r), "*3:a *4:a -5:a +6:a ");
        assert_int_equal(store_count(r.s, "pods", "default"), 1);
        del(&r, "default", "a");
        settle(&r);
        assert_null(store_get(r.s, "pods", "default", "a"));
        assert_int_equal(store_count(r.s, "pods", NULL), 0);
        assert_int_equal(store_count(r.s, "pods", "default"), 0);
        rig_done(&r);
}

struct note {
        struct rig *r;
        const char *text;
};

static void on_done(void *arg)
{
        struct note *n = arg;

        buf_printf(&n->r->heard, "%s@%llu ", n->text, (unsigned long long)store_rev(n->r->s));
}

static void stage_noted(struct rig *r, struct note *n)
{
        store_stage(r->s, &(struct store_write){.type = "pods", .ns = "x", .name = n->text, .text = STR("1")},
                    on_done, n);
}

static void done_comes_in_the_order_of_staging_after_the_listeners(void **state)
{
        struct rig r;
        struct note a = {&r, "a"}, b = {&r, "b"}, c = {&r, "c"}, now = {&r, "now"}, later = {&r, "later"};

        rig_open(&r, 0);
        store_after(r.s, on_done, &now);
        assert_string_equal(heard(&r), "now@1 ");
        stage_noted(&r, &a);
        stage_noted(&r, &b);
        store_after(r.s, on_done, &later);
        loop_turn(r.loop, true); /* a, b and who waits for them are on their way: c is in the next group */
        stage_noted(&r, &c);
        settle(&r);
        assert_string_equal(heard(&r), "+2:a a@2 +3:b b@3 later@3 +4:c c@4 ");

        /* Who waits for what is under way already hears with it. */
        stage_noted(&r, &a);
        loop_turn(r.loop, false);
        assert_true(r.s->committing);
        store_after(r.s, on_done, &later);
        settle(&r);
        assert_string_equal(heard(&r), "*5:a a@5 later@5 ");
        rig_done(&r);
}

static void stage_once_more(void *arg)
{
        struct rig *r = arg;

        put(r, "x", "again", "2");
}

static void a_write_may_be_staged_where_one_is_heard_of(void **state)
{
        struct rig r;

        rig_open(&r, 0);
        store_stage(r.s, &(struct store_write){.type = "pods", .ns = "x", .name = "a", .text = STR("1")},
                    stage_once_more, &r);
        settle(&r);
        assert_string_equal(heard(&r), "+2:a +3:again ");
        rig_done(&r);
}

/* ---- lists */

static void lists_are_in_the_order_of_keys(void **state)
{
        struct rig r;

        rig_open(&r, 0);
        put(&r, "b", "z", "1");
        put(&r, "a", "c", "1");
        put(&r, "a-b", "a", "1");
        put(&r, "a", "b", "1");
        put(&r, "b", "a", "1");
        store_stage(r.s, &(struct store_write){.type = "nodes", .ns = "", .name = "n", .text = STR("1")},
                    NULL, NULL);
        settle(&r);
        assert_string_equal(list_at(&r, 0), "a-b/a=1 a/b=1 a/c=1 b/a=1 b/z=1 ");
        assert_string_equal(list_range(&r, &(struct store_range){.type = "nodes"}), "n=1 ");
        assert_string_equal(list_range(&r, &(struct store_range){.type = "jobs"}), "");
        assert_string_equal(list_range(&r, &(struct store_range){.type = "pods", .ns = "a"}), "a/b=1 a/c=1 ");
        assert_string_equal(list_range(&r, &(struct store_range){.type = "pods", .ns = "b", .start = "b/a"}),
                            "b/z=1 ");
        assert_string_equal(list_range(&r, &(struct store_range){.type = "pods", .start = "a/bb"}),
                            "a/c=1 b/a=1 b/z=1 ");
        assert_string_equal(list_range(&r, &(struct store_range){.type = "pods", .start = "b/z"}), "");
        assert_int_equal(store_count(r.s, "pods", NULL), 5);
        assert_int_equal(store_count(r.s, "pods", "a"), 2);
        assert_int_equal(store_count(r.s, "pods", "c"), 0);
        rig_done(&r);
}

static void a_list_goes_on_at_an_older_revision(void **state)
{
        struct rig r;

        rig_open(&r, 0);
        put(&r, "x", "b", "2");
        put(&r, "x", "d", "3");
        put(&r, "x", "b", "4");
        del(&r, "x", "d");
        put(&r, "x", "a", "6");
        put(&r, "y", "b", "7");
        put(&r, "x", "d", "8");
        put(&r, "x", "b", "9");
        settle(&r);
        assert_string_equal(list_at(&r, 1), "");
        assert_string_equal(list_at(&r, 2), "x/b=2 ");
        assert_string_equal(list_at(&r, 3), "x/b=2 x/d=3 ");
        assert_string_equal(list_at(&r, 4), "x/b=4 x/d=3 ");
        assert_string_equal(list_at(&r, 5), "x/b=4 ");
        assert_string_equal(list_at(&r, 7), "x/a=6 x/b=4 y/b=7 ");
        assert_string_equal(list_at(&r, 9), "x/a=6 x/b=9 x/d=8 y/b=7 ");
        assert_string_equal(list_at(&r, 10), "[Invalid]");
        assert_string_equal(
                list_range(&r, &(struct store_range){.type = "pods", .ns = "x", .start = "x/b", .rev = 4}),
                "x/d=3 ");
        store_compact(r.s, 4);
        settle(&r);
        assert_string_equal(list_at(&r, 3), "[Expired]");
        assert_string_equal(list_at(&r, 4), "x/b=4 x/d=3 ");
        rig_done(&r);
}

static bool stage_beside(void *arg, struct object *o)
{
        struct rig *r = arg;
        char name[32];

        snprintf(name, sizeof(name), "%s-more", o->name);
        put(r, o->ns, name, "new");
        put(r, o->ns, o->name, "changed");
        buf_printf(&r->heard, "%s=%s ", o->name, o->text.p);
        return true;
}

static bool stop_at_once(void *arg, struct object *o)
{
        ++*(int *)arg;
        return false;
}

static void staging_inside_a_list_is_not_seen_by_it(void **state)
{
        struct rig r;
        int calls = 0;

        rig_open(&r, 0);
        put(&r, "x", "a", "1");
        put(&r, "x", "b", "1");
        settle(&r);
        heard(&r);
        assert_int_equal(store_list(r.s, &(struct store_range){.type = "pods"}, stage_beside, &r, NULL), 0);
        assert_string_equal(heard(&r), "a=1 b=1 ");
        settle(&r);
        assert_string_equal(list_at(&r, 0), "x/a=changed x/a-more=new x/b=changed x/b-more=new ");
        assert_int_equal(store_list(r.s, &(struct store_range){.type = "pods"}, stop_at_once, &calls, NULL),
                         0);
        assert_int_equal(calls, 1);
        rig_done(&r);
}

/* A model: random writes, each state kept as text; every revision that is still there is listed as it was. */
static void every_revision_in_the_history_can_be_listed_also_after_a_restart(void **state)
{
        enum { WRITES = 300, HISTORY = 100 };
        _cleanup_(buf_done) struct buf now = BUF_INIT(65536);
        char *was[WRITES + 2] = {NULL}, name[8], text[16], *value[20] = {NULL};
        struct rng rng;
        struct rig r;

        rng_seed(&rng, 42);
        rig_open(&r, HISTORY);
        r.config.window = 1;
        reopen(&r);
        for (uint64_t rev = 2; rev < WRITES + 2; rev++) {
                size_t k = rng_below(&rng, ARRAY_LEN(value));
                bool gone = value[k] && rng_below(&rng, 3) == 0;

                snprintf(name, sizeof(name), "n%02zu", k);
                snprintf(text, sizeof(text), "v%llu", (unsigned long long)rev);
                assert_int_equal(gone ? del(&r, "x", name) : put(&r, "x", name, text), rev);
                free(value[k]);
                value[k] = gone ? NULL : xstrdup(text);
                now.n = 0;
                for (size_t i = 0; i < ARRAY_LEN(value); i++)
                        if (value[i])
                                buf_printf(&now, "x/n%02zu=%s ", i, value[i]);
                was[rev] = xstrdup(buf_cstr(&now));
                if (rng_below(&rng, 4) == 0) {
                        r.clock.boot += 10;
                        settle(&r);
                }
        }
        r.clock.boot += 10;
        settle(&r);
        for (int restart = 0; restart < 3; restart++) {
                assert_true(store_oldest(r.s) >= 2);
                assert_true(store_oldest(r.s) <= WRITES + 1 - HISTORY);
                for (uint64_t rev = store_oldest(r.s); rev < WRITES + 2; rev++)
                        assert_string_equal(list_at(&r, rev), was[rev]);
                assert_string_equal(list_at(&r, store_oldest(r.s) - 1), "[Expired]");
                assert_string_equal(replay(&r, store_oldest(r.s) - 1), "[Expired]");
                store_compact(r.s, store_oldest(r.s));
                settle(&r);
                reopen(&r);
        }
        for (size_t i = 0; i < ARRAY_LEN(was); i++)
                free(was[i]);
        for (size_t i = 0; i < ARRAY_LEN(value); i++)
                free(value[i]);
        rig_done(&r);
}

/* ---- changes */

static void changes_are_replayed_until_they_expire(void **state)
{
        struct rig r;

        rig_open(&r, 3);
        put(&r, "x", "a", "1");
        put(&r, "x", "a", "2");
        put(&r, "x", "b", "1");
        del(&r, "x", "a");
        put(&r, "x", "a", "3");
        settle(&r);
        assert_string_equal(replay(&r, 1), "+2:a *3:a +4:b -5:a +6:a "); /* they are young */
        assert_string_equal(replay(&r, 6), "");
        assert_string_equal(replay(&r, 9), "");
        r.clock.boot += 301 * USEC_PER_SEC;
        put(&r, "x", "c", "1");
        settle(&r);
        assert_int_equal(store_oldest(r.s), 4);
        assert_string_equal(replay(&r, 3), "[Expired]");
        assert_string_equal(replay(&r, 4), "-5:a +6:a +7:c ");
        for (int i = 0; i < 60; i++)
                put(&r, "x", "c", "2");
        settle(&r);
        assert_int_equal(store_rev(r.s) - store_oldest(r.s), 30); /* ten times as many, young or not */
        /* Time alone brings it down again. */
        while (store_rev(r.s) - store_oldest(r.s) > 3)
                assert_true(loop_turn(r.loop, true) || store_rev(r.s) - store_oldest(r.s) == 3);
        rig_done(&r);
}

static void on_change_leave(struct store_listener *l, const struct change *c)
{
        store_unlisten(l);
        free(l);
}

struct late {
        struct store_listener first, second;
        struct rig *r;
};

static void on_change_second(struct store_listener *l, const struct change *c)
{
        buf_adds(&CONTAINER_OF(l, struct late, second)->r->heard, "second:");
        describe(&CONTAINER_OF(l, struct late, second)->r->heard, c);
}

static void on_change_first(struct store_listener *l, const struct change *c)
{
        struct late *late = CONTAINER_OF(l, struct late, first);

        store_unlisten(l);
        store_listen(late->r->s, &late->second);
}

static void listeners_come_and_go_while_they_are_told(void **state)
{
        struct rig r;
        struct store_listener *gone = xcalloc(1, sizeof(*gone));
        struct late late = {.first.fn = on_change_first, .second.fn = on_change_second, .r = &r};

        rig_open(&r, 0);
        gone->fn = on_change_leave;
        store_listen(r.s, gone);
        store_listen(r.s, &late.first);
        put(&r, "x", "a", "1");
        put(&r, "x", "b", "1");
        settle(&r);
        assert_string_equal(heard(&r), "+2:a +3:b second:+3:b ");
        store_unlisten(&late.second);
        rig_done(&r);
}

static void what_is_borrowed_stays_until_the_turn_is_over(void **state)
{
        struct rig r;
        struct object *o;

        rig_open(&r, 1);
        r.config.window = 1;
        reopen(&r);
        put(&r, "x", "a", "first");
        settle(&r);
        o = store_get(r.s, "pods", "x", "a");
        del(&r, "x", "a");
        put(&r, "x", "b", "1");
        r.clock.boot += 10;
        while (store_rev(r.s) != 4)
                loop_turn(r.loop, true); /* o is superseded and has left the history in this turn */
        assert_str(o->text, "first");
        settle(&r);
        rig_done(&r);
}

/* ---- the file */

static void everything_is_there_after_a_restart(void **state)
{
        struct rig r;

        rig_open(&r, 0);
        r.config.durable = true;
        reopen(&r);
        put(&r, "x", "a", "{\"metadata\":{\"labels\":{\"k\":\"v\"}}}");
        put(&r, "x", "b", "1");
        del(&r, "x", "b");
        settle(&r);
        reopen(&r);
        assert_int_equal(store_rev(r.s), 4);
        assert_string_equal(list_at(&r, 0), "x/a={\"metadata\":{\"labels\":{\"k\":\"v\"}}} ");
        assert_str(object_find_labels(store_get(r.s, "pods", "x", "a")->text), "{\"k\":\"v\"}");
        assert_int_equal(store_count(r.s, "pods", "x"), 1);
        assert_string_equal(replay(&r, 1), "+2:a +3:b -4:b ");
        assert_int_equal(put(&r, "x", "b", "5"), 5);
        reopen(&r); /* closing commits what is staged */
        assert_int_equal(store_rev(r.s), 5);
        assert_str(store_get(r.s, "pods", "x", "b")->text, "5");
        put(&r, "x", "c", "6");
        loop_turn(r.loop, false); /* and what the worker has */
        assert_true(r.s->committing);
        put(&r, "x", "c", "7");
        reopen(&r);
        assert_int_equal(store_rev(r.s), 7);
        assert_str(store_get(r.s, "pods", "x", "c")->text, "7");
        rig_done(&r);
}

/* Something else that keeps the worker, until it is let go. */
struct slow {
        struct work work;
        int fds[2];
};

static void slow_run(struct work *work)
{
        char c;

        while (read(CONTAINER_OF(work, struct slow, work)->fds[0], &c, 1) < 0)
                continue;
}

static void slow_done(struct work *work)
{
}

static void closing_does_not_wait_for_others_who_keep_the_worker(void **state)
{
        struct rig r;
        struct slow slow = {.work = {.run = slow_run, .done = slow_done}};

        rig_open(&r, 0);
        assert_int_equal(pipe2(slow.fds, O_CLOEXEC), 0);
        loop_offload(r.loop, &slow.work);
        put(&r, "x", "a", "1");
        loop_turn(r.loop, false);
        assert_true(r.s->committing);
        put(&r, "x", "b", "1");
        reopen(&r);
        assert_string_equal(list_at(&r, 0), "x/a=1 x/b=1 ");
        assert_int_equal(write(slow.fds[1], "x", 1), 1);
        put(&r, "x", "c", "1");
        settle(&r);
        assert_string_equal(list_at(&r, 0), "x/a=1 x/b=1 x/c=1 ");
        rig_done(&r);
        close(slow.fds[0]);
        close(slow.fds[1]);
}

static int64_t ask_file(struct rig *r, const char *sql)
{
        sqlite3 *db = NULL;
        sqlite3_stmt *st = NULL;
        int64_t value;

        assert_int_equal(sqlite3_open(r->path, &db), SQLITE_OK);
        assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &st, NULL), SQLITE_OK);
        value = sqlite3_step(st) == SQLITE_ROW ? sqlite3_column_int64(st, 0) : -1;
        sqlite3_finalize(st);
        sqlite3_close(db);
        return value;
}

static void rows_that_nobody_needs_are_deleted(void **state)
{
        struct rig r;

        rig_open(&r, 10);
        r.config.window = 1;
        reopen(&r);
        put(&r, "x", "stays", "1");
        for (int i = 0; i < 3000; i++) {
                put(&r, "x", "a", "1");
                if (i % 100 == 0) {
                        r.clock.boot += 10;
                        settle(&r);
                }
        }
        r.clock.boot += 10;
        put(&r, "x", "a", "last");
        settle(&r);
        assert_in_range(ask_file(&r, "SELECT count(*) FROM log"), 12, 10 + 2 + DROP_BATCH);
        assert_int_equal(store_rev(r.s), 3003);
        /* The very last, too, and revisions are not used again. */
        del(&r, "x", "a");
        del(&r, "x", "stays");
        settle(&r);
        store_compact(r.s, store_rev(r.s));
        settle(&r);
        assert_int_equal(ask_file(&r, "SELECT count(*) FROM log"), 0);
        reopen(&r);
        assert_int_equal(store_rev(r.s), 3005);
        assert_int_equal(store_oldest(r.s), 3005);
        assert_string_equal(replay(&r, 3004), "[Expired]");
        assert_int_equal(put(&r, "x", "a", "1"), 3006);
        settle(&r);
        rig_done(&r);
}

static void a_watch_does_not_resume_before_what_was_deleted(void **state)
{
        struct rig r;

        rig_open(&r, 0);
        put(&r, "x", "a", "2");
        put(&r, "x", "b", "3");
        put(&r, "x", "a", "4");
        put(&r, "x", "b", "5");
        put(&r, "x", "b", "6");
        settle(&r);
        store_compact(r.s, 4);
        settle(&r);
        reopen(&r);
        assert_int_equal(store_oldest(r.s), 4);
        assert_string_equal(replay(&r, 3), "[Expired]");
        assert_string_equal(replay(&r, 4), "*5:b *6:b ");
        assert_string_equal(list_at(&r, 4), "x/a=4 x/b=3 ");
        rig_done(&r);
}

static void a_second_engine_is_refused_and_told_who_has_the_directory(void **state)
{
        struct rig r;
        struct err err = ERR_INIT;
        char pid[32];

        rig_open(&r, 0);
        snprintf(pid, sizeof(pid), "(pid %d)", (int)getpid());
        assert_null(store_open(r.loop, &r.config, &err));
        assert_int_equal(err.code, E_CONFIG);
        assert_non_null(strstr(err.text, pid));
        assert_non_null(strstr(err.text, r.dir));
        put(&r, "x", "a", "1");
        settle(&r); /* and does no harm */
        reopen(&r);
        rig_done(&r);
}

static void a_file_of_a_newer_version_is_refused(void **state)
{
        struct rig r;
        struct err err = ERR_INIT;

        rig_open(&r, 0);
        store_close(TAKE_PTR(r.s));
        assert_int_equal(ask_file(&r, "PRAGMA user_version"), 1);
        ask_file(&r, "PRAGMA user_version = 2");
        assert_null(store_open(r.loop, &r.config, &err));
        assert_int_equal(err.code, E_CONFIG);
        assert_non_null(strstr(err.text, "newer"));
        ask_file(&r, "PRAGMA user_version = 1");
        open_store(&r);
        rig_done(&r);
}

static void a_file_that_is_no_database_is_refused(void **state)
{
        struct rig r;
        struct err err = ERR_INIT;

        rig_open(&r, 0);
        store_close(TAKE_PTR(r.s));
        assert_int_equal(
                file_replace(r.path, STR("this is certainly not a database of anybody, is it?"), 0600, NULL),
                0);
        assert_null(store_open(r.loop, &r.config, &err));
        assert_int_equal(err.code, E_IO);
        assert_non_null(strstr(err.text, r.path));
        loop_free(r.loop);
        buf_done(&r.heard);
}

static void limit_files(rlim_t bytes)
{
        struct rlimit limit;

        assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
        limit.rlim_cur = bytes;
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

static void a_commit_that_fails_is_told_once_and_acknowledges_nothing(void **state)
{
        struct rig r;
        struct note a = {&r, "a"};
        char *large = xmalloc(1 << 20);

        memset(large, 'x', 1 << 20);
        signal(SIGXFSZ, SIG_IGN);
        rig_open(&r, 0);
        put(&r, "x", "kept", "1");
        settle(&r);
        assert_string_equal(heard(&r), "+2:kept ");
        limit_files(256 << 10);
        put(&r, "x", "before", "1"); /* in one group with what does not fit */
        store_stage(r.s,
                    &(struct store_write){
                            .type = "pods", .ns = "x", .name = "large", .text = str_n(large, 1 << 20)},
                    on_done, &a);
        while (!r.failures)
                assert_true(loop_turn(r.loop, true) || r.failures);
        stage_noted(&r, &a);
        store_after(r.s, on_done, &a);
        while (loop_turn(r.loop, true))
                continue;
        assert_int_equal(r.failures, 1);
        assert_int_equal(r.err.code, E_IO);
        assert_non_null(strstr(r.err.text, r.path));
        assert_string_equal(heard(&r), "");
        assert_string_equal(list_at(&r, 0), "x/kept=1 ");
        limit_files(RLIM_INFINITY);
        reopen(&r);
        assert_int_equal(r.failures, 1);
        assert_string_equal(list_at(&r, 0), "x/kept=1 ");
        assert_int_equal(put(&r, "x", "after", "1"), 3);
        settle(&r);
        free(large);
        rig_done(&r);
}

static void a_commit_that_fails_while_closing_is_told(void **state)
{
        struct rig r;
        char *large = xmalloc(1 << 20);

        memset(large, 'x', 1 << 20);
        signal(SIGXFSZ, SIG_IGN);
        rig_open(&r, 0);
        limit_files(256 << 10);
        store_stage(r.s,
                    &(struct store_write){
                            .type = "pods", .ns = "x", .name = "large", .text = str_n(large, 1 << 20)},
                    NULL, NULL);
        store_close(TAKE_PTR(r.s));
        assert_int_equal(r.failures, 1);
        limit_files(RLIM_INFINITY);
        open_store(&r);
        assert_string_equal(list_at(&r, 0), "");
        free(large);
        rig_done(&r);
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(labels_are_found_in_the_text),
        cmocka_unit_test(a_version_carries_its_names_and_its_text),
        cmocka_unit_test(readers_see_what_is_durable_and_writers_what_is_newest),
        cmocka_unit_test(done_comes_in_the_order_of_staging_after_the_listeners),
        cmocka_unit_test(a_write_may_be_staged_where_one_is_heard_of),
        cmocka_unit_test(lists_are_in_the_order_of_keys),
        cmocka_unit_test(a_list_goes_on_at_an_older_revision),
        cmocka_unit_test(staging_inside_a_list_is_not_seen_by_it),
        cmocka_unit_test(every_revision_in_the_history_can_be_listed_also_after_a_restart),
        cmocka_unit_test(changes_are_replayed_until_they_expire),
        cmocka_unit_test(listeners_come_and_go_while_they_are_told),
        cmocka_unit_test(what_is_borrowed_stays_until_the_turn_is_over),
        cmocka_unit_test(everything_is_there_after_a_restart),
        cmocka_unit_test(closing_does_not_wait_for_others_who_keep_the_worker),
        cmocka_unit_test(rows_that_nobody_needs_are_deleted),
        cmocka_unit_test(a_watch_does_not_resume_before_what_was_deleted),
        cmocka_unit_test(a_second_engine_is_refused_and_told_who_has_the_directory),
        cmocka_unit_test(a_file_of_a_newer_version_is_refused),
        cmocka_unit_test(a_file_that_is_no_database_is_refused),
        cmocka_unit_test(a_commit_that_fails_is_told_once_and_acknowledges_nothing),
        cmocka_unit_test(a_commit_that_fails_while_closing_is_told),
};

UNIT_MAIN(tests)
