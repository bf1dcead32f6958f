/* The HTTP client over TLS, against a server played with OpenSSL itself: what is verified, and what is said. */
#include "unit/net_rig.h"

#include <openssl/err.h>
#include <openssl/ssl.h>

#include "unit/certs.h"

struct rig {
        struct net_rig net;
        struct cert ca, leaf, other_ca;
        struct http_client *client;
        /* the server */
        SSL_CTX *ctx;
        SSL *ssl;
        int fd;
        /* what the client reported */
        int ends, status;
        struct err err;
        struct buf body;
        struct http_call *call;
        bool pausing; /* on_data pauses every time */
};

static void on_end(void *arg, const struct http_answer *a, const struct err *err)
{
        struct rig *r = arg;

        r->ends++;
        err_clear(&r->err);
        if (err)
                r->err = *err;
        if (a) {
                r->status = a->status;
                buf_addstr(&r->body, a->body);
        }
}

static void on_data(void *arg, struct str chunk)
{
        struct rig *r = arg;

        buf_addstr(&r->body, chunk);
        if (r->pausing)
                http_call_pause(r->call, true);
}

static const struct http_handlers handlers = {.on_end = on_end, .on_data = on_data};

static void serve_with(struct rig *r, const struct cert *c)
{
        SSL_CTX_free(r->ctx);
        r->ctx = SSL_CTX_new(TLS_server_method());
        assert_int_equal(SSL_CTX_use_certificate(r->ctx, c->x509), 1);
        assert_int_equal(SSL_CTX_use_PrivateKey(r->ctx, c->pkey), 1);
}

static int setup(void **state)
{
        struct rig *r = xcalloc(1, sizeof(*r));

        net_rig_init(&r->net);
        r->fd = -1;
        r->body = (struct buf)BUF_INIT(SIZE_MAX);
        r->ca = cert_make((struct cert_request){.cn = "test CA", .ca = true});
        r->other_ca = cert_make((struct cert_request){.cn = "another CA", .ca = true});
        r->leaf = cert_make(
                (struct cert_request){.cn = "server", .san = "DNS:localhost,IP:127.0.0.1", .issuer = &r->ca});
        serve_with(r, &r->leaf);
        *state = r;
        return 0;
}

static void hang_up(struct rig *r)
{
        SSL_free(TAKE_PTR(r->ssl));
        fd_close(TAKE_FD(r->fd));
}

static int teardown(void **state)
{
        struct rig *r = *state;

        http_client_free(r->client);
        net_rig_done(&r->net);
        hang_up(r);
        SSL_CTX_free(r->ctx);
        cert_done(&r->ca);
        cert_done(&r->other_ca);
        cert_done(&r->leaf);
        buf_done(&r->body);
        free(r);
        return 0;
}

static void new_client(struct rig *r, struct tls_config config)
{
        struct err err = ERR_INIT;
        _cleanup_(tls_unref) struct tls *tls = tls_new(&config, &err);
        char url[64];

        assert_string_equal(err.text, "");
        assert_non_null(tls);
        snprintf(url, sizeof(url), "https://127.0.0.1:%u", r->net.port);
        http_client_free(r->client);
        r->client = http_client_new(r->net.loop, &(struct http_client_config){.url = url, .tls = tls}, &err);
        assert_non_null(r->client);
}

static void start(struct rig *r, bool stream)
{
        r->ends = r->status = 0;
        buf_clear(&r->body);
        r->call = http_start(r->client,
                             &(struct http_request){.method = "GET", .target = "/", .stream = stream},
                             &handlers, r);
}

/* One more try of what may have to wait; true: done, well or not. */
static bool accepted(struct rig *r, int *ret)
{
        int n = SSL_accept(r->ssl), e = SSL_get_error(r->ssl, n);

        ERR_clear_error();
        *ret = n;
        return n == 1 || (e != SSL_ERROR_WANT_READ && e != SSL_ERROR_WANT_WRITE);
}

static bool play_handshake(struct rig *r)
{
        int result = 0;

        hang_up(r);
        r->fd = net_accept(&r->net);
        r->ssl = SSL_new(r->ctx);
        SSL_set_fd(r->ssl, r->fd);
        net_until(&r->net, accepted(r, &result));
        return result == 1;
}

static bool heard_request(struct rig *r, struct buf *b)
{
        char piece[1024];
        int n = SSL_read(r->ssl, piece, sizeof(piece));

        ERR_clear_error();
        if (n > 0)
                buf_add(b, piece, (size_t)n);
        return b->n && memmem(b->p, b->n, "\r\n\r\n", 4);
}

static void play_answer(struct rig *r, const char *text)
{
        _cleanup_(buf_done) struct buf b = BUF_INIT(65536);

        net_until(&r->net, heard_request(r, &b));
        assert_int_equal(SSL_write(r->ssl, text, (int)strlen(text)), strlen(text));
}

/* A call to the server as it stands; it must fail so. BEFORE and AFTER surround the address of the server. */
static void assert_refused(struct rig *r, enum err_code code, const char *before, const char *after)
{
        char text[512];

        start(r, false);
        play_handshake(r);
        net_until(&r->net, r->ends > 0);
        snprintf(text, sizeof(text), "%s127.0.0.1:%u%s", before, r->net.port, after);
        assert_string_equal(r->err.text, text);
        assert_int_equal(r->err.code, code);
}

static void test_a_verified_server_and_a_kept_connection(void **state)
{
        struct rig *r = *state;

        new_client(r, (struct tls_config){.ca = str_of(r->ca.cert)});
        start(r, false);
        assert_true(play_handshake(r));
        play_answer(r, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
        net_until(&r->net, r->ends > 0);
        assert_string_equal(r->err.text, "");
        assert_str(buf_str(&r->body), "ok");
        assert_true(SSL_version(r->ssl) == TLS1_3_VERSION);
        start(r, false);
        play_answer(r, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nagain");
        net_until(&r->net, r->ends > 0);
        assert_str(buf_str(&r->body), "again");
}

static void test_tls_1_2_is_enough(void **state)
{
        struct rig *r = *state;

        SSL_CTX_set_max_proto_version(r->ctx, TLS1_2_VERSION);
        new_client(r, (struct tls_config){.ca = str_of(r->ca.cert)});
        start(r, false);
        assert_true(play_handshake(r));
        play_answer(r, "HTTP/1.1 204 No Content\r\n\r\n");
        net_until(&r->net, r->ends > 0);
        assert_int_equal(r->status, 204);
}

static void test_tls_1_1_is_not(void **state)
{
        struct rig *r = *state;

        SSL_CTX_set_security_level(r->ctx, 0);
        SSL_CTX_set_min_proto_version(r->ctx, TLS1_VERSION);
        SSL_CTX_set_max_proto_version(r->ctx, TLS1_1_VERSION);
        new_client(r, (struct tls_config){.ca = str_of(r->ca.cert)});
        assert_refused(r, E_TLS, "", " refused TLS 1.2 and 1.3; it may speak older versions only");
}

static void test_the_wrong_name(void **state)
{
        struct rig *r = *state;
        _cleanup_(cert_done) struct cert c = cert_make((struct cert_request){
                .cn = "127.0.0.1", .san = "DNS:a,DNS:*.b.example,IP:10.0.0.1", .issuer = &r->ca});

        serve_with(r, &c);
        new_client(r, (struct tls_config){.ca = str_of(r->ca.cert)});
        assert_refused(r, E_TLS, "certificate of ",
                       " is not valid for '127.0.0.1': it names a, *.b.example, 10.0.0.1");
        new_client(r, (struct tls_config){.ca = str_of(r->ca.cert), .server_name = "example"});
        assert_refused(r, E_TLS, "certificate of ",
                       " is not valid for 'example': it names a, *.b.example, 10.0.0.1");
        new_client(r, (struct tls_config){.ca = str_of(r->ca.cert), .server_name = "x.b.example"});
        start(r, false);
        assert_true(play_handshake(r));
        assert_string_equal(SSL_get_servername(r->ssl, TLSEXT_NAMETYPE_host_name), "x.b.example");
}

static void test_a_common_name_is_no_name(void **state)
{
        struct rig *r = *state;
        _cleanup_(cert_done) struct cert c = cert_make(
                (struct cert_request){.cn = "localhost", .issuer = &r->ca});

        serve_with(r, &c);
        new_client(r, (struct tls_config){.ca = str_of(r->ca.cert), .server_name = "localhost"});
        assert_refused(r, E_TLS, "certificate of ", " is not valid for 'localhost': it names nothing");
}

static void test_the_wrong_ca(void **state)
{
        struct rig *r = *state;

        new_client(r, (struct tls_config){.ca = str_of(r->other_ca.cert)});
        assert_refused(r, E_TLS, "certificate of ",
                       " is signed by an unknown authority 'test CA'; check the CA");
        new_client(r, (struct tls_config){0}); /* the system's do not know it either */
        assert_refused(r, E_TLS, "certificate of ",
                       " is signed by an unknown authority 'test CA'; check the CA");
}

static void test_a_certificate_that_signed_itself(void **state)
{
        struct rig *r = *state;
        _cleanup_(cert_done) struct cert c = cert_make(
                (struct cert_request){.cn = "alone", .san = "IP:127.0.0.1"});

        serve_with(r, &c);
        new_client(r, (struct tls_config){.ca = str_of(r->ca.cert)});
        assert_refused(r, E_TLS, "certificate of ",
                       " is signed by an unknown authority 'alone'; check the CA");
        /* unless it is the one that was configured */
        new_client(r, (struct tls_config){.ca = str_of(c.cert)});
        start(r, false);
        assert_true(play_handshake(r));
}

static void date_of(const ASN1_TIME *time, const char *before, char out[128])
{
        struct tm tm;
        char text[64];

        assert_int_equal(ASN1_TIME_to_tm(time, &tm), 1);
        strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &tm);
        snprintf(out, 128, "%s%s", before, text);
}

static void test_a_certificate_out_of_its_time(void **state)
{
        struct rig *r = *state;
        _cleanup_(cert_done) struct cert old = cert_make((struct cert_request){
                .san = "IP:127.0.0.1", .issuer = &r->ca, .begins = -7200, .ends = -3600});
        _cleanup_(cert_done) struct cert early = cert_make(
                (struct cert_request){.san = "IP:127.0.0.1", .issuer = &r->ca, .begins = 3600, .ends = 7200});
        char text[128];

        new_client(r, (struct tls_config){.ca = str_of(r->ca.cert)});
        serve_with(r, &old);
        date_of(X509_get0_notAfter(old.x509), " expired on ", text);
        assert_refused(r, E_TLS, "certificate of ", text);
        serve_with(r, &early);
        date_of(X509_get0_notBefore(early.x509), " is not valid before ", text);
        assert_refused(r, E_TLS, "certificate of ", text);
}

static void test_an_authority_out_of_its_time(void **state)
{
        struct rig *r = *state;
        _cleanup_(cert_done) struct cert ca = cert_make(
                (struct cert_request){.cn = "old CA", .ca = true, .begins = -7200, .ends = -3600});
        _cleanup_(cert_done) struct cert c = cert_make(
                (struct cert_request){.san = "IP:127.0.0.1", .issuer = &ca});
        char text[128];

        serve_with(r, &c);
        new_client(r, (struct tls_config){.ca = str_of(ca.cert)});
        date_of(X509_get0_notAfter(ca.x509), " cannot be trusted: that of its authority 'old CA' expired on ",
                text);
        assert_refused(r, E_TLS, "certificate of ", text);
}

static void test_insecure_accepts_anything(void **state)
{
        struct rig *r = *state;

        new_client(r, (struct tls_config){.insecure = true});
        start(r, false);
        assert_true(play_handshake(r));
}

static void demand_client_certificate(struct rig *r)
{
        X509_STORE_add_cert(SSL_CTX_get_cert_store(r->ctx), r->ca.x509);
        SSL_CTX_set_verify(r->ctx, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
}

static void test_a_missing_client_certificate(void **state)
{
        struct rig *r = *state;

        demand_client_certificate(r);
        new_client(r, (struct tls_config){.ca = str_of(r->ca.cert)});
        assert_refused(r, E_TLS, "", " requires a client certificate");
        SSL_CTX_set_max_proto_version(r->ctx, TLS1_2_VERSION);
        assert_refused(r, E_TLS, "",
                       " refused the handshake; it may require a client certificate or other ciphers");
}

static void test_a_client_certificate_nobody_knows(void **state)
{
        struct rig *r = *state;
        _cleanup_(cert_done) struct cert c = cert_make(
                (struct cert_request){.cn = "me", .issuer = &r->other_ca});

        demand_client_certificate(r);
        new_client(r, (struct tls_config){
                              .ca = str_of(r->ca.cert), .cert = str_of(c.cert), .key = str_of(c.key)});
        assert_refused(r, E_TLS, "", " does not know the authority that signed our certificate");
}

static void test_an_expired_client_certificate(void **state)
{
        struct rig *r = *state;
        _cleanup_(cert_done) struct cert c = cert_make(
                (struct cert_request){.cn = "me", .issuer = &r->ca, .begins = -7200, .ends = -3600});

        demand_client_certificate(r);
        new_client(r, (struct tls_config){
                              .ca = str_of(r->ca.cert), .cert = str_of(c.cert), .key = str_of(c.key)});
        assert_refused(r, E_TLS, "", " refused our certificate as expired");
}

static void test_a_good_client_certificate(void **state)
{
        struct rig *r = *state;
        _cleanup_(cert_done) struct cert c = cert_make((struct cert_request){.cn = "me", .issuer = &r->ca});

        demand_client_certificate(r);
        new_client(r, (struct tls_config){
                              .ca = str_of(r->ca.cert), .cert = str_of(c.cert), .key = str_of(c.key)});
        start(r, false);
        assert_true(play_handshake(r));
        play_answer(r, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
        net_until(&r->net, r->ends > 0);
        assert_str(buf_str(&r->body), "ok");
}

static void test_a_server_without_tls(void **state)
{
        struct rig *r = *state;
        char text[128];

        new_client(r, (struct tls_config){.ca = str_of(r->ca.cert)});
        start(r, false);
        r->fd = net_accept(&r->net);
        net_until(&r->net, (net_hear(r->fd, &r->body), r->body.n > 0));
        net_say(r->fd, "HTTP/1.1 400 Bad Request\r\n\r\n");
        net_until(&r->net, r->ends > 0);
        snprintf(text, sizeof(text), "127.0.0.1:%u does not speak TLS; use http:// or check the port",
                 r->net.port);
        assert_string_equal(r->err.text, text);
        assert_int_equal(r->err.code, E_TLS);
}

static void test_a_server_that_hangs_up_in_the_handshake(void **state)
{
        struct rig *r = *state;
        char text[128];

        new_client(r, (struct tls_config){.ca = str_of(r->ca.cert)});
        start(r, false);
        r->fd = net_accept(&r->net);
        net_until(&r->net, (net_hear(r->fd, &r->body), r->body.n > 0));
        hang_up(r);
        net_until(&r->net, r->ends > 0);
        snprintf(text, sizeof(text), "127.0.0.1:%u closed the connection during the TLS handshake",
                 r->net.port);
        assert_string_equal(r->err.text, text);
        assert_int_equal(r->err.code, E_CONNECT);
}

static void test_plain_http_to_a_tls_port(void **state)
{
        struct rig *r = *state;
        char text[128];
        int result;

        r->client = http_client_new(r->net.loop, &(struct http_client_config){.url = r->net.url}, NULL);
        assert_non_null(r->client);
        start(r, false);
        r->fd = net_accept(&r->net);
        r->ssl = SSL_new(r->ctx);
        SSL_set_fd(r->ssl, r->fd);
        net_until(&r->net, accepted(r, &result));
        /* OpenSSL says nothing to what looks like HTTP; others send an alert */
        assert_int_equal(send(r->fd, "\x15\x03\x01\x00\x02\x02\x16", 7, MSG_NOSIGNAL), 7);
        net_until(&r->net, r->ends > 0);
        snprintf(text, sizeof(text), "127.0.0.1:%u speaks TLS; use https://", r->net.port);
        assert_string_equal(r->err.text, text);
        assert_int_equal(r->err.code, E_PROTOCOL);
}

static void test_a_body_cut_off_without_the_end_of_tls(void **state)
{
        struct rig *r = *state;

        new_client(r, (struct tls_config){.ca = str_of(r->ca.cert)});
        start(r, false);
        assert_true(play_handshake(r));
        play_answer(r, "HTTP/1.1 200 OK\r\n\r\nhalf of");
        hang_up(r); /* SSL_free says no good-bye */
        net_until(&r->net, r->ends > 0);
        assert_int_equal(r->err.code, E_LOST);
        /* the same with a good-bye is complete */
        start(r, false);
        assert_true(play_handshake(r));
        play_answer(r, "HTTP/1.1 200 OK\r\n\r\nall of it");
        SSL_shutdown(r->ssl);
        net_until(&r->net, r->ends > 0);
        assert_string_equal(r->err.text, "");
        assert_str(buf_str(&r->body), "all of it");
}

static void test_a_large_stream_through_tls(void **state)
{
        struct rig *r = *state;
        enum { CHUNK = 16000, CHUNKS = 40 };
        char *chunk = xmalloc(CHUNK + 16);
        int sent = 0;
        int n = snprintf(chunk, 16, "%x\r\n", CHUNK);

        memset(chunk + n, 'x', CHUNK);
        memcpy(chunk + n + CHUNK, "\r\n", 2);
        new_client(r, (struct tls_config){.ca = str_of(r->ca.cert)});
        start(r, true);
        assert_true(play_handshake(r));
        play_answer(r, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
        while (sent < CHUNKS) {
                if (SSL_write(r->ssl, chunk, n + CHUNK + 2) > 0)
                        sent++;
                ERR_clear_error();
                net_turn(&r->net);
        }
        net_until(&r->net, r->body.n == (size_t)CHUNK * CHUNKS);
        free(chunk);
}

static void play_many_records(struct rig *r)
{
        start(r, true);
        assert_true(play_handshake(r));
        play_answer(r, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
        for (int i = 0; i < 20; i++)
                assert_int_equal(SSL_write(r->ssl, "5\r\nevent\r\n", 10), 10);
        assert_int_equal(SSL_write(r->ssl, "0\r\n\r\n", 5), 5);
}

/* They come with one read of the socket, which epoll then knows nothing of any more. */
static void test_many_small_records_at_once(void **state)
{
        struct rig *r = *state;

        new_client(r, (struct tls_config){.ca = str_of(r->ca.cert)});
        play_many_records(r);
        net_until(&r->net, r->ends == 1);
        assert_string_equal(r->err.text, "");
        assert_int_equal(r->body.n, 100);
}

static void test_pauses_with_records_in_hand(void **state)
{
        struct rig *r = *state;

        new_client(r, (struct tls_config){.ca = str_of(r->ca.cert)});
        r->pausing = true;
        play_many_records(r);
        for (size_t i = 1; i <= 20; i++) {
                net_until(&r->net, r->body.n == 5 * i);
                for (int j = 0; j < 5; j++)
                        net_turn(&r->net);
                assert_int_equal(r->body.n, 5 * i);
                http_call_pause(r->call, false);
        }
        net_until(&r->net, r->ends == 1);
        assert_string_equal(r->err.text, "");
}

static void test_rotated_settings_close_idle_connections(void **state)
{
        struct rig *r = *state;
        _cleanup_(tls_unref) struct tls *other = tls_new(&(struct tls_config){.ca = str_of(r->other_ca.cert)},
                                                         NULL);

        new_client(r, (struct tls_config){.ca = str_of(r->ca.cert)});
        start(r, false);
        assert_true(play_handshake(r));
        play_answer(r, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
        net_until(&r->net, r->ends > 0);
        http_client_set_tls(r->client, other);
        assert_refused(r, E_TLS, "certificate of ",
                       " is signed by an unknown authority 'test CA'; check the CA");
}

static void test_contexts_that_cannot_be(void **state)
{
        struct rig *r = *state;
        BIO *bio = BIO_new(BIO_s_mem());
        const struct {
                struct tls_config config;
                const char *why;
        } cases[] = {
                {{.ca = STR("nonsense")}, "the CA bundle holds no certificate in PEM form"},
                {{.cert = str_of(r->leaf.cert)},
                 "certificate and private key go together, and one is missing"},
                {{.server = true}, "a TLS server needs a certificate and a key"},
                {{.cert = str_of(r->leaf.cert), .key = str_of(r->ca.key)},
                 "cannot use the private key: key values mismatch"},
                {{.cert = STR("x"), .key = str_of(r->ca.key)}, "cannot use the certificate: no start line"},
        };
        struct err err = ERR_INIT;
        char *locked;

        for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
                assert_null(tls_new(&cases[i].config, &err));
                assert_string_equal(err.text, cases[i].why);
                assert_int_equal(err.code, E_CONFIG);
        }
        PEM_write_bio_PrivateKey(bio, r->leaf.pkey, EVP_aes_128_cbc(), NULL, 0, NULL,
                                 (void *)(uintptr_t) "password");
        locked = cert_pem(bio);
        assert_null(tls_new(&(struct tls_config){.cert = str_of(r->leaf.cert), .key = str_of(locked)}, &err));
        assert_string_equal(err.text, "the private key is encrypted; store it without a password");
        free(locked);
}

static void test_sha256(void **state)
{
        char hex[SHA256_HEX_MAX];

        sha256_hex(STR("abc"), hex);
        assert_string_equal(hex, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        sha256_hex(STR_NULL, hex);
        assert_string_equal(hex, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

static const struct CMUnitTest tests[] = {
        T(test_a_verified_server_and_a_kept_connection),
        T(test_tls_1_2_is_enough),
        T(test_tls_1_1_is_not),
        T(test_the_wrong_name),
        T(test_a_common_name_is_no_name),
        T(test_the_wrong_ca),
        T(test_a_certificate_that_signed_itself),
        T(test_a_certificate_out_of_its_time),
        T(test_an_authority_out_of_its_time),
        T(test_insecure_accepts_anything),
        T(test_a_missing_client_certificate),
        T(test_a_client_certificate_nobody_knows),
        T(test_an_expired_client_certificate),
        T(test_a_good_client_certificate),
        T(test_a_server_without_tls),
        T(test_a_server_that_hangs_up_in_the_handshake),
        T(test_plain_http_to_a_tls_port),
        T(test_a_body_cut_off_without_the_end_of_tls),
        T(test_a_large_stream_through_tls),
        T(test_many_small_records_at_once),
        T(test_pauses_with_records_in_hand),
        T(test_rotated_settings_close_idle_connections),
        T(test_contexts_that_cannot_be),
        T(test_sha256),
};

UNIT_MAIN(tests)
