#include "web/internal.h"

#include <unistd.h>

/* What an address that others can reach shows: files that somebody renews, or one that we make ourselves. */
enum { CERT_MAX = 256 << 10, OWN_DAYS = 3650, HOST_MAX = 256 };
#define RELOAD (60 * USEC_PER_SEC)

static struct tls *read_certificate(const struct web *w, struct err *err)
{
        _cleanup_(buf_done) struct buf cert = BUF_INIT(CERT_MAX), key = BUF_INIT(CERT_MAX);
        struct tls_config config = {.server = true};
        struct tls *tls = NULL;

        if (file_read(w->cert_file, &cert, err) == 0 && file_read(w->key_file, &key, err) == 0) {
                config.cert = buf_str(&cert);
                config.key = buf_str(&key);
                tls = tls_new(&config, err);
        }
        if (key.p)
                mem_wipe(key.p, key.n);
        return tls;
}

/* It is renewed before it runs out; one that cannot be read is not better than the one that is there. */
static void on_reload(struct timer *t)
{
        struct web *w = CONTAINER_OF(t, struct web, reload);
        struct err err = ERR_INIT;
        struct tls *tls = read_certificate(w, &err);

        if (tls) {
                http_server_set_tls(w->server, tls);
                tls_unref(w->tls);
                w->tls = tls;
        } else {
                LOG_WARN(loop_log(w->loop), "Cannot read the certificate of the API again", F_ERR(&err));
        }
        timer_after(&w->reload, RELOAD);
}

/* For the names that it is called by, as far as they are known; whoever wants to verify it compares the fingerprint. */
static struct tls *make_certificate(const struct web *w, struct err *err)
{
        _cleanup_(ca_done) struct ca own = {0};
        VEC(const char *) names = {0};
        char host[HOST_MAX] = "";
        struct tls *tls = NULL;

        for (size_t i = 0; i < w->hosts.n; i++)
                *vec_push(&names) = w->hosts.v[i];
        if (gethostname(host, sizeof(host) - 1) == 0 && *host)
                *vec_push(&names) = host;
        if (ca_make_own("sonde", names.v, names.n, OWN_DAYS, &own, err) == 0)
                tls = tls_new(&(struct tls_config){.server = true,
                                                   .cert = str_of(own.cert),
                                                   .key = str_of(own.key)},
                              err);
        vec_done(&names);
        if (tls)
                LOG_INFO(loop_log(w->loop), "Made a certificate for the API, as none was given",
                         F_STR("sha256", own.fingerprint));
        return tls;
}

int certificate_begin(struct web *w, struct err *err)
{
        timer_init(&w->reload, w->loop, on_reload);
        if (!!w->cfg.cert_file != !!w->cfg.key_file)
                return err_set(err, E_CONFIG, "a certificate and its key belong together; give both files");
        if (w->cfg.cert_file) {
                w->cert_file = xstrdup(w->cfg.cert_file);
                w->key_file = xstrdup(w->cfg.key_file);
                w->tls = read_certificate(w, err);
                timer_after(&w->reload, RELOAD);
        } else if (!w->loopback && !w->cfg.plain) {
                w->tls = make_certificate(w, err);
        } else {
                return 0;
        }
        return w->tls ? 0 : -1;
}

void certificate_end(struct web *w)
{
        timer_cancel(&w->reload);
        tls_unref(w->tls);
        free(w->cert_file);
        free(w->key_file);
}
