/*
 * openapi_private.h - the parts of which /openapi/v2 is made.
 */
#pragma once

#include "local/openapi.h"

/* openapi_paths.c: the member "paths". */
struct json *openapi_paths(const struct served *s, struct arena *a);
/* openapi_crd.c: the definition of a custom resource, with OpenAPI v3 brought down to v2 as the API server does it. */
struct json *openapi_custom(const struct api_type *t, struct arena *a);
struct json *openapi_custom_list(const struct api_type *t, struct arena *a);
/* com.example.stable.v1.CronTab for CronTab in stable.example.com/v1; the definition's own name for built-in types. */
const char *openapi_name(const struct api_type *t, const char *kind, struct arena *a);
/* {"group": ..., "kind": ..., "version": ...} */
struct json *openapi_gvk(const char *group, const char *version, const char *kind, struct arena *a);

/* openapi_proto.c: any OpenAPI v2 document as gnostic's openapi.v2.Document. */
void openapi_encode(const struct json *document, struct buf *out);
