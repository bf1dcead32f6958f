/*
 * The status ConfigMap: reading it, claiming it, states and notes; and what a failure means.
 *
 * After every read what is there is compared with what should be there. So it does not matter how a write ended whose
 * answer was lost: if it was carried out, there is nothing left to do.
 */
#include "run/relay_internal.h"

#define REQUEST_TIMEOUT (15 * USEC_PER_SEC) /* above the rescan's: its timer then never wakes anybody */
#define BACKOFF_FIRST   (200 * USEC_PER_MS)
#define BACKOFF_MAX     (10 * USEC_PER_SEC)
#define BARRED_FOR      (10 * USEC_PER_SEC) /* RBAC lags */
#define BARRED_AGAIN    (500 * USEC_PER_MS)
#define API_LOST_FOR    (600 * USEC_PER_SEC)

const struct json_limits RELAY_MAP_LIMITS = {.bytes = 8 << 20, .depth = 32, .nodes = 10000};

static usec_t now(const struct relay *r)
{
        return loop_now(r->config.loop);
}

/* ---- what is there */

static void overtaken(struct relay *r, const struct run_fence *seen)
{
        LOG_INFO(r->config.log, "A newer attempt has taken over", F_UINT("attempt", seen->attempt),
                 F_STR("pod", seen->pod), F_UINT("ours", r->claim));
        relay_finish(r, 0);
}

static bool is_ours(const struct relay *r, const struct run_fence *seen)
{
        return streq(seen->pod, r->config.pod_uid);
}

static bool has_problem(const struct relay *r)
{
        for (size_t i = 0; i < ABOUT_MAX_; i++)
                if (r->problems[i])
                        return true;
        return false;
}

/* One that was made again has lost it. */
static void look_at_track(struct relay *r, const struct json *data)
{
        r->track_size = json_text(json_at(data, RUN_KEY_TRACK)).n;
        if (!r->track_size && r->track.n)
                r->track_changed = true;
}

/* Our own writes, of this relay or of one before it in this pod. */
static void go_on(struct relay *r, const struct run_fence *seen, const struct json *data)
{
        const char *problem = json_str_or(data, RUN_KEY_PROBLEM, "");

        if (run_state_terminal(seen->state)) {
                LOG_INFO(r->config.log, "The end is recorded", F_STR("state", run_state_name(seen->state)));
                relay_finish(r, 0);
                return;
        }
        relay_files_restore(r, data);
        look_at_track(r, data);
        if (!r->adopted)
                r->state = seen->state;
        r->fence = *seen;
        r->claim = seen->attempt;
        r->claimed = true;
        r->dirty = seen->state != r->state || !streq(json_str(data, RUN_KEY_STATUS), r->status) ||
                   (r->track.n && !r->track_size);
        if (has_problem(r) != (problem[0] != '\0'))
                r->note_due = true;
}

/* Another pod of this Job, or of a later one, has done the work: that is never wiped by one that comes after it. */
static bool is_done(const struct relay *r, const struct run_fence *seen)
{
        return seen->state == RUN_SUCCEEDED && r->config.attempt <= seen->attempt;
}

/*
 * Somebody else's, or nobody's yet: the next attempt is ours, unless we had one and a newer has come. A claim that was
 * ours and is another pod's now has never arrived: nothing follows a pod's state within its attempt but its own.
 */
static void claim(struct relay *r, const struct run_fence *seen, const struct json *data)
{
        struct run_fence next = {.sequence = 1, .attempt = MAX(r->config.attempt, r->claim)};

        memcpy(next.pod, r->config.pod_uid, strlen(r->config.pod_uid) + 1);
        if (seen->pod[0])
                next.attempt = MAX(next.attempt, seen->attempt + 1);
        if (next.attempt == seen->attempt)
                next.sequence = seen->sequence + 1;
        if (is_done(r, seen)) {
                LOG_INFO(r->config.log, "The run has succeeded already", F_UINT("attempt", seen->attempt),
                         F_STR("pod", seen->pod));
                relay_finish(r, 0);
                return;
        }
        if ((r->claim && seen->attempt > r->claim) || !run_fence_follows(seen, &next)) {
                overtaken(r, seen);
                return;
        }
        if (next.attempt != r->claim)
                relay_claim_write(r, next.attempt);
        r->claim = next.attempt;
        r->claimed = false;
        r->fence = *seen;
        r->next = next;
        r->track_size = json_text(json_at(data, RUN_KEY_TRACK)).n;
        r->track_changed |= r->track.n > 0; /* what is there is not ours */
}

static int read_map(struct relay *r, struct str body, struct run_fence *ret, struct err *err)
{
        doc_done(&r->present);
        if (doc_parse(&r->present, body, &RELAY_MAP_LIMITS, err) < 0 ||
            run_fence_read(json_at(r->present.root, "data"), ret, err) < 0)
                return err_wrap(err, "ConfigMap %s/%s", r->config.ns, r->config.status_map);
        return 0;
}

static int read_answered(struct relay *r, struct str body, struct err *err)
{
        struct run_fence seen;
        const struct json *data;

        if (read_map(r, body, &seen, err) < 0)
                return -1;
        r->known = true;
        data = json_at(r->present.root, "data");
        if (is_ours(r, &seen)) {
                go_on(r, &seen, data);
                doc_done(&r->present);
        } else {
                claim(r, &seen, data);
        }
        if (r->over || r->adopted)
                return 0;
        r->adopted = true;
        relay_files_begin(r);
        return 0;
}

/* ---- states */

static struct json *member(struct arena *a, struct json *set, const char *key, const char *text)
{
        return json_set(a, set, key, json_string(a, text));
}

static const char *problem_text(const struct relay *r, struct arena *a)
{
        const char *all = "";

        for (size_t i = 0; i < ABOUT_MAX_; i++)
                if (r->problems[i])
                        all = arena_join(a, all, all[0] ? "; " : "", r->problems[i]);
        return all;
}

static void add_news(struct relay *r, struct arena *a, struct json *set)
{
        char time[TIME_TEXT_MAX];

        member(a, set, RUN_KEY_HEARTBEAT, time_format(loop_wall(r->config.loop), time));
        member(a, set, RUN_KEY_PROBLEM, problem_text(r, a));
}

static size_t values_size(const struct json *set)
{
        size_t n = 256; /* the fence */

        json_foreach (m, set)
                n += m->key_len + m->len;
        return n;
}

/*
 * Left out when there is no room: how a run came to where it is matters less than where it is. An old one goes then: it
 * would say what is no longer so.
 */
static void add_track(struct relay *r, struct arena *a, struct json *set)
{
        const char *text = r->track_changed ? json_print(a, track_json(a, &r->track)) : NULL;
        size_t used = values_size(set) + RELAY_EXIT_ROOM;

        r->next_track_size = r->track_size;
        if (!text)
                return;
        if (used + strlen(text) > RELAY_STATUS_MAP_MAX) {
                LOG_DEBUG(r->config.log, "No room for the track", F_UINT("bytes", strlen(text)));
                json_set(a, set, RUN_KEY_TRACK, json_null(a));
                r->next_track_size = 0;
                return;
        }
        member(a, set, RUN_KEY_TRACK, text);
        r->next_track_size = strlen(text);
        r->track_changed = false;
}

/* With as much of the output's tail as there is room for. A byte of it becomes six at most. */
static void add_exit(const struct relay *r, struct arena *a, struct json *set)
{
        size_t used = values_size(set) + (json_at(set, RUN_KEY_TRACK) ? 0 : r->track_size);
        struct run_exit e = r->exit;
        const char *text;

        for (;;) {
                size_t n, cut;

                text = json_print(a, run_exit_json(a, &e));
                n = used + strlen(text);
                if (n <= RELAY_STATUS_MAP_MAX || !e.tail.n)
                        break;
                cut = MIN((n - RELAY_STATUS_MAP_MAX) / 6 + 1, e.tail.n);
                while (cut < e.tail.n && (e.tail.p[cut] & 0xC0) == 0x80)
                        cut++;
                e.tail = str_n(e.tail.p + cut, e.tail.n - cut);
        }
        member(a, set, RUN_KEY_EXIT, text);
}

/* A new attempt begins with nothing of the one before it. */
static void clear_others(struct arena *a, struct json *set)
{
        static const char *const keys[] = {RUN_KEY_STATUS, RUN_KEY_TRACK, RUN_KEY_EXIT, RUN_KEY_HEARTBEAT,
                                           RUN_KEY_PROBLEM};

        for (size_t i = 0; i < ARRAY_LEN(keys); i++)
                if (!json_at(set, keys[i]))
                        json_set(a, set, keys[i], json_null(a));
}

/* What may have to be removed. Once the ConfigMap is ours that is the track alone. */
static const struct json *present(const struct relay *r, struct arena *a)
{
        struct json *ours;

        if (!r->claimed)
                return json_at(r->present.root, "data");
        ours = json_object(a);
        if (r->track_size)
                json_set(a, ours, RUN_KEY_TRACK, json_truth(a, true));
        return ours;
}

void relay_send_state(struct relay *r, enum run_state state)
{
        struct arena *a = &r->scratch;
        struct json *set;

        arena_reset(a, RUN_STATUS_FILE_MAX);
        set = json_object(a);
        member(a, set, RUN_KEY_STATUS, r->status);
        add_news(r, a, set);
        add_track(r, a, set);
        if (run_state_terminal(state))
                add_exit(r, a, set);
        if (r->claimed) {
                r->next = r->fence;
                r->next.sequence++;
        } else {
                clear_others(a, set);
        }
        r->next.state = state;
        set = run_fence_patch(a, &r->fence, &r->next, present(r, a), set);
        r->dirty = r->note_due = false;
        relay_send(r, RELAY_STATE, r->config.status_map, KUBE_PATCH_JSON, str_of(json_print(a, set)));
}

static void state_answered(struct relay *r)
{
        r->fence = r->next;
        r->track_size = r->next_track_size;
        if (!r->claimed)
                LOG_INFO(r->config.log, "Claimed the run", F_UINT("attempt", r->fence.attempt));
        r->claimed = true;
        doc_done(&r->present);
        if (!run_state_terminal(r->fence.state))
                return;
        LOG_INFO(r->config.log, "Recorded the end", F_STR("state", run_state_name(r->fence.state)));
        relay_finish(r, 0);
}

/* ---- failures */

static void unsend(struct relay *r)
{
        r->dirty |= r->op == RELAY_STATE;
        r->track_changed |= r->op == RELAY_STATE;
        r->note_due |= r->op == RELAY_NOTE;
        if (r->op == RELAY_DATA)
                relay_data_unsend(r);
}

static void read_again(struct relay *r)
{
        if (r->op == RELAY_DATA || r->op == RELAY_DATA_READ)
                r->data.known = false;
        else
                r->known = false;
}

static void give_up(struct relay *r, const char *why, const struct err *err)
{
        LOG_ERROR(r->config.log, "Giving up", F_STR("why", why), F_ERR(err));
        relay_finish(r, 1);
}

static void again_after(struct relay *r, usec_t delay)
{
        r->failures++;
        timer_after(&r->backoff, rng_jitter(loop_rng(r->config.loop), delay, 20));
}

/*
 * Before the first look at the ConfigMap there is nothing to lose. Later 403 and 404 are failures like others: the
 * operator makes a ConfigMap again that somebody deleted, and gives rights back; it may itself be away for a while.
 */
static void barred(struct relay *r, const struct err *err)
{
        if (!r->barred_since)
                r->barred_since = now(r);
        if (err->code == E_NOT_FOUND)
                give_up(r, "the ConfigMap is gone, and with it what this run was for", err);
        else if (now(r) - r->barred_since >= BARRED_FOR)
                give_up(r, "the ConfigMap may not be read: check the Role of this run", err);
        else
                again_after(r, BARRED_AGAIN);
}

static void failed(struct relay *r, const struct err *err)
{
        usec_t delay = MIN(BACKOFF_FIRST << MIN(r->failures, 6u), BACKOFF_MAX);

        unsend(r);
        if (!r->failing_since)
                r->failing_since = now(r);
        if (err->code != E_FORBIDDEN && err->code != E_NOT_FOUND)
                r->barred_since = 0;
        if (r->failures == 0)
                LOG_INFO(r->config.log, "A request failed, trying again", F_ERR(err));
        switch (err->code) {
        case E_NOT_FOUND:
        case E_FORBIDDEN:
                if (err->code == E_NOT_FOUND)
                        read_again(r);
                if (r->adopted)
                        break;
                barred(r, err);
                return;
        case E_CONNECT: /* certainly not carried out: the same again */
        case E_TLS:
        case E_BUSY:
        case E_AUTH:
        case E_CONFIG:
                break;
        case E_FENCED:
        case E_CONFLICT:
                delay = r->failures ? delay : 0; /* the first time there is something to be learned at once */
                read_again(r);
                break;
        case E_TOO_LARGE:
        case E_REFUSED:
                if (r->op == RELAY_DATA && relay_data_refused(r, err))
                        return;
                read_again(r);
                break;
        default: /* it may have been carried out */
                read_again(r);
        }
        if (now(r) - r->failing_since >= API_LOST_FOR)
                give_up(r, "no success for 10 minutes", err);
        else
                again_after(r, delay);
}

/* ---- requests and their answers */

static int succeeded(struct relay *r, struct str body, struct err *err)
{
        switch (r->op) {
        case RELAY_READ:
                return read_answered(r, body, err);
        case RELAY_DATA_READ:
                return relay_data_read_answered(r, body, err);
        case RELAY_STATE:
                state_answered(r);
                break;
        case RELAY_DATA:
                relay_data_answered(r, body);
                break;
        case RELAY_NOTE:
                break;
        }
        /* A read alone is no success: the write after it may fail for ever. */
        r->failures = 0;
        r->failing_since = r->barred_since = 0;
        if (r->op == RELAY_DATA)
                return 0;
        r->beat_due = false;
        if (!r->over)
                timer_after(&r->beat, RELAY_BEAT);
        return 0;
}

static void answered(void *arg, const struct kube_answer *answer, const struct err *err)
{
        struct relay *r = arg;
        struct err mine = ERR_INIT;

        r->call = NULL;
        if (!err && succeeded(r, answer->body, &mine) < 0)
                err = &mine;
        if (err)
                failed(r, err);
        relay_pump(r);
}

void relay_send(struct relay *r, enum relay_op op, const char *map, enum kube_verb verb, struct str body)
{
        struct kube_request q = {
                .verb = verb,
                .type = &KUBE_CONFIGMAP,
                .ns = r->config.ns,
                .name = map,
                .body = body,
                .field_manager = verb == KUBE_GET ? NULL : "sonde-relay",
                .metadata_only = verb != KUBE_GET, /* nobody looks at what a patch made */
                .timeout = REQUEST_TIMEOUT,
        };

        r->op = op;
        r->call = kube_send(r->config.kube, &q, answered, r);
}

void relay_send_read(struct relay *r)
{
        relay_send(r, RELAY_READ, r->config.status_map, KUBE_GET, STR_NULL);
}

void relay_send_note(struct relay *r)
{
        struct arena *a = &r->scratch;
        struct json *set;

        arena_reset(a, RUN_STATUS_FILE_MAX);
        set = json_object(a);
        add_news(r, a, set);
        r->note_due = false;
        set = run_fence_note(a, &r->fence, set);
        relay_send(r, RELAY_NOTE, r->config.status_map, KUBE_PATCH_JSON, str_of(json_print(a, set)));
}
