/*
 * A profiler's output from anywhere: whatever the bytes are, the answer is a deployment of the request's name and ConfigMaps
 * that a server takes, or an error with a sentence; and the same bytes as a gzipped value are a text or an error.
 */
#include "fuzz/fuzz.h"
#include "kinds/dgdr/internal.h"
#include "run/fence.h"

enum { DGD_MAX = 256 * 1024, SENTENCE_MAX = 500 };

static void check_sentence(const char *text)
{
        REQUIRE(text && text[0] && strlen(text) <= SENTENCE_MAX && utf8_valid(text, strlen(text)));
        for (const char *p = text; *p; p++)
                REQUIRE((unsigned char)*p >= ' ');
}

static void check_labels(const struct json *object)
{
        const struct json *labels = json_at(json_at(object, "metadata"), "labels");

        json_foreach (label, labels)
                REQUIRE(name_valid(NAME_LABEL_VALUE, json_text(label)));
        REQUIRE(streq(json_str(labels, "dgdr.nvidia.com/name"), "r"));
        REQUIRE(!json_at(labels, "sonde.dev/request"));
}

static void check_deployment(const struct json *dgd, struct arena *a)
{
        const char *text = json_print(a, dgd);

        REQUIRE(strlen(text) <= DGD_MAX);
        REQUIRE(json_equal(dgd, json_parse(a, str_of(text), NULL, NULL)));
        REQUIRE(json_len(dgd) == 4 && json_is(json_at(dgd, "spec"), JSON_OBJECT));
        REQUIRE(streq(meta_str(dgd, "name"), "r-dgd") && streq(meta_str(dgd, "namespace"), "ns"));
        check_labels(dgd);
}

static void check_map(const struct dgdr_output *out, size_t which)
{
        const struct json *map = out->extras[which];
        const char *name = meta_str(map, "name");

        REQUIRE(name_valid(NAME_SUBDOMAIN, str_of(name)) &&
                !str_has_prefix(str_of(name), STR("dgdr-output-")));
        REQUIRE(streq(meta_str(map, "namespace"), "ns") && !json_at(map, "immutable"));
        check_labels(map);
        for (size_t i = 0; i < which; i++)
                REQUIRE(!streq(meta_str(out->extras[i], "name"), name));
        json_foreach (m, json_at(map, "data"))
                REQUIRE(json_is(m, JSON_STRING) && run_key_valid(str_n(m->key, m->key_len)));
        json_foreach (m, json_at(map, "binaryData"))
                REQUIRE(json_is(m, JSON_STRING) && run_key_valid(str_n(m->key, m->key_len)));
}

static void read_documents(const struct view *v, const struct dgdr_spec *spec, struct str text)
{
        struct dgdr_output out;
        struct err err = ERR_INIT;

        if (dgdr_output_read(v, spec, text, &out, &err) < 0) {
                REQUIRE(err.code != E_OK && err.text[0]);
                return;
        }
        check_deployment(out.dgd, v->arena);
        REQUIRE(out.n_extras <= DGDR_EXTRAS_MAX && out.n_refused <= DGDR_REFUSED_MAX);
        for (size_t i = 0; i < out.n_extras; i++)
                check_map(&out, i);
        for (size_t i = 0; i < out.n_refused; i++)
                check_sentence(out.refused[i]);
}

static void read_packed(const struct view *v, const struct dgdr_spec *spec, struct str bytes)
{
        _cleanup_(buf_done) struct buf b64 = BUF_INIT(SIZE_MAX);
        struct err err = ERR_INIT;
        const char *key = NULL;
        struct json *map;

        buf_add_base64(&b64, bytes);
        map = json_build(v->arena, "{'binaryData': {'final_config.yaml.gz': %s}}", buf_cstr(&b64));
        REQUIRE(dgdr_output_text(v, spec, map, &key, &err).p || err.text[0]);
        REQUIRE(streq(key, "final_config.yaml"));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        const struct view v = {
                .arena = &a,
                .request = json_build(&a, "{'metadata': {'name': 'r', 'namespace': 'ns', 'uid': 'u'}}")};
        const struct dgdr_spec spec = {.deployment = "r-dgd", .workers_image = "new"};
        struct str bytes = str_n((const char *)data, size);

        read_documents(&v, &spec, bytes);
        read_packed(&v, &spec, bytes);
        return 0;
}
