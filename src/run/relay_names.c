/*
 * Which files of the run directory go to the data ConfigMap, and their keys.
 *
 * The names of a kind's own files become keys beside the relay's. So they are checked once, where they come in: a name that
 * met one of the relay's keys, plain or gzipped, would let a workload's file pass for a result or for the fence.
 */
#include "run/relay_internal.h"

static const char GZ[] = ".gz";

bool relay_is_key_of(const char *key, const char *name)
{
        size_t n = strlen(name);

        return strncmp(key, name, n) == 0 && (key[n] == '\0' || streq(key + n, GZ));
}

static bool is_of_result(const char *key)
{
        return str_has_prefix(str_of(key), STR(RUN_KEY_RESULT)) ||
               str_has_prefix(str_of(key), STR("artifact"));
}

bool relay_is_of_one_attempt(const struct relay_names *names, const char *key)
{
        for (size_t i = RELAY_NAMED; i < names->n; i++)
                if (relay_is_key_of(key, names->name[i]))
                        return true;
        return is_of_result(key);
}

void relay_names_read(struct relay_names *names, const char *files, struct arena *a)
{
        struct str rest = str_of(files);

        names->name[RELAY_RESULT] = RUN_RESULT_FILE;
        names->name[RELAY_CHECKPOINT] = RUN_CHECKPOINT_FILE;
        names->n = RELAY_NAMED;
        while (rest.n && names->n < RELAY_FILES_MAX) {
                struct str name = str_split(&rest, ',');

                names->name[names->n++] = arena_strndup(a, name.p, name.n);
        }
}

/* ---- what a name may be */

static bool is_ours(const char *name)
{
        static const char *const keys[] = {RUN_KEY_ATTEMPT, RUN_KEY_POD, RUN_KEY_CHECKPOINT,
                                           RUN_KEY_SPEC_HASH, RUN_STATUS_FILE};

        for (size_t i = 0; i < ARRAY_LEN(keys); i++)
                if (relay_is_key_of(name, keys[i]))
                        return true;
        return is_of_result(name);
}

static int check_name(const struct relay_names *names, size_t which, struct err *err)
{
        const char *name = names->name[which];

        if (!run_key_valid(str_of(name)) || strlen(name) + strlen(GZ) > RUN_KEY_MAX)
                return err_set(err, E_CONFIG, "'%.100s' is no plain file name that can be a ConfigMap's key",
                               name);
        if (is_ours(name))
                return err_set(err, E_CONFIG, "'%.100s' is a name of the run's own", name);
        for (size_t i = RELAY_NAMED; i < which; i++)
                if (relay_is_key_of(name, names->name[i]) || relay_is_key_of(names->name[i], name))
                        return err_set(err, E_CONFIG, "'%.100s' and '%.100s' would have one key",
                                       names->name[i], name);
        return 0;
}

int relay_check_files(const char *files, struct err *err)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct relay_names names;
        size_t commas = 0;

        if (!files || !files[0])
                return 0;
        for (const char *p = files; *p; p++)
                commas += *p == ',';
        if (commas >= RELAY_NAMED_MAX)
                return err_set(err, E_CONFIG, "%zu files are named, %d may be", commas + 1, RELAY_NAMED_MAX);
        if (files[strlen(files) - 1] == ',')
                return err_set(err, E_CONFIG, "a name is missing after the last comma");
        relay_names_read(&names, files, &a);
        for (size_t i = RELAY_NAMED; i < names.n; i++)
                if (check_name(&names, i, err) < 0)
                        return -1;
        return 0;
}
