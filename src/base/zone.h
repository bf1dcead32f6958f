/*
 * zone.h - time zones: what a clock on a wall shows somewhere, from the machine's own database (TZif files, RFC 8536, with
 * the rule at their end for the years to come). The process's own zone plays no part.
 */
#pragma once

#include "base/str.h"

struct zone;

/*
 * NAME as IANA writes it: "Europe/Berlin". "UTC" is always there. Others are looked for in DIR (NULL: /usr/share/zoneinfo), and
 * are E_NOT_FOUND when they are not there, with what to do about it.
 */
struct zone *zone_load(const char *dir, const char *name, struct err *err) _must_check_;
/* The text of such a file. */
struct zone *zone_parse(struct str text, struct err *err) _must_check_;
void zone_free(struct zone *z);

/* Seconds east of UTC at T, which is in seconds since 1970. */
int32_t zone_offset(const struct zone *z, int64_t t);

/* What a clock shows at T. */
struct zone_clock {
        int64_t year;
        unsigned month, day /* from 1 */, weekday /* 0: Sunday */, hour, minute;
};
void zone_clock(const struct zone *z, int64_t t, struct zone_clock *ret);
/* 1970-01-01 is day 0 of the Gregorian calendar. */
int64_t days_of(int64_t year, unsigned month, unsigned day);

/* Zones that were asked for, kept. */
struct zones;
struct zones *zones_new(const char *dir); /* as in zone_load(); borrowed */
void zones_free(struct zones *zones);
/* As zone_load(), and lives as long as ZONES. What is not there is looked for again the next time. */
const struct zone *zones_get(struct zones *zones, const char *name, struct err *err) _must_check_;

DEFINE_CLEANUP_PTR(struct zone *, zone_free)
DEFINE_CLEANUP_PTR(struct zones *, zones_free)
