/*
 * Formats of strings, as the API server checks them (go-openapi's strfmt): some are laxer than their names.
 */
#include "json/schema_internal.h"

#include <arpa/inet.h>

static bool is_digit(char c)
{
        return c >= '0' && c <= '9';
}

static bool is_alpha(char c)
{
        return (c | 0x20) >= 'a' && (c | 0x20) <= 'z';
}

static bool is_hex(char c)
{
        return is_digit(c) || ((c | 0x20) >= 'a' && (c | 0x20) <= 'f');
}

static bool beyond_ascii(char c)
{
        return (unsigned char)c >= 0x80;
}

static char at(struct str s, size_t i)
{
        return i < s.n ? s.p[i] : '\0';
}

static struct str from(struct str s, size_t i)
{
        return i < s.n ? str_n(s.p + i, s.n - i) : str_n("", 0);
}

/* Whether S begins with SHAPE, in which 0 stands for a digit; the rest stands for itself. */
static bool has_shape(struct str s, const char *shape)
{
        for (size_t i = 0; shape[i]; i++)
                if (shape[i] == '0' ? !is_digit(at(s, i)) : at(s, i) != shape[i])
                        return false;
        return true;
}

static unsigned two_digits(struct str s, size_t i)
{
        return (unsigned)(s.p[i] - '0') * 10 + (unsigned)(s.p[i + 1] - '0');
}

/* ---- dates and times */

static unsigned days_in_month(unsigned year, unsigned month)
{
        static const unsigned char days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
        bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);

        return month == 2 && leap ? 29 : days[month - 1];
}

static bool valid_date(struct str s)
{
        unsigned year, month, day;

        if (s.n != 10 || !has_shape(s, "0000-00-00"))
                return false;
        year = two_digits(s, 0) * 100 + two_digits(s, 2);
        month = two_digits(s, 5);
        day = two_digits(s, 8);
        return month >= 1 && month <= 12 && day >= 1 && day <= days_in_month(year, month);
}

static bool valid_zone(struct str s)
{
        if (s.n == 1)
                return (s.p[0] | 0x20) == 'z';
        return s.n == 6 && (s.p[0] == '+' || s.p[0] == '-') && has_shape(from(s, 1), "00:00");
}

static bool valid_date_time(struct str s)
{
        size_t zone = 19;

        if (s.n < 20 || !valid_date(str_n(s.p, 10)) || (s.p[10] | 0x20) != 't' ||
            !has_shape(from(s, 11), "00:00:00"))
                return false;
        if (two_digits(s, 11) > 23 || two_digits(s, 14) > 59 || two_digits(s, 17) > 59)
                return false;
        if (at(s, zone) == '.') {
                size_t digits = 0;

                while (is_digit(at(s, zone + 1 + digits)))
                        digits++;
                if (digits == 0)
                        return false;
                zone += 1 + digits;
        }
        return valid_zone(from(s, zone));
}

/* ---- durations: Go's own, or Scala's */

static size_t unit_length(struct str s)
{
        static const char *const units[] = {"ns", "us", "\xC2\xB5s", "\xCE\xBCs", "ms", "s", "m", "h"};
        size_t best = 0;

        for (size_t i = 0; i < ARRAY_LEN(units); i++)
                if (str_has_prefix(s, str_of(units[i])))
                        best = MAX(best, strlen(units[i]));
        return best;
}

static bool valid_go_duration(struct str s)
{
        if (at(s, 0) == '-' || at(s, 0) == '+')
                s = from(s, 1);
        if (str_eq(s, STR("0")))
                return true;
        if (s.n == 0)
                return false;
        while (s.n) {
                size_t whole = 0, fraction = 0, unit;
                int64_t n;

                while (is_digit(at(s, whole)))
                        whole++;
                if (whole && !str_to_i64(str_n(s.p, whole), &n))
                        return false;
                if (at(s, whole) == '.')
                        for (fraction = 1; is_digit(at(s, whole + fraction));)
                                fraction++;
                if (whole == 0 && fraction < 2)
                        return false;
                unit = unit_length(from(s, whole + fraction));
                if (unit == 0)
                        return false;
                s = from(s, whole + fraction + unit);
        }
        return true;
}

/* Units are whole words, but the last spelling of each may go on: seconds, minutes, weekly. */
static bool known_unit(struct str unit)
{
        static const struct {
                const char *name;
                bool prefix;
        } units[] = {{"ns", false}, {"nano", true},  {"us", false}, {"\xC2\xB5s", false}, {"micro", true},
                     {"ms", false}, {"milli", true}, {"s", false},  {"sec", true},        {"m", false},
                     {"min", true}, {"h", false},    {"hr", false}, {"hour", true},       {"d", false},
                     {"day", true}, {"w", false},    {"wk", false}, {"week", true}};

        for (size_t i = 0; i < ARRAY_LEN(units); i++) {
                struct str name = str_of(units[i].name);

                if (unit.n >= name.n && (units[i].prefix || unit.n == name.n) &&
                    str_case_eq(str_n(unit.p, name.n), name))
                        return true;
        }
        return false;
}

/* Any number with a known unit behind it will do, whatever else is there. */
static bool valid_loose_duration(struct str s)
{
        bool known = false;

        for (size_t i = 0; i < s.n;) {
                size_t start = i, digits, unit;
                int64_t n;

                if (!is_digit(s.p[i])) {
                        i++;
                        continue;
                }
                while (is_digit(at(s, i)))
                        i++;
                digits = i - start;
                unit = i;
                while (at(s, unit) == ' ' ||
                       (at(s, unit) >= '\t' && at(s, unit) <= '\r' && at(s, unit) != '\v'))
                        unit++;
                for (i = unit; is_alpha(at(s, i)) || str_has_prefix(from(s, i), STR("\xC2\xB5"));)
                        i += is_alpha(at(s, i)) ? 1 : 2;
                if (i == unit)
                        continue;
                if (!str_to_i64(str_n(s.p + start, digits), &n))
                        return false;
                known = known || known_unit(str_n(s.p + unit, i - unit));
        }
        return known;
}

static bool valid_duration(struct str s)
{
        return valid_go_duration(s) || valid_loose_duration(s);
}

/* ---- addresses */

static bool parse_ip(struct str s, int family)
{
        char text[INET6_ADDRSTRLEN + 1];
        unsigned char address[16];

        if (s.n >= sizeof(text) || memchr(s.p, '\0', s.n))
                return false;
        memcpy(text, s.p, s.n);
        text[s.n] = '\0';
        return inet_pton(family, text, address) == 1;
}

static bool valid_ipv4(struct str s)
{
        return parse_ip(s, AF_INET) || (memchr(s.p, '.', s.n) && parse_ip(s, AF_INET6));
}

static bool valid_ipv6(struct str s)
{
        return parse_ip(s, AF_INET6);
}

static bool valid_cidr(struct str s)
{
        struct str bits = s, address = str_split(&bits, '/');
        unsigned n = 0, max = parse_ip(address, AF_INET) ? 32 : 128;

        if (!bits.p || bits.n == 0 || !(max == 32 || parse_ip(address, AF_INET6)))
                return false;
        for (size_t i = 0; i < bits.n; i++) {
                if (!is_digit(bits.p[i]))
                        return false;
                n = MIN(n * 10 + (unsigned)(bits.p[i] - '0'), 1000u);
        }
        return n <= max;
}

/* EUI-48, EUI-64 or 20 octets, in pairs or (with points) in fours. */
static bool valid_mac(struct str s)
{
        char separator = at(s, 2) == ':' || at(s, 2) == '-' ? s.p[2] : '.';
        size_t group = separator == '.' ? 4 : 2, octets;

        if ((s.n + 1) % (group + 1) != 0)
                return false;
        octets = (s.n + 1) / (group + 1) * group / 2;
        for (size_t i = 0; i < s.n; i++)
                if (i % (group + 1) == group ? s.p[i] != separator : !is_hex(s.p[i]))
                        return false;
        return octets == 6 || octets == 8 || octets == 20;
}

/* ---- host names */

static bool host_character(char c)
{
        return is_alpha(c) || is_digit(c) || beyond_ascii(c);
}

/* A single label: a dash may only be its second character. */
static bool valid_single_label(struct str s)
{
        size_t i = 1;

        if (s.n == 0 || !host_character(s.p[0]))
                return false;
        while ((at(s, i) & 0xC0) == 0x80)
                i++;
        for (i += at(s, i) == '-'; i < s.n; i++)
                if (!host_character(s.p[i]))
                        return false;
        return true;
}

static bool valid_label(struct str s)
{
        if (s.n == 0 || s.n > 63 || !host_character(s.p[0]) || !host_character(s.p[s.n - 1]))
                return false;
        for (size_t i = 0; i < s.n; i++)
                if (!host_character(s.p[i]) && s.p[i] != '-')
                        return false;
        return true;
}

static bool valid_top_label(struct str s)
{
        size_t characters = 0;

        for (size_t i = 0; i < s.n; i++) {
                if (!is_alpha(s.p[i]) && !beyond_ascii(s.p[i]))
                        return false;
                characters += (s.p[i] & 0xC0) != 0x80;
        }
        return characters >= 2 && s.n <= 63;
}

static bool valid_hostname(struct str s)
{
        if (s.n > 255)
                return false;
        if (!memchr(s.p, '.', s.n))
                return s.n <= 63 && valid_single_label(s);
        for (;;) {
                struct str label = str_split(&s, '.');

                if (!s.p)
                        return valid_top_label(label);
                if (!valid_label(label))
                        return false;
        }
}

/* ---- e-mail: net/mail.ParseAddress */

static bool is_atom_character(char c)
{
        return is_alpha(c) || is_digit(c) || beyond_ascii(c) || (c && strchr("!#$%&'*+-/=?^_`{|}~", c));
}

/* Words of atom characters with single points between them. */
static size_t dot_atom_length(struct str s)
{
        size_t i = 0;

        while (is_atom_character(at(s, i)) ||
               (i > 0 && at(s, i) == '.' && s.p[i - 1] != '.' && is_atom_character(at(s, i + 1))))
                i++;
        return i;
}

static size_t quoted_length(struct str s)
{
        size_t i = 1;

        if (at(s, 0) != '"')
                return 0;
        for (; i < s.n && s.p[i] != '"'; i++)
                if ((unsigned char)s.p[i] < ' ' || (s.p[i] == '\\' && ++i >= s.n))
                        return 0;
        return i < s.n ? i + 1 : 0;
}

static bool valid_addr_spec(struct str s)
{
        size_t local = MAX(quoted_length(s), dot_atom_length(s)), domain;

        if (local == 0 || at(s, local) != '@')
                return false;
        domain = dot_atom_length(from(s, local + 1));
        return domain > 0 && local + 1 + domain == s.n;
}

static bool valid_phrase(struct str s)
{
        while (s.n) {
                size_t n = MAX(quoted_length(s), dot_atom_length(s));

                if (n == 0)
                        return false;
                s = str_trim(from(s, n));
        }
        return true;
}

static bool valid_email(struct str s)
{
        const char *angle;

        s = str_trim(s);
        if (valid_addr_spec(s))
                return true;
        angle = s.n ? memrchr(s.p, '<', s.n) : NULL;
        if (!angle || s.p[s.n - 1] != '>')
                return false;
        return valid_addr_spec(str_n(angle + 1, (size_t)(s.p + s.n - angle) - 2)) &&
               valid_phrase(str_trim(str_n(s.p, (size_t)(angle - s.p))));
}

/* ---- URIs: net/url.ParseRequestURI */

static bool valid_escapes(struct str s)
{
        for (size_t i = 0; i < s.n; i++)
                if (s.p[i] == '%' && !(is_hex(at(s, i + 1)) && is_hex(at(s, i + 2))))
                        return false;
        return true;
}

static bool valid_port(struct str s)
{
        for (size_t i = 1; i < s.n; i++)
                if (!is_digit(s.p[i]))
                        return false;
        return s.n == 0 || s.p[0] == ':';
}

static bool valid_uri_host(struct str s)
{
        const char *colon;

        if (at(s, 0) == '[') {
                const char *close = memchr(s.p, ']', s.n);

                return close && valid_port(from(s, (size_t)(close - s.p) + 1));
        }
        for (size_t i = 0; i < s.n; i++) {
                if (strchr(" \"#<>\\^`{|}", s.p[i]))
                        return false;
                /* only what is not ASCII may be escaped, and the percent sign itself */
                if (s.p[i] == '%' && is_digit(at(s, i + 1)) && at(s, i + 1) < '8' &&
                    !str_has_prefix(from(s, i), STR("%25")))
                        return false;
        }
        colon = s.n ? memrchr(s.p, ':', s.n) : NULL;
        return valid_escapes(s) && (!colon || valid_port(from(s, (size_t)(colon - s.p))));
}

static bool valid_user_info(struct str s)
{
        for (size_t i = 0; i < s.n; i++)
                if (!is_alpha(s.p[i]) && !is_digit(s.p[i]) && !strchr("-._:~!$&'()*+,;=%@", s.p[i]))
                        return false;
        return valid_escapes(s);
}

static bool valid_authority(struct str s)
{
        const char *sign = s.n ? memrchr(s.p, '@', s.n) : NULL;
        size_t user = sign ? (size_t)(sign - s.p) : 0;

        return valid_user_info(str_n(s.p, user)) && valid_uri_host(sign ? from(s, user + 1) : s);
}

/* The length of the scheme with its colon; 0: none; SIZE_MAX: malformed. */
static size_t scheme_length(struct str s)
{
        for (size_t i = 0; i < s.n; i++) {
                if (s.p[i] == ':')
                        return i == 0 ? SIZE_MAX : i + 1;
                if (is_alpha(s.p[i]))
                        continue;
                if (!(is_digit(s.p[i]) || strchr("+-.", s.p[i])) || i == 0)
                        return 0;
        }
        return 0;
}

static bool valid_uri(struct str s)
{
        size_t scheme = scheme_length(s);
        struct str rest, query;

        for (size_t i = 0; i < s.n; i++)
                if ((unsigned char)s.p[i] < ' ' || s.p[i] == 0x7F)
                        return false;
        if (str_eq(s, STR("*")))
                return true;
        if (s.n == 0 || scheme == SIZE_MAX)
                return false;
        query = from(s, scheme);
        rest = str_split(&query, '?');
        if (at(rest, 0) != '/')
                return scheme > 0;
        if (scheme > 0 && at(rest, 1) == '/') {
                struct str path = from(rest, 2), authority = str_split(&path, '/');

                return valid_authority(authority) && (!path.p || valid_escapes(path));
        }
        return valid_escapes(rest);
}

/* ---- the rest */

static bool valid_byte(struct str s)
{
        size_t padding = s.n > 1 && s.p[s.n - 1] == '=' ? 1 + (s.p[s.n - 2] == '=') : 0;

        if (s.n == 0 || s.n % 4 != 0)
                return false;
        for (size_t i = 0; i < s.n - padding; i++)
                if (!is_alpha(s.p[i]) && !is_digit(s.p[i]) && s.p[i] != '+' && s.p[i] != '/')
                        return false;
        return true;
}

/* The 32 digits of a UUID; the dashes between its groups may be missing. */
static bool uuid_digits(struct str s, char digits[32])
{
        size_t n = 0, i;

        for (i = 0; i < s.n && n < 32; i++) {
                if (s.p[i] == '-' && i > 0 && s.p[i - 1] != '-' && (n == 8 || n == 12 || n == 16 || n == 20))
                        continue;
                if (!is_hex(s.p[i]))
                        return false;
                digits[n++] = (char)(s.p[i] | 0x20);
        }
        return n == 32 && i == s.n;
}

static bool valid_uuid(struct str s)
{
        char digits[32];

        return uuid_digits(s, digits);
}

static bool valid_uuid3(struct str s)
{
        char digits[32];

        return uuid_digits(s, digits) && digits[12] == '3';
}

static bool versioned_uuid(struct str s, char version)
{
        char digits[32];

        return uuid_digits(s, digits) && digits[12] == version && strchr("89ab", digits[16]);
}

static bool valid_uuid4(struct str s)
{
        return versioned_uuid(s, '4');
}

static bool valid_uuid5(struct str s)
{
        return versioned_uuid(s, '5');
}

static bool valid_password(struct str s)
{
        return true;
}

static const struct schema_format formats[] = {
        {"byte", valid_byte},         {"cidr", valid_cidr},
        {"date", valid_date},         {"datetime", valid_date_time},
        {"duration", valid_duration}, {"email", valid_email},
        {"hostname", valid_hostname}, {"ipv4", valid_ipv4},
        {"ipv6", valid_ipv6},         {"mac", valid_mac},
        {"password", valid_password}, {"uri", valid_uri},
        {"uuid", valid_uuid},         {"uuid3", valid_uuid3},
        {"uuid4", valid_uuid4},       {"uuid5", valid_uuid5},
};

/* Whether NAME without its dashes is KNOWN. */
static bool same_format(const char *name, const char *known)
{
        for (; *name; name++) {
                if (*name == '-')
                        continue;
                if (*name != *known++)
                        return false;
        }
        return *known == '\0';
}

const struct schema_format *schema_format_find(const char *name)
{
        for (size_t i = 0; i < ARRAY_LEN(formats); i++)
                if (same_format(name, formats[i].name))
                        return &formats[i];
        return NULL;
}

bool schema_format_unsupported(const char *name)
{
        static const char *const known[] = {"bsonobjectid", "isbn", "isbn10",   "isbn13",
                                            "creditcard",   "ssn",  "hexcolor", "rgbcolor"};

        for (size_t i = 0; i < ARRAY_LEN(known); i++)
                if (same_format(name, known[i]))
                        return true;
        return false;
}
