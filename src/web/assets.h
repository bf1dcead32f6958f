/*
 * assets.h - the files of the page, as they are in the binary.
 *
 * The table is made at build time from what web/ is bundled to. One entry is the page itself, under "/"; the others are
 * found by their whole path. A path that is not there, without a dot in its last part, is a place inside the page.
 */
#pragma once

#include "net/net.h"

struct web_asset {
        const char *path;         /* "/", "/page.css"; NULL ends the table */
        const char *content_type; /* "text/html; charset=utf-8" */
        const void *data;
        size_t size;
        bool gzipped;     /* as it is sent to those who accept that, which is nearly everybody */
        const char *etag; /* with its quotes: "\"3f2a...\"", of the content */
};

extern const struct web_asset WEB_ASSETS[];

/* Answers a GET or HEAD of a path outside the API. */
void web_asset_serve(struct http_exchange *ex);
