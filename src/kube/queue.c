#include "kube/queue.h"

/*
 * A key is one block of memory: struct item with the text behind it. Which of the three heaps it is on is its state:
 * `waiting` by the time it becomes ready, `ready` by priority and then by the order of becoming ready, `running` by
 * the time it was taken. An add to a running item is remembered in next_*; without one, and without a retry, the item
 * is freed when it is done, and its failures with it. So memory is bounded by the keys that still have work to do.
 */

#define BACKOFF_FIRST (5 * USEC_PER_MS)
#define BACKOFF_MAX   (1000 * USEC_PER_SEC)
#define NEVER         USEC_MAX

enum { JITTER_PERCENT = 10, SEQUENCE_BITS = 62 };

struct item {
        struct heap_node node;
        struct heap *state;
        usec_t next_at; /* running: when to become ready afterwards, or NEVER */
        usec_t since;   /* ready: when it became so */
        unsigned failures;
        uint32_t len;
        uint8_t priority, next_priority;
        char key[];
};

struct queue {
        struct loop *loop;
        struct queue_config config;
        char *name;
        struct timer timer;
        struct map items;
        struct heap waiting, ready, running;
        uint64_t sequence;
        struct metric *depth[QUEUE_PRIORITIES_];
        struct metric *adds, *retries, *queued, *worked, *unfinished, *longest; /* NULL without metrics */
};

/* ---- metrics, named and bucketed as client-go's */

static const char *const labels[] = {"name", "controller", NULL};
static const char *const depth_labels[] = {"name", "controller", "priority", NULL};
static const char *const priority_names[] = {
        [QUEUE_LOW] = "-100", [QUEUE_NORMAL] = "0", [QUEUE_HIGH] = "100"};
static const double buckets[] = {1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1, 10, 100, 1000};

static const struct metric_family depth_family = {"workqueue_depth",
                                                  "Current depth of workqueue by workqueue and priority",
                                                  METRIC_GAUGE, depth_labels};
static const struct metric_family adds_family = {
        "workqueue_adds_total", "Total number of adds handled by workqueue", METRIC_COUNTER, labels};
static const struct metric_family retries_family = {
        "workqueue_retries_total", "Total number of retries handled by workqueue", METRIC_COUNTER, labels};
static const struct metric_family queued_family = {
        "workqueue_queue_duration_seconds",
        "How long in seconds an item stays in workqueue before being requested",
        METRIC_HISTOGRAM,
        labels,
        buckets,
        ARRAY_LEN(buckets),
};
static const struct metric_family worked_family = {
        "workqueue_work_duration_seconds",
        "How long in seconds processing an item from workqueue takes.",
        METRIC_HISTOGRAM,
        labels,
        buckets,
        ARRAY_LEN(buckets),
};
static const struct metric_family unfinished_family = {
        "workqueue_unfinished_work_seconds",
        "How many seconds of work has been done that is in progress and hasn't been observed by "
        "work_duration. "
        "Large values indicate stuck threads. One can deduce the number of stuck threads by "
        "observing the rate at "
        "which this increases.",
        METRIC_GAUGE,
        labels,
};
static const struct metric_family longest_family = {
        "workqueue_longest_running_processor_seconds",
        "How many seconds has the longest running processor for workqueue been running.",
        METRIC_GAUGE,
        labels,
};

static usec_t now(const struct queue *q)
{
        return clock_boot(loop_clock(q->loop));
}

static double seconds(usec_t usec)
{
        return (double)usec / (double)USEC_PER_SEC;
}

static void count(struct metric *m, double by)
{
        if (m)
                metric_add(m, by);
}

static void observe(struct metric *m, usec_t since, usec_t until)
{
        if (m)
                metric_observe(m, seconds(usec_sub(until, since)));
}

static void collect(void *arg)
{
        struct queue *q = arg;
        const struct heap_node *first = heap_first(&q->running);
        usec_t at = now(q), sum = 0;

        for (size_t i = 0; i < q->running.n; i++)
                sum += usec_sub(at, q->running.slots[i].order);
        metric_set(q->unfinished, seconds(sum));
        metric_set(q->longest, first ? seconds(usec_sub(at, first->order)) : 0);
}

static void make_metrics(struct queue *q, struct metrics *m)
{
        const char *const values[] = {q->name, q->name};

        for (size_t i = 0; i < QUEUE_PRIORITIES_; i++)
                q->depth[i] = metrics_get(m, &depth_family,
                                          (const char *const[]){q->name, q->name, priority_names[i]});
        q->adds = metrics_get(m, &adds_family, values);
        q->retries = metrics_get(m, &retries_family, values);
        q->queued = metrics_get(m, &queued_family, values);
        q->worked = metrics_get(m, &worked_family, values);
        q->unfinished = metrics_get(m, &unfinished_family, values);
        q->longest = metrics_get(m, &longest_family, values);
        metrics_on_collect(m, collect, q);
}

/* ---- items */

static struct str key_of(const struct item *item)
{
        return str_n(item->key, item->len);
}

static struct item *item_of(struct heap_node *node)
{
        return node ? CONTAINER_OF(node, struct item, node) : NULL;
}

static struct item *item_new(struct queue *q, struct str key, enum queue_priority priority)
{
        struct item *item = xmalloc(sizeof(*item) + key.n + 1);

        *item = (struct item){.next_at = NEVER, .len = (uint32_t)key.n, .priority = (uint8_t)priority};
        memcpy(item->key, key.p, key.n);
        item->key[key.n] = '\0';
        map_put(&q->items, key_of(item), item);
        return item;
}

/* The timer stands at the first waiting item, and is off without one: an idle queue wakes nobody. */
static void set_timer(struct queue *q)
{
        const struct heap_node *first = heap_first(&q->waiting);

        if (!first)
                timer_cancel(&q->timer);
        else if (!timer_pending(&q->timer) || q->timer.node.order != first->order)
                timer_at(&q->timer, first->order);
}

static void leave(struct queue *q, struct item *item)
{
        struct heap *state = item->state;

        if (!state)
                return;
        item->state = NULL;
        heap_remove(state, &item->node);
        if (state == &q->ready)
                count(q->depth[item->priority], -1);
        else if (state == &q->waiting)
                set_timer(q);
}

static void item_drop(struct queue *q, struct item *item)
{
        leave(q, item);
        map_remove(&q->items, key_of(item));
        free(item);
}

/* ---- from state to state */

static void enter(struct item *item, struct heap *state, uint64_t order)
{
        item->state = state;
        heap_put(state, &item->node, order);
}

static uint64_t ready_order(const struct item *item, uint64_t sequence)
{
        return (uint64_t)(QUEUE_HIGH - item->priority) << SEQUENCE_BITS | sequence;
}

static void make_ready(struct queue *q, struct item *item)
{
        leave(q, item);
        item->since = now(q);
        enter(item, &q->ready, ready_order(item, q->sequence++));
        count(q->depth[item->priority], 1);
        count(q->adds, 1);
        if (q->config.on_ready)
                q->config.on_ready(q->config.arg);
}

static void make_waiting(struct queue *q, struct item *item, usec_t until)
{
        leave(q, item);
        enter(item, &q->waiting, until);
        set_timer(q);
}

/* An item that is ready keeps its place in the order of becoming ready when it rises. */
static void rise(struct queue *q, struct item *item, enum queue_priority priority)
{
        if (item->priority >= priority)
                return;
        if (item->state != &q->ready) {
                item->priority = (uint8_t)priority;
                return;
        }
        count(q->depth[item->priority], -1);
        item->priority = (uint8_t)priority;
        count(q->depth[item->priority], 1);
        heap_put(&q->ready, &item->node, ready_order(item, item->node.order & (UINT64_MAX >> 2)));
}

static void timer_fired(struct timer *timer)
{
        struct queue *q = CONTAINER_OF(timer, struct queue, timer);
        usec_t at = now(q);
        struct item *item;

        while ((item = item_of(heap_first(&q->waiting))) && item->node.order <= at)
                make_ready(q, item);
        set_timer(q);
}

static void remember(struct item *item, usec_t at, enum queue_priority priority)
{
        item->next_priority = item->next_at == NEVER ? (uint8_t)priority
                                                     : (uint8_t)MAX(item->next_priority, (uint8_t)priority);
        item->next_at = MIN(item->next_at, at);
}

/* ---- the queue */

struct queue *queue_new(struct loop *loop, const struct queue_config *config)
{
        struct queue *q = xcalloc(1, sizeof(*q));

        q->loop = loop;
        q->config = *config;
        q->name = xstrdup(config->name ? config->name : "");
        timer_init(&q->timer, loop, timer_fired);
        if (config->metrics)
                make_metrics(q, config->metrics);
        return q;
}

static void clear_metrics(struct queue *q)
{
        metrics_off_collect(q->config.metrics, collect, q);
        for (size_t i = 0; i < QUEUE_PRIORITIES_; i++)
                metric_set(q->depth[i], 0);
        metric_set(q->unfinished, 0);
        metric_set(q->longest, 0);
}

void queue_free(struct queue *q)
{
        struct item *item;

        if (!q)
                return;
        timer_cancel(&q->timer);
        if (q->config.metrics)
                clear_metrics(q);
        map_foreach (i, &q->items, item)
                free(item);
        map_done(&q->items);
        free(q->waiting.slots);
        free(q->ready.slots);
        free(q->running.slots);
        free(q->name);
        free(q);
}

void queue_add(struct queue *q, struct str key, enum queue_priority priority)
{
        struct item *item = map_get(&q->items, key);

        if (!item)
                item = item_new(q, key, priority);
        if (item->state == &q->running) {
                remember(item, 0, priority);
                return;
        }
        rise(q, item, priority);
        if (item->state != &q->ready)
                make_ready(q, item);
}

void queue_add_after(struct queue *q, struct str key, usec_t delay)
{
        struct item *item = map_get(&q->items, key);
        usec_t at = usec_add(now(q), delay);

        if (delay == 0) {
                queue_add(q, key, item ? item->priority : QUEUE_NORMAL);
                return;
        }
        count(q->retries, 1);
        if (!item)
                make_waiting(q, item_new(q, key, QUEUE_NORMAL), at);
        else if (item->state == &q->running)
                remember(item, at, item->priority);
        else if (item->state == &q->waiting && at < item->node.order)
                make_waiting(q, item, at);
}

struct str queue_take(struct queue *q)
{
        struct item *item = item_of(heap_first(&q->ready));
        usec_t at;

        if (!item)
                return STR_NULL;
        at = now(q);
        observe(q->queued, item->since, at);
        leave(q, item);
        enter(item, &q->running, at);
        return key_of(item);
}

static usec_t backoff(struct queue *q, unsigned failures)
{
        usec_t delay = failures < 32 ? MIN(BACKOFF_FIRST << failures, BACKOFF_MAX) : BACKOFF_MAX;

        return rng_jitter(loop_rng(q->loop), delay, JITTER_PERCENT);
}

void queue_done(struct queue *q, struct str key, enum queue_outcome outcome)
{
        struct item *item = map_get(&q->items, key);
        usec_t at = now(q), next;

        if (!item || item->state != &q->running)
                return;
        observe(q->worked, item->node.order, at);
        if (outcome == QUEUE_OK) {
                item->failures = 0;
        } else if (outcome == QUEUE_RETRY) {
                count(q->retries, 1);
                remember(item, usec_add(at, backoff(q, item->failures)), item->priority);
        }
        if (outcome != QUEUE_OK && item->failures < UINT32_MAX)
                item->failures++;

        next = item->next_at;
        if (next == NEVER) {
                item_drop(q, item);
                return;
        }
        item->next_at = NEVER;
        item->priority = item->next_priority;
        if (next <= at)
                make_ready(q, item);
        else
                make_waiting(q, item, next);
}

void queue_forget(struct queue *q, struct str key)
{
        struct item *item = map_get(&q->items, key);

        if (!item)
                return;
        if (item->state == &q->waiting) {
                item_drop(q, item);
                return;
        }
        item->failures = 0;
        if (item->next_at > now(q))
                item->next_at = NEVER;
}

size_t queue_ready(const struct queue *q)
{
        return q->ready.n;
}

size_t queue_waiting(const struct queue *q)
{
        return q->waiting.n;
}

size_t queue_running(const struct queue *q)
{
        return q->running.n;
}

unsigned queue_failures(const struct queue *q, struct str key)
{
        const struct item *item = map_get(&q->items, key);

        return item ? item->failures : 0;
}
