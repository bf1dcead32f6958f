/*
 * fault.h - what can go wrong with a request, and who decides that it does: a script or a seed.
 *
 * A script is lines (# begins a comment):
 *
 *     match METHOD GLOB [nth=N|every=N|always] -> FAULT [ARG]...
 *
 * METHOD: GET POST PUT PATCH DELETE, or LIST, WATCH (also GETs), WRITE (all but GET), or *. GLOB is matched with path
 * and query; * stands for anything, ? for itself. Each rule counts the requests that it matches; the first one in the
 * file whose count fits (default: always) decides. With a seed the fault is a function of (seed, request number,
 * method, class of path) alone, so a run is repeated by its seed as far as its requests come in the same order. A seed
 * also cuts every watch after 0.2 to 3 s, whatever else happens to it, so that there is always a next one.
 *
 *     FAULT         ARGS (default)                     What happens
 *     delay         ms=N (100)                         waits, then forwards
 *     delay-answer  ms=N (100)                         forwards, waits, then answers
 *     drop                                             closes the connection, nothing is forwarded
 *     lose                                             forwards, closes the connection instead of answering
 *     cut           bytes=N lines=N (0) [ms=N]         closes after LINES lines and BYTES bytes of the body, or after MS
 *     answer        CODE [retry-after=S] [reason=R] [body=status|html|empty|too-large]   answers, nothing is forwarded
 *     expired       lines=N (0)                        watch: after LINES lines an ERROR 410 line, then the end
 *     stall         ms=N (1000) lines=N (0)            stream: after LINES lines nothing is forwarded for a time
 *     silent        ms=N (0: for ever) lines=N (0)     as if half-open: no more bytes; closed after MS
 *     duplicate     lines=N (1)                        watch: line LINES is sent twice
 *     replay        lines=N (2)                        watch: after line LINES an earlier one is sent again
 *     stale                                            get or list with resourceVersion=0: an earlier answer of the same
 *     bytes                                            every byte of the body in a chunk of its own
 *     merge                                            watch: two lines in one chunk
 *     crlf                                             watch: lines end with CR LF
 *     vary          [seed=N]                           other letter case of headers, an unknown header, chunks
 */
#pragma once

#include "base/base.h"

enum fault_kind {
        FAULT_NONE,
        FAULT_DELAY,
        FAULT_DELAY_ANSWER,
        FAULT_DROP,
        FAULT_LOSE,
        FAULT_CUT,
        FAULT_ANSWER,
        FAULT_EXPIRED,
        FAULT_STALL,
        FAULT_SILENT,
        FAULT_DUPLICATE,
        FAULT_REPLAY,
        FAULT_STALE,
        FAULT_BYTES,
        FAULT_MERGE,
        FAULT_CRLF,
        FAULT_VARY,
        FAULT_KINDS_,
};

enum fault_body { BODY_STATUS, BODY_HTML, BODY_EMPTY, BODY_TOO_LARGE /* not by a seed */, BODY_KINDS_ };

enum { REASON_MAX = 64 };

struct fault {
        enum fault_kind kind;
        int code;
        int retry_after; /* seconds; -1: none */
        enum fault_body body;
        char reason[REASON_MAX]; /* of a Status; "": the code's usual one */
        usec_t wait;
        usec_t life; /* the answer is cut after this time; 0: not by time */
        uint64_t bytes, lines, seed;
};

enum request_class {
        CLASS_WATCH,
        CLASS_LIST,
        CLASS_GET, /* one object or a subresource */
        CLASS_WRITE,
        CLASS_OTHER, /* discovery, health, version */
        CLASSES_,
};

struct request {
        uint64_t number; /* from 1 */
        struct str method, path, query;
        enum request_class class;
};

const char *fault_name(enum fault_kind kind);
const char *class_name(enum request_class class);
enum request_class classify(struct str method, struct str path, struct str query);
/* The value of a query parameter as it was sent, or STR_NULL. */
struct str query_value(struct str query, const char *name);

struct script; /* rules and their counts */

struct script *script_parse(struct str text, struct err *err) _must_check_;
void script_free(struct script *s);
struct fault script_decide(struct script *s, const struct request *r);

/* INTENSITY is the share of requests with a fault, in percent. */
struct fault seed_decide(uint64_t seed, unsigned intensity, const struct request *r);

/* The Status that the API server would send; F is of kind answer. */
void fault_status_body(const struct fault *f, struct buf *out);

DEFINE_CLEANUP_PTR(struct script *, script_free)
