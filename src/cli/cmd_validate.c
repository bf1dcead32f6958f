#include "cli/cli.h"

#include "kube/kube.h"
#include "json/json.h"

enum { FILE_MAX_BYTES = 8 << 20 };

struct tally {
        size_t files, resources, wrong;
};

static void complain(struct tally *t, const char *path, const struct json *at, const char *what)
{
        cli_error("%s:%u:%u: %s", path, at->line, at->column, what);
        t->wrong++;
}

/* What every resource must have, whatever its kind. */
static void check_resource(struct tally *t, const char *path, const struct json *r)
{
        const struct json *meta = json_at(r, "metadata");
        const char *name = meta_str(r, "name"), *generate = meta_str(r, "generateName");

        t->resources++;
        if (!json_is(r, JSON_OBJECT)) {
                complain(t, path, r, "a resource must be a mapping with apiVersion, kind and metadata");
                return;
        }
        if (!json_str(r, "apiVersion"))
                complain(t, path, r, "apiVersion: Required value");
        if (!json_str(r, "kind"))
                complain(t, path, r, "kind: Required value");
        if (!name && !generate)
                complain(t, path, meta ? meta : r, "metadata.name: Required value");
        if (name && !name_valid(NAME_SUBDOMAIN, str_of(name)))
                complain(t, path, json_at(meta, "name"),
                         "metadata.name: must be lower case letters, digits, '-' and '.', at most 253 "
                         "characters");
}

static void check_file(struct tally *t, const char *path)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        _cleanup_(buf_done) struct buf text = BUF_INIT(FILE_MAX_BYTES);
        struct err err = ERR_INIT;
        struct json **docs;
        size_t n;

        t->files++;
        if (file_read(streq(path, "-") ? "/dev/stdin" : path, &text, &err) < 0) {
                cli_error("%s", err.text);
                t->wrong++;
                return;
        }
        if (yaml_parse_all(&a, buf_str(&text), NULL, &docs, &n, &err) < 0) {
                cli_error("%s:%s", path, err.text);
                t->wrong++;
                return;
        }
        for (size_t i = 0; i < n; i++)
                check_resource(t, path, docs[i]);
}

int cmd_validate(int argc, char **argv)
{
        static const struct option_def options[] = {{0}};
        static const struct usage usage = {
                "validate FILE...",
                "Reads YAML or JSON resources ('-': standard input) as kubectl would and reports "
                "what is wrong\n"
                "with file, line and column. Nothing is sent anywhere. Exit status 1 if anything is "
                "wrong.\n",
        };
        struct tally t = {0};
        int code;

        code = options_parse(options, &usage, &argc, argv);
        if (code >= 0)
                return code;
        if (argc < 2) {
                cli_error("validate needs at least one file; see '%s help validate'", cli_name());
                return EXIT_USAGE;
        }
        for (int i = 1; i < argc; i++)
                check_file(&t, argv[i]);
        printf("%zu resource%s in %zu file%s, %zu problem%s\n", t.resources, t.resources == 1 ? "" : "s",
               t.files, t.files == 1 ? "" : "s", t.wrong, t.wrong == 1 ? "" : "s");
        return t.wrong ? 1 : 0;
}
