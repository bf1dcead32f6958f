/*
 * A relay that has been idle while its token was rotated: with the real client, and an API that refuses the old one.
 */
#include "unit/api_rig.h"
#include "unit/dir.h"

#include "run/relay.h"
#include "run/run.h"

static void write_file(const char *dir, const char *name, const char *text)
{
        char path[512];

        snprintf(path, sizeof(path), "%s/%s", dir, name);
        assert_int_equal(file_replace(path, str_of(text), 0644, NULL), 0);
}

static void on_end(void *arg, int exit_status)
{
        *(int *)arg = exit_status;
}

#define STATUS_PATH "/api/v1/namespaces/ns/configmaps/status"

static void test_the_token_is_read_again_when_it_was_rotated(void **state)
{
        struct api api = {0};
        struct relay *relay;
        struct request *q;
        char dir[UNIT_DIR_LEN];
        int ended = -1;

        unit_dir(dir);
        write_file(dir, "token", "one");
        api_init(&api, NULL);
        api.config.token_file = xasprintf("%s/token", dir);
        relay = relay_new(&(struct relay_config){.loop = api.net.loop,
                                                 .kube = api.kube,
                                                 .ns = "ns",
                                                 .status_map = "status",
                                                 .dir = dir,
                                                 .ctl = dir,
                                                 .attempt = 1,
                                                 .pod_uid = "pod-a",
                                                 .on_end = on_end,
                                                 .arg = &ended},
                          NULL);
        assert_non_null(relay);
        q = api_next(&api, "GET", STATUS_PATH);
        assert_string_equal(q->authorization, "Bearer one");
        api_answer(q, 200,
                   "{\"metadata\": {}, \"data\": {\"attempt\": \"1\", \"podUID\": \"\", \"sequence\": \"0\", "
                   "\"state\": \"Pending\"}}");
        api_answer(api_next(&api, "PATCH", STATUS_PATH), 200, "{}"); /* claimed */
        for (int i = 0; i < 10; i++)
                net_turn(&api.net);

        write_file(dir, "token", "two");
        net_pass(&api.net, 30 * USEC_PER_SEC); /* sooner than the file is looked at again by itself */
        q = api_next(&api, "PATCH", STATUS_PATH);
        assert_string_equal(q->authorization, "Bearer one");
        api_refuse(q, 401, "Unauthorized", NULL);
        q = api_next(&api, "PATCH", STATUS_PATH); /* the same again, at once */
        assert_string_equal(q->authorization, "Bearer two");
        api_answer(q, 200, "{}");
        for (int i = 0; i < 10; i++)
                net_turn(&api.net);

        write_file(dir, "token", "three");
        for (int i = 0; i < 2; i++) { /* within a minute, without being refused */
                net_pass(&api.net, 31 * USEC_PER_SEC);
                q = api_next(&api, "PATCH", STATUS_PATH);
                assert_string_equal(q->authorization, i ? "Bearer three" : "Bearer two");
                api_answer(q, 200, "{}");
                for (int j = 0; j < 10; j++)
                        net_turn(&api.net);
        }
        api_quiet(&api);
        assert_int_equal(ended, -1);
        relay_free(relay);
        api_done(&api);
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_token_is_read_again_when_it_was_rotated),
};

UNIT_MAIN(tests)
