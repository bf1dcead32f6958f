/*
 * Any bytes as YAML: what is accepted fits the limits and survives being written and read as JSON.
 */
#include "json/yaml.h"
#include "fuzz/fuzz.h"
#include "json/doc.h"

static const struct json_limits limits = {.bytes = 1 << 20, .depth = 100, .nodes = 100000};

static size_t count_nodes(const struct json *j, unsigned depth)
{
        size_t n = 1;

        REQUIRE(depth <= limits.depth);
        json_foreach (child, j)
                n += count_nodes(child, depth + 1);
        return n;
}

static void check_document(struct arena *a, const struct json *j)
{
        _cleanup_(buf_done) struct buf text = BUF_INIT(64 << 20);
        struct err err = ERR_INIT;
        struct json *again;

        json_write(j, JSON_COMPACT, &text);
        REQUIRE(!text.overflow);
        again = json_parse(a, buf_str(&text),
                           &(struct json_limits){.bytes = SIZE_MAX, .depth = 200, .nodes = SIZE_MAX}, &err);
        REQUIRE(again && json_equal(j, again));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct err err = ERR_INIT;
        struct json **docs = NULL;
        size_t n = 0, nodes = 0;

        if (yaml_parse_all(&a, str_n((const char *)data, size), &limits, &docs, &n, &err) < 0) {
                REQUIRE(err.code != E_OK && err.code != E_INTERNAL && err.text[0]);
                return 0;
        }
        for (size_t i = 0; i < n; i++) {
                nodes += count_nodes(docs[i], 0);
                check_document(&a, docs[i]);
        }
        REQUIRE(nodes <= limits.nodes);
        return 0;
}
