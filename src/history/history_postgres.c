/*
 * PostgreSQL through libpq, which is opened when it is asked for: linked, it would cost every start 3.4 MB. Its functions are
 * declared here, so that its headers are not needed either.
 *
 * Nothing waits longer than a statement may take: statements are sent and waited for with poll(), since a server that is
 * stopped, or a network that swallows everything, never answers. All values go and come in binary.
 */
#include "history/history_db.h"

#include <dlfcn.h>
#include <endian.h>
#include <errno.h>
#include <poll.h>
#include <unistd.h>

/* The system's certificates where $SSL_CERT_FILE names none. */
#define SYSTEM_CERTIFICATES "/etc/ssl/certs/ca-certificates.crt"

enum {
        CONNECT_S = 5,
        STATEMENT_MS = 15000,
        PASSWORD_MAX = 4096,
        PARAMS_MAX = 48,
};

/* libpq's own numbers */
enum { CONNECTION_OK = 0 };
enum { PGRES_COMMAND_OK = 1, PGRES_TUPLES_OK = 2 };
enum { PQPING_REJECT = 1, PQPING_NO_RESPONSE = 2 };
enum { OID_BYTEA = 17, OID_INT8 = 20, OID_INT4 = 23, OID_TEXT = 25, OID_FLOAT8 = 701 };

struct pg_conn;
struct pg_result;

/* libpq's own; the one after the last has no keyword */
struct pg_option {
        char *keyword, *envvar, *compiled, *value, *label, *dispchar;
        int dispsize;
};

struct libpq {
        void *handle;
        struct pg_option *(*parse)(const char *url, char **message);
        void (*free_options)(struct pg_option *options);
        struct pg_conn *(*connect)(const char *const *keywords, const char *const *values, int expand);
        int (*ping)(const char *const *keywords, const char *const *values, int expand);
        void (*finish)(struct pg_conn *conn);
        int (*status)(const struct pg_conn *conn);
        char *(*message)(const struct pg_conn *conn);
        int (*used_password)(const struct pg_conn *conn);
        int (*needs_password)(const struct pg_conn *conn);
        const char *(*parameter)(const struct pg_conn *conn, const char *name);
        int (*socket)(const struct pg_conn *conn);
        int (*set_nonblocking)(struct pg_conn *conn, int on);
        void *(*set_notices)(struct pg_conn *conn, void (*fn)(void *arg, const char *message), void *arg);
        int (*send)(struct pg_conn *conn, const char *sql);
        int (*send_params)(struct pg_conn *conn, const char *sql, int n, const unsigned *types,
                           const char *const *values, const int *lengths, const int *formats, int binary);
        int (*flush)(struct pg_conn *conn);
        int (*consume)(struct pg_conn *conn);
        int (*busy)(struct pg_conn *conn);
        struct pg_result *(*result)(struct pg_conn *conn);
        int (*result_status)(const struct pg_result *result);
        char *(*result_field)(const struct pg_result *result, int field);
        int (*rows)(const struct pg_result *result);
        int (*columns)(const struct pg_result *result);
        unsigned (*type)(const struct pg_result *result, int column);
        int (*is_null)(const struct pg_result *result, int row, int column);
        int (*length)(const struct pg_result *result, int row, int column);
        char *(*value)(const struct pg_result *result, int row, int column);
        void (*clear)(struct pg_result *result);
};

struct postgres {
        struct db db;
        struct libpq pq;
        struct pg_conn *conn;
        bool lost;
};

static struct postgres *of(struct db *db)
{
        return CONTAINER_OF(db, struct postgres, db);
}

static int load(struct libpq *pq, struct err *err)
{
        const struct {
                const char *name;
                void *at;
        } functions[] = {
                {"PQconninfoParse", &pq->parse},
                {"PQconninfoFree", &pq->free_options},
                {"PQconnectdbParams", &pq->connect},
                {"PQpingParams", &pq->ping},
                {"PQfinish", &pq->finish},
                {"PQstatus", &pq->status},
                {"PQerrorMessage", &pq->message},
                {"PQconnectionUsedPassword", &pq->used_password},
                {"PQconnectionNeedsPassword", &pq->needs_password},
                {"PQparameterStatus", &pq->parameter},
                {"PQsocket", &pq->socket},
                {"PQsetnonblocking", &pq->set_nonblocking},
                {"PQsetNoticeProcessor", &pq->set_notices},
                {"PQsendQuery", &pq->send},
                {"PQsendQueryParams", &pq->send_params},
                {"PQflush", &pq->flush},
                {"PQconsumeInput", &pq->consume},
                {"PQisBusy", &pq->busy},
                {"PQgetResult", &pq->result},
                {"PQresultStatus", &pq->result_status},
                {"PQresultErrorField", &pq->result_field},
                {"PQntuples", &pq->rows},
                {"PQnfields", &pq->columns},
                {"PQftype", &pq->type},
                {"PQgetisnull", &pq->is_null},
                {"PQgetlength", &pq->length},
                {"PQgetvalue", &pq->value},
                {"PQclear", &pq->clear},
        };

        /* Never closed: it and what it brings along do not expect that. */
        pq->handle = dlopen("libpq.so.5", RTLD_NOW | RTLD_LOCAL);
        if (!pq->handle)
                return err_set(
                        err, E_CONFIG,
                        "PostgreSQL's client library cannot be loaded: %s; install it (Debian: libpq5)",
                        dlerror());
        for (size_t i = 0; i < ARRAY_LEN(functions); i++) {
                void *function = dlsym(pq->handle, functions[i].name);

                if (!function)
                        return err_set(err, E_CONFIG, "PostgreSQL's client library has no %s; it is too old",
                                       functions[i].name);
                memcpy(functions[i].at, &function, sizeof(function));
        }
        return 0;
}

/* ---- errors */

/* libpq's messages have several lines. */
static int fail_message(enum err_code code, const char *message, struct err *err)
{
        _cleanup_(buf_done) struct buf line = BUF_INIT(1024);

        for (const char *p = message ? message : ""; *p; p++) {
                char c = *p == '\n' || *p == '\t' ? ' ' : *p;

                if (c != ' ' || (line.n && line.p[line.n - 1] != ' '))
                        buf_addc(&line, c);
        }
        while (line.n && line.p[line.n - 1] == ' ')
                line.n--;
        return err_set(err, code, "%.*s", (int)line.n, line.n ? line.p : "");
}

static int fail_connection(struct postgres *p, struct err *err)
{
        p->lost = true;
        return fail_message(E_LOST, p->pq.message(p->conn), err);
}

/* By the class of an SQLSTATE (its first two characters), or one state. */
static enum err_code code_of(const char *state)
{
        static const struct {
                const char *begins;
                enum err_code code;
        } codes[] = {
                {"22", E_REFUSED}, /* data exception */
                {"23", E_REFUSED}, /* integrity constraint violation */
                {"54", E_REFUSED}, /* program limit exceeded: an index's row is too large */
                {"40", E_BUSY},    /* transaction rollback: a deadlock */
                {"53", E_BUSY},    /* insufficient resources: the disk is full */
                {"55P03", E_BUSY}, /* a lock was not to be had */
                {"57014", E_BUSY}, /* the statement took too long */
        };

        for (size_t i = 0; i < ARRAY_LEN(codes); i++)
                if (str_has_prefix(str_of(state), str_of(codes[i].begins)))
                        return codes[i].code;
        return E_IO;
}

static int fail_result(struct postgres *p, const struct pg_result *result, struct err *err)
{
        const char *state = p->pq.result_field(result, 'C'), *message = p->pq.result_field(result, 'M');

        if (!message || p->pq.status(p->conn) != CONNECTION_OK)
                return fail_connection(p, err);
        /* The server has become one that only reads: another one writes now. */
        p->lost = p->lost || streq(state, "25006");
        return fail_message(code_of(state), message, err);
}

/* ---- statements */

static int remaining(const struct clock *clock, usec_t until)
{
        usec_t now = clock_boot(clock);

        return now >= until ? 0 : (int)((until - now) / 1000 + 1);
}

/* Until what was sent has gone out and a result is there. */
static int wait_ready(struct postgres *p, const struct clock *clock, usec_t until, struct err *err)
{
        for (;;) {
                int unsent = p->pq.flush(p->conn), ms = remaining(clock, until), r;
                struct pollfd fd = {.fd = p->pq.socket(p->conn), .events = POLLIN};

                if (unsent < 0)
                        return fail_connection(p, err);
                if (!unsent && !p->pq.busy(p->conn))
                        return 0;
                fd.events |= unsent ? POLLOUT : 0;
                r = ms ? poll(&fd, 1, ms) : 0;
                if (r == 0) {
                        p->lost = true;
                        return err_set(err, E_TIMEOUT, "the server has not answered for %d s",
                                       STATEMENT_MS / 1000);
                }
                if (r > 0 && (fd.revents & ~POLLOUT) && !p->pq.consume(p->conn))
                        return fail_connection(p, err);
        }
}

static struct db_value cell(const struct libpq *pq, const struct pg_result *result, int row, int column)
{
        struct db_value v = {.type = DB_NULL};
        const char *bytes = pq->value(result, row, column);
        int n = pq->length(result, row, column);
        unsigned type = pq->type(result, column);
        uint64_t wide;
        uint32_t half;

        if (pq->is_null(result, row, column) || n < 0)
                return v;
        if ((type == OID_INT8 || type == OID_FLOAT8) && n == sizeof(wide)) {
                memcpy(&wide, bytes, sizeof(wide));
                wide = be64toh(wide);
                v.type = type == OID_INT8 ? DB_INT : DB_REAL;
                v.i = (int64_t)wide;
                memcpy(&v.d, &wide, sizeof(v.d));
        } else if (type == OID_INT4 && n == sizeof(half)) {
                memcpy(&half, bytes, sizeof(half));
                v.type = DB_INT;
                v.i = (int32_t)be32toh(half);
        } else {
                v.type = type == OID_BYTEA ? DB_BYTES : DB_TEXT;
                v.s = str_n(bytes, (size_t)n);
        }
        return v;
}

static void give_rows(const struct libpq *pq, const struct pg_result *result,
                      void (*row)(void *arg, const struct db_value *values), void *arg)
{
        int columns = MIN(pq->columns(result), (int)DB_COLUMNS_MAX);

        for (int i = 0; i < pq->rows(result); i++) {
                struct db_value values[DB_COLUMNS_MAX] = {0};

                for (int j = 0; j < columns; j++)
                        values[j] = cell(pq, result, i, j);
                row(arg, values);
        }
}

/* All results of what was sent; after an error the rest is read too, so that the connection can be used again. */
static int take_results(struct postgres *p, void (*row)(void *arg, const struct db_value *values), void *arg,
                        struct err *err)
{
        const struct clock clock = CLOCK_REAL;
        usec_t until = clock_boot(&clock) + STATEMENT_MS * 1000ULL;
        int r = 0;

        for (;;) {
                struct pg_result *result;
                int status;

                if (wait_ready(p, &clock, until, r < 0 ? NULL : err) < 0)
                        return -1;
                result = p->pq.result(p->conn);
                if (!result)
                        return r;
                status = p->pq.result_status(result);
                if (status == PGRES_TUPLES_OK && row && r == 0)
                        give_rows(&p->pq, result, row, arg);
                else if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK)
                        r = fail_result(p, result, r < 0 ? NULL : err);
                p->pq.clear(result);
                if (p->lost)
                        return -1;
        }
}

struct wire {
        unsigned types[PARAMS_MAX];
        const char *values[PARAMS_MAX];
        int lengths[PARAMS_MAX], formats[PARAMS_MAX];
        uint64_t numbers[PARAMS_MAX];
};

static void put(struct wire *w, size_t i, const struct db_value *v)
{
        uint64_t bits;

        w->formats[i] = 1;
        switch (v->type) {
        case DB_NULL:
                return;
        case DB_INT:
        case DB_REAL:
                memcpy(&bits, v->type == DB_INT ? (const void *)&v->i : &v->d, sizeof(bits));
                w->numbers[i] = htobe64(bits);
                w->types[i] = v->type == DB_INT ? OID_INT8 : OID_FLOAT8;
                w->values[i] = (const char *)&w->numbers[i];
                w->lengths[i] = sizeof(w->numbers[i]);
                return;
        case DB_TEXT:
        case DB_BYTES:
                w->types[i] = v->type == DB_TEXT ? OID_TEXT : OID_BYTEA;
                w->values[i] = v->s.p ? v->s.p : "";
                w->lengths[i] = (int)v->s.n;
                return;
        }
}

static int run(struct db *db, const char *sql, const struct db_value *params, size_t n,
               void (*row)(void *arg, const struct db_value *values), void *arg, struct err *err)
{
        struct postgres *p = of(db);
        struct wire w = {0};

        if (n > PARAMS_MAX)
                return err_set(err, E_INTERNAL, "a statement has %zu parameters", n);
        for (size_t i = 0; i < n; i++) {
                if (params[i].s.n > INT32_MAX / 2)
                        return err_set(err, E_TOO_LARGE, "a value of %zu bytes is too large", params[i].s.n);
                put(&w, i, &params[i]);
        }
        if (!p->pq.send_params(p->conn, sql, (int)n, w.types, w.values, w.lengths, w.formats, 1))
                return fail_connection(p, err);
        return take_results(p, row, arg, err);
}

static int script(struct db *db, const char *sql, struct err *err)
{
        struct postgres *p = of(db);

        return p->pq.send(p->conn, sql) ? take_results(p, NULL, NULL, err) : fail_connection(p, err);
}

/* ---- the version, in a table of its own */

static void take_version(void *arg, const struct db_value *values)
{
        *(int *)arg = (int)values[0].i;
}

/* By way of pg_class, since to_regclass() alone may not see what another session has made since it was asked last. */
static int version(struct db *db, int *ret, struct err *err)
{
        *ret = 0;
        if (run(db, "SELECT count(*) FROM pg_class WHERE oid = to_regclass('history_version')", NULL, 0,
                take_version, ret, err) < 0)
                return -1;
        return *ret ? run(db, "SELECT version FROM history_version", NULL, 0, take_version, ret, err) : 0;
}

static int set_version(struct db *db, int number, struct err *err)
{
        char sql[192];

        snprintf(sql, sizeof(sql),
                 "CREATE TABLE IF NOT EXISTS history_version (version BIGINT NOT NULL);"
                 "DELETE FROM history_version; INSERT INTO history_version VALUES (%d)",
                 number);
        return script(db, sql, err);
}

static bool lost(struct db *db)
{
        return of(db)->lost;
}

static void close_db(struct db *db)
{
        struct postgres *p = of(db);

        if (p->conn)
                p->pq.finish(p->conn);
        free(p);
}

/* The number is one of our own: whoever changes the schema of a history holds it, and nobody else does. */
static const struct db_ops ops = {.begin = "BEGIN",
                                  .begin_alone = "BEGIN; SELECT pg_advisory_xact_lock(724655302016)",
                                  .run = run,
                                  .script = script,
                                  .version = version,
                                  .set_version = set_version,
                                  .lost = lost,
                                  .close = close_db};

/* ---- connecting */

static void on_notice(void *arg, const char *message)
{
}

static int read_password(const char *path, struct buf *out, struct err *err)
{
        if (file_read(path, out, err) < 0)
                return err_wrap(err, "the password");
        while (out->n && (out->p[out->n - 1] == '\n' || out->p[out->n - 1] == '\r'))
                out->n--;
        if (!out->n || memchr(out->p, 0, out->n))
                return err_set(err, E_CONFIG, "the password: %s %s", path,
                               out->n ? "has a NUL byte" : "is empty");
        return 0;
}

/* Anything but a server that is not there; what to do about a password is worth saying. */
static int fail_connect(struct postgres *p, struct err *err)
{
        fail_message(E_CONNECT, p->pq.message(p->conn), err);
        if (err && (p->pq.needs_password(p->conn) || p->pq.used_password(p->conn))) {
                struct err said = *err;

                return err_set(err, E_AUTH,
                               "%s; the password is read from --history-password-file, "
                               "else from the URL, else from $PGPASSWORD",
                               said.text);
        }
        return -1;
}

/* What a session of ours is like; the texts of names and labels are UTF-8. */
static int set_up(struct postgres *p, struct err *err)
{
        const char *encoding = p->pq.parameter(p->conn, "server_encoding");

        if (!streq(encoding, "UTF8"))
                return err_set(err, E_CONFIG,
                               "the database has the encoding %s; make one with ENCODING 'UTF8'",
                               encoding ? encoding : "of an unknown name");
        p->pq.set_notices(p->conn, on_notice, NULL);
        if (p->pq.set_nonblocking(p->conn, 1) < 0)
                return fail_connection(p, err);
        return script(&p->db,
                      "SET statement_timeout = 14000; SET lock_timeout = 10000;"
                      "SET idle_in_transaction_session_timeout = 60000; SET client_min_messages = warning",
                      err);
}

/*
 * Whether somebody answers there at all, or is about to: what TLS, password and database are about is another matter. So it
 * goes without TLS, and tells nobody who we are.
 */
static bool is_absent(const struct libpq *pq, const char *url, const char *patience)
{
        const char *const keywords[] = {"connect_timeout", "dbname",     "user", "password",
                                        "sslmode",         "gssencmode", NULL};
        const char *const values[] = {patience, url, "ping", "-", "disable", "disable", NULL};
        int r = pq->ping(keywords, values, 1);

        return r == PQPING_REJECT || r == PQPING_NO_RESPONSE;
}

/* What the URL, or else the environment, says; NULL: nothing. */
static const char *option(const struct pg_option *options, const char *keyword)
{
        for (; options && options->keyword; options++)
                if (streq(options->keyword, keyword))
                        return options->value    ? options->value
                               : options->envvar ? getenv(options->envvar)
                                                 : NULL;
        return NULL;
}

/* Whether there is the file that libpq looks for by itself. */
static bool has_own_root(void)
{
        const char *home = getenv("HOME");
        char path[4096];

        return home && (size_t)snprintf(path, sizeof(path), "%s/.postgresql/root.crt", home) < sizeof(path) &&
               access(path, F_OK) == 0;
}

/*
 * Whom to trust where the server's certificate is to be verified and nobody says by whom it is signed: libpq would fail then, and before
 * 16 it has no word for the system's. NULL: libpq decides, since with a file `sslmode=require` would verify too.
 */
static const char *root_certificates(const struct libpq *pq, const char *url)
{
        struct pg_option *options = pq->parse(url, NULL);
        const char *mode = option(options, "sslmode"), *system = getenv("SSL_CERT_FILE");
        bool ours = (streq(mode, "verify-ca") || streq(mode, "verify-full")) &&
                    !option(options, "sslrootcert") && !has_own_root();

        pq->free_options(options);
        if (!system || !*system)
                system = SYSTEM_CERTIFICATES;
        return ours && access(system, R_OK) == 0 ? system : NULL;
}

/* What comes before the URL is overruled by it; the password comes after it, and what has no value is not said. */
static int connect_to(struct postgres *p, const char *url, const char *password, bool *absent,
                      struct err *err)
{
        char patience[16], user_timeout[16];
        const char *const keywords[] = {"application_name", "client_encoding",  "connect_timeout",
                                        "keepalives_idle",  "tcp_user_timeout", "sslrootcert",
                                        "dbname",           "password",         NULL};
        const char *values[] = {"sonde", "UTF8",       patience,
                                "30",    user_timeout, root_certificates(&p->pq, url),
                                url,     password,     NULL};

        snprintf(patience, sizeof(patience), "%d", CONNECT_S);
        snprintf(user_timeout, sizeof(user_timeout), "%d", STATEMENT_MS);
        p->conn = p->pq.connect(keywords, values, 1);
        if (p->conn && p->pq.status(p->conn) == CONNECTION_OK) {
                int r = set_up(p, err);

                if (absent)
                        *absent = p->lost;
                return r;
        }
        if (!p->conn)
                return err_set(err, E_CONNECT, "out of memory");
        if (absent)
                *absent = is_absent(&p->pq, url, patience);
        return fail_connect(p, err);
}

struct db *history_postgres_open(const char *url, const char *password_file, bool *absent, struct err *err)
{
        struct postgres *p = xcalloc(1, sizeof(*p));
        struct buf password = BUF_INIT(PASSWORD_MAX);
        int r;

        if (absent)
                *absent = false;
        p->db.ops = &ops;
        r = load(&p->pq, err);
        if (r == 0 && password_file)
                r = read_password(password_file, &password, err);
        if (r == 0)
                r = connect_to(p, url, password_file ? buf_cstr(&password) : NULL, absent, err);
        if (password.p)
                mem_wipe(password.p, password.cap);
        buf_done(&password);
        if (r == 0)
                return &p->db;
        close_db(&p->db);
        return NULL;
}
