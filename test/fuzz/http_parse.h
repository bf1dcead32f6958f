/*
 * http_parse.h - for both HTTP fuzzers: a message means the same however its bytes are cut into pieces.
 */
#pragma once

#include "net/http_private.h"

/* What a parser made of a series of messages, as text. */
struct parse_record {
        struct http_parser parser;
        struct buf text;
};

static enum http_verdict record_head(struct http_parser *p)
{
        struct parse_record *r = CONTAINER_OF(p, struct parse_record, parser);

        buf_printf(&r->text, "head %u %u %u %.*s\n", p->ll.status_code, p->ll.method, p->ll.http_minor,
                   (int)p->head.target, p->head.text.p ? p->head.text.p : "");
        for (size_t i = 0; i < p->head.n; i++) {
                buf_addstr(&r->text, p->head.v[i].name);
                buf_adds(&r->text, "=");
                buf_addstr(&r->text, p->head.v[i].value);
                buf_adds(&r->text, "\n");
        }
        return GO_ON;
}

static enum http_verdict record_body(struct http_parser *p, struct str data)
{
        buf_addstr(&CONTAINER_OF(p, struct parse_record, parser)->text, data);
        return GO_ON;
}

static const struct http_parser_ops record_answers = {
        .response = true, .on_head = record_head, .on_body = record_body};
static const struct http_parser_ops record_requests = {.on_head = record_head, .on_body = record_body};

/* Feeds DATA in pieces whose sizes SEED chooses (0: whole) and notes what came out. */
static void parse_into(struct parse_record *r, const struct http_parser_ops *ops, struct str data,
                       unsigned seed)
{
        static const struct http_limits limits = {.head = 2000, .headers = 20, .body = 100000};
        struct err err = ERR_INIT;
        enum http_parse result = PARSE_MORE;
        struct rng rng;

        rng_seed(&rng, seed);
        *r = (struct parse_record){.text = BUF_INIT(1024 * 1024)};
        http_parser_init(&r->parser, ops, &limits);
        while (data.n && result != PARSE_BAD) {
                size_t n = seed ? 1 + rng_below(&rng, MIN(data.n, (size_t)40)) : data.n, used = 0;

                n = MIN(n, data.n);
                result = http_parser_feed(&r->parser, str_n(data.p, n), &used, &err);
                if (result == PARSE_BAD)
                        break;
                if (used > n)
                        abort();
                data = str_n(data.p + used, data.n - used);
                if (result == PARSE_DONE) {
                        buf_printf(&r->text, "\ndone %d\n", r->parser.keep_alive);
                        http_parser_reset(&r->parser);
                }
        }
        if (result != PARSE_BAD && http_parser_eof(&r->parser, &err) == PARSE_DONE)
                buf_adds(&r->text, "\ndone at the end\n");
        buf_printf(&r->text, "\n%s\n", result == PARSE_BAD ? "bad" : "good");
        http_parser_done(&r->parser);
}

static void parse_both_ways(const struct http_parser_ops *ops, struct str data, unsigned seed)
{
        struct parse_record whole, pieces;

        parse_into(&whole, ops, data, 0);
        parse_into(&pieces, ops, data, seed + 1);
        /* Within something that is refused it may show earlier or later that it is. */
        if (str_has_suffix(buf_str(&whole.text), STR("\nbad\n")) !=
            str_has_suffix(buf_str(&pieces.text), STR("\nbad\n")))
                abort();
        if (str_has_suffix(buf_str(&whole.text), STR("\ngood\n")) &&
            !str_eq(buf_str(&whole.text), buf_str(&pieces.text)))
                abort();
        buf_done(&whole.text);
        buf_done(&pieces.text);
}
