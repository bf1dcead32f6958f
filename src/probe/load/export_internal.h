/*
 * export_internal.h - what the files and the table of a load report have in common.
 */
#pragma once

#include "probe/load/load.h"

/* A metric of the whole run: AIPerf tells only its average. */
struct load_single {
        const char *tag, *header, *unit;
        double value;
};
enum { LOAD_SINGLES_MAX = 9 };
/* Those that there are, in the order of their tags; returns how many. */
size_t load_singles(const struct load_config *c, const struct load_summary *s,
                    struct load_single out[LOAD_SINGLES_MAX]);

/* Failed requests that failed in the same way. */
struct load_errors {
        int code; /* of HTTP; 0: none */
        const char *type, *message;
        uint64_t count;
};
enum { LOAD_ERRORS_MAX = 100 }; /* different ones; the last one then counts all others */
/* By type, and with MESSAGES by their text too; the most frequent first. */
struct load_errors *load_error_groups(struct arena *a, const struct load_report *r, bool messages,
                                      size_t *ret_n);
/* What one record's failure is in AIPerf's terms. */
struct load_errors load_error_of(const struct load_record *r);

/* By the config's word or the server's own. */
bool load_simulated(const struct load_config *c, const struct load_report *r);
/* URL without user, password, query and fragment, which may hold secrets. */
const char *load_url_shown(struct arena *a, const char *url);
/* Nanoseconds since 1970 of a record's time. */
uint64_t load_wall_ns(const struct load_report *r, uint64_t at);

void load_csv(const struct load_config *c, const struct load_report *r, struct buf *out);
int load_export_records(const struct load_report *r, const char *path, struct err *err) _must_check_;
int load_export_inputs(const struct load_report *r, const char *path, struct err *err) _must_check_;
