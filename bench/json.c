/*
 * bench-json - one watch event parsed, changed and written, against jansson in the same run.
 *
 * The change is what an operator does to an event: it drops managedFields, sets two fields of the status and an
 * annotation. Both sides take turns, and the best turn of each counts, so that other load on the machine cancels.
 */
#include "tools/jansson_peer.h"
#include "json/doc.h"

enum { TURNS = 25, RUNS = 2000, OUT_MAX = 64 << 10, FAILED = 1, SLOWER = 3 };

static const double AT_LEAST = 12; /* times as fast as jansson */

static double now_us(void)
{
        struct timespec t;

        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
        return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static size_t change_event(struct arena *a, struct str text, struct buf *out)
{
        struct json *root, *object, *meta, *status;

        arena_reset(a, SIZE_MAX);
        buf_clear(out);
        root = json_parse(a, text, NULL, NULL);
        if (!root)
                return 0;
        object = json_at(root, "object");
        meta = json_at(object, "metadata");
        status = json_at(object, "status");
        json_remove(meta, "managedFields");
        json_set(a, json_at(meta, "annotations"), "sonde.dev/fence", json_string(a, "18"));
        json_set(a, status, "active", json_i64(a, 2));
        json_set(a, status, "phase", json_string(a, "Running"));
        json_write(root, JSON_COMPACT, out);
        return out->n;
}

static double our_turn(struct arena *a, struct str text, struct buf *out)
{
        double start = now_us();

        for (int i = 0; i < RUNS; i++)
                change_event(a, text, out);
        return (now_us() - start) / RUNS;
}

static double peer_turn(struct str text, char *out)
{
        double start = now_us();

        for (int i = 0; i < RUNS; i++)
                peer_change_event(text.p, text.n, out, OUT_MAX);
        return (now_us() - start) / RUNS;
}

/* Both must come to the same document, or the comparison means nothing. */
static bool same_result(struct arena *a, struct str text, struct buf *ours, char *theirs)
{
        _cleanup_(doc_done) struct doc x = DOC_INIT, y = DOC_INIT;
        size_t n = peer_change_event(text.p, text.n, theirs, OUT_MAX);

        return change_event(a, text, ours) && n && n <= OUT_MAX &&
               doc_parse(&x, buf_str(ours), NULL, NULL) == 0 &&
               doc_parse(&y, str_n(theirs, n), NULL, NULL) == 0 && json_equal(x.root, y.root);
}

int main(int argc, char **argv)
{
        _cleanup_(buf_done) struct buf text = BUF_INIT(OUT_MAX), out = BUF_INIT(OUT_MAX);
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        _cleanup_(free_ptr) char *theirs = xmalloc(OUT_MAX);
        double us = 1e9, peer = 1e9;
        struct err err = ERR_INIT;

        if (file_read(argc > 1 ? argv[1] : BENCH_DATA "/watch-event.json", &text, &err) < 0) {
                fprintf(stderr, "bench-json: %s\n", err.text);
                return FAILED;
        }
        if (!same_result(&a, buf_str(&text), &out, theirs)) {
                fprintf(stderr, "bench-json: the two libraries come to different documents\n");
                return FAILED;
        }
        for (int i = 0; i < TURNS; i++) {
                us = MIN(us, our_turn(&a, buf_str(&text), &out));
                peer = MIN(peer, peer_turn(buf_str(&text), theirs));
        }
        printf("parse, change and write an event of %zu bytes: %.2f us, jansson %.2f us, ratio %.1f (at "
               "least %.0f)\n",
               text.n, us, peer, peer / us, AT_LEAST);
        return peer / us >= AT_LEAST ? 0 : SLOWER;
}
