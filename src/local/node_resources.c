#include "local/node_private.h"

static int64_t amount(const struct json *resources, const char *resource)
{
        const struct json *j = json_at(resources, resource);
        struct str text = json_is(j, JSON_NUMBER) ? str_n(j->text, j->len) : json_text(j);
        int64_t milli = 0;

        return text.p && quantity_milli(text, &milli) ? milli : 0;
}

/* A request that is not there is the limit, as the API server's defaults have it. */
static int64_t container_request(const struct json *container, const char *resource)
{
        const struct json *resources = json_at(container, "resources");
        const struct json *requests = json_at(resources, "requests");

        return amount(json_at(requests, resource) ? requests : json_at(resources, "limits"), resource);
}

static int64_t plus(int64_t a, int64_t b)
{
        return a > INT64_MAX - b ? INT64_MAX : a + b;
}

int64_t pod_request_milli(const struct json *pod, const char *resource)
{
        const struct json *spec = json_at(pod, "spec");
        int64_t sum = 0, most = 0;

        json_foreach (c, json_at(spec, "containers"))
                sum = plus(sum, container_request(c, resource));
        json_foreach (c, json_at(spec, "initContainers"))
                most = MAX(most, container_request(c, resource));
        return plus(MAX(sum, most), amount(json_at(spec, "overhead"), resource));
}
