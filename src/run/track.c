/*
 * What remains of a run's events.
 */
#include "run/track.h"

#include <math.h>

#include "run/status.h"

enum { KEPT_WHOLE = 9 };

/* A step 0 that lasts this part of step 1 was a step; a last step shorter than this part of the others was none. */
#define ZERO_IS_A_STEP  0.2
#define LAST_IS_NO_STEP 0.05
#define ENOUGH_TO_JUDGE 3
#define SECONDS_MAX     1e9 /* of anything in a track: 31 years */
#define MS_MAX          ((uint64_t)1000 * 1000 * 1000 * 1000)
#define STARTED_MS_MAX  ((uint64_t)9007199254740991) /* what JavaScript reads too */

static double seconds_of(usec_t usec)
{
        return (double)usec / (double)USEC_PER_SEC;
}

/* ---- steps */

static void merge_blocks(struct track_phase *p)
{
        for (uint32_t i = 0; i < TRACK_BLOCKS_MAX / 2; i++) {
                const struct track_block *x = &p->blocks[2 * i], *y = x + 1;

                p->blocks[i] = (struct track_block){x->steps + y->steps, x->seconds + y->seconds};
        }
        p->n_blocks = TRACK_BLOCKS_MAX / 2;
}

static void add_steps(struct track_phase *p, uint32_t n, double seconds)
{
        if (n > RUN_STEPS_MAX - p->done) /* nobody does so many: what is more is not counted */
                return;
        p->done += n;
        p->sum += seconds;
        p->longest = MAX(p->longest, (float)(seconds / n));
        if (p->n_blocks == TRACK_BLOCKS_MAX)
                merge_blocks(p);
        p->blocks[p->n_blocks++] = (struct track_block){n, (float)seconds};
}

/* What the time at step 0 was, now that STEPS after it took SECONDS: a step, or getting ready for the first. */
static void judge_zero(struct track *t, struct track_phase *p, uint32_t steps, double seconds)
{
        if (p->at_zero <= 0)
                return;
        if (p->at_zero >= ZERO_IS_A_STEP * seconds / steps)
                t->says_ends = true;
        if (t->says_ends)
                add_steps(p, 1, p->at_zero);
        p->at_zero = 0;
}

static void reach(struct track *t, struct track_phase *p)
{
        uint32_t done = t->says_ends || !p->step ? p->step : p->step - 1;

        if (p->total)
                p->share = MAX(p->share, MIN((float)done / (float)p->total, 1.0f));
}

static void first_step(struct track *t, struct track_phase *p, uint32_t step, usec_t now)
{
        if (t->says_ends && step == 1)
                add_steps(p, 1, seconds_of(now - p->began));
        p->at_zero = 0;
}

static void next_step(struct track *t, struct track_phase *p, uint32_t step, usec_t now)
{
        double seconds = seconds_of(now - p->step_began);
        uint32_t n = step > p->step ? step - p->step : 1;

        if (p->step == 0 && step == 1 && !t->says_ends) {
                p->at_zero = (float)MAX(seconds, 1e-3);
                return;
        }
        judge_zero(t, p, n, seconds);
        add_steps(p, n, seconds);
}

/* As the status says, else as its plan does. */
static uint32_t total_of(const struct run_status *s)
{
        int number = s->plan ? run_phase_number(s->plan, s->phase) : 0;

        if (s->total_steps > 0)
                return s->total_steps <= RUN_STEPS_MAX ? (uint32_t)s->total_steps : 0;
        return number >= 1 && (uint32_t)number <= s->plan->n ? s->plan->phases[number - 1].steps : 0;
}

static void step_event(struct track *t, struct track_phase *p, const struct run_status *s, usec_t now)
{
        uint32_t step;

        if (!s->has_progress || s->current_step < 0 || s->current_step > RUN_STEPS_MAX)
                return;
        step = (uint32_t)s->current_step;
        p->total = total_of(s);
        if (!p->step_began)
                first_step(t, p, step, now);
        else if (step != p->step)
                next_step(t, p, step, now);
        if (!p->step_began || step != p->step)
                p->step_began = now;
        p->step = step;
        reach(t, p);
}

/* The step under way ended with its phase, unless it was none: its writer says the ends of steps. */
static void last_step(struct track *t, struct track_phase *p, usec_t now)
{
        double seconds = seconds_of(now - p->step_began);
        bool is_last = p->total && p->step == p->total;

        if (!p->step_began || !p->step)
                return;
        judge_zero(t, p, 1, seconds);
        if (is_last && p->done >= ENOUGH_TO_JUDGE && seconds < LAST_IS_NO_STEP * p->sum / p->done)
                t->says_ends = true;
        if (!is_last || !t->says_ends)
                add_steps(p, 1, seconds);
}

/* ---- phases */

const struct track_phase *track_present(const struct track *t)
{
        for (uint32_t i = 0; i < t->n; i++)
                if (!t->phases[i].ended)
                        return &t->phases[i];
        return NULL;
}

const struct track_phase *track_find(const struct track *t, const char *name)
{
        for (uint32_t i = 0; i < t->n; i++)
                if (streq(t->phases[i].name, name))
                        return &t->phases[i];
        return NULL;
}

double track_phase_seconds(const struct track_phase *p, usec_t now)
{
        return p->before + seconds_of(usec_sub(p->ended ? p->ended : now, p->began));
}

/* P of T, to be changed; NULL stays NULL. */
static struct track_phase *own(struct track *t, const struct track_phase *p)
{
        return p ? &t->phases[p - t->phases] : NULL;
}

static void end_phase(struct track *t, struct track_phase *p, usec_t now)
{
        last_step(t, p, now);
        p->ended = now;
}

static struct track_phase *begin_phase(struct track *t, const char *name, usec_t now)
{
        struct track_phase *p = own(t, track_find(t, name));

        if (p) { /* back in it */
                p->before += seconds_of(p->ended - p->began);
                p->ended = p->step_began = 0;
                p->step = 0;
        } else {
                if (t->n == RUN_PHASES_MAX) {
                        memmove(&t->phases[0], &t->phases[1], (RUN_PHASES_MAX - 1) * sizeof(t->phases[0]));
                        t->n--;
                }
                p = &t->phases[t->n++];
                *p = (struct track_phase){.name = ""};
                memcpy(p->name, name, MIN(strlen(name), (size_t)RUN_PHASE_NAME_MAX));
        }
        p->began = now;
        return p;
}

/* ---- events */

static uint32_t mix(uint32_t hash, const void *data, size_t n)
{
        const unsigned char *p = data;

        for (size_t i = 0; i < n; i++)
                hash = (hash ^ p[i]) * 16777619u; /* FNV-1a: the same in every process */
        return (hash ^ 0xFFu) * 16777619u;
}

static uint32_t mix_text(uint32_t hash, const char *s)
{
        return s ? mix(hash, s, strlen(s)) : mix(hash, "\1", 1);
}

/* All that makes a status news. */
static uint32_t news_of(const struct run_status *s)
{
        uint32_t hash = mix_text(2166136261u, s->phase);

        hash = mix_text(mix_text(hash, s->message), s->sub_phase);
        if (s->best)
                hash = mix_text(hash, s->best);
        if (s->has_progress) {
                hash = mix(hash, &s->current_step, sizeof(s->current_step));
                hash = mix(hash, &s->total_steps, sizeof(s->total_steps));
        }
        return hash;
}

static void start(struct track *t, usec_t now)
{
        if (!t->started)
                t->started = t->moved = MAX(now, USEC_PER_MS);
}

bool track_event(struct track *t, const struct run_status *s, usec_t now)
{
        uint32_t said = news_of(s);
        struct track_phase *p;

        now -= now % USEC_PER_MS; /* as it will be read again */
        start(t, now);
        now = MAX(now, t->moved);
        if (t->ended || (t->n && said == t->said))
                return false;
        t->said = said;
        t->moved = now;
        if (s->overall > 0)
                t->percent = MAX(t->percent, MIN(s->overall, 100.0));
        p = own(t, track_present(t));
        if (p && !streq(p->name, s->phase))
                end_phase(t, p, now);
        if (run_phase_terminal(s->phase)) {
                t->ended = now;
                t->complete = streq(s->phase, "Complete");
                return true;
        }
        if (!p || p->ended)
                p = begin_phase(t, s->phase, now);
        step_event(t, p, s, now);
        return true;
}

/* ---- to JSON and back */

static void set_ms(struct arena *a, struct json *j, const char *key, usec_t at, usec_t since)
{
        if (at)
                json_set(a, j, key, json_u64(a, usec_sub(at, since) / USEC_PER_MS));
}

static void set_count(struct arena *a, struct json *j, const char *key, uint32_t n)
{
        if (n)
                json_set(a, j, key, json_u64(a, n));
}

/* Five digits are enough for what is an estimate's input. */
static double five_digits(double v)
{
        char text[32];

        snprintf(text, sizeof(text), "%.5g", v);
        return strtod(text, NULL);
}

static void set_number(struct arena *a, struct json *j, const char *key, double v)
{
        if (v > 0)
                json_set(a, j, key, json_double(a, five_digits(v)));
}

/* A step by itself is a number, several are [steps, seconds]. */
static struct json *blocks_json(struct arena *a, const struct track_phase *p)
{
        struct json *array = json_array(a), *pair;

        for (uint32_t i = 0; i < p->n_blocks; i++) {
                struct json *seconds = json_double(a, five_digits((double)p->blocks[i].seconds));

                if (p->blocks[i].steps == 1) {
                        json_append(array, seconds);
                        continue;
                }
                pair = json_append(array, json_array(a));
                json_append(pair, json_u64(a, p->blocks[i].steps));
                json_append(pair, seconds);
        }
        return array;
}

static struct json *phase_json(struct arena *a, const struct track *t, const struct track_phase *p)
{
        struct json *j = json_object(a);

        json_set(a, j, "name", json_string(a, p->name));
        set_ms(a, j, "began", p->began, t->started);
        set_ms(a, j, "ended", p->ended, t->started);
        set_number(a, j, "before", p->before);
        set_count(a, j, "total", p->total);
        set_count(a, j, "done", p->done);
        set_number(a, j, "sum", p->sum);
        set_number(a, j, "longest", (double)p->longest);
        set_number(a, j, "share", (double)p->share);
        if (!p->ended) {
                set_count(a, j, "step", p->step);
                set_ms(a, j, "stepBegan", p->step_began, t->started);
                set_number(a, j, "atZero", (double)p->at_zero);
        }
        if (p->n_blocks && (!p->ended || t->n <= KEPT_WHOLE))
                json_set(a, j, "blocks", blocks_json(a, p));
        return j;
}

struct json *track_json(struct arena *a, const struct track *t)
{
        struct json *j = json_object(a), *phases;

        set_ms(a, j, "started", t->started, 0);
        set_ms(a, j, "moved", t->moved, t->started);
        set_ms(a, j, "ended", t->ended, t->started);
        if (t->complete)
                json_set(a, j, "complete", json_truth(a, true));
        if (t->says_ends)
                json_set(a, j, "saysEnds", json_truth(a, true));
        set_count(a, j, "said", t->said);
        set_number(a, j, "percent", t->percent);
        phases = json_set(a, j, "phases", json_array(a));
        for (uint32_t i = 0; i < t->n; i++)
                json_append(phases, phase_json(a, t, &t->phases[i]));
        return j;
}

static int bad(struct err *err, const char *key)
{
        return err_set(err, E_INVALID, "the track's '%s' is missing, malformed or out of its range", key);
}

/* A member that may be missing: 0 then. */
static int get_u64(const struct json *object, const char *key, uint64_t max, uint64_t *ret, struct err *err)
{
        const struct json *j = json_at(object, key);

        *ret = 0;
        return j && (!json_to_u64(j, ret) || *ret > max) ? bad(err, key) : 0;
}

static int get_count(const struct json *object, const char *key, uint64_t max, uint32_t *ret, struct err *err)
{
        uint64_t v;

        if (get_u64(object, key, max, &v, err) < 0)
                return -1;
        *ret = (uint32_t)v;
        return 0;
}

static bool to_number(const struct json *j, double max, double *ret)
{
        return json_to_double(j, ret) && *ret >= 0 && *ret <= max;
}

static int get_number(const struct json *object, const char *key, double max, double *ret, struct err *err)
{
        const struct json *j = json_at(object, key);

        *ret = 0;
        return j && !to_number(j, max, ret) ? bad(err, key) : 0;
}

static int get_float(const struct json *object, const char *key, double max, float *ret, struct err *err)
{
        double v;

        if (get_number(object, key, max, &v, err) < 0)
                return -1;
        *ret = (float)v;
        return 0;
}

static int get_truth(const struct json *object, const char *key, bool *ret, struct err *err)
{
        const struct json *j = json_at(object, key);

        *ret = j && j->type == JSON_BOOL && j->truth;
        return j && j->type != JSON_BOOL ? bad(err, key) : 0;
}

/* Milliseconds since the start, at most LATEST; *RET stays 0 where the member is missing. */
static int get_time(const struct json *object, const char *key, const struct track *t, usec_t *ret,
                    struct err *err)
{
        uint64_t ms;

        *ret = 0;
        if (!json_at(object, key))
                return 0;
        if (get_u64(object, key, MS_MAX, &ms, err) < 0)
                return -1;
        *ret = t->started + ms * USEC_PER_MS;
        return t->moved && *ret > t->moved ? bad(err, key) : 0;
}

static int parse_block(const struct json *j, struct track_block *ret)
{
        const struct json *seconds = j;
        uint64_t steps = 1;
        double v;

        if (json_is(j, JSON_ARRAY)) {
                if (j->len != 2 || !json_to_u64(json_index(j, 0), &steps) || !steps || steps > RUN_STEPS_MAX)
                        return -1;
                seconds = json_index(j, 1);
        }
        if (!json_is(seconds, JSON_NUMBER) || !to_number(seconds, SECONDS_MAX, &v))
                return -1;
        *ret = (struct track_block){(uint32_t)steps, (float)v};
        return 0;
}

static int parse_blocks(const struct json *array, struct track_phase *p, struct err *err)
{
        uint64_t steps = 0;

        if (!array)
                return 0;
        if (!json_is(array, JSON_ARRAY) || array->len > TRACK_BLOCKS_MAX)
                return bad(err, "blocks");
        json_foreach (j, array) {
                if (parse_block(j, &p->blocks[p->n_blocks]) < 0)
                        return bad(err, "blocks");
                steps += p->blocks[p->n_blocks++].steps;
        }
        return steps > p->done ? bad(err, "blocks") : 0;
}

static int parse_place(const struct json *j, const struct track *t, struct track_phase *p, struct err *err)
{
        if (!json_at(j, "began"))
                return bad(err, "began");
        if (get_time(j, "began", t, &p->began, err) < 0 || get_time(j, "ended", t, &p->ended, err) < 0 ||
            get_time(j, "stepBegan", t, &p->step_began, err) < 0)
                return -1;
        if (p->ended && p->ended < p->began)
                return bad(err, "ended");
        return p->step_began && p->step_began < p->began ? bad(err, "stepBegan") : 0;
}

static int parse_phase(const struct json *j, struct track *t, struct err *err)
{
        struct str name = json_text(json_at(j, "name"));
        struct track_phase *p = &t->phases[t->n];

        *p = (struct track_phase){.name = ""};
        if (!json_is(j, JSON_OBJECT) || run_phase_fault(name))
                return bad(err, "name");
        memcpy(p->name, name.p, name.n);
        if (track_find(t, p->name) || run_phase_terminal(p->name))
                return bad(err, "name");
        if (parse_place(j, t, p, err) < 0 || get_number(j, "before", SECONDS_MAX, &p->before, err) < 0 ||
            get_count(j, "total", RUN_STEPS_MAX, &p->total, err) < 0 ||
            get_count(j, "done", RUN_STEPS_MAX, &p->done, err) < 0 ||
            get_number(j, "sum", SECONDS_MAX, &p->sum, err) < 0 ||
            get_float(j, "longest", SECONDS_MAX, &p->longest, err) < 0 ||
            get_float(j, "share", 1, &p->share, err) < 0 ||
            get_count(j, "step", RUN_STEPS_MAX, &p->step, err) < 0 ||
            get_float(j, "atZero", SECONDS_MAX, &p->at_zero, err) < 0 ||
            parse_blocks(json_at(j, "blocks"), p, err) < 0)
                return -1;
        if (!p->ended &&
            (t->ended || track_present(t))) /* one phase is under way at a time, and none after the end */
                return bad(err, "ended");
        t->n++;
        return 0;
}

int track_parse(const struct json *j, struct track *ret, struct err *err)
{
        const struct json *phases = json_at(j, "phases");
        uint64_t started;

        *ret = (struct track){.n = 0};
        if (!json_is(j, JSON_OBJECT) || !json_is(phases, JSON_ARRAY) || phases->len > RUN_PHASES_MAX)
                return bad(err, "phases");
        if (get_u64(j, "started", STARTED_MS_MAX, &started, err) < 0)
                return -1;
        ret->started = started * USEC_PER_MS;
        if (get_time(j, "moved", ret, &ret->moved, err) < 0 ||
            get_time(j, "ended", ret, &ret->ended, err) < 0 ||
            get_truth(j, "complete", &ret->complete, err) < 0 ||
            get_truth(j, "saysEnds", &ret->says_ends, err) < 0 ||
            get_count(j, "said", UINT32_MAX, &ret->said, err) < 0 ||
            get_number(j, "percent", 100, &ret->percent, err) < 0)
                return -1;
        if (!ret->started && phases->len)
                return bad(err, "started");
        if (ret->started && !ret->moved)
                return bad(err, "moved");
        json_foreach (phase, phases)
                if (parse_phase(phase, ret, err) < 0)
                        return -1;
        return 0;
}

/* ---- what finished runs say together */

void priors_add(struct priors *p, const char *phase, double seconds, double steps, double step_seconds)
{
        struct prior_phase *x = NULL;
        double step = steps > 0 ? step_seconds / steps : 0, sq, delta;

        if (!(seconds >= 0 && seconds <= SECONDS_MAX && steps >= 0 && steps <= RUN_STEPS_MAX && step >= 0 &&
              step <= SECONDS_MAX))
                return; /* a database may have been written by others */
        for (unsigned i = 0; i < p->n; i++)
                if (streq(p->phases[i].name, phase))
                        x = &p->phases[i];
        if (!x) {
                if (p->n == RUN_PHASES_MAX)
                        return;
                x = &p->phases[p->n++];
                *x = (struct prior_phase){.runs = 0};
                memcpy(x->name, phase, MIN(strlen(phase), (size_t)RUN_PHASE_NAME_MAX));
        }
        sq = x->runs > 1 ? x->sd * x->sd * (x->runs - 1) : 0;
        x->runs++;
        delta = seconds - x->mean;
        x->mean += delta / x->runs;
        sq += delta * (seconds - x->mean);
        x->sd = x->runs > 1 ? sqrt(sq / (x->runs - 1)) : 0;
        x->steps += (steps - x->steps) / x->runs;
        x->step_mean += (step - x->step_mean) / x->runs;
}

void priors_add_track(struct priors *p, const struct track *t)
{
        for (uint32_t i = 0; i < t->n; i++)
                if (t->phases[i].ended)
                        priors_add(p, t->phases[i].name, track_phase_seconds(&t->phases[i], t->moved),
                                   t->phases[i].done, t->phases[i].sum);
}
