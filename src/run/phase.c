/*
 * The table of phases, and plans that a run declares.
 */
#include "run/phase.h"

/* How many the design has besides the two ends. */
enum {
        DGDR_PHASES = 0
#define PHASE(name, id, number, low, high) +1
#define PHASE_END(name, id, number)
#include "run/phases.def"
#undef PHASE
#undef PHASE_END
};

const struct run_plan RUN_PLAN_DGDR = {
        .n = DGDR_PHASES,
        .weighted = true,
        .phases =
                {
#define PHASE(sym, id, number, low, high) \
        [(number)-1] = {                  \
                .name = id, .weight = ((low) + (high)) / 2.0, .typical_low = (low), .typical_high = (high)},
#define PHASE_END(sym, id, number)
#include "run/phases.def"
#undef PHASE
#undef PHASE_END
                },
};

/* How far behind the last phase of a plan each end is; 0: PHASE is no end. */
static int end_place(const char *phase)
{
        static const struct {
                const char *id;
                int place;
        } ends[] = {
#define PHASE(sym, id, number, low, high)
#define PHASE_END(sym, id, number) {id, (number)-DGDR_PHASES},
#include "run/phases.def"
#undef PHASE
#undef PHASE_END
        };

        for (size_t i = 0; i < ARRAY_LEN(ends); i++)
                if (streq(ends[i].id, phase))
                        return ends[i].place;
        return 0;
}

bool run_phase_terminal(const char *phase)
{
        return end_place(phase) > 0;
}

int run_phase_number(const struct run_plan *plan, const char *phase)
{
        int place = end_place(phase);

        if (place)
                return (int)plan->n + place;
        for (uint32_t i = 0; i < plan->n; i++)
                if (streq(plan->phases[i].name, phase))
                        return (int)i + 1;
        return 0;
}

const char *run_phase_fault(struct str name)
{
        if (!name.p)
                return "is not a string";
        if (!name.n)
                return "is empty";
        if (name.n > RUN_PHASE_NAME_MAX)
                return "is longer than 63 bytes";
        if (!utf8_valid(name.p, name.n))
                return "is not UTF-8";
        for (size_t i = 0; i < name.n; i++) {
                unsigned char c = (unsigned char)name.p[i];

                /* U+0080 ... U+009F are control characters too; in UTF-8 they begin with C2. */
                if (c < 0x20 || c == 0x7F || (c == 0xC2 && (unsigned char)name.p[i + 1] < 0xA0))
                        return "has a control character";
        }
        return NULL;
}

static int parse_steps(const struct json *j, uint32_t *ret)
{
        int64_t v = 0;

        if (j && j->type != JSON_NULL && (!json_to_i64(j, &v) || v < 0 || v > RUN_STEPS_MAX))
                return -1;
        *ret = (uint32_t)v;
        return 0;
}

/* 0 stays for one that is not given. */
static int parse_weight(const struct json *j, double *ret)
{
        double v = 0;

        if (j && j->type != JSON_NULL && (!json_to_double(j, &v) || !(v > 0) || v > RUN_WEIGHT_MAX))
                return -1;
        *ret = v;
        return 0;
}

static int parse_phase(const struct json *j, size_t i, struct run_phase *ret, struct err *err)
{
        struct str name = json_text(json_is(j, JSON_OBJECT) ? json_at(j, "phase") : j);
        const char *fault = run_phase_fault(name);

        if (fault)
                return err_set(err, E_INVALID, "the name of plan[%zu] %s", i, fault);
        *ret = (struct run_phase){.name = ""};
        memcpy(ret->name, name.p, name.n);
        if (parse_steps(json_at(j, "steps"), &ret->steps) < 0)
                return err_set(err, E_INVALID, "plan[%zu].steps is not a whole number from 0 to 10^9", i);
        if (parse_weight(json_at(j, "weight"), &ret->weight) < 0)
                return err_set(err, E_INVALID, "plan[%zu].weight is not a number above 0, at most 10^9", i);
        return 0;
}

/* Phases without a weight get the mean of those that have one; without any, all weigh the same. */
static void fill_weights(struct run_plan *plan)
{
        double sum = 0;
        uint32_t given = 0;

        for (uint32_t i = 0; i < plan->n; i++)
                if (plan->phases[i].weight > 0) {
                        sum += plan->phases[i].weight;
                        given++;
                }
        plan->weighted = given > 0;
        for (uint32_t i = 0; i < plan->n; i++)
                if (!(plan->phases[i].weight > 0))
                        plan->phases[i].weight = given ? sum / given : 1;
}

int run_plan_parse(const struct json *array, struct run_plan *ret, struct err *err)
{
        size_t i = 0;

        *ret = (struct run_plan){.n = 0};
        if (!json_is(array, JSON_ARRAY))
                return err_set(err, E_INVALID, "plan is not an array");
        json_foreach (j, array) {
                struct run_phase phase;

                if (parse_phase(j, i, &phase, err) < 0)
                        return -1;
                i++;
                if (run_phase_terminal(phase.name))
                        continue;
                if (run_phase_number(ret, phase.name))
                        return err_set(err, E_INVALID, "plan has phase '%s' twice", phase.name);
                if (ret->n == RUN_PHASES_MAX)
                        return err_set(err, E_TOO_LARGE, "plan has more than %d phases", RUN_PHASES_MAX);
                ret->phases[ret->n++] = phase;
        }
        fill_weights(ret);
        return 0;
}

struct json *run_plan_json(struct arena *a, const struct run_plan *plan)
{
        struct json *array = json_array(a);

        for (uint32_t i = 0; i < plan->n; i++) {
                const struct run_phase *p = &plan->phases[i];
                struct json *j = json_append(array, json_object(a));

                json_set(a, j, "phase", json_string(a, p->name));
                if (p->steps)
                        json_set(a, j, "steps", json_u64(a, p->steps));
                if (plan->weighted)
                        json_set(a, j, "weight", json_double(a, p->weight));
        }
        return array;
}
