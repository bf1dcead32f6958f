"""schedules - requests of a schedule without waiting for its time."""

import datetime

from dgdr_play import ok

PATIENCE = 300
YEARLY = {"schedule": {"cron": "0 0 1 1 *"}}


def make_due(api, template):
    """Makes the YEARLY request TEMPLATE due now: nothing has looked at it for years."""
    template.wait(lambda s: "nextScheduleTime" in s, "the next time of its schedule", PATIENCE)
    ok(api.patch(f"{template.path}/status", {"status": {"schedule": {"since": "2020-06-01T00:00:00Z"}}}))


def name_of_due(template):
    """The name of the request that the YEARLY schedule of that name makes when it is due."""
    new_year = datetime.datetime(datetime.datetime.now(datetime.timezone.utc).year, 1, 1, tzinfo=datetime.timezone.utc)
    return f"{template}-{int(new_year.timestamp()) // 60}"
