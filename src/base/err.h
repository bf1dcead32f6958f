/*
 * err.h - one error object, with context added on the way up.
 *
 * A function that can fail takes a struct err last and returns an int below 0 (-1, or what err_set and err_wrap
 * return). The message is one sentence in lower case: what failed, on what, what to do. A caller that knows more
 * puts it in front with err_wrap(). The code says what a program may do about it; nobody branches on the text.
 * A NULL struct err is allowed everywhere: the caller does not want to know.
 */
#pragma once

#include "base/mem.h"

enum err_code {
        E_OK = 0,
        E_INVALID,   /* malformed input: never retried */
        E_TOO_LARGE, /* over a budget or a limit */
        E_CONFIG,    /* configuration, command line, kubeconfig */
        E_IO,        /* a file or a descriptor */
        E_CONNECT,   /* no connection: nothing was sent */
        E_LOST,      /* the connection broke: what was sent may have taken effect */
        E_TIMEOUT,   /* as E_LOST, by time */
        E_TLS,       /* certificate or handshake refused: nothing was sent */
        E_PROTOCOL,  /* the peer does not speak HTTP as it must */
        E_AUTH,      /* credentials missing, refused or expired (401) */
        E_FORBIDDEN, /* 403 */
        E_NOT_FOUND, /* 404 */
        E_EXISTS,    /* 409 AlreadyExists */
        E_CONFLICT,  /* 409, stale resourceVersion or UID */
        E_OWNED,     /* 409, server-side apply: another manager owns the field */
        E_EXPIRED,   /* 410: resourceVersion or continue token too old */
        E_REFUSED,   /* 422 and other permanent refusals of the object */
        E_FENCED,    /* 422 after a JSON Patch: a test in it failed */
        E_BUSY,      /* 429, 503 and friends: try again later */
        E_SERVER,    /* 5xx */
        E_CANCELED,  /* we gave up ourselves */
        E_INTERNAL,  /* a bug of ours */
        E_MAX_,
};

enum { ERR_TEXT_MAX = 1024 };

struct err {
        enum err_code code;
        char text[ERR_TEXT_MAX];
};

#define ERR_INIT             \
        {                    \
                .code = E_OK \
        }

/* Both return -1, so that `return err_set(...)` reads well. Texts are cut on a UTF-8 boundary. */
int err_set(struct err *err, enum err_code code, const char *fmt, ...) _printf_(3, 4);
int err_errno(struct err *err, enum err_code code, int errnum, const char *fmt, ...) _printf_(4, 5);
/* Puts "CONTEXT: " in front. */
int err_wrap(struct err *err, const char *fmt, ...) _printf_(2, 3);
/* So that compilers and analyzers see it: after these nobody goes on with a result that was not set. */
#define ERR_CALL_(call) \
        ({              \
                call;   \
                -1;     \
        })
#define err_set(...)   ERR_CALL_(err_set(__VA_ARGS__))
#define err_errno(...) ERR_CALL_(err_errno(__VA_ARGS__))
#define err_wrap(...)  ERR_CALL_(err_wrap(__VA_ARGS__))

void err_clear(struct err *err);
const char *err_code_name(enum err_code code); /* "NotFound" */
