#include "base/base.h"

#undef err_set
#undef err_errno
#undef err_wrap

static const char *const code_names[E_MAX_] = {
        [E_OK] = "OK",
        [E_INVALID] = "Invalid",
        [E_TOO_LARGE] = "TooLarge",
        [E_CONFIG] = "Config",
        [E_IO] = "IO",
        [E_CONNECT] = "Connect",
        [E_LOST] = "Lost",
        [E_TIMEOUT] = "Timeout",
        [E_TLS] = "TLS",
        [E_PROTOCOL] = "Protocol",
        [E_AUTH] = "Unauthorized",
        [E_FORBIDDEN] = "Forbidden",
        [E_NOT_FOUND] = "NotFound",
        [E_EXISTS] = "AlreadyExists",
        [E_CONFLICT] = "Conflict",
        [E_OWNED] = "FieldManagerConflict",
        [E_EXPIRED] = "Expired",
        [E_REFUSED] = "Refused",
        [E_FENCED] = "Fenced",
        [E_BUSY] = "Busy",
        [E_SERVER] = "ServerError",
        [E_CANCELED] = "Canceled",
        [E_INTERNAL] = "Internal",
};

const char *err_code_name(enum err_code code)
{
        return (unsigned)code < E_MAX_ ? code_names[code] : "Unknown";
}

void err_clear(struct err *err)
{
        if (err)
                *err = (struct err)ERR_INIT;
}

/* Formats into err->text at OFFSET; returns the new length, cut to fit. */
static _printf_(3, 0) size_t format(struct err *err, size_t offset, const char *fmt, va_list ap)
{
        int n = vsnprintf(err->text + offset, sizeof(err->text) - offset, fmt, ap);

        if (n < 0)
                n = 0;
        if ((size_t)n < sizeof(err->text) - offset)
                return offset + (size_t)n;
        offset = utf8_cut(err->text, strlen(err->text), sizeof(err->text) - 1);
        err->text[offset] = '\0';
        return offset;
}

int err_set(struct err *err, enum err_code code, const char *fmt, ...)
{
        va_list ap;

        if (!err)
                return -1;
        err->code = code;
        va_start(ap, fmt);
        format(err, 0, fmt, ap);
        va_end(ap);
        return -1;
}

int err_errno(struct err *err, enum err_code code, int errnum, const char *fmt, ...)
{
        va_list ap;
        size_t n;
        char why[128];

        if (!err)
                return -1;
        err->code = code;
        va_start(ap, fmt);
        n = format(err, 0, fmt, ap);
        va_end(ap);
        snprintf(err->text + n, sizeof(err->text) - n, ": %s", strerror_r(errnum, why, sizeof(why)));
        return -1;
}

int err_wrap(struct err *err, const char *fmt, ...)
{
        char inner[ERR_TEXT_MAX];
        va_list ap;
        size_t n;

        if (!err)
                return -1;
        memcpy(inner, err->text, sizeof(inner));
        va_start(ap, fmt);
        n = format(err, 0, fmt, ap);
        va_end(ap);
        if (n + 2 < sizeof(err->text)) {
                size_t room = sizeof(err->text) - n - 3;
                size_t len = utf8_cut(inner, strlen(inner), room);

                memcpy(err->text + n, ": ", 2);
                memcpy(err->text + n + 2, inner, len);
                err->text[n + 2 + len] = '\0';
        }
        return -1;
}
