/*
 * A store under load, for being killed: store-writer DIR [--check]
 *
 * Eight writers, each of which has one write under way: it creates, changes and deletes objects of its own, and says so
 * on standard output as soon as the write is acknowledged: "REV WRITER N +|*|-". At the start it says what it found:
 * "found REV OLDEST", then every object as "object NAME TEXT" and every change of the history as "change REV NAME TEXT",
 * then "ready". With --check it ends there.
 */
#include <stdio.h>
#include <unistd.h>

#include "local/store.h"

enum { WRITERS = 8, KEYS = 5 };

struct writer {
        struct store *s;
        int number;
        uint64_t n, rev;
        char what;
};

static void say(const char *text, size_t n)
{
        while (n) {
                ssize_t done = write(STDOUT_FILENO, text, n);

                if (done <= 0)
                        _exit(3);
                text += done;
                n -= (size_t)done;
        }
}

static void write_next(struct writer *w);

static void acknowledged(void *arg)
{
        struct writer *w = arg;
        char line[128];
        int n = snprintf(line, sizeof(line), "%llu %d %llu %c\n", (unsigned long long)w->rev, w->number,
                         (unsigned long long)w->n, w->what);

        say(line, (size_t)n);
        write_next(w);
}

/* Create, change, change, delete, and again, over a few keys; the text tells its own revision at both ends. */
static void write_next(struct writer *w)
{
        uint64_t n = ++w->n, rev = store_next_rev(w->s);
        char name[64], text[2048];
        int used;
        size_t fill;

        snprintf(name, sizeof(name), "w%d-%llu", w->number, (unsigned long long)(n / 4 % KEYS));
        w->what = store_newest(w->s, "things", "x", name) ? n % 4 == 3 ? '-' : '*' : '+';
        used = snprintf(text, sizeof(text), "%llu:%d:%llu:%c:", (unsigned long long)rev, w->number,
                        (unsigned long long)n, w->what);
        fill = 200 + n * 37 % 1500;
        memset(text + used, 'x', fill);
        snprintf(text + (size_t)used + fill, sizeof(text) - (size_t)used - fill, ":%llu",
                 (unsigned long long)rev);
        w->rev = store_stage(w->s,
                             &(struct store_write){.type = "things",
                                                   .ns = "x",
                                                   .name = name,
                                                   .text = str_of(text),
                                                   .is_delete = w->what == '-'},
                             acknowledged, w);
}

static bool show_object(void *arg, struct object *o)
{
        struct buf *out = arg;

        buf_printf(out, "object %s ", o->name);
        buf_addstr(out, o->text);
        buf_addc(out, '\n');
        return true;
}

static void show_change(void *arg, const struct change *c)
{
        struct buf *out = arg;

        buf_printf(out, "change %llu %s ", (unsigned long long)c->rev, c->after->name);
        buf_addstr(out, c->after->text);
        buf_addc(out, '\n');
}

static int show(struct store *s, struct err *err)
{
        _cleanup_(buf_done) struct buf out = BUF_INIT(256 << 20);

        buf_printf(&out, "found %llu %llu\n", (unsigned long long)store_rev(s),
                   (unsigned long long)store_oldest(s));
        if (store_list(s, &(struct store_range){.type = "things"}, show_object, &out, err) < 0 ||
            store_replay(s, store_oldest(s), show_change, &out, err) < 0)
                return -1;
        buf_adds(&out, "ready\n");
        say(out.p, out.n);
        return 0;
}

static void on_failure(void *arg, const struct err *err)
{
        fprintf(stderr, "store-writer: %s\n", err->text);
        _exit(4);
}

/* Where the last one stopped, so that a writer's numbers go on. */
static void on_known(void *arg, const struct change *c)
{
        struct writer *w = arg;
        struct str text = c->after->text, number, n;
        uint64_t which, count;

        str_split(&text, ':');
        number = str_split(&text, ':');
        n = str_split(&text, ':');
        if (str_to_u64(number, &which) && which < WRITERS && str_to_u64(n, &count))
                w[which].n = count;
}

int main(int argc, char **argv)
{
        _cleanup_(loop_free) struct loop *loop = NULL;
        _cleanup_(store_close) struct store *s = NULL;
        struct writer writers[WRITERS];
        struct err err = ERR_INIT;
        char path[512];

        if (argc < 2) {
                fprintf(stderr, "usage: store-writer DIR [--check]\n");
                return 2;
        }
        snprintf(path, sizeof(path), "%s/store.db", argv[1]);
        loop = loop_new(NULL, NULL, &err);
        if (loop)
                s = store_open(loop,
                               &(struct store_config){.path = path,
                                                      .durable = true,
                                                      .history = 200,
                                                      .window = USEC_PER_MS,
                                                      .on_failure = on_failure},
                               &err);
        if (!s || show(s, &err) < 0) {
                fprintf(stderr, "store-writer: %s\n", err.text);
                return 1;
        }
        if (argc > 2)
                return 0;
        for (int i = 0; i < WRITERS; i++)
                writers[i] = (struct writer){.s = s, .number = i};
        if (store_replay(s, store_oldest(s), on_known, writers, &err) < 0)
                return 1;
        for (int i = 0; i < WRITERS; i++)
                write_next(&writers[i]);
        return loop_run(loop);
}
