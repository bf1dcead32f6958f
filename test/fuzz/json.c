/*
 * Any bytes as JSON: what we accept is written and read again unchanged, packed too, copies and diffs agree, and jansson
 * thinks the same of it. Where the two may differ:
 *   - jansson refuses integers beyond 64 bits, reals beyond a double, and NULs in names;
 *   - jansson takes a NUL byte for the end of the text; we refuse it;
 *   - we refuse what is nested more than 128 deep or has over a million values;
 *   - jansson rounds reals to doubles: they are compared as such; integers must be equal exactly.
 */
#include "fuzz/fuzz.h"
#include "tools/jansson_peer.h"
#include "json/doc.h"
#include "json/pack.h"
#include "json/patch.h"

static bool is_real(const struct json *number)
{
        return memchr(number->text, '.', number->len) || memchr(number->text, 'e', number->len) ||
               memchr(number->text, 'E', number->len);
}

static bool same_number(const struct json *ours, const struct json *theirs)
{
        double x, y;

        if (!is_real(ours))
                return json_equal(ours, theirs);
        return json_to_double(ours, &x) && json_to_double(theirs, &y) && x == y;
}

static bool same(const struct json *ours, const struct json *theirs)
{
        if (!ours || !theirs || ours->type != theirs->type)
                return false;
        if (ours->type == JSON_NUMBER)
                return same_number(ours, theirs);
        if (ours->type < JSON_ARRAY)
                return json_equal(ours, theirs);
        if (ours->len != theirs->len)
                return false;
        if (ours->type == JSON_ARRAY) {
                struct json *other = json_first(theirs);

                json_foreach (j, ours) {
                        if (!same(j, other))
                                return false;
                        other = other->next;
                }
                return true;
        }
        json_foreach (j, ours)
                if (!same(j, json_get(theirs, str_n(j->key, j->key_len))))
                        return false;
        return true;
}

/* The reasons for which jansson may refuse what we accept. */
static bool may_refuse(const char *why)
{
        static const char *const reasons[] = {"too big integer", "too big negative integer",
                                              "real number overflow", "NUL byte in object key"};

        for (size_t i = 0; i < ARRAY_LEN(reasons); i++)
                if (strstr(why, reasons[i]))
                        return true;
        return false;
}

static void compare_with_jansson(struct arena *a, struct str text, const struct json *ours,
                                 enum err_code code)
{
        char why[256] = "";
        size_t n = 0;
        _cleanup_(free_ptr) char *again = peer_reprint(text.p, text.n, &n, why, sizeof(why));

        if (!ours) {
                REQUIRE(!again || code == E_TOO_LARGE || memchr(text.p, '\0', text.n));
        } else if (again) {
                REQUIRE(same(ours, json_parse(a, str_n(again, n), NULL, NULL)));
        } else if (!may_refuse(why)) {
                fprintf(stderr, "jansson refuses it: %s\n", why);
                abort();
        }
}

/* Written in STYLE and read again it is the same document, and written again the same text. */
static void check_style(struct arena *a, const struct json *j, enum json_style style)
{
        _cleanup_(buf_done) struct buf once = BUF_INIT(SIZE_MAX), twice = BUF_INIT(SIZE_MAX);
        struct json *again;

        json_write(j, style, &once);
        again = json_parse(a, buf_str(&once), NULL, NULL);
        REQUIRE(again && json_equal(j, again));
        json_write(again, style, &twice);
        REQUIRE(str_eq(buf_str(&once), buf_str(&twice)));
}

static void check_pack(struct arena *a, const struct json *j)
{
        _cleanup_(json_names_free) struct json_names *names = json_names_new();
        _cleanup_(buf_done) struct buf once = BUF_INIT(SIZE_MAX), twice = BUF_INIT(SIZE_MAX);
        _cleanup_(free_ptr) char *exact = NULL;

        json_pack(names, j, &once);
        json_pack(names, j, &twice);
        REQUIRE(str_eq(buf_str(&once), buf_str(&twice)));
        exact = xmemdup(once.p, once.n); /* so that looking beyond the end is seen */
        REQUIRE(streq(json_print(a, j), json_print(a, json_unpack(names, str_n(exact, once.n), a))));
}

static void check_changes(struct arena *a, struct json *j)
{
        struct json *copy = json_copy(a, j), *empty = json_object(a);
        struct err err = ERR_INIT;

        REQUIRE(json_equal(j, copy));
        REQUIRE(json_len(json_diff(a, j, copy)) == 0);
        REQUIRE(json_merge_diff(a, j, copy) == NULL);
        REQUIRE(json_patch(a, &empty, json_diff(a, empty, j), &err) == 0);
        REQUIRE(json_equal(empty, j));
        /* It may be a patch itself. */
        if (json_patch(a, &copy, j, &err) < 0)
                REQUIRE(err.code == E_INVALID || err.code == E_FENCED || err.code == E_TOO_LARGE);
        json_merge_patch(a, copy, j);
}

/* A member that is left out while parsing is the same as one removed afterwards, and is as strictly looked at. */
static void check_leaving_out(struct arena *a, struct str text, const struct json *whole)
{
        static const char *const names[] = {"m", "f", NULL};
        struct err err = ERR_INIT;
        struct json *j = json_parse(a, text, &(struct json_limits){.leave_out = names}, &err), *want;

        if (!whole) {
                REQUIRE(!j || text.n > 1000000);
                return;
        }
        want = json_copy(a, whole);
        if (json_is(want, JSON_OBJECT) && json_is(json_at(want, "m"), JSON_OBJECT))
                json_remove(json_at(want, "m"), "f");
        REQUIRE(j && json_equal(j, want));
}

/* What is read up to a member is a document of its own, and the whole where there is no such member. */
static void check_stopping(struct arena *a, struct str text, const struct json *whole)
{
        static const char *const names[] = {"m", "f", NULL};
        struct err err = ERR_INIT;
        struct json *j = json_parse(a, text, &(struct json_limits){.stop_after = names}, &err);

        REQUIRE(j || !whole);
        if (!j)
                return;
        if (whole && !json_at(json_at(j, "m"), "f"))
                REQUIRE(json_equal(j, whole));
        REQUIRE(json_equal(j, json_parse(a, str_of(json_print(a, j)), NULL, &err)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct str text = {(const char *)data, size};
        struct err err = ERR_INIT;
        struct json *j = json_parse(&a, text, NULL, &err);

        REQUIRE(j || err.code == E_INVALID || err.code == E_TOO_LARGE);
        compare_with_jansson(&a, text, j, err.code);
        check_leaving_out(&a, text, j);
        check_stopping(&a, text, j);
        if (!j)
                return 0;
        check_style(&a, j, JSON_COMPACT);
        check_style(&a, j, JSON_PRETTY);
        check_pack(&a, j);
        check_changes(&a, j);
        return 0;
}
