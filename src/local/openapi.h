/*
 * openapi.h - discovery and OpenAPI v2, as JSON and as the protobuf that kubectl asks for.
 *
 * All of it is made from the types that are served now; whoever adds or removes a type drops what was kept.
 */
#pragma once

#include "local/types.h"

/* The served types; borrowed. */
struct served {
        struct api_type *const *types;
        size_t n;
        const struct shapes *builtin;
        const char *address; /* "127.0.0.1:6443" */
};

struct json *discovery_api(const struct served *s, struct arena *a);    /* GET /api */
struct json *discovery_groups(const struct served *s, struct arena *a); /* GET /apis */
struct json *discovery_group(const struct served *s, const char *group,
                             struct arena *a); /* NULL: not there */
/* GET /api/v1 (group ""), /apis/GROUP/VERSION; NULL: not there. */
struct json *discovery_resources(const struct served *s, const char *group, const char *version,
                                 struct arena *a);

/* /openapi/v2: definitions of all types and what they use, and the paths (enough for kubectl's dry-run check). */
void openapi_json(const struct served *s, struct buf *out);
void openapi_protobuf(const struct served *s, struct buf *out);
