/*
 * log.h - structured log lines without secrets.
 *
 *     LOG_INFO(log, "Created Job", F_STR("namespace", ns), F_STR("name", name), F_INT("attempt", 2));
 *
 * A message starts with a capital, has no full stop, and is a literal; everything variable is a field. One line is
 * one write(). Text from outside is escaped (control characters, quotes, invalid UTF-8) and cut at 4 KiB, so a line
 * cannot be forged. Fields whose name contains token, secret, password, authorization or key-data are never written
 * out, whatever their value; F_SECRET says only how long it was.
 */
#pragma once

#include "base/clock.h"
#include "base/err.h"

enum log_level { LOG_LEVEL_ERROR, LOG_LEVEL_WARN, LOG_LEVEL_INFO, LOG_LEVEL_DEBUG };
enum log_format { LOG_FORMAT_LOGFMT, LOG_FORMAT_JSON };

struct log_field {
        const char *key;
        enum {
                LOG_FIELD_STR,
                LOG_FIELD_INT,
                LOG_FIELD_UINT,
                LOG_FIELD_USEC,
                LOG_FIELD_BOOL,
                LOG_FIELD_SECRET
        } type;
        struct str str;
        int64_t num;
};

struct log {
        int fd;
        enum log_level level; /* may be changed at run time */
        enum log_format format;
        const struct clock *clock;
        const char *name; /* "logger" field, NULL: none */
};

void log_init(struct log *log, int fd, enum log_level level, enum log_format format,
              const struct clock *clock);
void log_write(const struct log *log, enum log_level level, const char *msg, const struct log_field *fields,
               size_t n);
bool log_level_parse(struct str s, enum log_level *ret);   /* error, warn, info, debug */
bool log_format_parse(struct str s, enum log_format *ret); /* logfmt, json */

/* clang-format off */
#define F_STR(k, v)    {.key = (k), .type = LOG_FIELD_STR, .str = str_of(v)}
#define F_STRN(k, v)   {.key = (k), .type = LOG_FIELD_STR, .str = (v)}
#define F_INT(k, v)    {.key = (k), .type = LOG_FIELD_INT, .num = (int64_t)(v)}
#define F_UINT(k, v)   {.key = (k), .type = LOG_FIELD_UINT, .num = (int64_t)(v)}
#define F_USEC(k, v)   {.key = (k), .type = LOG_FIELD_USEC, .num = (int64_t)(v)} /* seconds with a fraction */
#define F_BOOL(k, v)   {.key = (k), .type = LOG_FIELD_BOOL, .num = (v)}
#define F_ERR(e)       {.key = "error", .type = LOG_FIELD_STR, .str = str_of((e)->text)}
#define F_SECRET(k, v) {.key = (k), .type = LOG_FIELD_SECRET, .str = str_of(v)}
/* clang-format on */

#define LOG_AT(log_, level_, msg_, ...)                                                                \
        do {                                                                                           \
                const struct log *l_ = (log_);                                                         \
                if (l_ && (level_) <= l_->level)                                                       \
                        log_write(l_, (level_), "" msg_, (struct log_field[]){{0}, ##__VA_ARGS__} + 1, \
                                  sizeof((struct log_field[]){{0}, ##__VA_ARGS__}) /                   \
                                                  sizeof(struct log_field) -                           \
                                          1);                                                          \
        } while (0)
#define LOG_ERROR(log, msg, ...) LOG_AT(log, LOG_LEVEL_ERROR, msg, ##__VA_ARGS__)
#define LOG_WARN(log, msg, ...)  LOG_AT(log, LOG_LEVEL_WARN, msg, ##__VA_ARGS__)
#define LOG_INFO(log, msg, ...)  LOG_AT(log, LOG_LEVEL_INFO, msg, ##__VA_ARGS__)
#define LOG_DEBUG(log, msg, ...) LOG_AT(log, LOG_LEVEL_DEBUG, msg, ##__VA_ARGS__)
