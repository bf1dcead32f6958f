/*
 * Bytes into records and lines, and launches out.
 *
 * Before a header every line is looked at by itself; after it come records, which may have line ends inside quotes. A
 * record that lies whole in a piece is read where it lies; only one that is cut is copied. Its fields are found in one pass
 * that keeps the few that a layout asked for and steps over the rest.
 *
 * Quotes are strict: they begin with a field and end before a comma or the line's end. A line of somebody else's that breaks
 * this is passed over, and reading goes on with the line after it: so a stray quote never swallows records.
 */
#include "probe/ncu/reader_internal.h"

#include <endian.h>

enum { AGAIN_FREE = 64 << 20, AGAIN_TIMES = 16 };
enum { SCAN_FIELD, SCAN_PLAIN, SCAN_QUOTED, SCAN_CLOSED };
enum scanned { SCAN_MORE, SCAN_WHOLE, SCAN_DAMAGED };

struct ncu_reader *ncu_reader_new(void (*launch)(void *arg, const struct ncu_launch *launch), void *arg)
{
        struct ncu_reader *r = xcalloc(1, sizeof(*r));

        r->on_launch = launch;
        r->arg = arg;
        r->line = 1;
        r->begun = (struct buf)BUF_INIT(NCU_RECORD_MAX);
        return r;
}

void ncu_reader_free(struct ncu_reader *r)
{
        if (!r)
                return;
        buf_done(&r->begun);
        free(r->across);
        free(r);
}

enum ncu_layout ncu_reader_layout(const struct ncu_reader *r)
{
        return r->seen;
}

const char *ncu_layout_name(enum ncu_layout layout)
{
        static const char *const layouts[] = {"none", "wide", "long", "transposed", "text"};

        return layouts[layout];
}

/* ---- launches */

void ncu_open_clear(struct ncu_open *o)
{
        o->launch.kernel[0] = o->launch.device[0] = o->launch.cc[0] = '\0';
        o->launch.has = 0;
        o->kernel_rank = UINT32_MAX;
        o->major[0] = o->minor[0] = '\0';
        o->id_n = o->process_n = 0;
}

void ncu_open_give(struct ncu_reader *r, struct ncu_open *o)
{
        if (!o->launch.cc[0] && o->major[0] && o->minor[0])
                snprintf(o->launch.cc, sizeof(o->launch.cc), "%s.%s", o->major, o->minor);
        r->launches++;
        r->seen = r->layout;
        r->on_launch(r->arg, &o->launch);
}

struct ncu_open *ncu_open_new(struct ncu_reader *r)
{
        struct ncu_open *o;

        if (r->n_open == NCU_OPEN_MAX) {
                ncu_open_give(r, &r->open[r->first_open]);
                r->first_open = (r->first_open + 1) % NCU_OPEN_MAX;
                r->n_open--;
        }
        o = &r->open[(r->first_open + r->n_open++) % NCU_OPEN_MAX];
        ncu_open_clear(o);
        return o;
}

void ncu_open_flush(struct ncu_reader *r)
{
        for (unsigned i = 0; i < r->n_open; i++)
                ncu_open_give(r, &r->open[(r->first_open + i) % NCU_OPEN_MAX]);
        for (size_t i = 0; i < r->n_across; i++)
                if (r->across[i].launch.kernel[0] || r->across[i].launch.has) /* else it was none: "ID,3" */
                        ncu_open_give(r, &r->across[i]);
        r->first_open = r->n_open = 0;
        r->n_across = 0;
}

static void copy(char *to, size_t size, struct str text)
{
        text.n = utf8_cut(text.p, text.n, size - 1);
        memcpy(to, text.p, text.n);
        to[text.n] = '\0';
}

/* With doubled quotes single again. Kernels may differ in what is cut off: a number stands for it. */
static void take_kernel(struct ncu_open *o, unsigned rank, struct str text)
{
        uint32_t hash = 2166136261u;
        char *to = o->launch.kernel;
        size_t n = 0;

        text = str_trim(text);
        if (!text.n || rank >= o->kernel_rank)
                return;
        o->kernel_rank = rank;
        for (size_t i = 0; i < text.n; i++) {
                hash = (hash ^ (unsigned char)text.p[i]) * 16777619u;
                if (n <= NCU_NAME_MAX)
                        to[n++] = text.p[i];
                i += text.p[i] == '"' && i + 1 < text.n && text.p[i + 1] == '"';
        }
        if (n > NCU_NAME_MAX) {
                n = utf8_cut(to, n, NCU_NAME_MAX - 12);
                snprintf(to + n, NCU_NAME_MAX + 1 - n, "…#%08x", hash);
        } else {
                to[n] = '\0';
        }
}

static int refuse(const struct ncu_reader *r, const struct ncu_name *name, struct str text, struct str unit,
                  enum ncu_value how, struct err *err)
{
        text.n = utf8_cut(text.p, text.n, 60);
        unit.n = utf8_cut(unit.p, unit.n, 30);
        if (how == NCU_BAD)
                return err_set(err, E_INVALID,
                               "line %llu: %s: '%.*s' is no value of this metric in the unit '%.*s'",
                               (unsigned long long)r->line, name->text.p, STR_ARG(text), STR_ARG(unit));
        return err_set(
                err, E_INVALID,
                "line %llu: %s: '%.*s' %.*s can be read in two ways; print the report again with LC_ALL=C",
                (unsigned long long)r->line, name->text.p, STR_ARG(text), STR_ARG(unit));
}

static void take_attribute(struct ncu_open *o, const struct ncu_name *name, struct str text)
{
        text = str_trim(text);
        if (name->what == NCU_IS_KERNEL)
                take_kernel(o, name->rank, text);
        else if (name->what == NCU_IS_DEVICE && !o->launch.device[0])
                copy(o->launch.device, sizeof(o->launch.device), text);
        else if (name->what == NCU_IS_CC && text.n < sizeof(o->launch.cc))
                copy(o->launch.cc, sizeof(o->launch.cc), text);
        else if (name->what == NCU_IS_CC_MAJOR && text.n < sizeof(o->major))
                copy(o->major, sizeof(o->major), text);
        else if (name->what == NCU_IS_CC_MINOR && text.n < sizeof(o->minor))
                copy(o->minor, sizeof(o->minor), text);
}

int ncu_open_take(struct ncu_reader *r, struct ncu_open *o, const struct ncu_name *name, struct str text,
                  struct str unit, struct err *err)
{
        uint32_t bit = 1u << name->what;
        enum ncu_value how;
        double value;

        if (!text.p)
                return 0;
        if (name->what >= NCU_METRICS) {
                take_attribute(o, name, text);
                return 0;
        }
        if ((o->launch.has & bit) && o->rank[name->what] <= name->rank)
                return 0;
        if (name->kind != NCU_NAME_FULL && !ncu_unit_fits((enum ncu_metric)name->what, unit))
                return 0; /* of another metric with the same label */
        how = ncu_value_read_after((enum ncu_metric)name->what, text, unit, &r->point, &value);
        if (how == NCU_BAD || how == NCU_AMBIGUOUS)
                return refuse(r, name, text, unit, how, err);
        if (how == NCU_OK) {
                o->launch.has |= bit;
                o->launch.value[name->what] = value;
                o->rank[name->what] = (uint8_t)name->rank;
        }
        return 0;
}

/* ---- records */

static inline size_t find_quote(const char *p, size_t i, size_t n)
{
        const uint64_t ones = 0x0101010101010101ull, tops = 0x8080808080808080ull;

        for (; n - i >= 8; i += 8) {
                uint64_t w, zero;

                memcpy(&w, p + i, sizeof(w));
                w = le64toh(w) ^ (ones * '"');
                zero = (w - ones) & ~w & tops; /* only the lowest mark is sure to be right */
                if (zero)
                        return i + (size_t)(__builtin_ctzll(zero) >> 3);
        }
        while (i < n && p[i] != '"')
                i++;
        return i;
}

static inline void end_field(struct ncu_scan *s, const uint32_t *wanted, size_t end)
{
        if (s->column++ == wanted[s->taken]) {
                s->slot[s->taken].from = (uint32_t)s->field;
                s->slot[s->taken++].n = (uint32_t)(end - s->field);
        }
        s->state = SCAN_FIELD;
}

/* C follows a quote that was inside quotes. */
static inline enum scanned end_quoted(struct ncu_scan *s, const uint32_t *wanted, char c)
{
        if (c == ',' || c == '\n')
                end_field(s, wanted, s->close);
        else if (c == '"')
                s->state = SCAN_QUOTED;
        else if (c != '\r' && c != ' ')
                return SCAN_DAMAGED;
        return c == '\n' ? SCAN_WHOLE : SCAN_MORE;
}

/* Goes on with the record that begins at P. WHOLE: it ends before s->at. A field falls through its states in one go. */
static enum scanned scan(struct ncu_scan *s, const uint32_t *wanted, const char *p, size_t n)
{
        enum scanned done = SCAN_MORE;
        size_t i = s->at;

        while (i < n && done == SCAN_MORE) {
                switch (s->state) {
                case SCAN_FIELD:
                        s->field = i + (p[i] == '"');
                        s->state = p[i] == '"' ? SCAN_QUOTED : SCAN_PLAIN;
                        i = s->field;
                        if (s->state == SCAN_PLAIN)
                                break;
                        __attribute__((fallthrough));
                case SCAN_QUOTED:
                        i = find_quote(p, i, n);
                        if (i == n)
                                break;
                        s->close = i++;
                        s->state = SCAN_CLOSED;
                        if (i == n)
                                break;
                        __attribute__((fallthrough));
                case SCAN_CLOSED:
                        done = end_quoted(s, wanted, p[i++]);
                        break;
                default:
                        while (i < n && p[i] != ',' && p[i] != '\n')
                                i++;
                        if (i == n)
                                break;
                        end_field(s, wanted, i);
                        done = p[i++] == '\n' ? SCAN_WHOLE : SCAN_MORE;
                }
        }
        s->at = i;
        return done;
}

static void begin_record(struct ncu_reader *r)
{
        r->scan.at = 0;
        r->scan.column = r->scan.taken = 0;
        r->scan.state = SCAN_FIELD;
}

static struct str without_end(const char *p, size_t n)
{
        n -= n && p[n - 1] == '\n';
        n -= n && p[n - 1] == '\r';
        return str_n(p, n);
}

/* What is no text at all is told at once, with what to do. */
static int check_magic(struct str line, struct err *err)
{
        if (str_has_prefix(line, STR("NVR\0")))
                return err_set(err, E_INVALID,
                               "this is a binary report; print it first: ncu --import FILE --page raw --csv");
        if (str_has_prefix(line, STR("\xFF\xFE")) || str_has_prefix(line, STR("\xFE\xFF")))
                return err_set(err, E_INVALID,
                               "this is UTF-16, as some shells redirect; convert it first: iconv -f UTF-16 "
                               "-t UTF-8");
        return 0;
}

/* A line outside records: a header, a title, a row of text, or somebody else's. */
static int take_line(struct ncu_reader *r, struct str line, struct err *err)
{
        int is_header;

        if (r->line == 1 && check_magic(line, err) < 0)
                return -1;
        is_header = ncu_csv_header(r, line, err);
        return is_header ? MIN(is_header, 0) : ncu_text_line(r, line, err);
}

/* Somebody else's record may be a header, or a title of the text. */
static int take_record(struct ncu_reader *r, struct str record, struct err *err)
{
        int ours = ncu_csv_record(r, record, err);

        if (ours || memchr(record.p, '\n', record.n))
                return MIN(ours, 0);
        return take_line(r, record, err);
}

/* ---- pieces */

static bool in_records(const struct ncu_reader *r)
{
        return r->layout != NCU_LAYOUT_NONE && r->layout != NCU_LAYOUT_TEXT;
}

static enum scanned scan_line(struct ncu_scan *s, const char *p, size_t n)
{
        const char *end = memchr(p + s->at, '\n', n - s->at);

        s->at = end ? (size_t)(end - p) + 1 : n;
        return end ? SCAN_WHOLE : SCAN_MORE;
}

static uint64_t count_lines(const char *p, size_t n)
{
        uint64_t lines = 0;

        for (const char *end = p + n; (p = memchr(p, '\n', (size_t)(end - p))); p++)
                lines++;
        return lines;
}

/* What is left of a line that is passed over; 0: it goes on. */
static size_t skip_line(struct ncu_reader *r, const char *p, size_t n)
{
        const char *end = memchr(p, '\n', n);

        if (!end)
                return 0;
        r->skip = false;
        r->line++;
        begin_record(r);
        return (size_t)(end - p) + 1;
}

/*
 * A record of N bytes is none, and all but its first line is looked at again. That is little, unless each line of many begins
 * such a record: then it would not end.
 */
static int look_again(struct ncu_reader *r, size_t n, struct err *err)
{
        r->again += n;
        if (r->again > AGAIN_FREE + AGAIN_TIMES * r->fed)
                return err_set(
                        err, E_TOO_LARGE,
                        "line %llu: quotes begin here and in many lines before and do not end; leave out "
                        "what is not Nsight Compute's",
                        (unsigned long long)r->line);
        return 0;
}

/* Reads all records and lines that are whole. RET_USED: the rest is one that is not. P[0] begins one, or goes on with r->skip. */
static int process(struct ncu_reader *r, const char *p, size_t n, size_t *ret_used, struct err *err)
{
        size_t used = 0;

        while (used < n) {
                const char *at = p + used;
                enum scanned how;
                size_t end;
                int failed;

                if (r->skip) {
                        end = skip_line(r, at, n - used);
                        used = end ? used + end : n;
                        continue;
                }
                how = in_records(r) ? scan(&r->scan, r->wanted, at, n - used)
                                    : scan_line(&r->scan, at, n - used);
                if (how == SCAN_MORE)
                        break;
                r->skip = how == SCAN_DAMAGED;
                if (r->skip && look_again(r, r->scan.at, err) < 0)
                        return -1;
                if (r->skip)
                        continue;
                end = r->scan.at;
                failed = in_records(r) ? take_record(r, without_end(at, end), err)
                                       : take_line(r, without_end(at, end), err);
                if (failed < 0)
                        return -1;
                r->line += count_lines(at, end);
                begin_record(r);
                used += end;
        }
        *ret_used = used;
        return 0;
}

static int process_begun(struct ncu_reader *r, struct err *err)
{
        size_t used;

        if (process(r, r->begun.p, r->begun.n, &used, err) < 0)
                return -1;
        if (used)
                buf_consume(&r->begun, used);
        return 0;
}

/* The first line of what has begun is none of ours: what follows it may be. */
static int pass_over(struct ncu_reader *r, struct err *err)
{
        r->skip = true;
        return look_again(r, r->begun.n, err) < 0 ? -1 : process_begun(r, err);
}

static int pass_over_long(struct ncu_reader *r, struct err *err)
{
        if (in_records(r) && !memchr(r->begun.p, '\n', r->begun.n) && ncu_csv_has_id(r, buf_str(&r->begun)))
                return err_set(err, E_TOO_LARGE, "line %llu: a record has more than %d MiB",
                               (unsigned long long)r->line, NCU_RECORD_MAX >> 20);
        return pass_over(r, err);
}

/* The bytes of PIECE that may end what has begun: up to the end of its first line. */
static int add_begun(struct ncu_reader *r, struct str *piece, struct err *err)
{
        const char *end = memchr(piece->p, '\n', piece->n);
        size_t n = end ? (size_t)(end - piece->p) + 1 : piece->n;

        if (r->begun.n + n > NCU_RECORD_MAX)
                return pass_over_long(r, err);
        buf_add(&r->begun, piece->p, n);
        *piece = str_n(piece->p + n, piece->n - n);
        return process_begun(r, err);
}

int ncu_reader_feed(struct ncu_reader *r, struct str piece, struct err *err)
{
        enum { CHUNK = 1 << 20 }; /* so that what is left of one fits beside the next */

        r->fed += piece.n;
        while (piece.n) {
                size_t n = MIN(piece.n, (size_t)CHUNK), used;

                if (r->begun.n) {
                        struct str chunk = str_n(piece.p, n);

                        if (add_begun(r, &chunk, err) < 0)
                                return -1;
                        piece = str_n(chunk.p, piece.n - (n - chunk.n));
                        continue;
                }
                if (process(r, piece.p, n, &used, err) < 0)
                        return -1;
                buf_add(&r->begun, piece.p + used, n - used);
                piece = str_n(piece.p + n, piece.n - n);
        }
        return 0;
}

int ncu_reader_end(struct ncu_reader *r, struct err *err)
{
        if (r->begun.n && ncu_reader_feed(r, STR("\n"), err) < 0)
                return -1;
        while (r->begun.n)
                if (pass_over(r, err) < 0)
                        return -1;
        ncu_open_flush(r);
        if (r->launches)
                return 0;
        if (r->header_line)
                return err_set(err, E_INVALID,
                               "there is a header of Nsight Compute in line %llu, but no launch after it",
                               (unsigned long long)r->header_line);
        return err_set(err, E_INVALID,
                       "nothing of Nsight Compute is in it: neither a CSV header with ID and Kernel Name "
                       "(ncu --page "
                       "raw --csv), nor the window's export, nor a kernel's title in text");
}
