/*
 * Durable writes a second of the store, with 1 and 16 writers that each wait for their last write, on the disk of DIR
 * (/var/tmp). Beside it, in turns, what cannot be beaten: a plain append to a file with fdatasync, one write at a time and
 * 16 at a time; and what it must beat: SQLite with one transaction a write. Then what a start and a list cost.
 * Usage: bench-store [DIR]
 */
#include <fcntl.h>
#include <ftw.h>
#include <sqlite3.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "local/store.h"

enum { TEXT = 1300, ROUNDS = 5, MANY = 16, OBJECTS = 10000 };
#define SECONDS 0.6

struct bench {
        char dir[512];
        char path[600];
        char text[TEXT];
        struct loop *loop;
        struct store *s;
        uint64_t n;
        double end;
};

static _noreturn_ void die(const char *what)
{
        fprintf(stderr, "bench-store: %s\n", what);
        exit(1);
}

static double wall(void)
{
        struct timespec t;

        clock_gettime(CLOCK_MONOTONIC, &t);
        return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static const char *in_dir(struct bench *b, const char *name)
{
        snprintf(b->path, sizeof(b->path), "%s/%s", b->dir, name);
        return b->path;
}

/* ---- the floor */

static double append(struct bench *b, size_t at_once)
{
        int fd = open(in_dir(b, "plain"), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
        double began = wall(), end = began + SECONDS, now;
        uint64_t n = 0;

        if (fd < 0)
                die("cannot open a file");
        do {
                for (size_t i = 0; i < at_once; i++)
                        if (write(fd, b->text, TEXT) != TEXT)
                                die("cannot write");
                if (fdatasync(fd) < 0)
                        die("cannot sync");
                n += at_once;
                now = wall();
        } while (now < end);
        close(fd);
        return (double)n / (now - began);
}

static double append_one(struct bench *b)
{
        return append(b, 1);
}

static double append_many(struct bench *b)
{
        return append(b, MANY);
}

/* ---- SQLite, one transaction a write */

static void sql(sqlite3 *db, const char *text)
{
        if (sqlite3_exec(db, text, NULL, NULL, NULL) != SQLITE_OK)
                die(sqlite3_errmsg(db));
}

static double naive(struct bench *b)
{
        sqlite3 *db;
        sqlite3_stmt *st;
        double began, end, now;
        uint64_t n = 0;

        if (sqlite3_open(in_dir(b, "naive.db"), &db) != SQLITE_OK)
                die("cannot open naive.db");
        sql(db, "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;"
                "CREATE TABLE IF NOT EXISTS log (rev INTEGER PRIMARY KEY, name TEXT, text TEXT)");
        if (sqlite3_prepare_v2(db, "INSERT INTO log VALUES (?, ?, ?)", -1, &st, NULL) != SQLITE_OK)
                die(sqlite3_errmsg(db));
        began = wall();
        end = began + SECONDS;
        do {
                char key[32];

                snprintf(key, sizeof(key), "default/%llu", (unsigned long long)b->n++);
                sqlite3_bind_int64(st, 1, (int64_t)b->n);
                sqlite3_bind_text(st, 2, key, -1, SQLITE_TRANSIENT);
                sqlite3_bind_text(st, 3, b->text, TEXT, SQLITE_STATIC);
                if (sqlite3_step(st) != SQLITE_DONE)
                        die(sqlite3_errmsg(db));
                sqlite3_reset(st);
                n++;
                now = wall();
        } while (now < end);
        sqlite3_finalize(st);
        sqlite3_close(db);
        return (double)n / (now - began);
}

/* ---- the store */

static void open_store(struct bench *b, bool durable)
{
        struct err err = ERR_INIT;

        b->s = store_open(b->loop, &(struct store_config){.path = in_dir(b, "store.db"), .durable = durable},
                          &err);
        if (!b->s)
                die(err.text);
}

static void stage(struct bench *b, void (*done)(void *arg))
{
        char name[32];

        snprintf(name, sizeof(name), "%llu", (unsigned long long)b->n++);
        store_stage(b->s,
                    &(struct store_write){
                            .type = "pods", .ns = "default", .name = name, .text = str_n(b->text, TEXT)},
                    done, b);
}

static void again(void *arg)
{
        struct bench *b = arg;

        if (wall() < b->end)
                stage(b, again);
}

static double store(struct bench *b, int writers)
{
        uint64_t first;
        double began, took;

        open_store(b, true);
        first = store_rev(b->s);
        began = wall();
        b->end = began + SECONDS;
        for (int i = 0; i < writers; i++)
                stage(b, again);
        while (store_rev(b->s) + 1 != store_next_rev(b->s))
                loop_turn(b->loop, true);
        took = wall() - began;
        first = store_rev(b->s) - first;
        store_close(TAKE_PTR(b->s));
        return (double)first / took;
}

static double store_one(struct bench *b)
{
        return store(b, 1);
}

static double store_many(struct bench *b)
{
        return store(b, MANY);
}

/* ---- what is beside it */

static bool count(void *arg, struct object *o)
{
        ++*(size_t *)arg;
        return true;
}

static void start_and_list(struct bench *b)
{
        double began, opened, listed, past;
        size_t n = 0;
        uint64_t rev;

        unlink(in_dir(b, "store.db"));
        open_store(b, false);
        b->n = 0;
        for (int i = 0; i < OBJECTS; i++)
                stage(b, NULL);
        store_close(TAKE_PTR(b->s));
        began = wall();
        open_store(b, true);
        opened = wall();
        if (store_list(b->s, &(struct store_range){.type = "pods"}, count, &n, NULL) < 0 || n != OBJECTS)
                die("the list is not complete");
        listed = wall();
        rev = store_rev(b->s) - 1000;
        if (store_list(b->s, &(struct store_range){.type = "pods", .rev = rev}, count, &n, NULL) < 0)
                die("the list is not there");
        past = wall();
        printf("%d objects: start %.1f ms, list %.2f ms, list 1000 changes ago %.2f ms\n", OBJECTS,
               (opened - began) * 1e3, (listed - opened) * 1e3, (past - listed) * 1e3);
        store_close(TAKE_PTR(b->s));
}

static int by_value(const void *a, const void *b)
{
        const double x = *(const double *)a, y = *(const double *)b;

        return (x > y) - (x < y);
}

enum { APPEND_ONE, APPEND_MANY, NAIVE, STORE_ONE, STORE_MANY, RUNS };

static const struct {
        const char *name;
        double (*fn)(struct bench *b);
} runs[RUNS] = {
        [APPEND_ONE] = {"append + fdatasync, one at a time", append_one},
        [APPEND_MANY] = {"append + fdatasync, 16 at a time", append_many},
        [NAIVE] = {"SQLite, one transaction a write", naive},
        [STORE_ONE] = {"store, 1 writer", store_one},
        [STORE_MANY] = {"store, 16 writers", store_many},
};

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
        return remove(path);
}

int main(int argc, char **argv)
{
        struct bench b = {.s = NULL};
        struct err err = ERR_INIT;
        double rate[RUNS][ROUNDS], median[RUNS];
        bool good;

        snprintf(b.dir, sizeof(b.dir), "%s/bench-store-XXXXXX", argc > 1 ? argv[1] : "/var/tmp");
        b.loop = loop_new(NULL, NULL, &err);
        if (!b.loop || !mkdtemp(b.dir))
                die("cannot make a folder");
        memset(b.text, 'x', TEXT);
        for (size_t round = 0; round < ROUNDS; round++)
                for (size_t i = 0; i < RUNS; i++)
                        rate[i][round] = runs[i].fn(&b);
        printf("durable writes of %d bytes a second, the median of %d turns of %.1f s (lowest to highest)\n",
               TEXT, ROUNDS, SECONDS);
        for (size_t i = 0; i < RUNS; i++) {
                qsort(rate[i], ROUNDS, sizeof(double), by_value);
                median[i] = rate[i][ROUNDS / 2];
                printf("  %-36s %8.0f   (%.0f to %.0f)\n", runs[i].name, median[i], rate[i][0],
                       rate[i][ROUNDS - 1]);
        }
        start_and_list(&b);
        good = median[STORE_MANY] >= 3 * median[NAIVE] && median[STORE_ONE] >= 0.6 * median[NAIVE];
        printf("16 writers: %.1f times SQLite's one transaction a write (at least 3); 1 writer: %.2f times "
               "(at least "
               "0.6): %s\n",
               median[STORE_MANY] / median[NAIVE], median[STORE_ONE] / median[NAIVE],
               good ? "good" : "MISSED");
        loop_free(b.loop);
        nftw(b.dir, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
        return good ? 0 : 1;
}
