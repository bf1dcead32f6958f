/*
 * ml.c - which frameworks, tasks and algorithms there are.
 */
#include "probe/ml/ml.h"

/* NAME is a member of OBJECT, or an element of an array of names. */
static bool has(const struct json *names, const char *name)
{
        json_foreach (n, names)
                if (streq(json_is(names, JSON_OBJECT) ? n->key : json_cstr(n), name))
                        return true;
        return false;
}

static int unknown(const struct json *names, const char *what, const char *name, struct err *err)
{
        _cleanup_(buf_done) struct buf all = BUF_INIT(512);

        json_foreach (n, names)
                buf_printf(&all, "%s%s", all.n ? ", " : "",
                           json_is(names, JSON_OBJECT) ? n->key : json_cstr(n));
        return err_set(err, E_INVALID, "there is no %s '%.*s'; there are %s", what,
                       (int)utf8_cut(name, strlen(name), 100), name, buf_cstr(&all));
}

int ml_check(const char *framework, const char *task, const char *algorithm, struct err *err)
{
        _cleanup_(doc_done) struct doc table = DOC_INIT;
        const struct {
                const char *member, *what, *name;
        } checks[] = {{"frameworks", "framework", framework},
                      {"tasks", "task", task},
                      {"algorithms", "algorithm", algorithm}};

        if (doc_parse(&table, str_of(ML_TABLE), NULL, err) < 0)
                return err_wrap(err, "the table of frameworks");
        for (size_t i = 0; i < ARRAY_LEN(checks); i++) {
                const struct json *names = json_at(table.root, checks[i].member);

                if (checks[i].name && !has(names, checks[i].name))
                        return unknown(names, checks[i].what, checks[i].name, err);
        }
        return 0;
}
