#include "net/tls.h"

#include <arpa/inet.h>
#include <errno.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/tls_private.h"

enum { NAMES_MAX = 400, PROBLEM_MAX = 700, SHA256_BYTES = 32 };

struct tls {
        _Atomic unsigned refs; /* loops of several threads may share one */
        SSL_CTX *ctx;
        BIO_METHOD *socket;
        char *server_name;
        bool server, insecure;
};

struct tls_session {
        struct tls *tls;
        SSL *ssl;
        int fd;
        char *peer, *host; /* for messages */
        char *problem;     /* what verification did not like */
        bool plain_http, wants_write;
};

/* ---- the socket, with MSG_NOSIGNAL */

static int session_fd(BIO *bio)
{
        return ((const struct tls_session *)BIO_get_data(bio))->fd;
}

static int socket_read(BIO *bio, char *out, int n)
{
        ssize_t got = recv(session_fd(bio), out, (size_t)n, 0);

        BIO_clear_retry_flags(bio);
        if (got < 0 && (errno == EAGAIN || errno == EINTR))
                BIO_set_retry_read(bio);
        if (got == 0)
                BIO_set_flags(bio, BIO_FLAGS_IN_EOF);
        return (int)got;
}

static int socket_write(BIO *bio, const char *p, int n)
{
        ssize_t put = send(session_fd(bio), p, (size_t)n, MSG_NOSIGNAL);

        BIO_clear_retry_flags(bio);
        if (put < 0 && (errno == EAGAIN || errno == EINTR))
                BIO_set_retry_write(bio);
        return (int)put;
}

static long socket_ctrl(BIO *bio, int cmd, long num, void *ptr)
{
        switch (cmd) {
        case BIO_CTRL_FLUSH:
                return 1;
        case BIO_CTRL_EOF:
                return BIO_test_flags(bio, BIO_FLAGS_IN_EOF) != 0;
        default:
                return 0;
        }
}

static BIO_METHOD *socket_method(void)
{
        BIO_METHOD *m = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK | BIO_TYPE_DESCRIPTOR,
                                     "socket");

        if (m) {
                BIO_meth_set_read(m, socket_read);
                BIO_meth_set_write(m, socket_write);
                BIO_meth_set_ctrl(m, socket_ctrl);
        }
        return m;
}

/* ---- contexts */

/* The last error of OpenSSL as text; the queue is empty afterwards. */
static const char *why(void)
{
        const char *text = ERR_reason_error_string(ERR_peek_last_error());

        ERR_clear_error();
        return text ? text : "unknown error";
}

/* Without this OpenSSL would ask on the terminal. */
static int no_password(char *buf, int size, int rwflag, void *arg)
{
        *(bool *)arg = true;
        return -1;
}

static int load_cas(SSL_CTX *ctx, struct str pem, bool server, struct err *err)
{
        X509_STORE *store = SSL_CTX_get_cert_store(ctx);
        BIO *bio = BIO_new_mem_buf(pem.p, (int)MIN(pem.n, (size_t)INT32_MAX));
        X509 *cert;
        size_t n = 0;

        while (bio && (cert = PEM_read_bio_X509(bio, NULL, NULL, NULL))) {
                X509_STORE_add_cert(store, cert);
                if (server)
                        SSL_CTX_add_client_CA(ctx, cert);
                X509_free(cert);
                n++;
        }
        BIO_free(bio);
        ERR_clear_error();
        return n ? 0 : err_set(err, E_CONFIG, "the CA bundle holds no certificate in PEM form");
}

static int use_chain(SSL_CTX *ctx, BIO *bio, struct err *err)
{
        X509 *cert = PEM_read_bio_X509_AUX(bio, NULL, NULL, NULL);
        int ok = cert ? SSL_CTX_use_certificate(ctx, cert) : 0;

        X509_free(cert);
        if (!ok)
                return err_set(err, E_CONFIG, "cannot use the certificate: %s", why());
        while ((cert = PEM_read_bio_X509(bio, NULL, NULL, NULL)))
                if (!SSL_CTX_add0_chain_cert(ctx, cert)) {
                        X509_free(cert);
                        return err_set(err, E_CONFIG, "cannot use the certificate's chain: %s", why());
                }
        ERR_clear_error();
        return 0;
}

static int use_key(SSL_CTX *ctx, BIO *bio, struct err *err)
{
        bool encrypted = false;
        EVP_PKEY *key = PEM_read_bio_PrivateKey(bio, NULL, no_password, &encrypted);
        int ok = key ? SSL_CTX_use_PrivateKey(ctx, key) : 0;

        EVP_PKEY_free(key); /* wipes it when the context lets go too */
        if (encrypted) {
                ERR_clear_error();
                return err_set(err, E_CONFIG, "the private key is encrypted; store it without a password");
        }
        if (!ok || !SSL_CTX_check_private_key(ctx))
                return err_set(err, E_CONFIG, "cannot use the private key: %s", why());
        return 0;
}

static int load_identity(SSL_CTX *ctx, const struct tls_config *config, struct err *err)
{
        BIO *cert, *key;
        int r;

        if (!config->cert.n && !config->key.n)
                return config->server ? err_set(err, E_CONFIG, "a TLS server needs a certificate and a key")
                                      : 0;
        if (!config->cert.n || !config->key.n)
                return err_set(err, E_CONFIG, "certificate and private key go together, and one is missing");
        cert = BIO_new_mem_buf(config->cert.p, (int)MIN(config->cert.n, (size_t)INT32_MAX));
        key = BIO_new_mem_buf(config->key.p, (int)MIN(config->key.n, (size_t)INT32_MAX));
        r = use_chain(ctx, cert, err);
        if (r == 0)
                r = use_key(ctx, key, err);
        BIO_free(cert);
        BIO_free(key);
        return r;
}

static int verify_callback(int ok, X509_STORE_CTX *ctx);

static int choose_http1(SSL *ssl, const unsigned char **out, unsigned char *outlen, const unsigned char *in,
                        unsigned inlen, void *arg)
{
        static const unsigned char ours[] = "\x08http/1.1";

        /* const is lost in OpenSSL's signature; OUT points into IN or OURS */
        if (SSL_select_next_proto((unsigned char **)(uintptr_t)out, outlen, ours, sizeof(ours) - 1, in,
                                  inlen) != OPENSSL_NPN_NEGOTIATED)
                return SSL_TLSEXT_ERR_NOACK;
        return SSL_TLSEXT_ERR_OK;
}

static int set_up(struct tls *tls, const struct tls_config *config, struct err *err)
{
        SSL_CTX *ctx = tls->ctx;
        bool verify = config->server ? config->ca.n > 0 : !config->insecure;

        SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION);
        SSL_CTX_set_mode(ctx, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                      SSL_MODE_RELEASE_BUFFERS);
        SSL_CTX_set_options(ctx, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_NO_TICKET);
        SSL_CTX_set_num_tickets(ctx, 0);
        SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
        SSL_CTX_set_read_ahead(ctx, 1); /* one system call for a whole record */
        SSL_CTX_set_verify(ctx, verify ? SSL_VERIFY_PEER : SSL_VERIFY_NONE, verify_callback);
        if (config->server)
                SSL_CTX_set_alpn_select_cb(ctx, choose_http1, NULL);
        else
                SSL_CTX_set_alpn_protos(ctx, (const unsigned char *)"\x08http/1.1", 9);
        if (config->ca.n && load_cas(ctx, config->ca, config->server, err) < 0)
                return -1;
        if (!config->ca.n && verify && !SSL_CTX_set_default_verify_paths(ctx))
                return err_set(err, E_CONFIG, "cannot load the system's CA certificates: %s", why());
        return load_identity(ctx, config, err);
}

struct tls *tls_new(const struct tls_config *config, struct err *err)
{
        _cleanup_(tls_unref) struct tls *tls = xcalloc(1, sizeof(*tls));

        tls->refs = 1;
        tls->server = config->server;
        tls->insecure = config->insecure;
        tls->server_name = xstrdup(config->server_name);
        tls->socket = socket_method();
        tls->ctx = SSL_CTX_new(config->server ? TLS_server_method() : TLS_client_method());
        if (!tls->ctx || !tls->socket) {
                err_set(err, E_CONFIG, "cannot set up TLS: %s", why());
                return NULL;
        }
        if (set_up(tls, config, err) < 0)
                return NULL;
        return TAKE_PTR(tls);
}

struct tls *tls_ref(struct tls *tls)
{
        if (tls)
                tls->refs++;
        return tls;
}

void tls_unref(struct tls *tls)
{
        if (!tls || --tls->refs)
                return;
        SSL_CTX_free(tls->ctx);
        BIO_meth_free(tls->socket);
        free(tls->server_name);
        free(tls);
}

/* ---- verification, and what to say when it fails */

static bool is_address(const char *host)
{
        unsigned char bytes[16];

        return inet_pton(AF_INET, host, bytes) == 1 || inet_pton(AF_INET6, host, bytes) == 1;
}

static int expect_host(SSL *ssl, const char *host, struct err *err)
{
        X509_VERIFY_PARAM *param = SSL_get0_param(ssl);
        int ok;

        if (is_address(host)) {
                ok = X509_VERIFY_PARAM_set1_ip_asc(param, host);
        } else {
                X509_VERIFY_PARAM_set_hostflags(param, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS |
                                                               X509_CHECK_FLAG_NEVER_CHECK_SUBJECT);
                ok = X509_VERIFY_PARAM_set1_host(param, host, 0) && SSL_set_tlsext_host_name(ssl, host);
        }
        return ok ? 0 : err_set(err, E_CONFIG, "'%s' cannot be the name in a certificate", host);
}

static void add_printable(struct buf *b, const unsigned char *p, int n)
{
        for (int i = 0; i < n && b->n < NAMES_MAX; i++)
                buf_addc(b, p[i] >= 0x20 && p[i] < 0x7F ? (char)p[i] : '?');
}

static void add_address(struct buf *b, const ASN1_OCTET_STRING *ip)
{
        char text[INET6_ADDRSTRLEN] = "?";
        int n = ASN1_STRING_length(ip);

        if (n == 4 || n == 16)
                inet_ntop(n == 4 ? AF_INET : AF_INET6, ASN1_STRING_get0_data(ip), text, sizeof(text));
        buf_adds(b, text);
}

/* "a, b, 10.0.0.1": what the certificate says it is for. */
static void add_names(struct buf *b, X509 *cert)
{
        GENERAL_NAMES *names = cert ? X509_get_ext_d2i(cert, NID_subject_alt_name, NULL, NULL) : NULL;
        size_t start = b->n;

        for (int i = 0; i < sk_GENERAL_NAME_num(names); i++) {
                const GENERAL_NAME *name = sk_GENERAL_NAME_value(names, i);

                if (name->type != GEN_DNS && name->type != GEN_IPADD)
                        continue;
                if (b->n > start)
                        buf_adds(b, ", ");
                if (b->n >= NAMES_MAX) {
                        buf_adds(b, "...");
                        break;
                }
                if (name->type == GEN_DNS)
                        add_printable(b, ASN1_STRING_get0_data(name->d.dNSName),
                                      ASN1_STRING_length(name->d.dNSName));
                else
                        add_address(b, name->d.iPAddress);
        }
        if (b->n == start)
                buf_adds(b, "nothing");
        GENERAL_NAMES_free(names);
}

static void add_time(struct buf *b, const ASN1_TIME *time)
{
        struct tm tm;
        char text[64] = "an unknown time";

        if (time && ASN1_TIME_to_tm(time, &tm))
                strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &tm);
        buf_adds(b, text);
}

static void add_common_name(struct buf *b, const X509_NAME *name)
{
        int at = name ? X509_NAME_get_index_by_NID(name, NID_commonName, -1) : -1;
        const ASN1_STRING *cn = at < 0 ? NULL : X509_NAME_ENTRY_get_data(X509_NAME_get_entry(name, at));

        if (cn)
                add_printable(b, ASN1_STRING_get0_data(cn), ASN1_STRING_length(cn));
        else
                buf_adds(b, "without a name");
}

static void describe_time(struct buf *b, X509 *cert, int depth, bool expired)
{
        if (depth > 0) {
                buf_adds(b, " cannot be trusted: that of its authority '");
                add_common_name(b, cert ? X509_get_subject_name(cert) : NULL);
                buf_adds(b, "'");
        }
        buf_adds(b, expired ? " expired on " : " is not valid before ");
        add_time(b, cert ? expired ? X509_get0_notAfter(cert) : X509_get0_notBefore(cert) : NULL);
}

static void describe_problem(struct buf *b, const struct tls_session *s, X509_STORE_CTX *ctx)
{
        X509 *cert = X509_STORE_CTX_get_current_cert(ctx), *leaf = X509_STORE_CTX_get0_cert(ctx);
        int problem = X509_STORE_CTX_get_error(ctx);

        buf_printf(b, "certificate of %s", s->peer);
        switch (problem) {
        case X509_V_ERR_HOSTNAME_MISMATCH:
        case X509_V_ERR_IP_ADDRESS_MISMATCH:
                buf_printf(b, " is not valid for '%s': it names ", s->host ? s->host : "");
                add_names(b, leaf);
                break;
        case X509_V_ERR_CERT_HAS_EXPIRED:
        case X509_V_ERR_CERT_NOT_YET_VALID:
                describe_time(b, cert, X509_STORE_CTX_get_error_depth(ctx),
                              problem == X509_V_ERR_CERT_HAS_EXPIRED);
                break;
        case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
        case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
        case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
        case X509_V_ERR_CERT_SIGNATURE_FAILURE:
        case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
        case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
                buf_adds(b, " is signed by an unknown authority '");
                add_common_name(b, cert ? X509_get_issuer_name(cert) : NULL);
                buf_adds(b, "'; check the CA");
                break;
        default:
                buf_printf(b, " was refused: %s", X509_verify_cert_error_string(problem));
        }
}

static int verify_callback(int ok, X509_STORE_CTX *ctx)
{
        SSL *ssl = X509_STORE_CTX_get_ex_data(ctx, SSL_get_ex_data_X509_STORE_CTX_idx());
        struct tls_session *s = ssl ? SSL_get_app_data(ssl) : NULL;

        if (!ok && s && !s->problem) {
                struct buf text = BUF_INIT(PROBLEM_MAX);

                describe_problem(&text, s, ctx);
                s->problem = buf_take(&text);
                buf_done(&text);
        }
        return ok;
}

/* ---- sessions */

struct tls_session *tls_session_new(struct tls *tls, int fd, const char *host, const char *peer,
                                    struct err *err)
{
        _cleanup_(tls_session_free) struct tls_session *s = xcalloc(1, sizeof(*s));
        BIO *bio;

        s->tls = tls_ref(tls);
        s->fd = fd;
        s->peer = xstrdup(peer);
        s->ssl = SSL_new(tls->ctx);
        bio = BIO_new(tls->socket);
        if (!s->ssl || !bio) {
                BIO_free(bio);
                err_set(err, E_TLS, "cannot set up TLS with %s: %s", peer, why());
                return NULL;
        }
        BIO_set_data(bio, s);
        BIO_set_init(bio, 1);
        SSL_set_bio(s->ssl, bio, bio);
        SSL_set_app_data(s->ssl, s);
        if (tls->server) {
                SSL_set_accept_state(s->ssl);
                return TAKE_PTR(s);
        }
        SSL_set_connect_state(s->ssl);
        s->host = xstrdup(tls->server_name ? tls->server_name : host);
        if (!tls->insecure && expect_host(s->ssl, s->host, err) < 0)
                return NULL;
        if (tls->insecure && !is_address(s->host))
                SSL_set_tlsext_host_name(s->ssl, s->host);
        return TAKE_PTR(s);
}

void tls_session_free(struct tls_session *s)
{
        if (!s)
                return;
        SSL_free(s->ssl);
        tls_unref(s->tls);
        free(s->peer);
        free(s->host);
        free(s->problem);
        free(s);
}

static const struct {
        int reason;
        const char *text; /* %s: the peer */
} failures[] = {
        {SSL_R_WRONG_VERSION_NUMBER, "%s does not speak TLS; use http:// or check the port"},
        {SSL_R_HTTP_REQUEST, "%s spoke plain HTTP to a TLS port"},
        {SSL_R_HTTPS_PROXY_REQUEST, "%s spoke plain HTTP to a TLS port"},
        {SSL_R_UNSUPPORTED_PROTOCOL, "%s speaks only versions of TLS older than 1.2"},
        {SSL_R_TLSV1_ALERT_PROTOCOL_VERSION, "%s refused TLS 1.2 and 1.3; it may speak older versions only"},
        {SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED, "%s requires a client certificate"},
        {SSL_R_SSLV3_ALERT_HANDSHAKE_FAILURE,
         "%s refused the handshake; it may require a client certificate or other ciphers"},
        {SSL_R_SSLV3_ALERT_BAD_CERTIFICATE, "%s refused our certificate as bad"},
        {SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED, "%s refused our certificate as expired"},
        {SSL_R_SSLV3_ALERT_CERTIFICATE_REVOKED, "%s refused our certificate as revoked"},
        {SSL_R_SSLV3_ALERT_CERTIFICATE_UNKNOWN, "%s refused our certificate"},
        {SSL_R_SSLV3_ALERT_UNSUPPORTED_CERTIFICATE, "%s refused our certificate as unsupported"},
        {SSL_R_TLSV1_ALERT_UNKNOWN_CA, "%s does not know the authority that signed our certificate"},
        {SSL_R_TLSV1_ALERT_ACCESS_DENIED, "%s denied access to our certificate"},
};

/* A failure of the protocol, from OpenSSL's queue. */
static int describe_failure(struct tls_session *s, struct err *err)
{
        int reason = ERR_GET_REASON(ERR_peek_error());

        if (s->problem) {
                ERR_clear_error();
                return err_set(err, E_TLS, "%s", s->problem);
        }
        s->plain_http = reason == SSL_R_HTTP_REQUEST;
        for (size_t i = 0; i < ARRAY_LEN(failures); i++)
                if (failures[i].reason == reason) {
                        struct buf text = BUF_INIT(PROBLEM_MAX);
                        const char *rest = strstr(failures[i].text, "%s") + 2;

                        buf_adds(&text, s->peer);
                        buf_adds(&text, rest);
                        err_set(err, E_TLS, "%s", buf_cstr(&text));
                        buf_done(&text);
                        ERR_clear_error();
                        return -1;
                }
        return err_set(err, E_TLS, "TLS with %s failed: %s", s->peer, why());
}

/* Before a call whose outcome explain() looks at: nothing of an earlier one may be left. */
static void start_afresh(void)
{
        if (ERR_peek_error()) /* seldom, and much cheaper than clearing */
                ERR_clear_error();
        errno = 0;
}

/* What a call of OpenSSL that returned R means. GONE is the code for a connection that broke. */
static int explain(struct tls_session *s, int r, enum err_code gone, const char *doing, struct err *err)
{
        int errnum = errno, kind = SSL_get_error(s->ssl, r);
        unsigned long queued = ERR_peek_error();

        s->wants_write = kind == SSL_ERROR_WANT_WRITE;
        if (kind == SSL_ERROR_WANT_READ || kind == SSL_ERROR_WANT_WRITE)
                return TLS_AGAIN;
        if (kind == SSL_ERROR_ZERO_RETURN)
                return TLS_EOF;
        if (kind == SSL_ERROR_SSL && ERR_GET_REASON(queued) == SSL_R_UNEXPECTED_EOF_WHILE_READING) {
                ERR_clear_error();
                err_set(err, gone, "%s closed the connection %s", s->peer, doing);
        } else if (kind == SSL_ERROR_SYSCALL && !queued) {
                if (errnum)
                        err_errno(err, gone, errnum, "connection to %s broke %s", s->peer, doing);
                else
                        err_set(err, gone, "%s closed the connection %s", s->peer, doing);
        } else {
                describe_failure(s, err);
        }
        return TLS_FAILED;
}

int tls_handshake(struct tls_session *s, struct err *err)
{
        int r;

        start_afresh();
        r = SSL_do_handshake(s->ssl);
        if (r == 1)
                return 1;
        r = explain(s, r, E_CONNECT, "during the TLS handshake", err);
        if (r == TLS_EOF) {
                err_set(err, E_CONNECT, "%s closed the connection during the TLS handshake", s->peer);
                return TLS_FAILED;
        }
        return r;
}

bool tls_wants_write(const struct tls_session *s)
{
        return s->wants_write;
}

long tls_read(struct tls_session *s, void *p, size_t n, struct err *err)
{
        size_t got;

        start_afresh();
        if (SSL_read_ex(s->ssl, p, n, &got))
                return (long)got;
        return explain(s, 0, E_LOST, "without the end of TLS", err);
}

long tls_write(struct tls_session *s, const void *p, size_t n, struct err *err)
{
        size_t put;
        int r;

        start_afresh();
        if (SSL_write_ex(s->ssl, p, n, &put))
                return (long)put;
        r = explain(s, 0, E_LOST, "while sending", err);
        if (r == TLS_EOF) {
                err_set(err, E_LOST, "%s closed the connection while sending", s->peer);
                return TLS_FAILED;
        }
        return r;
}

bool tls_has_pending(const struct tls_session *s)
{
        return SSL_has_pending(s->ssl);
}

void tls_goodbye(struct tls_session *s)
{
        if (SSL_is_init_finished(s->ssl))
                SSL_shutdown(s->ssl);
        ERR_clear_error();
}

bool tls_got_plain_http(const struct tls_session *s)
{
        return s->plain_http;
}

static void add_entries(struct buf *out, const X509_NAME *name, int nid)
{
        for (int at = -1; (at = X509_NAME_get_index_by_NID(name, nid, at)) >= 0;) {
                unsigned char *utf8 = NULL;
                int n = ASN1_STRING_to_UTF8(&utf8, X509_NAME_ENTRY_get_data(X509_NAME_get_entry(name, at)));

                /* a name with a line feed in it would forge a second one */
                if (n >= 0 && !memchr(utf8, '\n', (size_t)n) && !memchr(utf8, '\0', (size_t)n)) {
                        if (nid != NID_commonName)
                                buf_addc(out, '\n');
                        buf_add(out, utf8, (size_t)n);
                }
                OPENSSL_free(utf8);
                if (nid == NID_commonName)
                        break;
        }
}

bool tls_subject(const struct tls_session *s, struct buf *out)
{
        X509 *cert = SSL_get0_peer_certificate(s->ssl);
        const X509_NAME *name = cert ? X509_get_subject_name(cert) : NULL;

        if (!name || SSL_get_verify_mode(s->ssl) == SSL_VERIFY_NONE ||
            SSL_get_verify_result(s->ssl) != X509_V_OK)
                return false;
        add_entries(out, name, NID_commonName);
        add_entries(out, name, NID_organizationName);
        return !out->overflow;
}

static void hex(const unsigned char hash[SHA256_BYTES], char out[SHA256_HEX_MAX])
{
        static const char digits[] = "0123456789abcdef";

        for (size_t i = 0; i < SHA256_BYTES; i++) {
                out[2 * i] = digits[hash[i] >> 4];
                out[2 * i + 1] = digits[hash[i] & 15];
        }
        out[2 * SHA256_BYTES] = '\0';
}

void sha256_hex(struct str data, char out[SHA256_HEX_MAX])
{
        unsigned char hash[SHA256_BYTES] = {0};

        EVP_Digest(data.p ? data.p : "", data.n, hash, NULL, EVP_sha256(), NULL);
        hex(hash, out);
}

int sha256_fd_hex(int fd, uint64_t *ret_size, char out[SHA256_HEX_MAX])
{
        unsigned char piece[16 * 1024], hash[SHA256_BYTES] = {0};
        EVP_MD_CTX *ctx = EVP_MD_CTX_new();
        bool ok = ctx && EVP_DigestInit_ex(ctx, EVP_sha256(), NULL);
        uint64_t size = 0;
        ssize_t n = 0;

        while (ok && (n = read(fd, piece, sizeof(piece))) > 0) {
                ok = EVP_DigestUpdate(ctx, piece, (size_t)n);
                size += (uint64_t)n;
        }
        ok = ok && n == 0 && EVP_DigestFinal_ex(ctx, hash, NULL);
        EVP_MD_CTX_free(ctx);
        if (!ok)
                return -1;
        hex(hash, out);
        *ret_size = size;
        return 0;
}
