/*
 * auth.h - what the tests of credentials share: a folder, a clock that stands still unless the test moves it (so that
 * expiry, backoff and time limits are exact), credentials asked for, certificates made.
 */
#pragma once

#include "unit/dir.h"

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

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

static inline char *bio_text(struct fixture *f, BIO *bio)
{
        char *p, *text;
        long n = BIO_get_mem_data(bio, &p);

        text = arena_strndup(&f->arena, p, (size_t)n);
        BIO_free(bio);
        return text;
}

/* A self-signed certificate and its key. */
static inline struct identity make_identity(struct fixture *f, const char *name)
{
        EVP_PKEY *key = EVP_EC_gen("P-256");
        X509 *cert = X509_new();
        X509_NAME *subject = X509_get_subject_name(cert);
        BIO *cert_bio = BIO_new(BIO_s_mem()), *key_bio = BIO_new(BIO_s_mem());

        ASN1_INTEGER_set(X509_get_serialNumber(cert), 1);
        X509_gmtime_adj(X509_getm_notBefore(cert), 0);
        X509_gmtime_adj(X509_getm_notAfter(cert), 86400);
        X509_set_pubkey(cert, key);
        X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC, (const unsigned char *)name, -1, -1, 0);
        X509_set_issuer_name(cert, subject);
        assert_true(X509_sign(cert, key, EVP_sha256()) > 0);
        PEM_write_bio_X509(cert_bio, cert);
        PEM_write_bio_PrivateKey(key_bio, key, NULL, NULL, 0, NULL, NULL);
        X509_free(cert);
        EVP_PKEY_free(key);
        return (struct identity){bio_text(f, cert_bio), bio_text(f, key_bio)};
}

#define AUTH_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
