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
        X509 *cert; /* NULL: itself */
        EVP_PKEY *key;
        unsigned days;
};

static X509 *make_cert(const char *name, EVP_PKEY *key, const struct issuer *by, const char *names)
{
        X509 *issuer = by->cert;
        _cleanup_(X509_free) X509 *cert = X509_new();
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
            !X509_set_issuer_name(cert, issuer ? X509_get_subject_name(issuer) : subject))
                return NULL;
        if (!add_extension(cert, issuer ? issuer : cert, NID_subject_key_identifier, "hash"))
                return NULL;
        if (names) {
                if (!add_extension(cert, issuer, NID_basic_constraints, "critical,CA:FALSE") ||
                    !add_extension(cert, issuer, NID_key_usage, "critical,digitalSignature") ||
                    !add_extension(cert, issuer, NID_ext_key_usage, "serverAuth") ||
                    !add_extension(cert, issuer, NID_authority_key_identifier, "keyid") ||
                    !add_extension(cert, issuer, NID_subject_alt_name, names))
                        return NULL;
        } else if (!add_extension(cert, cert, NID_basic_constraints, "critical,CA:TRUE") ||
                   !add_extension(cert, cert, NID_key_usage, "critical,keyCertSign,cRLSign")) {
                return NULL;
        }
        return X509_sign(cert, by->key, EVP_sha256()) ? TAKE_PTR(cert) : NULL;
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

static void alt_names(const char *host, struct buf *out)
{
        struct in6_addr any;
        bool address = inet_pton(AF_INET, host, &any) == 1 || inet_pton(AF_INET6, host, &any) == 1;

        buf_printf(out, "DNS:localhost,IP:127.0.0.1,IP:::1,%s:%s", address ? "IP" : "DNS", host);
}

/* A certificate of that name and its key, both signed and written. */
static bool issue(const char *name, const char *names, const struct issuer *by, char **ret_cert,
                  char **ret_key)
{
        _cleanup_(EVP_PKEY_free) EVP_PKEY *key = EVP_EC_gen("P-256");
        _cleanup_(X509_free) X509 *cert = key ? make_cert(name, key, by, names) : NULL;

        if (!cert)
                return false;
        *ret_cert = cert_pem(cert);
        *ret_key = key_pem(key);
        return *ret_cert && *ret_key;
}

int ca_make(const char *name, const char *host, unsigned days, struct ca *ret, struct err *err)
{
        _cleanup_(free_ptr) char *ca_name = xasprintf("%s CA", name);
        _cleanup_(EVP_PKEY_free) EVP_PKEY *key = EVP_EC_gen("P-256");
        struct issuer by = {.key = key, .days = days};
        _cleanup_(X509_free) X509 *ca = key ? make_cert(ca_name, key, &by, NULL) : NULL;
        _cleanup_(buf_done) struct buf names = BUF_INIT(1024);

        *ret = (struct ca){0};
        alt_names(host, &names);
        by.cert = ca;
        if (ca && buf_cstr(&names) && (ret->ca = cert_pem(ca)) &&
            issue(name, buf_cstr(&names), &by, &ret->cert, &ret->key) &&
            issue("client", "DNS:client", &by, &ret->client_cert, &ret->client_key))
                return 0;
        ca_done(ret);
        return err_set(err, E_TLS, "cannot make a certificate for '%s'", host);
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
