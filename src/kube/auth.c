#include "kube/auth.h"

#include <sys/stat.h>

#include "kube/exec_private.h"

/*
 * Everything is looked at when somebody asks for credentials, so an idle process does nothing: the one timer is the
 * time limit of a running plugin. What was good once stays in use while its replacement cannot be had (a file being
 * rotated, a plugin that fails before the expiry), with a warning.
 */

enum { TOKEN_MAX = 64 << 10, PEM_MAX = 1 << 20 };

#define LOOK_AGAIN    (60 * USEC_PER_SEC) /* at token and certificate files */
#define LOOK_SOON     (10 * USEC_PER_SEC) /* the same after a failure */
#define SETTLE        (10 * USEC_PER_SEC) /* a 401 this soon after a renewal was earned by what was there before */
#define EXPIRY_MARGIN (10 * USEC_PER_SEC)
#define RETRY_FIRST   (1 * USEC_PER_SEC)
#define RETRY_MAX     (300 * USEC_PER_SEC)

enum pem { PEM_CA, PEM_CERT, PEM_KEY, PEM_COUNT };

/* What tells a replaced file from the one that was read; all zero when it is not there. */
struct stamp {
        uint64_t device, inode, size, seconds, nanoseconds;
};

struct waiter {
        struct waiter *next;
        void (*fn)(void *arg);
        void *arg;
};

struct kube_auth {
        struct loop *loop;
        const struct kube_config *config;
        char *authorization;
        usec_t renewed_at; /* when it (or the plugin's credential) last changed */
        usec_t token_due;

        struct tls *tls;
        uint64_t tls_generation;
        usec_t files_due;
        struct stamp stamps[PEM_COUNT];
        bool tls_stale; /* the plugin gave another certificate */

        struct exec_run *run;
        struct exec_credential credential;
        bool has_credential, refused;
        usec_t refresh_at, expires_at; /* on the loop's clock */
        unsigned failures;
        usec_t retry_at;
        struct err failure;
        struct waiter *waiters, *calling; /* in the order of their coming */
        unsigned calls;                   /* of waiters under way: one of them may free us */
        bool dead;
};

static usec_t now(const struct kube_auth *a)
{
        return clock_boot(loop_clock(a->loop));
}

/* ---- the header */

static void drop_authorization(struct kube_auth *a)
{
        if (a->authorization)
                mem_wipe(a->authorization, strlen(a->authorization));
        free(a->authorization);
        a->authorization = NULL;
}

/* One malloc of the final size: a buffer that grows would leave copies behind. */
static void set_authorization(struct kube_auth *a, const char *scheme, struct str value)
{
        char *text = xasprintf("%s %.*s", scheme, STR_ARG(value));

        if (streq(text, a->authorization)) {
                mem_wipe(text, strlen(text));
                free(text);
                return;
        }
        drop_authorization(a);
        a->authorization = text;
        a->renewed_at = now(a);
}

/* Anything else would end the header, or not be read back as one value. */
static int set_token(struct kube_auth *a, struct str token, const char *whose, struct err *err)
{
        if (!token.n)
                return err_set(err, E_AUTH, "%s is empty", whose);
        for (size_t i = 0; i < token.n; i++)
                if (token.p[i] <= ' ' || token.p[i] > '~')
                        return err_set(err, E_AUTH, "%s holds characters that no token has", whose);
        set_authorization(a, "Bearer", token);
        return 0;
}

static void set_basic(struct kube_auth *a)
{
        const char *user = a->config->username ? a->config->username : "";
        const char *password = a->config->password ? a->config->password : "";
        _cleanup_(free_ptr) char *both = xasprintf("%s:%s", user, password);
        struct buf encoded = BUF_INIT(SIZE_MAX);

        buf_reserve(&encoded, (strlen(both) + 2) / 3 * 4);
        buf_add_base64(&encoded, str_of(both));
        set_authorization(a, "Basic", buf_str(&encoded));
        mem_wipe(both, strlen(both));
        mem_wipe(encoded.p, encoded.n);
        buf_done(&encoded);
}

static int read_token_file(struct kube_auth *a, struct err *err)
{
        const char *path = a->config->token_file;
        struct buf text = BUF_INIT(TOKEN_MAX);
        int result;

        buf_reserve(&text, TOKEN_MAX);
        result = file_read(path, &text, err);
        if (result >= 0)
                result = set_token(a, str_trim(buf_str(&text)), path, err);
        mem_wipe(text.p, text.n);
        buf_done(&text);
        if (result < 0 && err)
                err->code = E_AUTH;
        return result;
}

static int refresh_token(struct kube_auth *a, bool look_now, struct err *err)
{
        struct err why = ERR_INIT;

        if (a->authorization && !look_now && now(a) < a->token_due)
                return 0;
        if (read_token_file(a, &why) >= 0) {
                a->token_due = usec_add(now(a), LOOK_AGAIN);
                return 0;
        }
        a->token_due = usec_add(now(a), LOOK_SOON);
        if (!a->authorization)
                return err_set(err, why.code, "token of %s: %s",
                               a->config->source ? a->config->source : "the user", why.text);
        LOG_WARN(loop_log(a->loop),
                 "Cannot read the file with the bearer credential again, going on with the old one",
                 F_ERR(&why));
        return 0;
}

/* ---- certificates */

static void take_stamps(const struct kube_auth *a, struct stamp stamps[PEM_COUNT])
{
        const char *paths[] = {[PEM_CA] = a->config->ca_file,
                               [PEM_CERT] = a->config->cert_file,
                               [PEM_KEY] = a->config->key_file};
        struct stat st;

        for (size_t i = 0; i < PEM_COUNT; i++) {
                stamps[i] = (struct stamp){0};
                if (paths[i] && stat(paths[i], &st) == 0)
                        stamps[i] = (struct stamp){(uint64_t)st.st_dev, (uint64_t)st.st_ino,
                                                   (uint64_t)st.st_size, (uint64_t)st.st_mtim.tv_sec,
                                                   (uint64_t)st.st_mtim.tv_nsec};
        }
}

static int load_pem(const char *text, const char *path, struct buf *out, struct err *err)
{
        if (text)
                buf_adds(out, text);
        else if (path)
                return file_read(path, out, err);
        if (out->overflow)
                return err_set(err, E_TOO_LARGE, "a certificate or key is larger than %zu bytes", out->max);
        return 0;
}

static struct tls *make_tls(const struct kube_auth *a, struct err *err)
{
        const struct kube_config *c = a->config;
        bool plugin = a->credential.cert != NULL;
        _cleanup_(buf_done) struct buf ca = BUF_INIT(PEM_MAX), cert = BUF_INIT(PEM_MAX),
                                       key = BUF_INIT(PEM_MAX);
        struct tls *tls = NULL;

        buf_reserve(&key, 16 << 10);
        if (load_pem(c->ca, c->ca_file, &ca, err) >= 0 &&
            load_pem(plugin ? a->credential.cert : c->cert, plugin ? NULL : c->cert_file, &cert, err) >= 0 &&
            load_pem(plugin ? a->credential.key : c->key, plugin ? NULL : c->key_file, &key, err) >= 0)
                tls = tls_new(&(struct tls_config){.ca = buf_str(&ca),
                                                   .cert = buf_str(&cert),
                                                   .key = buf_str(&key),
                                                   .server_name = c->tls_server_name,
                                                   .insecure = c->insecure},
                              err);
        mem_wipe(key.p, key.n);
        return tls;
}

static bool uses_tls(const struct kube_auth *a)
{
        return str_has_prefix(str_of(a->config->server), STR("https:"));
}

static int refresh_tls(struct kube_auth *a, bool look_now, struct err *err)
{
        struct stamp fresh[PEM_COUNT];
        struct err why = ERR_INIT;
        struct tls *tls;

        if (!uses_tls(a) || (a->tls && !a->tls_stale && !look_now && now(a) < a->files_due))
                return 0;
        a->files_due = usec_add(now(a), LOOK_AGAIN);
        take_stamps(a, fresh);
        if (a->tls && !a->tls_stale && memcmp(fresh, a->stamps, sizeof(fresh)) == 0)
                return 0;
        tls = make_tls(a, &why);
        a->tls_stale = false;
        if (tls) {
                tls_unref(a->tls);
                a->tls = tls;
                a->tls_generation++;
                memcpy(a->stamps, fresh, sizeof(fresh));
                return 0;
        }
        a->files_due = usec_add(now(a), LOOK_SOON);
        if (!a->tls)
                return err_set(err, why.code == E_TLS ? E_TLS : E_CONFIG, "certificates of %s: %s",
                               a->config->source ? a->config->source : "the user", why.text);
        LOG_WARN(loop_log(a->loop), "Cannot use the new certificates, going on with the old ones",
                 F_ERR(&why));
        return 0;
}

/* ---- exec plugins */

/* A token or password that is there is used, as client-go does; the plugin then never runs. */
static bool uses_plugin(const struct kube_auth *a)
{
        const struct kube_config *c = a->config;

        return c->exec && !c->token && !c->token_file && !c->username && !c->password;
}

static void add_waiter(struct waiter **list, void (*fn)(void *arg), void *arg)
{
        struct waiter *w = xcalloc(1, sizeof(*w));

        *w = (struct waiter){.fn = fn, .arg = arg};
        while (*list)
                list = &(*list)->next;
        *list = w;
}

/* Those of ARG, or all. */
static void drop_waiters(struct waiter **list, const void *arg, bool all)
{
        while (*list) {
                struct waiter *w = *list;

                if (!all && w->arg != arg) {
                        list = &w->next;
                        continue;
                }
                *list = w->next;
                free(w);
        }
}

/* Each waiter once; those who come meanwhile wait for the next run. */
static void call_waiters(struct kube_auth *a)
{
        struct waiter **end = &a->calling, *w;

        while (*end)
                end = &(*end)->next;
        *end = TAKE_PTR(a->waiters);
        a->calls++;
        while ((w = a->calling)) {
                struct waiter copy = *w;

                a->calling = w->next;
                free(w);
                copy.fn(copy.arg);
        }
        if (--a->calls == 0 && a->dead)
                free(a);
}

static void plugin_failed(struct kube_auth *a, const struct err *err)
{
        usec_t delay = a->failures < 16 ? MIN(RETRY_FIRST << a->failures, RETRY_MAX) : RETRY_MAX;

        a->failures++;
        a->retry_at = usec_add(now(a), delay);
        a->failure = *err;
        LOG_WARN(loop_log(a->loop), "Exec plugin failed", F_ERR(err), F_USEC("retryAfter", delay));
}

/* Renewed a tenth of its life before the end, at least 10 s, but never before half of a very short life. */
static void set_life(struct kube_auth *a, usec_t expires)
{
        usec_t life = usec_sub(expires, loop_wall(a->loop)), margin = MAX(life / 10, EXPIRY_MARGIN);

        a->refresh_at = a->expires_at = USEC_MAX;
        if (expires == USEC_MAX)
                return;
        a->expires_at = usec_add(now(a), life);
        a->refresh_at = a->expires_at - (margin < life ? margin : life / 2);
}

static int take_credential(struct kube_auth *a, struct exec_credential *c, struct err *err)
{
        char text[TIME_TEXT_MAX];

        if (c->expires <= loop_wall(a->loop))
                return err_set(err, E_AUTH, "exec plugin '%s': what it gave expired at %s",
                               a->config->exec->command, time_format(c->expires, text));
        if (!c->token)
                drop_authorization(a);
        else if (set_token(a, str_of(c->token), "the token of the exec plugin", err) < 0)
                return -1;
        set_life(a, c->expires);
        a->tls_stale = !streq(c->cert, a->credential.cert) || !streq(c->key, a->credential.key);
        exec_credential_done(&a->credential);
        a->credential = *c;
        *c = (struct exec_credential){0};
        a->has_credential = true;
        a->refused = false;
        a->failures = 0;
        a->retry_at = 0;
        a->renewed_at = now(a);
        return 0;
}

static void plugin_done(void *arg, struct exec_credential *credential, const struct err *failure)
{
        struct kube_auth *a = arg;
        struct err err = ERR_INIT;

        a->run = NULL;
        if (!credential)
                plugin_failed(a, failure);
        else if (take_credential(a, credential, &err) < 0)
                plugin_failed(a, &err);
        call_waiters(a);
}

static void start_plugin(struct kube_auth *a)
{
        struct err err = ERR_INIT;

        a->run = exec_start(a->loop, a->config, plugin_done, a, &err);
        if (!a->run)
                plugin_failed(a, &err);
}

/* As kube_auth_get(). A credential that is about to expire is renewed while it is still used. */
static int plugin_get(struct kube_auth *a, void (*on_ready)(void *arg), void *arg, struct err *err)
{
        bool usable = a->has_credential && !a->refused && now(a) < a->expires_at;

        if (usable && now(a) < a->refresh_at)
                return 1;
        if (!a->run && now(a) >= a->retry_at)
                start_plugin(a);
        if (usable)
                return 1;
        if (!a->run)
                return err_set(err, a->failure.code, "%s", a->failure.text);
        add_waiter(&a->waiters, on_ready, arg);
        return 0;
}

/* ---- the doors */

struct kube_auth *kube_auth_new(struct loop *loop, const struct kube_config *config)
{
        struct kube_auth *a = xcalloc(1, sizeof(*a));

        a->loop = loop;
        a->config = config;
        return a;
}

void kube_auth_free(struct kube_auth *a)
{
        if (!a)
                return;
        exec_cancel(a->run);
        drop_waiters(&a->waiters, NULL, true);
        drop_waiters(&a->calling, NULL, true);
        drop_authorization(a);
        exec_credential_done(&a->credential);
        tls_unref(a->tls);
        a->dead = true;
        if (!a->calls)
                free(a);
}

static int refresh_header(struct kube_auth *a, struct err *err)
{
        const struct kube_config *c = a->config;

        if (c->token_file)
                return refresh_token(a, false, err);
        if (a->authorization)
                return 0;
        if (c->token)
                return set_token(a, str_of(c->token), "the token in the kubeconfig", err);
        if (c->username || c->password)
                set_basic(a);
        return 0;
}

int kube_auth_get(struct kube_auth *a, struct kube_credentials *ret, void (*on_ready)(void *arg), void *arg,
                  struct err *err)
{
        int result = uses_plugin(a) ? plugin_get(a, on_ready, arg, err) : refresh_header(a, err);

        if (result < 0 || (result == 0 && uses_plugin(a)))
                return result;
        if (refresh_tls(a, false, err) < 0)
                return -1;
        *ret = (struct kube_credentials){a->authorization, a->tls, a->tls_generation};
        return 1;
}

void kube_auth_cancel(struct kube_auth *a, void *arg)
{
        drop_waiters(&a->waiters, arg, false);
        drop_waiters(&a->calling, arg, false);
}

static bool just_renewed(const struct kube_auth *a)
{
        return usec_sub(now(a), a->renewed_at) < SETTLE;
}

bool kube_auth_refused(struct kube_auth *a)
{
        uint64_t generation = a->tls_generation;

        if (uses_plugin(a)) {
                /* Calls that were under way with the old credential come back one after the other. */
                if (a->run || just_renewed(a))
                        return true;
                a->refused = true;
                return now(a) >= a->retry_at;
        }
        if (refresh_tls(a, true, NULL) >= 0 && a->tls_generation != generation)
                return true;
        if (!a->config->token_file || refresh_token(a, true, NULL) < 0)
                return false;
        return just_renewed(a);
}
