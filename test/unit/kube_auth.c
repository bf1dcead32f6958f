#include "unit/auth.h"

/* ---- what does not change */

static void test_no_credentials(void **state)
{
        struct fixture *f = *state;

        assert_int_equal(get(f), 1);
        assert_null(f->got.authorization);
        assert_null(f->got.tls);
        assert_false(kube_auth_refused(f->auth));
}

static void test_a_token(void **state)
{
        struct fixture *f = *state;

        f->config.token = (char *)"abc";
        assert_header(f, "Bearer abc");
        assert_false(kube_auth_refused(f->auth));
        assert_header(f, "Bearer abc");
}

static void test_a_password(void **state)
{
        struct fixture *f = *state;

        f->config.username = (char *)"Aladdin";
        f->config.password = (char *)"open sesame";
        assert_header(f, "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==");
}

static void test_a_token_cannot_forge_headers(void **state)
{
        struct fixture *f = *state;

        f->config.token = (char *)"abc\r\nX-Remote-User: admin";
        assert_fails(f, "the token in the kubeconfig holds characters that no token has");
        assert_null(strstr(f->err.text, "abc"));
}

/* ---- token files */

static void test_a_token_file_is_read_again_after_60_s(void **state)
{
        struct fixture *f = *state;

        f->config.token = (char *)"static"; /* the file wins */
        f->config.token_file = write_file(f, "token", "one\n");
        assert_header(f, "Bearer one");
        write_file(f, "token", "two");
        advance(f, 59 * USEC_PER_SEC);
        assert_header(f, "Bearer one");
        advance(f, 1 * USEC_PER_SEC);
        assert_header(f, "Bearer two");
}

static void test_a_token_file_is_read_again_when_refused(void **state)
{
        struct fixture *f = *state;

        f->config.token_file = write_file(f, "token", "one");
        assert_header(f, "Bearer one");
        advance(f, 30 * USEC_PER_SEC);
        assert_false(kube_auth_refused(f->auth)); /* there is nothing newer */
        write_file(f, "token", "two");
        assert_true(kube_auth_refused(f->auth));
        assert_header(f, "Bearer two");
        assert_true(kube_auth_refused(f->auth)); /* another call that was sent with the old one */
        advance(f, 30 * USEC_PER_SEC);
        assert_false(kube_auth_refused(f->auth));
}

static void test_the_old_token_stays_while_the_file_cannot_be_read(void **state)
{
        struct fixture *f = *state;

        f->config.token_file = write_file(f, "token", "one");
        assert_header(f, "Bearer one");
        write_file(f, "token", " \n");
        advance(f, 60 * USEC_PER_SEC);
        assert_header(f, "Bearer one");
        unlink(f->config.token_file);
        advance(f, 10 * USEC_PER_SEC);
        assert_header(f, "Bearer one");
        write_file(f, "token", "two");
        assert_header(f, "Bearer one");
        advance(f, 10 * USEC_PER_SEC); /* not a whole minute after a failure */
        assert_header(f, "Bearer two");
}

static void test_a_token_file_that_was_never_good(void **state)
{
        struct fixture *f = *state;
        char *big = arena_alloc(&f->arena, 70001);

        f->config.token_file = path_in(f, "token");
        assert_int_equal(get(f), -1);
        assert_int_equal(f->err.code, E_AUTH);
        assert_true(str_has_prefix(str_of(f->err.text), STR("token of the test: cannot open ")));
        write_file(f, "token", "\n");
        assert_fails(f, arena_printf(&f->arena, "token of the test: %s/token is empty", f->dir));
        write_file(f, "token", "a b");
        assert_fails(f,
                     arena_printf(&f->arena, "token of the test: %s/token holds characters that no token has",
                                  f->dir));
        memset(big, 'x', 70000);
        big[70000] = '\0';
        write_file(f, "token", big);
        assert_fails(
                f, arena_printf(&f->arena, "token of the test: %s/token is larger than 65536 bytes", f->dir));
        write_file(f, "token", "good");
        assert_header(f, "Bearer good");
}

/* ---- certificates */

static void write_identity(struct fixture *f, struct identity id)
{
        f->config.cert_file = write_file(f, "cert", id.cert);
        f->config.key_file = write_file(f, "key", id.key);
}

static void test_certificate_files_are_looked_at_every_60_s(void **state)
{
        struct fixture *f = *state;
        struct identity one = make_identity(f, "one"), two = make_identity(f, "two");
        struct tls *before;

        f->config.server = (char *)"https://127.0.0.1:1";
        f->config.ca_file = write_file(f, "ca", one.cert);
        write_identity(f, one);
        assert_int_equal(get(f), 1);
        before = f->got.tls;
        assert_non_null(before);
        assert_int_equal(f->got.tls_generation, 1);

        advance(f, 60 * USEC_PER_SEC);
        assert_int_equal(get(f), 1);
        assert_int_equal(f->got.tls_generation, 1); /* unchanged files */

        write_identity(f, two);
        advance(f, 59 * USEC_PER_SEC);
        assert_int_equal(get(f), 1);
        assert_int_equal(f->got.tls_generation, 1);
        advance(f, 1 * USEC_PER_SEC);
        assert_int_equal(get(f), 1);
        assert_int_equal(f->got.tls_generation, 2);
}

static void test_certificates_in_mid_rotation_keep_the_old_ones(void **state)
{
        struct fixture *f = *state;
        struct identity one = make_identity(f, "one"), two = make_identity(f, "two");

        f->config.server = (char *)"https://127.0.0.1:1";
        write_identity(f, one);
        assert_int_equal(get(f), 1);
        write_file(f, "cert", two.cert); /* its key is not there yet */
        advance(f, 60 * USEC_PER_SEC);
        assert_int_equal(get(f), 1);
        assert_int_equal(f->got.tls_generation, 1);
        assert_non_null(f->got.tls);
        write_file(f, "key", two.key);
        advance(f, 10 * USEC_PER_SEC);
        assert_int_equal(get(f), 1);
        assert_int_equal(f->got.tls_generation, 2);
}

static void test_refused_certificates_are_looked_at_now(void **state)
{
        struct fixture *f = *state;
        struct identity one = make_identity(f, "one"), two = make_identity(f, "two");

        f->config.server = (char *)"https://127.0.0.1:1";
        write_identity(f, one);
        assert_int_equal(get(f), 1);
        assert_false(kube_auth_refused(f->auth));
        write_identity(f, two);
        assert_true(kube_auth_refused(f->auth));
        assert_int_equal(get(f), 1);
        assert_int_equal(f->got.tls_generation, 2);
}

static void test_certificates_that_were_never_good(void **state)
{
        struct fixture *f = *state;

        f->config.server = (char *)"https://127.0.0.1:1";
        f->config.ca_file = path_in(f, "ca");
        assert_int_equal(get(f), -1);
        assert_int_equal(f->err.code, E_CONFIG);
        assert_true(str_has_prefix(str_of(f->err.text), STR("certificates of the test: cannot open ")));
        write_file(f, "ca", "no PEM");
        assert_int_equal(get(f), -1);
        assert_true(str_has_prefix(str_of(f->err.text), STR("certificates of the test: ")));
        write_file(f, "ca", make_identity(f, "ca").cert);
        assert_int_equal(get(f), 1);
}

static const struct CMUnitTest tests[] = {
        AUTH_TEST(test_no_credentials),
        AUTH_TEST(test_a_token),
        AUTH_TEST(test_a_password),
        AUTH_TEST(test_a_token_cannot_forge_headers),
        AUTH_TEST(test_a_token_file_is_read_again_after_60_s),
        AUTH_TEST(test_a_token_file_is_read_again_when_refused),
        AUTH_TEST(test_the_old_token_stays_while_the_file_cannot_be_read),
        AUTH_TEST(test_a_token_file_that_was_never_good),
        AUTH_TEST(test_certificate_files_are_looked_at_every_60_s),
        AUTH_TEST(test_certificates_in_mid_rotation_keep_the_old_ones),
        AUTH_TEST(test_refused_certificates_are_looked_at_now),
        AUTH_TEST(test_certificates_that_were_never_good),
};

UNIT_MAIN(tests)
