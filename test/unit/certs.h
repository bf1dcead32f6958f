/*
 * certs.h - certificates for tests and benches, made in memory.
 */
#pragma once

#include "base/base.h"

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

static inline void cert_check(bool ok)
{
        if (!ok)
                abort();
}

struct cert {
        X509 *x509;
        EVP_PKEY *pkey;
        char *cert, *key; /* PEM */
};

struct cert_request {
        const char *cn, *o, *san;  /* san: "DNS:a,IP:127.0.0.1" */
        const struct cert *issuer; /* NULL: signs itself */
        long begins, ends;         /* seconds from now; both 0: yesterday to tomorrow */
        bool ca;
};

static inline void cert_extension(X509 *x, X509V3_CTX *ctx, int nid, const char *value)
{
        X509_EXTENSION *e = X509V3_EXT_conf_nid(NULL, ctx, nid, value);

        cert_check(e != NULL);
        cert_check(X509_add_ext(x, e, -1));
        X509_EXTENSION_free(e);
}

static inline void cert_name(X509_NAME *name, const char *field, const char *value)
{
        if (value)
                cert_check(X509_NAME_add_entry_by_txt(name, field, MBSTRING_UTF8,
                                                      (const unsigned char *)value, -1, -1, 0));
}

static inline char *cert_pem(BIO *bio)
{
        char *p;
        long n = BIO_get_mem_data(bio, &p);
        char *copy = xstrndup(p, (size_t)n);

        BIO_free(bio);
        return copy;
}

static inline struct cert cert_make(struct cert_request q)
{
        struct cert c = {.x509 = X509_new(), .pkey = EVP_EC_gen("P-256")};
        X509_NAME *subject = X509_get_subject_name(c.x509);
        const X509 *issuer = q.issuer ? q.issuer->x509 : c.x509;
        BIO *cert = BIO_new(BIO_s_mem()), *key = BIO_new(BIO_s_mem());
        X509V3_CTX ctx;

        X509_set_version(c.x509, X509_VERSION_3);
        ASN1_INTEGER_set_int64(X509_get_serialNumber(c.x509), (int64_t)(uintptr_t)c.x509 & 0xFFFFFF);
        X509_gmtime_adj(X509_getm_notBefore(c.x509), q.begins || q.ends ? q.begins : -86400);
        X509_gmtime_adj(X509_getm_notAfter(c.x509), q.begins || q.ends ? q.ends : 86400);
        cert_name(subject, "O", q.o);
        cert_name(subject, "CN", q.cn);
        X509_set_issuer_name(c.x509, X509_get_subject_name(issuer));
        X509_set_pubkey(c.x509, c.pkey);
        X509V3_set_ctx(&ctx, (X509 *)(uintptr_t)issuer, c.x509, NULL, NULL, 0);
        cert_extension(c.x509, &ctx, NID_basic_constraints, q.ca ? "critical,CA:TRUE" : "CA:FALSE");
        if (q.san)
                cert_extension(c.x509, &ctx, NID_subject_alt_name, q.san);
        cert_check(X509_sign(c.x509, q.issuer ? q.issuer->pkey : c.pkey, EVP_sha256()) > 0);
        PEM_write_bio_X509(cert, c.x509);
        PEM_write_bio_PrivateKey(key, c.pkey, NULL, NULL, 0, NULL, NULL);
        c.cert = cert_pem(cert);
        c.key = cert_pem(key);
        return c;
}

static inline void cert_done(struct cert *c)
{
        X509_free(c->x509);
        EVP_PKEY_free(c->pkey);
        free(c->cert);
        free(c->key);
        *c = (struct cert){0};
}

DEFINE_CLEANUP_STRUCT(struct cert, cert_done)
