/*
 * history_db.h - the database below a history: SQLite or PostgreSQL, behind a few calls. Blocks: used by one thread at a time.
 *
 * Both take the same SQL: parameters are $1, $2, ...; columns are TEXT, BIGINT, DOUBLE PRECISION and BYTEA, which SQLite reads
 * as types of its own; `INSERT ... ON CONFLICT`, partial indices and cascading deletes are common to both. What differs is
 * here: how a transaction that writes begins, and where the version of the schema is kept.
 *
 * Errors say what went wrong; who calls says at what, and in which history.
 */
#pragma once

#include "base/base.h"

enum db_type { DB_NULL, DB_INT, DB_REAL, DB_TEXT, DB_BYTES };

struct db_value {
        enum db_type type;
        int64_t i;
        double d;
        struct str s; /* text and bytes; borrowed */
};

struct db;

struct db_ops {
        const char *begin;       /* a transaction that writes */
        const char *begin_alone; /* the same, while nobody else changes the schema */
        /*
         * What the calls below fail with says what to do: E_REFUSED or E_TOO_LARGE, such values are never taken; E_BUSY, nothing
         * can be written now.
         */
        /* One statement. ROW (may be NULL) for each row of the result, whose values are borrowed. */
        int (*run)(struct db *db, const char *sql, const struct db_value *params, size_t n,
                   void (*row)(void *arg, const struct db_value *values), void *arg, struct err *err);
        int (*script)(struct db *db, const char *sql, struct err *err); /* several, without parameters */
        int (*version)(struct db *db, int *ret, struct err *err);       /* of the schema; 0: there is none */
        int (*set_version)(struct db *db, int version,
                           struct err *err); /* in the transaction that made it so */
        bool (*lost)(struct db *db);         /* it will not work again: close it and connect anew */
        void (*close)(struct db *db);
};

struct db {
        const struct db_ops *ops;
};

enum { DB_COLUMNS_MAX = 16 };

/* MAKE: a file that is not there is made. */
struct db *history_sqlite_open(const char *path, bool make, struct err *err) _must_check_;
/*
 * URL has passed history_url_check(). ABSENT (may be NULL): after a failure, whether the server could not be reached (or takes
 * nobody now), which may be another time; to know that takes as long as to connect.
 */
struct db *history_postgres_open(const char *url, const char *password_file, bool *absent, struct err *err)
        _must_check_;

/* postgres://USER@HOST:PORT/DATABASE?OPTION=VALUE. False for paths. */
bool history_is_url(const char *place);
/* What is wrong with it is said without citing it: a password that is written wrongly may be anywhere in it. */
int history_url_check(const char *url, struct err *err) _must_check_;
char *history_url_shown(const char *url); /* without password and options */
