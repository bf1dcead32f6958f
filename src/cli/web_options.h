/*
 * web_options.h - how `sonde operator` is told to serve the API and the page.
 */
#pragma once

#include "cli/options.h"
#include "web/web.h"

struct web_options {
        const char *listen, *cert, *key; /* NULL: none */
        bool plain, api_only;
        struct option_list hosts; /* vec_done() it */
};

#define WEB_OPTIONS(w)                                                                                   \
        {"listen", 0,                                                                                    \
         "ADDR",   "serve the REST API and the page there: 127.0.0.1:8000, or :8000 with TLS",           \
         OPT_STR,  &(w)->listen},                                                                        \
                {"api-only",    0, NULL, "only that, with --listen: nothing is carried out", OPT_FLAG,   \
                 &(w)->api_only},                                                                        \
                {"tls-cert", 0,                                                                          \
                 "FILE",     "its certificate, PEM, read again every minute (default: a new one)",       \
                 OPT_STR,    &(w)->cert},                                                                \
                {"tls-key", 0, "FILE", "and the key of that", OPT_STR, &(w)->key},                       \
                {"plain-http", 0,                                                                        \
                 NULL,         "without TLS although others can reach it: a proxy or mesh does that",    \
                 OPT_FLAG,     &(w)->plain},                                                             \
        {                                                                                                \
                "allowed-host", 0, "NAME",                                                               \
                        "another name that it may be called by, or *.DOMAIN; may be repeated", OPT_LIST, \
                        &(w)->hosts                                                                      \
        }
