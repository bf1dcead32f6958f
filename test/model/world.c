/*
 * A world: its parts, its statuses, and what can happen in it.
 */
#include "model/world.h"

_Static_assert(sizeof(struct state) % 8 == 0, "states have no padding");
_Static_assert(sizeof(struct request_part) % 8 == 0 && sizeof(struct jobs_part) % 8 == 0 &&
                       sizeof(struct pods_part) % 8 == 0 && sizeof(struct maps_part) % 8 == 0 &&
                       sizeof(struct product_part) % 8 == 0 && sizeof(struct hidden_part) % 8 == 0,
               "parts have no padding");

const struct action actions[] = {
        {"the operator writes", 1, true, act_write},
        {"the operator decides", 1 << PARTS, true, act_decide},
        {"the operator's cache shows", PARTS, true, act_deliver},
        {"the Job makes a pod", 8, true, act_make_pod},
        {"the kubelet starts pod", 8, true, act_start_pod},
        {"the relay claims for pod", 8, true, act_claim},
        {"the relay reports for pod", 8, false, act_report},
        {"the workload ends well in pod", 8, true, act_end_well},
        {"the workload fails in pod", 8, false, act_end_badly},
        {"the kubelet stops pod", 8, true, act_stop_pod},
        {"the relay sends the output of pod", 8, true, act_send_output},
        {"the relay records the end of pod", 8, true, act_record},
        {"the relay gives up in pod", 8, true, act_give_up},
        {"all has ended in pod", 8, true, act_finish_pod},
        {"the Job ends", 8, true, act_end_job},
        {"the garbage collection takes Job", 8, true, act_collect_job},
        {"the garbage collection ends pod", 8, true, act_collect_pod},
        {"the garbage collection takes ConfigMaps and access", 1, true, act_collect_others},
        {"the garbage collection takes all that is left", 1, true, act_collect_rest},
        {"the product is good", 1, true, act_turn},
        {"the queue moves on", 1, true, act_advance},
        {"somebody edits:", EDITS, false, act_edit},
        {"somebody resumes", 1, false, act_resume},
        {"somebody deletes the request", 1, false, act_delete},
        {"somebody makes the request again", 1, false, act_recreate},
        {"bad luck:", MISHAPS, false, act_mishap},
        {"the operator dies and starts again", 1, false, act_crash},
        {"time passes until the operator wants to be called", 1, true, act_tick},
};
const size_t n_actions = ARRAY_LEN(actions);

static const size_t part_sizes[POOLS] = {
        [REQUEST] = sizeof(struct request_part), [JOBS] = sizeof(struct jobs_part),
        [PODS] = sizeof(struct pods_part),       [MAPS] = sizeof(struct maps_part),
        [PRODUCT] = sizeof(struct product_part), [HIDDEN] = sizeof(struct hidden_part)};

/* ---- parts */

uint16_t part_number(struct model *m, unsigned pool, const void *record)
{
        uint32_t number = pool_intern(&m->pools[pool], record, NULL);

        if (number > UINT16_MAX) {
                model_wrong(m, "there are more forms of part %u than can be numbered", pool);
                return 0;
        }
        return (uint16_t)number;
}

/* What has changed is shown again, whatever was forgotten of it. */
static struct pods_part pods_shown(const struct pods_part *old, const struct pods_part *new)
{
        struct pods_part was = *old, is = *new;

        for (size_t i = 0; i < PODS_MAX && is.v[i].uid; i++) {
                const struct pod *before = pod_by_uid(&was, is.v[i].uid);

                if (!before || memcmp(before, &is.v[i], sizeof(*before)) != 0)
                        is.v[i].forgotten = 0;
        }
        return is;
}

static struct maps_part maps_shown(const struct maps_part *old, const struct maps_part *new)
{
        struct maps_part is = *new;

        if (memcmp(&old->status, &is.status, sizeof(is.status)) != 0)
                is.forgotten[0] = 0;
        if (memcmp(&old->data, &is.data, sizeof(is.data)) != 0)
                is.forgotten[1] = 0;
        return is;
}

void part_change(struct model *m, struct state *s, enum part which, const void *record)
{
        struct pods_part pods;
        struct maps_part maps;
        uint16_t number;

        if (which == PODS) {
                pods = pods_shown(&PART(m, s, pods_part, PODS), record);
                record = &pods;
        } else if (which == MAPS) {
                maps = maps_shown(&PART(m, s, maps_part, MAPS), record);
                record = &maps;
        }
        number = part_number(m, which, record);
        if (number == s->part[which])
                return;
        if (!m->scenario->lagging)
                control_deliver(m, s, which);
        s->part[which] = number;
}

const struct job *job_by_uid(const struct jobs_part *jobs, uint8_t uid)
{
        for (size_t i = 0; i < JOBS_MAX && jobs->v[i].uid; i++)
                if (jobs->v[i].uid == uid)
                        return &jobs->v[i];
        return NULL;
}

struct pod *pod_by_uid(struct pods_part *pods, uint8_t uid)
{
        for (size_t i = 0; i < PODS_MAX && pods->v[i].uid; i++)
                if (pods->v[i].uid == uid)
                        return &pods->v[i];
        return NULL;
}

void job_remove(struct jobs_part *jobs, uint8_t uid)
{
        size_t n = 0;

        for (size_t i = 0; i < JOBS_MAX; i++)
                if (jobs->v[i].uid && jobs->v[i].uid != uid)
                        jobs->v[n++] = jobs->v[i];
        for (; n < JOBS_MAX; n++)
                jobs->v[n] = (struct job){0};
}

void pod_remove(struct pods_part *pods, uint8_t uid)
{
        size_t n = 0;

        for (size_t i = 0; i < PODS_MAX; i++)
                if (pods->v[i].uid && pods->v[i].uid != uid)
                        pods->v[n++] = pods->v[i];
        for (; n < PODS_MAX; n++)
                pods->v[n] = (struct pod){0};
}

/* ---- texts */

uint8_t name_number(struct model *m, const char *name)
{
        size_t i = 0;

        while (i < m->n_names && !streq(m->names[i], name))
                i++;
        if (i == NAMES_MAX) {
                model_wrong(m, "the controller makes up one name after another");
                return 0;
        }
        if (i == m->n_names)
                m->names[m->n_names++] = arena_strdup(&m->texts, name);
        return (uint8_t)i;
}

static uint8_t index_of(const char *const *words, size_t n, const char *word)
{
        for (size_t i = 0; i < n; i++)
                if (streq(words[i], word))
                        return (uint8_t)i;
        return 0;
}

static struct facts read_facts(struct model *m, const struct json *status)
{
        static const char *const outcomes[] = {"", "Succeeded", "Failed"};
        const struct subject *x = m->subject;
        const struct json *run = json_at(status, "run");
        const char *state = json_str(status, x->state);
        struct facts f = {.state = index_of(x->states, x->n_states, state),
                          .outcome = index_of(outcomes, ARRAY_LEN(outcomes), json_str(run, "outcome")),
                          .attempt = (uint8_t)json_int(run, "attempt", 0),
                          .cancelled = streq(json_str(run, "reason"), "Cancelled"),
                          .reason = json_str(run, "reason") != NULL,
                          .timed_out = streq(json_str(run, "reason"), "DeadlineExceeded"),
                          .failed = streq(state, "Failed"),
                          .retries = json_int(run, "retries", 0),
                          .observed = json_int(status, "observedGeneration", 0)};

        f.job = json_str(run, "job") ? name_number(m, json_str(run, "job")) : UINT8_MAX;
        json_foreach (c, json_at(status, "conditions")) {
                if (streq(json_str(c, "type"), "Suspended"))
                        f.suspended = streq(json_str(c, "status"), "True");
                if (streq(json_str(c, "type"), "SpecAccepted"))
                        f.refused = streq(json_str(c, "status"), "False");
        }
        x->read_facts(status, &f);
        return f;
}

uint16_t status_number(struct model *m, const struct json *status)
{
        const char *text = json_print(&m->scratch, status);
        const struct facts *known = map_get(&m->status_numbers, str_of(text));
        struct facts f;

        if (known)
                return (uint16_t)((uintptr_t)known - 1);
        f = read_facts(m, status);
        f.text = arena_strdup(&m->texts, text);
        *vec_push(&m->statuses) = f;
        if (m->statuses.n > UINT16_MAX)
                model_wrong(m, "there are more statuses than can be numbered");
        map_put(&m->status_numbers, str_of(f.text), (void *)(uintptr_t)m->statuses.n);
        return (uint16_t)(m->statuses.n - 1);
}

/* ---- the beginning */

static struct schema *schema_of(struct model *m)
{
        _cleanup_(doc_done) struct doc doc = DOC_INIT;
        struct err err = ERR_INIT;
        struct schema *s = NULL;

        if (doc_read_yaml(&doc, m->subject->crd, 1 << 20, &err) == 0)
                s = schema_new(
                        json_path(json_first(json_path(doc.root, "spec.versions")), "schema.openAPIV3Schema"),
                        &err);
        if (!s)
                model_wrong(m, "%s", err.text);
        return s;
}

void model_init(struct model *m, const struct subject *subject, const struct scenario *scenario)
{
        *m = (struct model){.subject = subject, .scenario = scenario, .controller = subject->controller()};
        for (size_t i = 0; i < POOLS; i++)
                pool_init(&m->pools[i], part_sizes[i]);
        control_init(m);
        m->schema = schema_of(m);
        *vec_push(&m->statuses) = (struct facts){.job = UINT8_MAX}; /* none */
}

void model_done(struct model *m)
{
        control_done(m);
        for (size_t i = 0; i < POOLS; i++)
                pool_done(&m->pools[i]);
        pool_done(&m->views);
        schema_free(m->schema);
        vec_done(&m->statuses);
        map_done(&m->status_numbers);
        arena_done(&m->texts);
        arena_done(&m->scratch);
}

struct state model_begin(struct model *m)
{
        static const unsigned char nothing[sizeof(struct pods_part) + sizeof(struct jobs_part)];
        struct request_part r = {.uid = 1, .made = 1, .generation = 1, .spec = m->scenario->spec};
        struct state s = {.dirty = 1};

        for (unsigned i = 0; i < POOLS; i++)
                part_number(m, i, nothing);
        s.part[REQUEST] = part_number(m, REQUEST, &r);
        if (m->subject->make_own)
                m->subject->make_own(m, &m->own);
        if (m->scenario->own_product)
                s.part[PRODUCT] = part_number(m, PRODUCT, &m->own);
        memcpy(s.seen, s.part, sizeof(s.seen));
        memcpy(s.left, m->scenario->left, sizeof(s.left));
        s.place = m->scenario->limited ? TURN_UNKNOWN : TURN_NONE;
        return s;
}
