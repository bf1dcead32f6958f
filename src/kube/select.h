/*
 * select.h - label selectors, as the API has them: "team=a,stage in (dev, test),!done".
 */
#pragma once

#include "json/json.h"

enum label_op { LABEL_IN, LABEL_NOT_IN, LABEL_EXISTS, LABEL_NOT_EXISTS, LABEL_GREATER, LABEL_LESS };

struct label_requirement { /* on one label */
        struct str key;
        enum label_op op;
        struct str *values;
        size_t n;
};

struct label_selector {
        struct label_requirement *v;
        size_t n; /* 0: everything */
};

/*
 * Reads TEXT into *RET, in the arena. CHECK (may be NULL) judges each requirement once it is read. What is malformed is E_INVALID,
 * in the words of the API server.
 */
int label_selector_parse(const char *text, int (*check)(const struct label_requirement *r, struct err *err),
                         struct label_selector *ret, struct arena *a, struct err *err) _must_check_;
/* LABELS as in metadata.labels; NULL: none. */
bool label_selector_matches(const struct label_selector *s, const struct json *labels);
