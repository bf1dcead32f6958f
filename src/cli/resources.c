#include "cli/resources.h"

#include "cli/cli.h"
#include "kube/kube.h"

enum { FILE_MAX_BYTES = 8 << 20 };

void resources_done(struct resources *r)
{
        vec_done(&r->list);
        arena_done(&r->arena);
}

void resources_complain(struct resources *r, const char *file, const struct json *at, const char *fmt, ...)
{
        char text[ERR_TEXT_MAX];
        va_list ap;

        va_start(ap, fmt);
        vsnprintf(text, sizeof(text), fmt, ap);
        va_end(ap);
        if (at && at->line)
                cli_error("%s:%u:%u: %s", file, at->line, at->column, text);
        else
                cli_error("%s: %s", file, text);
        r->wrong++;
}

static void check(struct resources *r, const char *file, struct json *object)
{
        const struct json *meta = json_at(object, "metadata");
        const char *name = meta_str(object, "name"), *generate = meta_str(object, "generateName");

        *vec_push(&r->list) = (struct resource){file, object};
        if (!json_is(object, JSON_OBJECT)) {
                resources_complain(r, file, object,
                                   "a resource must be a mapping with apiVersion, kind and metadata");
                return;
        }
        if (!json_str(object, "apiVersion"))
                resources_complain(r, file, object, "apiVersion: Required value");
        if (!json_str(object, "kind"))
                resources_complain(r, file, object, "kind: Required value");
        if (!name && !generate)
                resources_complain(r, file, meta ? meta : object, "metadata.name: Required value");
        if (name && !name_valid(NAME_SUBDOMAIN, str_of(name)))
                resources_complain(r, file, json_at(meta, "name"),
                                   "metadata.name: must be lower case letters, digits, '-' and '.', at most "
                                   "253 characters");
}

static bool is_list(const struct json *object)
{
        return streq(json_str(object, "kind"), "List") && streq(json_str(object, "apiVersion"), "v1") &&
               json_is(json_at(object, "items"), JSON_ARRAY);
}

void resources_read_text(struct resources *r, const char *file, struct str text)
{
        struct err err = ERR_INIT;
        struct json **docs;
        size_t n;

        r->files++;
        if (yaml_parse_all(&r->arena, text, NULL, &docs, &n, &err) < 0) {
                cli_error("%s:%s", file, err.text);
                r->wrong++;
                return;
        }
        for (size_t i = 0; i < n; i++) {
                if (!is_list(docs[i])) {
                        check(r, file, docs[i]);
                        continue;
                }
                json_foreach (item, json_at(docs[i], "items"))
                        check(r, file, item);
        }
}

void resources_read(struct resources *r, const char *path)
{
        _cleanup_(buf_done) struct buf text = BUF_INIT(FILE_MAX_BYTES);
        struct err err = ERR_INIT;

        if (file_read(streq(path, "-") ? "/dev/stdin" : path, &text, &err) < 0) {
                cli_error("%s", err.text);
                r->files++;
                r->wrong++;
                return;
        }
        resources_read_text(r, path, buf_str(&text));
}
