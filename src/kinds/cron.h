/*
 * cron.h - when a schedule is due. Pure functions of the schedule, the zone and the time.
 *
 * Five fields, minute hour day month weekday, as Kubernetes' CronJobs and crontab(5) have them: *, ?, lists, ranges, steps, names of
 * months and weekdays, 7 for Sunday; or @hourly, @daily, @midnight, @weekly, @monthly, @yearly, @annually. With both days
 * restricted, either will do. A zone has a field of its own, so "CRON_TZ=" and "TZ=" are refused, and so is @every, which has
 * no moment to count from; seconds are no field.
 *
 * A clock that is put forward skips an hour: what was due in it is not. One that is put back shows an hour twice: what names
 * its hour is due in the first one alone, what does not (its hour is *, or a step of it) in both.
 */
#pragma once

#include "base/base.h"

struct cron {
        uint64_t minutes;
        uint32_t hours, days /* bit 1: the first */, months /* bit 1: January */,
                weekdays;          /* bit 0: Sunday */
        bool any_hour;             /* the hour is *, or a step of it */
        bool any_day, any_weekday; /* not restricted */
};

int cron_parse(struct str text, struct cron *ret, struct err *err) _must_check_;

/* The first minute after AFTER (seconds since 1970) at which it is due; below 0: never within 8 years. */
int64_t cron_next(const struct cron *c, const struct zone *z, int64_t after);
/* The last one at which it was due in AFTER < t <= UNTIL; below 0: at none. Looks back for no longer than 8 years. */
int64_t cron_last(const struct cron *c, const struct zone *z, int64_t after, int64_t until);
