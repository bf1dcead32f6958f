/*
 * The URL of a PostgreSQL database, as far as it must be understood here: libpq reads it, and cites what it does not
 * understand. A password with characters that had to be written as %XX is cut at the wrong place, and parts of it would be
 * cited; so such a URL does not come to libpq.
 */
#include "history/history_db.h"

static const char *const schemes[] = {"postgres://", "postgresql://"};

/* What is behind the scheme; NULL: it is none of ours. */
static const char *behind_scheme(const char *url)
{
        for (size_t i = 0; i < ARRAY_LEN(schemes); i++)
                if (str_has_prefix(str_of(url), str_of(schemes[i])))
                        return url + strlen(schemes[i]);
        return NULL;
}

bool history_is_url(const char *place)
{
        return strstr(place, "://");
}

static bool is_hex(char c)
{
        return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

static bool escapes_are_whole(const char *s)
{
        for (; (s = strchr(s, '%')); s++)
                if (!is_hex(s[1]) || !is_hex(s[2]) || (s[1] == '0' && s[2] == '0'))
                        return false;
        return true;
}

/* HOST, HOST:PORT or [ADDRESS]:PORT */
static bool port_is_number(struct str host)
{
        const char *bracket = host.n ? memrchr(host.p, ']', host.n) : NULL;
        const char *from = bracket ? bracket : host.p;
        const char *colon = host.n ? memchr(from, ':', host.n - (size_t)(from - host.p)) : NULL;

        if (!colon)
                return true;
        for (const char *p = colon + 1; p < host.p + host.n; p++)
                if (*p < '0' || *p > '9')
                        return false;
        return true;
}

int history_url_check(const char *url, struct err *err)
{
        const char *rest = behind_scheme(url), *at;
        struct str hosts;

        if (!rest)
                return err_set(
                        err, E_CONFIG,
                        "a history is a file, or postgres://USER@HOST:PORT/DATABASE; no other URL is known");
        if (!escapes_are_whole(rest))
                return err_set(
                        err, E_CONFIG,
                        "the history's URL has a '%%' that begins no %%XX; write a '%%' itself as %%25");
        at = strchr(rest, '@');
        if (at && (strcspn(rest, "/?") < (size_t)(at - rest) || strchr(at + 1, '@')))
                return err_set(err, E_CONFIG,
                               "the history's URL has a '/', '?' or '@' in the user or the password; "
                               "write them as %%2F, %%3F, %%40, or use --history-password-file");
        hosts = str_of(at ? at + 1 : rest);
        hosts.n = strcspn(hosts.p, "/?");
        while (hosts.p)
                if (!port_is_number(str_split(&hosts, ',')))
                        return err_set(err, E_CONFIG, "the history's URL has a port that is no number");
        return 0;
}

char *history_url_shown(const char *url)
{
        const char *rest = behind_scheme(url), *at, *hosts;

        if (!rest)
                return xstrdup("of an unknown kind");
        at = strrchr(rest, '@');
        hosts = at ? at + 1 : rest;
        return xasprintf("postgres://%.*s%s%.*s", at ? (int)strcspn(rest, ":@") : 0, rest, at ? "@" : "",
                         (int)strcspn(hosts, "?"), hosts);
}
