/*
 * auth.h - what the tests of credentials share: a folder, a clock that stands still unless the test moves it (so that
 * expiry, backoff and time limits are exact), credentials asked for, certificates made.
 */
#pragma once

#include "unit/certs.h"
#include "unit/dir.h"

#include "kube/auth.h"

struct fixture {
        char dir[UNIT_DIR_LEN];
        struct arena arena;
        struct clock clock;
        struct loop *loop;
        struct kube_config config;
        struct kube_exec exec;
        struct kube_auth *auth;
        struct kube_credentials got;
        struct err err;
        int ready; /* how often on_ready came */
};

static inline void on_ready(void *arg)
{
        struct fixture *f = arg;

        f->ready++;
}

static inline int set_up(void **state)
{
        struct fixture *f = xcalloc(1, sizeof(*f));

        unit_dir(f->dir);
        /* 2030-01-01T00:00:00Z */
        f->clock = (struct clock){
                .manual = true, .boot = 1000 * USEC_PER_SEC, .wall = 1893456000 * USEC_PER_SEC};
        f->loop = loop_new(&f->clock, NULL, NULL);
        f->config.server = (char *)"http://127.0.0.1:1";
        f->config.source = (char *)"the test";
        *state = f;
        return 0;
}

static inline int tear_down(void **state)
{
        struct fixture *f = *state;

        kube_auth_free(f->auth);
        loop_free(f->loop);
        arena_done(&f->arena);
        free(f);
        return 0;
}

static inline char *path_in(struct fixture *f, const char *name)
{
        return arena_printf(&f->arena, "%s/%s", f->dir, name);
}

static inline char *write_file(struct fixture *f, const char *name, const char *text)
{
        char *path = path_in(f, name);

        assert_int_equal(file_replace(path, str_of(text), 0600, NULL), 0);
        return path;
}

static inline const char *read_file(struct fixture *f, const char *name)
{
        _cleanup_(buf_done) struct buf b = BUF_INIT(1 << 20);

        if (file_read(path_in(f, name), &b, NULL) < 0)
                return "";
        return arena_strndup(&f->arena, b.p, b.n);
}

static inline void advance(struct fixture *f, usec_t by)
{
        f->clock.boot += by;
        f->clock.wall += by;
}

static inline int get(struct fixture *f)
{
        if (!f->auth)
                f->auth = kube_auth_new(f->loop, &f->config);
        err_clear(&f->err);
        return kube_auth_get(f->auth, &f->got, on_ready, f, &f->err);
}

/* Turns the loop, with the clock standing still, until the plugin's run is over. */
static inline void wait_ready(struct fixture *f, int times)
{
        while (f->ready < times)
                loop_turn(f->loop, false);
}

static inline void assert_header(struct fixture *f, const char *header)
{
        if (get(f) != 1)
                fail_msg("%s", f->err.text);
        assert_string_equal(f->got.authorization, header);
}

static inline void assert_fails(struct fixture *f, const char *message)
{
        assert_int_equal(get(f), -1);
        assert_string_equal(f->err.text, message);
        assert_int_equal(f->err.code, E_AUTH);
}

struct identity {
        char *cert, *key;
};

/* A self-signed certificate and its key. */
static inline struct identity make_identity(struct fixture *f, const char *name)
{
        _cleanup_(cert_done) struct cert c = cert_make((struct cert_request){.cn = name});

        return (struct identity){arena_strdup(&f->arena, c.cert), arena_strdup(&f->arena, c.key)};
}

#define AUTH_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
