#include "tools/jansson_peer.h"

#include <jansson.h>
#include <stdio.h>

char *peer_reprint(const char *text, size_t n, size_t *ret_n, char *why, size_t why_size)
{
        json_error_t error;
        json_t *root = json_loadb(text, n, JSON_DECODE_ANY | JSON_ALLOW_NUL, &error);
        char *out = NULL;

        if (!root) {
                snprintf(why, why_size, "%s", error.text);
                return NULL;
        }
        *ret_n = json_dumpb(root, NULL, 0, JSON_COMPACT | JSON_ENCODE_ANY);
        out = malloc(*ret_n ? *ret_n : 1);
        if (out)
                json_dumpb(root, out, *ret_n, JSON_COMPACT | JSON_ENCODE_ANY);
        json_decref(root);
        return out;
}

size_t peer_change_event(const char *text, size_t n, char *out, size_t size)
{
        json_error_t error;
        json_t *root = json_loadb(text, n, 0, &error), *object, *meta, *status;
        size_t len;

        if (!root)
                return 0;
        object = json_object_get(root, "object");
        meta = json_object_get(object, "metadata");
        status = json_object_get(object, "status");
        json_object_del(meta, "managedFields");
        json_object_set_new(json_object_get(meta, "annotations"), "sonde.dev/fence",
                            json_string_nocheck("18"));
        json_object_set_new(status, "active", json_integer(2));
        json_object_set_new(status, "phase", json_string_nocheck("Running"));
        len = json_dumpb(root, out, size, JSON_COMPACT);
        json_decref(root);
        return len;
}
