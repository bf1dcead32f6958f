/*
 * Which node suits a program, and how its Job says so. What nodes say of themselves comes from the labels of GPU feature
 * discovery; the table of gpus.c has what these leave out.
 */
#include "kinds/cuda/placement.h"

#define LABEL_PRODUCT "nvidia.com/gpu.product"
#define LABEL_MEMORY  "nvidia.com/gpu.memory"
#define LABEL_MAJOR   "nvidia.com/gpu.compute.major"
#define LABEL_MINOR   "nvidia.com/gpu.compute.minor"
#define LABEL_SMS     "nvidia.com/gpu.multiprocessors"
#define LABEL_COUNT   "nvidia.com/gpu.count"
#define LABEL_HOST    "kubernetes.io/hostname"
#define RESOURCE      "nvidia.com/gpu"

enum {
        LABEL_MAX = 1 << 30, /* a larger number is none */
        SLICES = 8,          /* of a GPU's memory, for MIG */
        HOSTS_MAX = 32,      /* named one by one, of one product */
        SAID_MAX = 500,      /* bytes of a sentence */
        NAMES_MAX = 2,       /* of one sort, in a sentence */
        NAME_SHOWN = 63,
};

enum { PART_SMS, PART_BANDWIDTH, PART_MEMORY, PART_COMPUTE, PARTS };

static const int64_t references[PARTS] = {132, 4800, 141 * 1024, 90};

static const struct {
        const char *bound;
        int of[PARTS];
} weights[] = {
        {"compute-bound", {40, 10, 15, 35}},
        {"memory-bound", {10, 45, 30, 15}},
        {NULL, {25, 25, 25, 25}},
};

/* ---- what a node says of itself */

void place_project_node(struct json *node, struct arena *a)
{
        static const char *const kept[] = {LABEL_PRODUCT, LABEL_MEMORY, LABEL_MAJOR, LABEL_MINOR,
                                           LABEL_SMS,     LABEL_COUNT,  LABEL_HOST};
        const struct json *meta = json_at(node, "metadata"), *spec = json_at(node, "spec");
        const struct json *amounts = json_at(json_at(node, "status"), "allocatable");
        struct json *labels = json_object(a);

        for (size_t i = 0; i < ARRAY_LEN(kept); i++)
                json_set(a, labels, kept[i], json_copy(a, json_at(json_at(meta, "labels"), kept[i])));
        json_set(a, node, "metadata",
                 json_build(a, "{'name': %p, 'labels': %p}", (void *)json_copy(a, json_at(meta, "name")),
                            (void *)labels));
        json_set(
                a, node, "spec",
                json_build(a, "{'unschedulable': %p}", (void *)json_copy(a, json_at(spec, "unschedulable"))));
        json_set(a, node, "status",
                 json_build(a, "{'allocatable': {'" RESOURCE "': %p}}",
                            (void *)json_copy(a, json_at(amounts, RESOURCE))));
}

/* -1: it does not say, or says what is no number. */
static int64_t label_number(const struct json *labels, const char *key)
{
        int64_t n;

        return str_to_i64(json_text(json_at(labels, key)), &n) && n >= 0 && n <= LABEL_MAX ? n : -1;
}

static int64_t gpus_of(const struct json *node, const struct json *labels)
{
        const struct json *amount = json_at(json_at(json_at(node, "status"), "allocatable"), RESOURCE);
        int64_t n;

        if (!amount)
                return label_number(labels, LABEL_COUNT);
        return str_to_i64(json_text(amount), &n) ? n : -1;
}

/* As the required affinity has it: what a node does not say, it has not. */
static bool has_least(const struct json *labels, const struct place_least *least)
{
        int64_t major = label_number(labels, LABEL_MAJOR), minor = label_number(labels, LABEL_MINOR);
        int64_t memory = label_number(labels, LABEL_MEMORY);
        int least_major = least->compute / 10, least_minor = least->compute % 10;

        if (least->memory > 0 && memory < least->memory)
                return false;
        return least->compute <= 0 || major > least_major ||
               (major == least_major && (least_minor == 0 || minor >= least_minor));
}

static void read_slice(struct place_node *n, int64_t sms, int64_t memory)
{
        int64_t whole = n->gpu->memory, share = (memory * SLICES + whole / 2) / whole;

        if (sms <= 0 || memory <= 0) {
                n->gpu = NULL;
                return;
        }
        share = MIN(MAX(share, (int64_t)1), (int64_t)SLICES);
        n->sms = sms;
        n->memory = memory;
        n->bandwidth = n->gpu->bandwidth * share / SLICES;
}

static void read_gpu(struct place_node *n, const struct json *labels)
{
        int64_t sms = label_number(labels, LABEL_SMS), memory = label_number(labels, LABEL_MEMORY);
        int64_t major = label_number(labels, LABEL_MAJOR), minor = label_number(labels, LABEL_MINOR);

        n->gpu = gpu_find(str_of(n->product), memory);
        if (n->gpu && gpu_is_slice(str_of(n->product)))
                read_slice(n, sms, memory);
        else if (n->gpu) {
                n->sms = sms > 0 ? sms : n->gpu->sms;
                n->memory = memory > 0 ? memory : n->gpu->memory;
                n->bandwidth = n->gpu->bandwidth;
        }
        if (n->gpu)
                n->compute = major > 0 ? major * 10 + MAX(minor, (int64_t)0) : n->gpu->compute;
}

/* False: nothing of the Job can run there. */
static bool read_node(struct arena *a, const struct json *node, const struct place_least *least,
                      struct place_node *ret)
{
        const struct json *meta = json_at(node, "metadata"), *labels = json_at(meta, "labels");
        const char *name = json_str(meta, "name"), *product = json_str(labels, LABEL_PRODUCT);

        *ret = (struct place_node){.name = arena_strdup(a, name),
                                   .product = product && *product ? arena_strdup(a, product) : NULL,
                                   .host = arena_strdup(a, json_str(labels, LABEL_HOST)),
                                   .count = gpus_of(node, labels),
                                   .busy = -1,
                                   .score = -1};
        if (!name || json_bool(json_at(node, "spec"), "unschedulable", false))
                return false;
        if (ret->count < MAX(least->gpus, (int64_t)1) || !has_least(labels, least))
                return false;
        read_gpu(ret, labels);
        return true;
}

/* ---- scores */

static const int *weights_for(const char *bound)
{
        size_t i = 0;

        while (weights[i].bound && !streq(weights[i].bound, bound))
                i++;
        return weights[i].of;
}

static void score(struct place_node *n, const int *weight)
{
        const int64_t values[PARTS] = {n->sms, n->bandwidth, n->memory, n->compute};

        if (!n->gpu)
                return;
        n->score = 0;
        for (size_t i = 0; i < PARTS; i++) {
                int64_t share = MIN(values[i] * 1000 / references[i], (int64_t)1000);

                n->parts[i] = (int)(share * weight[i] / 100);
                n->score += n->parts[i];
        }
}

size_t place_nodes(struct arena *a, const struct json *list, const char *bound,
                   const struct place_least *least, struct place_node *ret, size_t max)
{
        const int *weight = weights_for(bound);
        size_t n = 0;

        json_foreach (node, json_at(list, "items")) {
                if (n == max)
                        break;
                if (read_node(a, node, least, &ret[n]))
                        score(&ret[n++], weight);
        }
        place_sort(ret, n);
        return n;
}

void place_busy(struct place_node *n, double busy)
{
        int whole = 0;

        if (!(busy >= 0))
                return;
        n->busy = MIN(busy, 100.0);
        for (size_t i = 0; i < PARTS; i++)
                whole += n->parts[i];
        if (n->score >= 0)
                n->score = (int)(whole * (200 - n->busy) / 200);
}

static int compare_nodes(const void *x, const void *y)
{
        const struct place_node *m = x, *n = y;

        return m->score != n->score ? (m->score < n->score) - (m->score > n->score)
                                    : strcmp(m->name, n->name);
}

void place_sort(struct place_node *nodes, size_t n)
{
        if (n)
                qsort(nodes, n, sizeof(*nodes), compare_nodes);
}

/* ---- products, the best first: each by its best node */

/* Up to MAX of them, known or UNKNOWN ones; *RET_MORE: there are more. */
static size_t products_of(const struct place_node *nodes, size_t n, bool unknown,
                          const struct place_node **ret, size_t max, bool *ret_more)
{
        size_t found = 0;

        *ret_more = false;
        for (size_t i = 0; i < n; i++) {
                size_t k = 0;

                if (!nodes[i].product || (nodes[i].score < 0) != unknown)
                        continue;
                while (k < found && !streq(ret[k]->product, nodes[i].product))
                        k++;
                if (k < found)
                        continue;
                if (found == max) {
                        *ret_more = true;
                        break;
                }
                ret[found++] = &nodes[i];
        }
        return found;
}

/* ---- the affinity */

static struct json *expression(struct arena *a, const char *key, const char *op, struct json *values)
{
        return json_build(a, "{'key': %s, 'operator': %s, 'values': %p}", key, op, (void *)values);
}

static struct json *number_expression(struct arena *a, const char *key, const char *op, int64_t value)
{
        return expression(a, key, op, json_build(a, "['%lld']", (long long)value));
}

/* SECOND may be NULL. */
static struct json *term(struct arena *a, struct json *first, struct json *second)
{
        return json_build(a, "{'matchExpressions': [%p, %p]}", (void *)first, (void *)second);
}

/* Terms are alternatives, expressions of one hold together. A value below 0 is none that the scheduler takes. */
static struct json *required(struct arena *a, const struct place_least *least)
{
        int64_t major = least->compute / 10, minor = least->compute % 10;
        struct json *terms = json_array(a);

        if (least->compute > 0 && minor == 0)
                json_append(terms, term(a, number_expression(a, LABEL_MAJOR, "Gt", major - 1), NULL));
        else if (least->compute > 0) {
                json_append(terms, term(a, number_expression(a, LABEL_MAJOR, "Gt", major), NULL));
                json_append(terms, term(a, number_expression(a, LABEL_MAJOR, "In", major),
                                        number_expression(a, LABEL_MINOR, "Gt", minor - 1)));
        } else if (least->memory > 0)
                json_append(terms, json_build(a, "{'matchExpressions': []}"));
        if (!json_len(terms))
                return NULL;
        if (least->memory > 0)
                json_foreach (t, terms)
                        json_append(json_at(t, "matchExpressions"),
                                    number_expression(a, LABEL_MEMORY, "Gt", least->memory - 1));
        return json_build(a, "{'nodeSelectorTerms': %p}", (void *)terms);
}

static int weight_of(const struct place_node *n, int best)
{
        int weight = best > 0 ? (n->score * 100 + best / 2) / best : 100;

        return MIN(MAX(weight, 1), 100);
}

/* The nodes of a product, and what most of them weigh. */
struct same {
        const struct place_node *nodes;
        size_t n;
        const char *product;
        int best, usual;
};

static bool is_of(const struct same *s, const struct place_node *n)
{
        return n->score >= 0 && streq(n->product, s->product);
}

/* They are sorted, so those of one weight come together. Of two as frequent weights it is the higher. */
static int usual_weight(const struct same *s)
{
        size_t run = 0, longest = 0;
        int weight = 0, ret = 0;

        for (size_t i = 0; i < s->n; i++) {
                if (!is_of(s, &s->nodes[i]))
                        continue;
                if (weight != weight_of(&s->nodes[i], s->best))
                        run = 0;
                weight = weight_of(&s->nodes[i], s->best);
                if (++run > longest) {
                        longest = run;
                        ret = weight;
                }
        }
        return ret;
}

/* One that must be named, as it weighs another; NULL: it goes with the others. */
static const char *odd_host(const struct same *s, const struct place_node *n)
{
        return is_of(s, n) && weight_of(n, s->best) != s->usual ? n->host : NULL;
}

static void add_term(struct arena *a, struct json *terms, int weight, struct json *preference)
{
        if (json_len(terms) < PLACE_TERMS_MAX)
                json_append(terms,
                            json_build(a, "{'weight': %d, 'preference': %p}", weight, (void *)preference));
}

static void add_product(struct arena *a, struct json *terms, const struct same *s)
{
        struct json *odd = json_array(a), *hosts = NULL;
        int weight = 0;

        for (size_t i = 0; i < s->n && json_len(odd) < HOSTS_MAX; i++)
                json_append(odd, json_string(a, odd_host(s, &s->nodes[i])));
        add_term(a, terms, s->usual,
                 term(a, expression(a, LABEL_PRODUCT, "In", json_build(a, "[%s]", s->product)),
                      json_len(odd) ? expression(a, LABEL_HOST, "NotIn", odd) : NULL));
        for (size_t i = 0, named = 0; i < s->n && named < HOSTS_MAX; i++) {
                const char *host = odd_host(s, &s->nodes[i]);

                if (!host)
                        continue;
                named++;
                if (!hosts || weight != weight_of(&s->nodes[i], s->best)) {
                        weight = weight_of(&s->nodes[i], s->best);
                        hosts = json_array(a);
                        add_term(a, terms, weight, term(a, expression(a, LABEL_HOST, "In", hosts), NULL));
                }
                json_append(hosts, json_string(a, host));
        }
}

static struct json *preferred(struct arena *a, const struct place_node *nodes, size_t n)
{
        const struct place_node *products[PLACE_TERMS_MAX];
        struct json *terms = json_array(a);
        bool more;
        size_t n_products = products_of(nodes, n, false, products, ARRAY_LEN(products), &more);

        for (size_t i = 0; i < n_products; i++) {
                struct same s = {nodes, n, products[i]->product, .best = products[0]->score};

                s.usual = usual_weight(&s);
                add_product(a, terms, &s);
        }
        return json_len(terms) ? terms : NULL;
}

struct json *place_affinity(struct arena *a, const struct place_node *nodes, size_t n,
                            const struct place_least *least)
{
        struct json *must = required(a, least), *may = preferred(a, nodes, n);

        if (!must && !may)
                return NULL;
        return json_build(a,
                          "{'nodeAffinity': {'requiredDuringSchedulingIgnoredDuringExecution': %p, "
                          "'preferredDuringSchedulingIgnoredDuringExecution': %p}}",
                          (void *)must, (void *)may);
}

/* ---- words */

static void say_name(struct buf *b, const char *name)
{
        buf_add(b, name, utf8_cut(name, strlen(name), NAME_SHOWN));
}

/* "bandwidth 450, memory 299, …": the largest first. */
static void say_parts(struct buf *b, const struct place_node *n)
{
        static const char *const names[PARTS] = {"SMs", "bandwidth", "memory", "compute capability"};
        bool said[PARTS] = {false};

        for (size_t k = 0; k < PARTS; k++) {
                size_t best = PARTS;

                for (size_t i = 0; i < PARTS; i++)
                        if (!said[i] && (best == PARTS || n->parts[i] > n->parts[best]))
                                best = i;
                said[best] = true;
                buf_printf(b, "%s%s %d", k ? ", " : "", names[best], n->parts[best]);
        }
}

static void say_more(struct buf *b, size_t said, size_t all, bool uncounted)
{
        if (uncounted)
                buf_adds(b, " and others");
        else if (all > said)
                buf_printf(b, " and %zu more", all - said);
}

static void say_preferred(struct buf *b, const struct place_node *nodes, size_t n)
{
        const struct place_node *products[PLACE_TERMS_MAX];
        bool more;
        size_t all = products_of(nodes, n, false, products, ARRAY_LEN(products), &more);

        if (all == 0)
                return;
        say_name(b, products[0]->product);
        buf_printf(b, " preferred (score %d: ", products[0]->score);
        say_parts(b, products[0]);
        buf_adds(b, ")");
        for (size_t i = 1; i < MIN(all, (size_t)NAMES_MAX + 1); i++) {
                buf_adds(b, i == 1 ? " over " : ", ");
                say_name(b, products[i]->product);
                buf_printf(b, " (%d)", products[i]->score);
        }
        say_more(b, NAMES_MAX + 1, all, more);
}

static void say_busy(struct buf *b, const struct place_node *nodes, size_t n)
{
        size_t all = 0;

        for (size_t i = 0; i < n; i++) {
                if (nodes[i].score < 0 || nodes[i].busy < 1 || all++ >= NAMES_MAX)
                        continue;
                buf_adds(b, all == 1 ? "; busy: " : ", ");
                say_name(b, nodes[i].name);
                buf_printf(b, " (%.0f %%)", nodes[i].busy);
        }
        say_more(b, NAMES_MAX, all, false);
}

static void say_unknown(struct buf *b, const struct place_node *nodes, size_t n)
{
        const struct place_node *products[PLACE_TERMS_MAX];
        bool more;
        size_t all = products_of(nodes, n, true, products, ARRAY_LEN(products), &more), silent = 0;

        for (size_t i = 0; i < MIN(all, (size_t)NAMES_MAX); i++) {
                buf_adds(b, i ? ", " : all == 1 ? "; product " : "; products ");
                say_name(b, products[i]->product);
        }
        say_more(b, NAMES_MAX, all, more);
        if (all)
                buf_printf(b, " %s unknown and left to the scheduler", all == 1 ? "is" : "are");
        for (size_t i = 0; i < n; i++)
                silent += !nodes[i].product;
        if (silent == n)
                buf_adds(b,
                         "; no node says what GPU it has (label " LABEL_PRODUCT "), left to the scheduler");
        else if (silent)
                buf_printf(b, "; %zu of %zu nodes do not say what GPU they have", silent, n);
}

static const char *bound_words(const char *bound)
{
        if (!bound || !*bound)
                return "not profiled";
        if (streq(bound, "compute-bound") || streq(bound, "memory-bound") || streq(bound, "mixed"))
                return bound;
        return "bound unknown";
}

const char *place_reason(struct arena *a, const struct place_node *nodes, size_t n, const char *bound)
{
        _cleanup_(buf_done) struct buf b = BUF_INIT(4096);
        struct str said;

        if (n == 0)
                return "no node with enough GPUs has what is asked for; none is preferred";
        say_preferred(&b, nodes, n);
        say_busy(&b, nodes, n);
        say_unknown(&b, nodes, n);
        said = buf_str(&b);
        if (str_has_prefix(said, STR("; ")))
                said = str_n(said.p + 2, said.n - 2);
        said = str_of(arena_printf(a, "%s: %.*s", bound_words(bound), STR_ARG(said)));
        return arena_strndup(a, said.p, utf8_cut(said.p, said.n, SAID_MAX));
}

/* ---- the hint */

static struct json *node_hint(struct arena *a, const struct place_node *n)
{
        struct json *busy = n->busy >= 0 ? json_i64(a, (int64_t)(n->busy + 0.5)) : NULL;

        return json_build(a,
                          "{'name': %s, 'product': %s, 'score': %d, 'breakdown': {'sm': %d, 'bandwidth': %d, "
                          "'vram': %d, 'compute': %d}, 'busy': %p}",
                          n->name, n->product, n->score, n->parts[PART_SMS], n->parts[PART_BANDWIDTH],
                          n->parts[PART_MEMORY], n->parts[PART_COMPUTE], (void *)busy);
}

struct json *place_hint(struct arena *a, const struct place_node *nodes, size_t n, const char *bound)
{
        const struct place_node *unknown[PLACE_HINTS_MAX];
        bool more;
        size_t n_unknown = products_of(nodes, n, true, unknown, ARRAY_LEN(unknown), &more);
        struct json *list = json_array(a), *products = json_array(a);

        for (size_t i = 0; i < n && json_len(list) < PLACE_HINTS_MAX; i++)
                if (nodes[i].score >= 0)
                        json_append(list, node_hint(a, &nodes[i]));
        for (size_t i = 0; i < n_unknown; i++)
                json_append(products, json_string(a, unknown[i]->product));
        return json_build(a, "{'boundType': %s, 'reason': %s, 'nodes': %p, 'unknownProducts': %p}",
                          bound && *bound ? bound : "unknown", place_reason(a, nodes, n, bound), (void *)list,
                          (void *)(json_len(products) ? products : NULL));
}
