/*
 * pattern_internal.h - between the parser of patterns and their machine.
 */
#pragma once

#include "json/pattern.h"

enum { CODEPOINT_MAX = 0x10FFFF };

struct range {
        uint32_t low, high;
};

struct range_set {
        struct range *v; /* in order, apart from each other */
        size_t n;
};

enum re_kind {
        RE_EMPTY,
        RE_SET,
        RE_LINE_START,
        RE_LINE_END,
        RE_TEXT_START,
        RE_TEXT_END,
        RE_WORD_BORDER,
        RE_NO_WORD_BORDER,
        RE_CAT,
        RE_ALT,
        RE_REPEAT,
};

enum { REPEAT_NO_END = -1 };

struct re {
        enum re_kind kind;
        struct range_set set;    /* RE_SET */
        struct re *left, *right; /* RE_CAT, RE_ALT; RE_REPEAT: left */
        int min, max;            /* RE_REPEAT */
};

/* The tree of TEXT in the arena. */
struct re *re_parse(struct arena *a, struct str text, struct err *err) _must_check_;
/* One code point from S at *AT, which moves on; U+FFFD for what is no UTF-8. */
uint32_t utf8_next(struct str s, size_t *at);
