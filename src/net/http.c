#include "net/http.h"

#include "net/http_private.h"

const struct http_limits HTTP_LIMITS_DEFAULT = {.head = 64 * 1024, .headers = 100, .body = 16 * 1024 * 1024};

struct http_limits http_limits_or_default(const struct http_limits *given)
{
        struct http_limits l = *given;

        if (!l.head)
                l.head = HTTP_LIMITS_DEFAULT.head;
        if (!l.headers)
                l.headers = HTTP_LIMITS_DEFAULT.headers;
        if (!l.body)
                l.body = HTTP_LIMITS_DEFAULT.body;
        return l;
}

struct str http_header(const struct http_headers *headers, const char *name)
{
        struct str wanted = str_of(name);

        for (size_t i = 0; i < headers->n; i++)
                if (str_case_eq(headers->v[i].name, wanted))
                        return headers->v[i].value;
        return STR_NULL;
}

static const struct {
        int status;
        const char *text;
} statuses[] = {
        {100, "Continue"},
        {101, "Switching Protocols"},
        {200, "OK"},
        {201, "Created"},
        {202, "Accepted"},
        {204, "No Content"},
        {206, "Partial Content"},
        {301, "Moved Permanently"},
        {302, "Found"},
        {303, "See Other"},
        {304, "Not Modified"},
        {307, "Temporary Redirect"},
        {308, "Permanent Redirect"},
        {400, "Bad Request"},
        {401, "Unauthorized"},
        {403, "Forbidden"},
        {404, "Not Found"},
        {405, "Method Not Allowed"},
        {406, "Not Acceptable"},
        {407, "Proxy Authentication Required"},
        {408, "Request Timeout"},
        {409, "Conflict"},
        {410, "Gone"},
        {411, "Length Required"},
        {412, "Precondition Failed"},
        {413, "Content Too Large"},
        {414, "URI Too Long"},
        {415, "Unsupported Media Type"},
        {417, "Expectation Failed"},
        {421, "Misdirected Request"},
        {422, "Unprocessable Content"},
        {426, "Upgrade Required"},
        {428, "Precondition Required"},
        {429, "Too Many Requests"},
        {431, "Request Header Fields Too Large"},
        {500, "Internal Server Error"},
        {501, "Not Implemented"},
        {502, "Bad Gateway"},
        {503, "Service Unavailable"},
        {504, "Gateway Timeout"},
        {505, "HTTP Version Not Supported"},
        {507, "Insufficient Storage"},
};

const char *http_status_text(int status)
{
        for (size_t i = 0; i < ARRAY_LEN(statuses); i++)
                if (statuses[i].status == status)
                        return statuses[i].text;
        return "Unknown";
}

/* ---- what may be written into a message */

bool http_is_token(struct str s)
{
        for (size_t i = 0; i < s.n; i++) {
                char c = s.p[i];

                if (!(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') && !(c >= '0' && c <= '9') &&
                    (c == '\0' || !strchr("!#$%&'*+-.^_`|~", c)))
                        return false;
        }
        return s.n > 0;
}

bool http_is_value(struct str s)
{
        for (size_t i = 0; i < s.n; i++)
                if (((unsigned char)s.p[i] < 0x20 && s.p[i] != '\t') || s.p[i] == 0x7F)
                        return false;
        return true;
}

bool http_is_target(struct str s)
{
        for (size_t i = 0; i < s.n; i++)
                if ((unsigned char)s.p[i] <= 0x20 || (unsigned char)s.p[i] >= 0x7F)
                        return false;
        return true;
}

/* ---- URLs */

static size_t index_of_any(struct str s, const char *chars)
{
        size_t i = 0;

        while (i < s.n && !(s.p[i] && strchr(chars, s.p[i])))
                i++;
        return i;
}

/* AUTHORITY without user: host, host:port, [v6], [v6]:port. */
static bool parse_authority(struct str authority, struct url *url)
{
        struct str port = STR_NULL;
        uint64_t number;

        if (authority.n && authority.p[0] == '[') {
                size_t end = index_of_any(authority, "]");

                if (end == authority.n)
                        return false;
                url->host = str_n(authority.p + 1, end - 1);
                authority = str_n(authority.p + end + 1, authority.n - end - 1);
                if (authority.n && authority.p[0] != ':')
                        return false;
                if (authority.n)
                        port = str_n(authority.p + 1, authority.n - 1);
                if (memchr(url->host.p, ':', url->host.n) == NULL)
                        return false;
        } else {
                url->host = str_split(&authority, ':');
                port = authority;
        }
        if (url->host.n == 0 || url->host.n > 253)
                return false;
        if (!port.p)
                return true;
        if (!str_to_u64(port, &number) || number == 0 || number > UINT16_MAX)
                return false;
        url->port = (uint16_t)number;
        return true;
}

int url_parse(struct str text, struct url *ret, struct err *err)
{
        struct url url = {0};
        struct str rest = text, authority;
        size_t n;

        if (!http_is_target(text))
                return err_set(err, E_CONFIG, "URL has blanks or control characters");
        if (str_case_eq(str_n(text.p, MIN(text.n, (size_t)8)), STR("https://"))) {
                url.tls = true;
                url.port = 443;
                rest = str_n(text.p + 8, text.n - 8);
        } else if (str_case_eq(str_n(text.p, MIN(text.n, (size_t)7)), STR("http://"))) {
                url.port = 80;
                rest = str_n(text.p + 7, text.n - 7);
        } else {
                return err_set(err, E_CONFIG, "URL must start with http:// or https://");
        }
        n = index_of_any(rest, "/?#");
        authority = str_n(rest.p, n);
        rest = str_n(rest.p + n, rest.n - n);
        url.path = str_n(rest.p, index_of_any(rest, "?#"));
        n = authority.n;
        while (n && authority.p[n - 1] != '@')
                n--;
        if (n) {
                url.user = str_n(authority.p, n - 1);
                authority = str_n(authority.p + n, authority.n - n);
        }
        /* The text may hold a password: it is not repeated. */
        if (!parse_authority(authority, &url))
                return err_set(err, E_CONFIG, "URL has a malformed host or port '%.*s'",
                               STR_ARG(str_n(authority.p, MIN(authority.n, (size_t)64))));
        *ret = url;
        return 0;
}

static int hex_digit(char c)
{
        if (c >= '0' && c <= '9')
                return c - '0';
        if (c >= 'a' && c <= 'f')
                return c - 'a' + 10;
        if (c >= 'A' && c <= 'F')
                return c - 'A' + 10;
        return -1;
}

char *http_percent_decode(struct str s, bool plus_is_blank, struct arena *a)
{
        char *out = arena_alloc(a, s.n + 1), *to = out;

        for (size_t i = 0; i < s.n; i++) {
                char c = s.p[i];

                if (c == '%') {
                        int hi = i + 2 < s.n ? hex_digit(s.p[i + 1]) : -1;
                        int lo = i + 2 < s.n ? hex_digit(s.p[i + 2]) : -1;

                        if (hi < 0 || lo < 0)
                                return NULL;
                        c = (char)(hi * 16 + lo);
                        i += 2;
                } else if (c == '+' && plus_is_blank) {
                        c = ' ';
                }
                if (c == '\0')
                        return NULL;
                *to++ = c;
        }
        *to = '\0';
        return out;
}
