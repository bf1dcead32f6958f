/*
 * yaml.h - YAML 1.1 as kubectl reads it, with line and column for messages.
 *
 * Plain scalars become what kubectl (sigs.k8s.io/yaml over go-yaml v2) makes of them: y, yes, on, true and their
 * opposites are booleans; ~ and null are null; 0x1F, 0o17, 017 and 1_000 are numbers (written as decimals, with all
 * their digits); .inf and .nan are refused, because JSON has no word for them; timestamps stay strings. Merge keys (<<)
 * are applied, and what stands further down wins. Keys become strings. Duplicate keys and tags that mean nothing in
 * JSON are refused, unlike in kubectl. Depth (100), size, nodes and what aliases expand to (100 000 nodes) are bounded.
 *
 * Every node knows its line and column. JSON is YAML, but for tabs and surrogate pairs: a text that begins with { and
 * is JSON only is read as such, without lines.
 */
#pragma once

#include "json/doc.h"

/* Every document of TEXT in order; NULs between documents ("---") that are empty are left out.
 * RET is an array in the arena. Errors read "3:14: what is wrong". */
int yaml_parse_all(struct arena *a, struct str text, const struct json_limits *limits, struct json ***ret,
                   size_t *ret_n, struct err *err) _must_check_;
/* Exactly one document. */
struct json *yaml_parse(struct arena *a, struct str text, const struct json_limits *limits, struct err *err)
        _must_check_;
/* Reads PATH ("-": standard input), which holds one document of at most MAX bytes. */
int doc_read_yaml(struct doc *doc, const char *path, size_t max, struct err *err) _must_check_;

/* ---- YAML out: block style, two blanks a level, lists as far left as their key
 *
 * Strings that YAML 1.1 (or 1.2) would read as anything else are in quotes, those of several lines are literal blocks.
 * yaml_parse() gives back what was written, but for numbers that no double holds (1e400), which have no word in YAML. */

/* Adds J as one document, which ends with the end of a line. */
void yaml_write(const struct json *j, struct buf *out);
/* Several, with "---" between them. */
void yaml_write_all(const struct json *const *docs, size_t n, struct buf *out);
