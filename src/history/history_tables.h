/*
 * history_tables.h - the tables and what is done to them, in a database that is there. See history_store.h.
 *
 *   history_schema.c  makes them, and brings older ones up to date
 *   history_write.c   a row into them, old ones out of them
 *   history_read.c    priors, series, lists
 */
#pragma once

#include <math.h>

#include "history/history_db.h"
#include "history/history_store.h"

static inline struct db_value db_int(uint64_t i)
{
        return (struct db_value){.type = DB_INT, .i = (int64_t)MIN(i, (uint64_t)INT64_MAX)};
}

static inline struct db_value db_real(double d)
{
        return isfinite(d) ? (struct db_value){.type = DB_REAL, .d = d} : (struct db_value){.type = DB_NULL};
}

static inline struct db_value db_text(const char *s)
{
        return s ? (struct db_value){.type = DB_TEXT, .s = str_of(s)} : (struct db_value){.type = DB_NULL};
}

/* Also of what somebody else wrote there: a number is one or the other. NAN: it is none. */
static inline double db_number(const struct db_value *v)
{
        return v->type == DB_REAL ? v->d : v->type == DB_INT ? (double)v->i : (double)NAN;
}

static inline uint64_t db_count(const struct db_value *v)
{
        return v->type == DB_INT && v->i > 0 ? (uint64_t)v->i : 0;
}

/* A copy of a text in A; NULL: there is none. */
static inline char *db_copy(struct arena *a, const struct db_value *v)
{
        return v->type == DB_TEXT ? arena_strndup(a, v->s.p, v->s.n) : NULL;
}

/* READING: what is not as it must be is an error, not made so. */
int history_schema(struct db *db, bool reading, struct err *err) _must_check_;

int history_write(struct db *db, const struct history_row *row, struct err *err) _must_check_;
/* A few of the runs that ended at BEFORE or earlier (samples: SAMPLES_BEFORE), and of those beyond the newest KEEP (0: any
 * number). *RET_MORE: there are more. */
int history_delete(struct db *db, usec_t before, usec_t samples_before, uint64_t keep, bool *ret_more,
                   struct err *err) _must_check_;

int history_read_priors(struct db *db, const char *shape, struct priors *ret, struct err *err) _must_check_;
int history_read_series(struct db *db, const char *series, struct arena *a, struct series *ret,
                        struct err *err) _must_check_;
int history_read_list(struct db *db, const struct history_filter *filter, struct arena *a,
                      const struct history_row **ret, size_t *ret_n, struct err *err) _must_check_;
