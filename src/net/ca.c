#include "net/ca.h"

#include <arpa/inet.h>
#include <openssl/ec.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>

DEFINE_CLEANUP_PTR(BIO *, BIO_free)
DEFINE_CLEANUP_PTR(EVP_PKEY *, EVP_PKEY_free)
DEFINE_CLEANUP_PTR(X509 *, X509_free)

static bool add_extension(X509 *cert, X509 *issuer, int nid, const char *value)
{
        X509V3_CTX ctx;
        X509_EXTENSION *ext;
        bool ok;

        X509V3_set_ctx(&ctx, issuer, cert, NULL, NULL, 0);
        ext = X509V3_EXT_conf_nid(NULL, &ctx, nid, value);
        ok = ext && X509_add_ext(cert, ext, -1);
        X509_EXTENSION_free(ext);
        return ok;
}

/* Who signs, and for how long. */
struct issuer {
        X509 *cert;    /* NULL: itself */
        EVP_PKEY *key; /* NULL: its own */
        unsigned days;
};

/* A server's for NAMES, or an authority (NULL). */
static bool add_purpose(X509 *cert, X509 *issuer, const char *names)
{
        if (!names)
                return add_extension(cert, issuer, NID_basic_constraints, "critical,CA:TRUE") &&
                       add_extension(cert, issuer, NID_key_usage, "critical,keyCertSign,cRLSign");
        return add_extension(cert, issuer, NID_basic_constraints, "critical,CA:FALSE") &&
               add_extension(cert, issuer, NID_key_usage, "critical,digitalSignature") &&
               add_extension(cert, issuer, NID_ext_key_usage, "serverAuth") &&
               add_extension(cert, issuer, NID_authority_key_identifier, "keyid") &&
               add_extension(cert, issuer, NID_subject_alt_name, names);
}

static X509 *make_cert(const char *name, EVP_PKEY *key, const struct issuer *by, const char *names)
{
        _cleanup_(X509_free) X509 *cert = X509_new();
        X509 *issuer = by->cert ? by->cert : cert;
        uint64_t serial = 0;
        X509_NAME *subject = cert ? X509_get_subject_name(cert) : NULL;

        if (!subject || RAND_bytes((unsigned char *)&serial, sizeof(serial)) != 1)
                return NULL;
        if (!X509_set_version(cert, 2) ||
            !ASN1_INTEGER_set_uint64(X509_get_serialNumber(cert), serial >> 1) ||
            !X509_gmtime_adj(X509_getm_notBefore(cert), -3600) ||
            !X509_time_adj_ex(X509_getm_notAfter(cert), (int)by->days, 0, NULL) ||
            !X509_set_pubkey(cert, key) ||
            !X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_UTF8, (const unsigned char *)name, -1, -1,
                                        0) ||
            !X509_set_issuer_name(cert, X509_get_subject_name(issuer)))
                return NULL;
        if (!add_extension(cert, issuer, NID_subject_key_identifier, "hash") ||
            !add_purpose(cert, issuer, names))
                return NULL;
        return X509_sign(cert, by->key ? by->key : key, EVP_sha256()) ? TAKE_PTR(cert) : NULL;
}

static char *bio_text(BIO *bio)
{
        char *p;
        long n = BIO_get_mem_data(bio, &p);

        return n > 0 ? xstrndup(p, (size_t)n) : NULL;
}

static char *cert_pem(X509 *cert)
{
        _cleanup_(BIO_free) BIO *bio = BIO_new(BIO_s_mem());

        return bio && PEM_write_bio_X509(bio, cert) ? bio_text(bio) : NULL;
}

static char *key_pem(EVP_PKEY *key)
{
        _cleanup_(BIO_free) BIO *bio = BIO_new(BIO_s_mem());

        return bio && PEM_write_bio_PrivateKey(bio, key, NULL, NULL, 0, NULL, NULL) ? bio_text(bio) : NULL;
}

static void alt_name(const char *host, struct buf *out)
{
        struct in6_addr any;
        bool address = inet_pton(AF_INET, host, &any) == 1 || inet_pton(AF_INET6, host, &any) == 1;

        buf_printf(out, ",%s:%s", address ? "IP" : "DNS", host);
}

static void tell_fingerprint(const X509 *cert, char out[FINGERPRINT_MAX])
{
        unsigned char hash[FINGERPRINT_MAX / 3] = {0};

        X509_digest(cert, EVP_sha256(), hash, NULL);
        for (size_t i = 0; i < sizeof(hash); i++)
                snprintf(out + 3 * i, 4, i + 1 < sizeof(hash) ? "%02X:" : "%02X", hash[i]);
}

/* A certificate of that name and its key, both signed and written. */
static bool issue(const char *name, const char *names, const struct issuer *by, char **ret_cert,
                  char **ret_key, char fingerprint[FINGERPRINT_MAX])
{
        _cleanup_(EVP_PKEY_free) EVP_PKEY *key = EVP_EC_gen("P-256");
        _cleanup_(X509_free) X509 *cert = key ? make_cert(name, key, by, names) : NULL;

        if (!cert)
                return false;
        if (fingerprint)
                tell_fingerprint(cert, fingerprint);
        *ret_cert = cert_pem(cert);
        *ret_key = key_pem(key);
        return *ret_cert && *ret_key;
}

static const char HERE[] = "DNS:localhost,IP:127.0.0.1,IP:::1";

int ca_make(const char *name, const char *host, unsigned days, struct ca *ret, struct err *err)
{
        _cleanup_(free_ptr) char *ca_name = xasprintf("%s CA", name);
        _cleanup_(EVP_PKEY_free) EVP_PKEY *key = EVP_EC_gen("P-256");
        struct issuer by = {.key = key, .days = days};
        _cleanup_(X509_free) X509 *ca = key ? make_cert(ca_name, key, &by, NULL) : NULL;
        _cleanup_(buf_done) struct buf names = BUF_INIT(1024);

        *ret = (struct ca){0};
        buf_adds(&names, HERE);
        alt_name(host, &names);
        by.cert = ca;
        if (ca && buf_cstr(&names) && (ret->ca = cert_pem(ca)) &&
            issue(name, buf_cstr(&names), &by, &ret->cert, &ret->key, ret->fingerprint) &&
            issue("client", "DNS:client", &by, &ret->client_cert, &ret->client_key, NULL))
                return 0;
        ca_done(ret);
        return err_set(err, E_TLS, "cannot make a certificate for '%s'", host);
}

int ca_make_own(const char *name, const char *const *hosts, size_t n_hosts, unsigned days, struct ca *ret,
                struct err *err)
{
        _cleanup_(buf_done) struct buf names = BUF_INIT(64 << 10);

        *ret = (struct ca){0};
        buf_adds(&names, HERE);
        for (size_t i = 0; i < n_hosts; i++)
                if (hosts[i][strspn(hosts[i],
                                    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_*:")])
                        return err_set(err, E_CONFIG, "'%s' is no name of a host that a certificate can have",
                                       hosts[i]);
                else
                        alt_name(hosts[i], &names);
        if (buf_cstr(&names) && issue(name, buf_cstr(&names), &(struct issuer){.days = days}, &ret->cert,
                                      &ret->key, ret->fingerprint))
                return 0;
        ca_done(ret);
        return err_set(err, E_TLS, "cannot make a certificate for the names '%s'",
                       buf_cstr(&names) ? buf_cstr(&names) : "");
}

static void wipe(char *secret)
{
        if (secret)
                mem_wipe(secret, strlen(secret));
        free(secret);
}

void ca_done(struct ca *ca)
{
        free(ca->ca);
        free(ca->cert);
        free(ca->client_cert);
        wipe(ca->key);
        wipe(ca->client_key);
        *ca = (struct ca){0};
}
