#include "web/internal.h"

struct json *openapi_document(struct arena *a)
{
        return json_build(a, "{'openapi': '3.1.0', 'info': {'title': 'Sonde', 'version': %s}, 'paths': {}}",
                          SONDE_VERSION);
}

void serve_openapi(struct call *c)
{
        call_reply(c, 200, openapi_document(&c->arena));
}
