#include "operator/admission.h"

enum { EXACT = 10, NAMED = 3, ORDER_BYTES = 8, LABELS_MAX = 512 };
#define START_STEP (15 * USEC_PER_SEC)

enum state {
        AWAITED, /* was there before we led, and has not been decided yet */
        IDLE,    /* wants nothing; kept only until all is known */
        WAITING,
        HOLDING,
        YIELDED, /* had a slot, and did not get on */
};

struct ns {
        struct tree waiting; /* by order */
        struct list holding;
        struct tree ends;    /* of those whose end is known */
        size_t n_holding, n; /* n: of all states */
        struct tree_node open;
        bool is_open; /* it has one that waits, and room for it: then it is in admissions.open, by its first */
        char name[];
};

struct entry {
        struct tree_node in_all, in_ns;   /* while it waits */
        struct list link;                 /* of its namespace's holding, or of admissions.idle */
        struct tree_node end_all, end_ns; /* while it holds a slot, and `ends` is known */
        char end_key[ORDER_BYTES + sizeof(void *)];
        struct ns *ns;
        void *of;
        enum state state;
        int64_t priority;
        usec_t since;
        uint64_t told; /* place and sentence, as it last was; 0: it was not */
        usec_t told_start, ends;
        bool yielded; /* since something of it was seen to run */
        char *uid;
        const char *kind; /* in text */
        size_t n_key, n_text;
        char text
                []; /* the order in 8 bytes, the key, NUL, the kind, NUL: what it is sorted by, and found by without the order */
};

struct admissions {
        struct admissions_config cfg;
        struct map entries, namespaces;
        struct tree all;  /* those who wait */
        struct tree open; /* namespaces, each by its first; the first of all is who is next */
        struct tree ends; /* of those who hold a slot, and whose end is known */
        usec_t now;       /* of the last that told its end */
        struct list idle;
        struct entry *telling; /* is being decided, and need not be decided again */
        size_t n_awaited, n_holding;
        bool known, settled;
        size_t depth[ADMISSION_PRIORITY_MAX + 1]; /* waiting, by priority */
        struct metric *waiting_gauge, *held_gauge, *depth_gauges[ADMISSION_PRIORITY_MAX + 1];
        struct arena scratch;
};

/* ---- entries */

static struct str key_of(const struct entry *e)
{
        return str_n(e->text + ORDER_BYTES, e->n_key);
}

/* By which it is found: key, NUL, kind. */
static struct str id_of(const struct entry *e)
{
        return str_n(e->text + ORDER_BYTES, e->n_text - ORDER_BYTES);
}

static struct str order_of(const struct entry *e)
{
        return str_n(e->text, e->n_text);
}

static const char *name_of(const struct entry *e)
{
        const char *key = key_of(e).p, *slash = strchr(key, '/');

        return slash ? slash + 1 : key;
}

/* The sooner, the smaller. */
static void put_time(char out[ORDER_BYTES], usec_t time)
{
        for (size_t i = ORDER_BYTES; i--; time >>= 8)
                out[i] = (char)(time & 0xff);
}

static void set_order(struct entry *e)
{
        put_time(e->text, usec_add(e->since,
                                   (usec_t)(ADMISSION_PRIORITY_MAX - e->priority) * ADMISSION_PRIORITY_STEP));
}

static struct ns *ns_get(struct admissions *s, struct str name)
{
        struct ns *ns = map_get(&s->namespaces, name);

        if (ns)
                return ns;
        ns = xcalloc(1, sizeof(*ns) + name.n + 1);
        memcpy(ns->name, name.p, name.n);
        list_init(&ns->holding);
        map_put(&s->namespaces, str_of(ns->name), ns);
        return ns;
}

static struct entry *entry_new(struct admissions *s, const struct admission_id *id)
{
        size_t kind = strlen(id->kind), n_text = ORDER_BYTES + id->key.n + 1 + kind;
        struct entry *e = xcalloc(1, sizeof(*e) + n_text + 1);
        struct str rest = id->key;

        e->of = id->of;
        e->uid = xstrdup(id->uid);
        e->n_key = id->key.n;
        e->n_text = n_text;
        memcpy(e->text + ORDER_BYTES, id->key.p, id->key.n);
        memcpy(e->text + ORDER_BYTES + id->key.n + 1, id->kind, kind);
        e->kind = e->text + ORDER_BYTES + id->key.n + 1;
        e->state = IDLE;
        list_init(&e->link);
        list_append(&s->idle, &e->link);
        e->ns = ns_get(s, str_split(&rest, '/'));
        e->ns->n++;
        map_put(&s->entries, id_of(e), e);
        return e;
}

static void entry_free(struct entry *e)
{
        free(e->uid);
        free(e);
}

/* ---- states */

static bool has_room(const struct admissions *s)
{
        unsigned limit = s->cfg.limits.runs;

        return !limit || s->n_holding < limit;
}

static bool is_full(const struct admissions *s, const struct ns *ns)
{
        unsigned limit = s->cfg.limits.runs_per_namespace;

        return limit && ns->n_holding >= limit;
}

/* After something of it has changed. */
static void ns_reopen(struct admissions *s, struct ns *ns)
{
        struct tree_node *first = tree_first(&ns->waiting);

        if (ns->is_open)
                tree_remove(&s->open, &ns->open);
        ns->is_open = first && !is_full(s, ns);
        if (ns->is_open)
                tree_add(&s->open, &ns->open, first->key);
}

/* When one that holds a slot probably ends. */
static void set_end(struct admissions *s, struct entry *e, usec_t ends)
{
        const struct str key = {e->end_key, sizeof(e->end_key)};

        if (e->ends) {
                tree_remove(&s->ends, &e->end_all);
                tree_remove(&e->ns->ends, &e->end_ns);
        }
        e->ends = ends;
        if (!ends)
                return;
        put_time(e->end_key, ends);
        memcpy(e->end_key + ORDER_BYTES, &e, sizeof(e)); /* two may end at the same time */
        tree_add(&s->ends, &e->end_all, key);
        tree_add(&e->ns->ends, &e->end_ns, key);
}

static void leave_state(struct admissions *s, struct entry *e)
{
        switch (e->state) {
        case AWAITED:
                s->n_awaited--;
                break;
        case IDLE:
        case YIELDED:
                break;
        case WAITING:
                tree_remove(&s->all, &e->in_all);
                tree_remove(&e->ns->waiting, &e->in_ns);
                s->depth[e->priority]--;
                e->told = e->told_start = 0;
                break;
        case HOLDING:
                set_end(s, e, 0);
                s->n_holding--;
                e->ns->n_holding--;
                break;
        }
        list_remove(&e->link);
}

static void set_state(struct admissions *s, struct entry *e, enum state state)
{
        leave_state(s, e);
        e->state = state;
        switch (state) {
        case AWAITED:
                s->n_awaited++;
                break;
        case IDLE:
                list_append(&s->idle, &e->link);
                break;
        case WAITING:
                set_order(e);
                tree_add(&s->all, &e->in_all, order_of(e));
                tree_add(&e->ns->waiting, &e->in_ns, order_of(e));
                s->depth[e->priority]++;
                break;
        case HOLDING:
                s->n_holding++;
                e->ns->n_holding++;
                list_append(&e->ns->holding, &e->link);
                break;
        case YIELDED:
                break;
        }
        ns_reopen(s, e->ns);
}

static void drop(struct admissions *s, struct entry *e)
{
        struct ns *ns = e->ns;

        leave_state(s, e);
        ns_reopen(s, ns);
        map_remove(&s->entries, id_of(e));
        if (--ns->n == 0) {
                map_remove(&s->namespaces, str_of(ns->name));
                free(ns);
        }
        entry_free(e);
}

/* ---- what is told */

/* Those of the namespace by name, the others by number: what runs elsewhere is nobody's business. */
static void add_holders(const struct admissions *s, const struct ns *ns, bool others, struct buf *b)
{
        size_t elsewhere = others ? s->n_holding - ns->n_holding : 0, named = 0;

        buf_adds(b, " (");
        list_foreach (node, &ns->holding) {
                const struct entry *e = CONTAINER_OF(node, struct entry, link);

                if (named == NAMED)
                        break;
                buf_printf(b, "%s%s/%s", named++ ? ", " : "", e->kind, name_of(e));
        }
        if (ns->n_holding > named)
                buf_printf(b, " and %zu more", ns->n_holding - named);
        if (elsewhere)
                buf_printf(b, "%s%zu in other namespaces", named ? ", " : "", elsewhere);
        buf_addc(b, ')');
}

/* The same for all behind the tenth, whatever ends and begins. */
static const char *reason_of_many(const struct admissions *s, struct arena *a)
{
        unsigned runs = s->cfg.limits.runs, of_ns = s->cfg.limits.runs_per_namespace;

        if (!of_ns)
                return arena_printf(a, "at most %u runs may be under way at once, and others are before it",
                                    runs);
        if (!runs)
                return arena_printf(a, "at most %u " ADMISSION_OF_NAMESPACE ", and others are before it",
                                    of_ns);
        return arena_printf(
                a, "at most %u runs may be under way at once, %u of a namespace, and others are before it",
                runs, of_ns);
}

static const char *reason_of(const struct admissions *s, const struct entry *e, size_t position,
                             struct arena *a)
{
        _cleanup_(buf_done) struct buf b = BUF_INIT(SIZE_MAX);
        bool full = is_full(s, e->ns);

        if (position > EXACT)
                return reason_of_many(s, a);
        if (full)
                buf_printf(&b, "namespace %s has %zu of %u runs under way", e->ns->name, e->ns->n_holding,
                           s->cfg.limits.runs_per_namespace);
        else
                buf_printf(&b, "%zu of %u runs are under way", s->n_holding, s->cfg.limits.runs);
        add_holders(s, e->ns, !full, &b);
        return arena_strndup(a, b.p, b.n);
}

static const struct tree_node *node_of(const struct admissions *s, const struct entry *e)
{
        return s->cfg.limits.runs ? &e->in_all : &e->in_ns;
}

static uint64_t hash_of(size_t position, const char *reason)
{
        return str_hash(str_of(reason)) + str_hash(str_of(admission_position(position))) * 31;
}

/* ---- when it begins */

static usec_t start_of(const struct admissions *s, const struct entry *e, size_t position)
{
        bool of_all = s->cfg.limits.runs;
        unsigned limit = of_all ? s->cfg.limits.runs : s->cfg.limits.runs_per_namespace;
        const struct tree *ends = of_all ? &s->ends : &e->ns->ends;
        size_t held = of_all ? s->n_holding : e->ns->n_holding;
        struct tree_node *node;

        if ((of_all && s->cfg.limits.runs_per_namespace) || position > EXACT || ends->n < held ||
            held < limit)
                return 0;
        node = tree_at(ends, position - 1 + (held - limit));
        if (!node)
                return 0;
        return of_all ? CONTAINER_OF(node, struct entry, end_all)->ends
                      : CONTAINER_OF(node, struct entry, end_ns)->ends;
}

static bool is_news(const struct admissions *s, const struct entry *e, usec_t starts)
{
        usec_t left = usec_sub(starts, s->now), later = usec_sub(starts, e->told_start);

        if (!starts)
                return e->told_start != 0; /* what was told is not so any more */
        if (!e->told_start && left < START_STEP)
                return false;
        return MAX(later, usec_sub(e->told_start, starts)) > MAX(START_STEP, left / 8);
}

/* ---- what follows from a change */

static void again(const struct admissions *s, const struct entry *e)
{
        if (e != s->telling)
                s->cfg.again(e->of, key_of(e));
}

static struct entry *waiting_at(const struct admissions *s, struct tree_node *node)
{
        return s->cfg.limits.runs ? CONTAINER_OF(node, struct entry, in_all)
                                  : CONTAINER_OF(node, struct entry, in_ns);
}

/* Those who are told when they begin. */
static void tell_starts(struct admissions *s, const struct ns *ns)
{
        struct tree_node *node = tree_first(s->cfg.limits.runs ? &s->all : &ns->waiting);

        for (size_t i = 0; node && s->settled && i < EXACT; i++, node = tree_next(node)) {
                const struct entry *e = waiting_at(s, node);

                if (is_news(s, e, start_of(s, e, i + 1)))
                        again(s, e);
        }
}

static void tell_if_moved(struct admissions *s, struct tree_node *node, size_t position)
{
        struct entry *e = waiting_at(s, node);

        if (e->told != hash_of(position, reason_of(s, e, position, &s->scratch)))
                again(s, e);
        arena_reset(&s->scratch, SIZE_MAX);
}

/* One that has come or gone moves those behind it by one place: the first ten, and those who pass a round number. */
static void tell_moved(struct admissions *s, const struct ns *ns)
{
        static const size_t rounds[] = {EXACT, 100, 1000};
        const struct tree *t = s->cfg.limits.runs ? &s->all : &ns->waiting;
        struct tree_node *node = tree_first(t);

        for (size_t i = 0; node && i < EXACT; i++, node = tree_next(node))
                tell_if_moved(s, node, i + 1);
        for (size_t i = 0; i < ARRAY_LEN(rounds) && t->n >= rounds[i]; i++)
                for (size_t at = rounds[i] - 1; at <= rounds[i] && (node = tree_at(t, at)); at++)
                        tell_if_moved(s, node, at + 1);
}

static void admit(struct admissions *s)
{
        struct tree_node *first;

        while (s->settled && has_room(s) && (first = tree_first(&s->open))) {
                struct ns *ns = CONTAINER_OF(first, struct ns, open);
                struct entry *e = CONTAINER_OF(tree_first(&ns->waiting), struct entry, in_ns);

                set_state(s, e, HOLDING);
                again(s, e);
        }
}

/* Nobody is awaited any more: who may begins, and all are told where they are. */
static void settle(struct admissions *s)
{
        s->settled = true;
        while (!list_empty(&s->idle))
                drop(s, CONTAINER_OF(s->idle.next, struct entry, link));
        admit(s);
        for (struct tree_node *node = tree_first(&s->all); node; node = tree_next(node))
                again(s, CONTAINER_OF(node, struct entry, in_all));
}

/* NS is where something has changed. Drops who is idle when all is known for the first time. */
static void go_on(struct admissions *s, const struct ns *ns)
{
        if (s->settled) {
                admit(s);
                tell_moved(s, ns);
        } else if (s->known && !s->n_awaited) {
                settle(s);
        }
}

/* It wants nothing. Before all is known it is kept: it has been heard. */
static void leave(struct admissions *s, struct entry *e)
{
        bool keep = !s->settled;

        set_state(s, e, IDLE);
        go_on(s, e->ns);
        if (!keep)
                drop(s, e);
}

/* ---- what is said */

static struct entry *find(struct admissions *s, const struct admission_id *id)
{
        _cleanup_(buf_done) struct buf b = BUF_INIT(SIZE_MAX);
        struct entry *e;

        buf_addstr(&b, id->key);
        buf_addc(&b, '\0');
        buf_adds(&b, id->kind);
        e = map_get(&s->entries, buf_str(&b));
        if (!e || !id->uid || streq(e->uid, id->uid))
                return e;
        leave(s, e);
        e = map_get(&s->entries, buf_str(&b));
        if (e) {
                free(e->uid);
                e->uid = xstrdup(id->uid);
        }
        return e;
}

void admissions_await(struct admissions *s, const struct admission_id *id)
{
        if (!s->settled && !find(s, id))
                set_state(s, entry_new(s, id), AWAITED);
}

void admissions_all_known(struct admissions *s)
{
        s->known = true;
        if (!s->settled && !s->n_awaited)
                settle(s);
}

bool admissions_settled(const struct admissions *s)
{
        return s->settled;
}

static void wait_in_line(struct admissions *s, struct entry *e, const struct admission_wish *wish)
{
        int64_t priority = MIN(MAX(wish->priority, (int64_t)0), (int64_t)ADMISSION_PRIORITY_MAX);

        if (e->state == HOLDING || /* it was let in, and has not begun yet */
            (e->state == WAITING && e->priority == priority && e->since == wish->since))
                return;
        if (e->state == WAITING)
                set_state(s, e, IDLE);
        e->priority = priority;
        e->since = wish->since;
        set_state(s, e, WAITING);
        go_on(s, e->ns);
}

static void hold(struct admissions *s, struct entry *e)
{
        if (e->state == HOLDING)
                return;
        set_state(s, e, HOLDING);
        go_on(s, e->ns);
}

void admissions_tell(struct admissions *s, const struct admission_id *id, const struct admission_wish *wish)
{
        struct entry *e = find(s, id);

        if (wish->stand == ADMISSION_NONE && !e && s->settled)
                return;
        s->telling = e = e ? e : entry_new(s, id);
        if (wish->stand == ADMISSION_NONE) {
                leave(s, e);
        } else if (wish->stand == ADMISSION_WAITS) {
                wait_in_line(s, e, wish);
        } else {
                hold(s, e);
                e->yielded = false;
                s->now = wish->now;
                if (e->ends != wish->ends) {
                        set_end(s, e, wish->ends);
                        tell_starts(s, e->ns);
                }
        }
        s->telling = NULL;
}

void admissions_heard(struct admissions *s, const struct admission_id *id)
{
        struct entry *e = find(s, id);

        if (e && e->state == AWAITED)
                leave(s, e);
        else if (!e && !s->settled)
                entry_new(s, id);
}

void admissions_forget(struct admissions *s, const struct admission_id *id)
{
        struct entry *e = find(s, id);

        if (e)
                leave(s, e);
        e = find(s, id); /* kept before all is known, but nobody asks for it any more */
        if (e)
                drop(s, e);
}

void admissions_withdraw(struct admissions *s, const struct admission_id *id)
{
        struct entry *e = find(s, id);

        if (e && e->state == AWAITED)
                hold(s, e);
        else if (e && e->state != HOLDING)
                leave(s, e);
}

void admissions_yield(struct admissions *s, const struct admission_id *id)
{
        struct entry *e = find(s, id);

        if (!e || e->state != HOLDING)
                return;
        e->yielded = true;
        set_state(s, e, YIELDED);
        go_on(s, e->ns);
}

bool admissions_yielded(struct admissions *s, const struct admission_id *id)
{
        const struct entry *e = find(s, id);

        return e && e->yielded;
}

/* ---- who is where */

struct admission admissions_place(struct admissions *s, const struct admission_id *id, struct arena *a)
{
        struct entry *e = find(s, id);
        struct admission place = {.admitted = e && e->state == HOLDING};
        uint64_t told;

        if (!e || e->state != WAITING || !s->settled)
                return place;
        place.position = tree_rank(node_of(s, e)) + 1;
        place.reason = reason_of(s, e, place.position, a);
        place.starts = start_of(s, e, place.position);
        told = hash_of(place.position, place.reason);
        if (told == e->told && !is_news(s, e, place.starts))
                place.starts = e->told_start;
        e->told = told;
        e->told_start = place.starts;
        return place;
}

size_t admissions_queue(const struct admissions *s, const char *ns, struct admission_queued *ret, size_t max,
                        struct arena *a)
{
        size_t n = 0;

        for (struct tree_node *node = tree_first(&s->all); node && n < max; node = tree_next(node)) {
                const struct entry *e = CONTAINER_OF(node, struct entry, in_all);
                size_t position;

                if (ns && !streq(e->ns->name, ns))
                        continue;
                position = tree_rank(node_of(s, e)) + 1;
                ret[n++] = (struct admission_queued){
                        .kind = arena_strdup(a, e->kind),
                        .ns = arena_strdup(a, e->ns->name),
                        .name = arena_strdup(a, name_of(e)),
                        .priority = e->priority,
                        .since = e->since,
                        .starts = s->settled ? start_of(s, e, position) : 0,
                        .position = position,
                        .reason = s->settled ? reason_of(s, e, position, a)
                                             : "it is not known yet which runs are under way",
                };
        }
        return n;
}

size_t admissions_waiting(const struct admissions *s)
{
        return s->all.n;
}

size_t admissions_held(const struct admissions *s)
{
        return s->n_holding;
}

/* ---- life */

static const char *const priority_label[] = {"priority", NULL};
static const struct metric_family waiting_family = {
        "sonde_admission_waiting", "Requests that wait to begin.", METRIC_GAUGE, NULL, NULL, 0};
static const struct metric_family held_family = {
        "sonde_admission_held", "Runs that are under way, or about to begin.", METRIC_GAUGE, NULL, NULL, 0};
static const struct metric_family depth_family = {"dprofiler_queue_depth",
                                                  "Requests that wait to begin, by their priority.",
                                                  METRIC_GAUGE,
                                                  priority_label,
                                                  NULL,
                                                  0};

static const char *const quota_labels[] = {"namespace", "resource", NULL};
static const struct metric_family used_family = {
        "dprofiler_quota_used",
        "Runs of the namespace that are under way, or about to begin, where their number is limited.",
        METRIC_GAUGE, quota_labels};
static const struct metric_family limit_family = {"dprofiler_quota_limit",
                                                  "How many runs of the namespace may be under way at once.",
                                                  METRIC_GAUGE, quota_labels};

static void write_quota(const struct admissions *s, const struct metric_family *f, struct buf *out)
{
        _cleanup_(buf_done) struct buf labels = BUF_INIT(LABELS_MAX);
        size_t n = 0;
        struct ns *ns;

        metrics_write_head(out, f);
        map_foreach (i, &s->namespaces, ns) {
                if (n++ >= METRICS_SERIES_MAX)
                        break;
                buf_clear(&labels);
                metrics_add_label(&labels, "namespace", ns->name);
                metrics_add_label(&labels, "resource", "runs");
                metrics_write_sample(
                        out, f, buf_str(&labels),
                        (double)(f == &used_family ? ns->n_holding : s->cfg.limits.runs_per_namespace));
        }
}

/* Namespaces come and go. */
static void on_write(void *arg, struct buf *out)
{
        const struct admissions *s = arg;

        if (!s->cfg.limits.runs_per_namespace)
                return;
        write_quota(s, &used_family, out);
        write_quota(s, &limit_family, out);
}

static void on_collect(void *arg)
{
        struct admissions *s = arg;

        metric_set(s->waiting_gauge, (double)s->all.n);
        metric_set(s->held_gauge, (double)s->n_holding);
        for (size_t i = 0; i < ARRAY_LEN(s->depth); i++)
                metric_set(s->depth_gauges[i], (double)s->depth[i]);
}

static void init_metrics(struct admissions *s, struct metrics *m)
{
        static const char *const names[] = {"0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10"};

        s->waiting_gauge = metrics_get(m, &waiting_family, NULL);
        s->held_gauge = metrics_get(m, &held_family, NULL);
        for (size_t i = 0; i < ARRAY_LEN(s->depth); i++)
                s->depth_gauges[i] = metrics_get(m, &depth_family, &names[i]);
        metrics_on_collect(m, on_collect, s);
        metrics_on_write(m, on_write, s);
}

struct admissions *admissions_new(const struct admissions_config *config)
{
        struct admissions *s = xcalloc(1, sizeof(*s));

        s->cfg = *config;
        list_init(&s->idle);
        if (config->metrics)
                init_metrics(s, config->metrics);
        return s;
}

void admissions_reset(struct admissions *s)
{
        struct entry *e;
        struct ns *ns;

        map_foreach (i, &s->entries, e)
                entry_free(e);
        map_foreach (i, &s->namespaces, ns)
                free(ns);
        map_done(&s->entries);
        map_done(&s->namespaces);
        s->entries = s->namespaces = (struct map)MAP_INIT;
        s->all = s->open = s->ends = (struct tree)TREE_INIT;
        list_init(&s->idle);
        s->n_awaited = s->n_holding = 0;
        s->known = s->settled = false;
        memset(s->depth, 0, sizeof(s->depth));
}

void admissions_free(struct admissions *s)
{
        if (!s)
                return;
        if (s->cfg.metrics) {
                metrics_off_collect(s->cfg.metrics, on_collect, s);
                metrics_off_write(s->cfg.metrics, on_write, s);
        }
        admissions_reset(s);
        arena_done(&s->scratch);
        free(s);
}
