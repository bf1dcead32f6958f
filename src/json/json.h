/*
 * json - documents: JSON and YAML in and out, and everything done to them in between.
 *
 *   doc.h     nodes: parse, read, change, build, compare, write
 *   path.h    JSON Pointer (RFC 6901) and dotted paths
 *   pack.h    documents in few bytes, for those that are kept
 *   patch.h   merge patch (RFC 7386), JSON Patch (RFC 6902), diff
 *   pattern.h regular expressions in RE2's syntax, in linear time
 *   split.h   a stream of bytes cut into the values it holds (watch lines, list items)
 *   schema.h  structural schemas as CRDs have them: validation, defaulting, pruning
 *   yaml.h    YAML 1.1 as kubectl reads it, with line and column for messages; and as it writes it
 *
 * What a document holds survives: numbers are kept as their text (9007199254740993, 1e400 and 1.0 come out as they
 * went in), members keep their order, unknown ones stay. All nodes and strings of a document live in the arena it
 * was parsed into. Everything read from outside is bounded in size, depth and number of nodes.
 */
#pragma once

#include "base/base.h"
#include "json/doc.h"
#include "json/pack.h"
#include "json/patch.h"
#include "json/path.h"
#include "json/pattern.h"
#include "json/schema.h"
#include "json/split.h"
#include "json/yaml.h"
