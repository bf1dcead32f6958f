/*
 * parse.h - documents that a test writes as text.
 */
#pragma once

#include "unit/unit.h"
#include "json/doc.h"

/* The document TEXT, which must be good. */
static inline struct json *parse(struct arena *a, const char *text)
{
        struct err err = ERR_INIT;
        struct json *j = json_parse(a, str_of(text), NULL, &err);

        if (!j)
                fail_msg("%s: %s", text, err.text);
        return j;
}
