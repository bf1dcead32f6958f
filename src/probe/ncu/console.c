/*
 * What ncu says while it collects. Its lines come between those of the program, and both are cut into each other: a launch's
 * "0%....50%....100% - 8 passes" grows while the program prints, and a mark may stand in the middle of a line. So a mark
 * begins a line wherever it stands, and a launch is followed by what its dots and percentages say, whichever line has them.
 */
#include "probe/ncu/ncu.h"

enum {
        LINE_KEPT = 4096, /* of a longer one of ncu's the rest is passed over */
        MARK_MAX = 16,    /* the longest mark with room to spare */
        TEXT_MAX = 256,   /* of a detail and a warning, NUL included */
};

#define PROFILING "==PROF== Profiling \""

static const struct str MARKS[] = {STR("==PROF=="), STR("==ERROR=="), STR("==WARNING=="), STR("==REPLAY==")};

/* ---- failures */

/* The higher the rank, the nearer to the cause: of two with the same the first stays. */
enum {
        RANK_NONE,
        RANK_NOTHING,
        RANK_PROGRAM,
        RANK_VAGUE,
        RANK_LAUNCH,
        RANK_ERROR,
        RANK_NOT_LOADED,
        RANK_DRIVER,
        RANK_NO_GPU,
        RANK_COUNTERS,
};

struct sign {
        struct str text;
        enum ncu_failure failure;
        unsigned rank;
};

/* In a line of ncu's own. */
static const struct sign SAID_BY_NCU[] = {
        {STR("ERR_NVGPUCTRPERM"), NCU_FAILURE_PERMISSION, RANK_COUNTERS},
        {STR("permission to access NVIDIA GPU Performance Counters"), NCU_FAILURE_PERMISSION, RANK_COUNTERS},
        {STR("driver resource was unavailable"), NCU_FAILURE_IN_USE, RANK_COUNTERS},
        {STR("Cannot lock GPU clock frequencies on MIG"), NCU_FAILURE_MIG_CLOCKS, RANK_COUNTERS},
        {STR("LibraryNotLoaded"), NCU_FAILURE_DRIVER, RANK_DRIVER},
        {STR("failed to connect to the CUDA driver"), NCU_FAILURE_DRIVER, RANK_DRIVER},
        {STR("driver is not compatible with Nsight Compute"), NCU_FAILURE_DRIVER, RANK_DRIVER},
        {STR("Failed to load Nsight Compute CUDA modules"), NCU_FAILURE_DRIVER, RANK_DRIVER},
        {STR("No CUDA devices"), NCU_FAILURE_NO_GPU, RANK_NO_GPU},
        {STR("does not exist or is not an executable"), NCU_FAILURE_NOT_LOADED, RANK_NOT_LOADED},
        {STR("The application returned an error code"), NCU_FAILURE_PROGRAM, RANK_PROGRAM},
        {STR("No kernels were profiled"), NCU_FAILURE_NOTHING, RANK_NOTHING},
        {STR("Failed to profile \""), NCU_FAILURE_OTHER, RANK_LAUNCH},
        {STR("An error was reported by"), NCU_FAILURE_OTHER, RANK_VAGUE},
        {STR("An error occurred while trying to profile"), NCU_FAILURE_OTHER, RANK_NOTHING},
        {STR("For more information, see"), NCU_FAILURE_NONE, RANK_NONE},
};

/* In any line: what the CUDA runtime and the loader of a program print. */
static const struct sign SAID_BY_ANYONE[] = {
        {STR("no CUDA-capable device is detected"), NCU_FAILURE_NO_GPU, RANK_NO_GPU},
        {STR("CUDA_ERROR_NO_DEVICE"), NCU_FAILURE_NO_GPU, RANK_NO_GPU},
        {STR("Found no NVIDIA driver on your system"), NCU_FAILURE_NO_GPU, RANK_NO_GPU},
        {STR("error while loading shared libraries: libcuda.so"), NCU_FAILURE_NO_GPU, RANK_NO_GPU},
        {STR("error while loading shared libraries: libnvidia-"), NCU_FAILURE_NO_GPU, RANK_NO_GPU},
        {STR("CUDA driver version is insufficient"), NCU_FAILURE_DRIVER, RANK_DRIVER},
        {STR("error while loading shared libraries:"), NCU_FAILURE_NOT_LOADED, RANK_NOT_LOADED},
        {STR("' not found (required by "), NCU_FAILURE_NOT_LOADED, RANK_NOT_LOADED},
        {STR("symbol lookup error:"), NCU_FAILURE_NOT_LOADED, RANK_NOT_LOADED},
        {STR("Error loading shared library "), NCU_FAILURE_NOT_LOADED, RANK_NOT_LOADED},
        {STR("Error relocating "), NCU_FAILURE_NOT_LOADED, RANK_NOT_LOADED},
};

static bool contains(struct str s, struct str word)
{
        return s.n >= word.n && memmem(s.p, s.n, word.p, word.n);
}

/* TEXT into TO, which has room for SIZE bytes: it goes into JSON and onto terminals. */
static void keep(char *to, size_t size, struct str text)
{
        size_t n = utf8_cut(text.p, text.n, size - 1);
        bool valid = utf8_valid(text.p, n);

        for (size_t i = 0; i < n; i++) {
                unsigned char c = (unsigned char)text.p[i];

                to[i] = c < ' ' || c == 0x7f ? ' ' : (valid || c < 0x80) ? text.p[i] : '?';
        }
        to[n] = '\0';
}

static void fail(struct ncu_console *c, enum ncu_failure failure, unsigned rank, struct str text)
{
        if (rank <= c->rank)
                return;
        c->failure = failure;
        c->rank = rank;
        keep(c->detail, sizeof(c->detail), text);
}

static const struct sign *find(const struct sign *signs, size_t n, struct str text)
{
        for (size_t i = 0; i < n; i++)
                if (contains(text, signs[i].text))
                        return &signs[i];
        return NULL;
}

/* "The application returned an error code (9)." */
static void read_code(struct ncu_console *c, struct str text)
{
        int64_t code;

        (void)str_split(&text, '(');
        if (text.p && str_to_i64(str_split(&text, ')'), &code) && code >= 0 && code <= INT32_MAX)
                c->program_code = (int)code;
}

static void warn(struct ncu_console *c, struct str text)
{
        char kept[TEXT_MAX];

        keep(kept, sizeof(kept), text);
        for (size_t i = 0; i < c->n_warnings; i++)
                if (streq(c->warnings[i], kept))
                        return;
        if (c->n_warnings < NCU_WARNINGS_MAX && kept[0])
                memcpy(c->warnings[c->n_warnings++], kept, sizeof(kept));
}

static void take_complaint(struct ncu_console *c, struct str text, bool error)
{
        const struct sign *s = find(SAID_BY_NCU, ARRAY_LEN(SAID_BY_NCU), text);

        if (!s)
                s = find(SAID_BY_ANYONE, ARRAY_LEN(SAID_BY_ANYONE), text);
        if (s) {
                fail(c, s->failure, s->rank, text);
                if (s->failure == NCU_FAILURE_PROGRAM)
                        read_code(c, text);
                if (s->rank == RANK_LAUNCH)
                        c->running = false;
        } else if (error)
                fail(c, NCU_FAILURE_OTHER, RANK_ERROR, text);
        else if (!contains(text, STR("requires the --target-processes all option")))
                warn(c, text);
}

/* "1. gn_stats_kernel(const __half *, int)", after "Available Kernels:" */
static bool take_listed(struct ncu_console *c, struct str line)
{
        struct str rest = line;
        size_t n = strlen(c->detail);
        uint64_t number;

        if (!str_to_u64(str_trim(str_split(&rest, '.')), &number) || !rest.n || rest.p[0] != ' ')
                return false;
        if (c->failure == NCU_FAILURE_NOTHING && n + 2 < TEXT_MAX) {
                char whole[2 * TEXT_MAX];
                int len = snprintf(whole, sizeof(whole), "%s%s%.*s", c->detail, number == 1 ? ": " : ", ",
                                   (int)MIN(str_trim(rest).n, (size_t)TEXT_MAX), str_trim(rest).p);

                keep(c->detail, sizeof(c->detail), str_n(whole, (size_t)len));
        }
        return true;
}

/* ---- launches */

/* The length of `==PROF== Profiling "NAME" - N (3/20): ` at the front of LINE; 0: it is not all there. */
static size_t read_head(struct str line, struct str *ret_name, struct str *ret_of)
{
        size_t from = sizeof(PROFILING) - 1;

        for (size_t i = from; i < line.n; i++) {
                struct str rest = str_n(line.p + i + 1, line.n - i - 1), number;

                /* A name may have quotes of its own. */
                if (line.p[i] != '"' || !rest.n || (rest.p[0] != ':' && !str_has_prefix(rest, STR(" - "))))
                        continue;
                number = str_split(&rest, ':');
                if (!rest.p)
                        return 0;
                *ret_name = str_n(line.p + from, i - from);
                (void)str_split(&number, '(');
                (void)str_split(&number, '/');
                *ret_of = str_split(&number, ')');
                return (size_t)(rest.p - line.p);
        }
        return 0;
}

static bool digit(char ch)
{
        return ch >= '0' && ch <= '9';
}

/* The highest percentage in TEXT that stands after a dot, or at its front when it follows a head; below 0: none. */
static int read_percent(struct str text, bool at_front)
{
        int best = -1;

        for (size_t i = 0; i < text.n; i++) {
                size_t from = i;
                int value = 0;

                while (i < text.n && digit(text.p[i]) && i - from < 3)
                        value = value * 10 + (text.p[i++] - '0');
                if (i > from && i < text.n && text.p[i] == '%' && value <= 100 &&
                    (from ? text.p[from - 1] == '.' : at_front))
                        best = MAX(best, value);
        }
        return best;
}

/* "… - 8 passes" at the end of TEXT. */
static bool read_passes(struct str text, unsigned *ret)
{
        struct str rest = str_trim(text);
        const char *dash = NULL;
        uint64_t n;

        for (size_t i = 0; i + 2 < rest.n; i++)
                if (rest.p[i] == '-' && rest.p[i + 1] == ' ' && (i == 0 || rest.p[i - 1] == ' '))
                        dash = rest.p + i + 2;
        if (!dash)
                return false;
        rest.n -= (size_t)(dash - rest.p);
        rest.p = dash;
        if (!str_to_u64(str_split(&rest, ' '), &n) || n > 1000000 ||
            !(str_eq(rest, STR("pass")) || str_eq(rest, STR("passes"))))
                return false;
        *ret = (unsigned)n;
        return true;
}

static void finish_launch(struct ncu_console *c)
{
        c->launches++;
        c->percent = 100;
        c->running = false;
        c->passes_due = true;
}

static void begin_launch(struct ncu_console *c, struct str name, struct str of)
{
        if (c->running) /* nothing went wrong in between: its end was lost among the program's lines */
                finish_launch(c);
        keep(c->kernel, sizeof(c->kernel), name);
        if (!str_to_u64(of, &c->of))
                c->of = 0;
        c->begun = c->running = true;
        c->passes_due = false;
        c->percent = 0;
}

/* What LINE says of a launch; ENDED: it is whole. True: that was something new. */
static bool follow(struct ncu_console *c, struct str line, bool ended)
{
        uint64_t launches = c->launches;
        unsigned percent = c->percent, passes = c->passes;
        struct str name, of, tail = line;
        size_t head = str_has_prefix(line, STR(PROFILING)) ? read_head(line, &name, &of) : 0;
        bool begins = head && !c->begun;
        int now;

        if (begins)
                begin_launch(c, name, of);
        if (head)
                tail = str_trim(str_n(line.p + head, line.n - head));
        now = c->running && (head || (tail.n && tail.p[0] == '.')) ? read_percent(tail, head > 0) : -1;
        if (now >= 100)
                finish_launch(c);
        else if (now > (int)c->percent)
                c->percent = (unsigned)now;
        if (ended && (c->running || c->passes_due) && read_passes(tail, &c->passes)) {
                if (c->running && contains(tail, STR("100%")))
                        finish_launch(c);
                c->running = c->passes_due = false;
        }
        return begins || launches != c->launches || percent != c->percent || passes != c->passes;
}

/* ---- lines */

static struct str after_mark(struct str line, struct str mark)
{
        return str_trim(str_n(line.p + mark.n, line.n - mark.n));
}

static bool take_prof(struct ncu_console *c, struct str text)
{
        if (str_has_prefix(text, STR("Connected to process")))
                return c->connected = true;
        if (str_has_prefix(text, STR("Disconnected from process"))) {
                c->running = false;
                return c->disconnected = true;
        }
        if (str_has_prefix(text, STR("Report:"))) {
                struct str path = after_mark(text, STR("Report:"));

                if (path.n < sizeof(c->report) && !memchr(path.p, '\0', path.n)) {
                        memcpy(c->report, path.p, path.n);
                        c->report[path.n] = '\0';
                }
                return true;
        }
        return false;
}

static void take_program(struct ncu_console *c, struct str line)
{
        const struct sign *s = find(SAID_BY_ANYONE, ARRAY_LEN(SAID_BY_ANYONE), line);

        if (s)
                fail(c, s->failure, s->rank, str_trim(line));
}

/* A whole line, or what of it was before a mark. */
static bool take_line(struct ncu_console *c, struct str line)
{
        bool news = follow(c, line, true);

        c->begun = false;
        c->listing = c->listing && take_listed(c, line);
        if (str_has_prefix(line, MARKS[0]))
                return take_prof(c, after_mark(line, MARKS[0])) || news;
        if (str_has_prefix(line, MARKS[1]))
                take_complaint(c, after_mark(line, MARKS[1]), true);
        else if (str_has_prefix(line, MARKS[2]))
                take_complaint(c, after_mark(line, MARKS[2]), false);
        else if (str_has_prefix(line, MARKS[3]))
                c->replay = true;
        else if (str_has_prefix(line, STR("Available Kernels:")))
                c->listing = true;
        else
                take_program(c, line);
        return news;
}

static bool marked(struct str line)
{
        for (size_t m = 0; m < ARRAY_LEN(MARKS); m++)
                if (str_has_prefix(line, MARKS[m]))
                        return true;
        return false;
}

/* Where in LINE, from FROM on, a mark stands that is not its begin; 0: nowhere. */
static size_t find_mark(struct str line, size_t from)
{
        for (size_t i = MAX(from, (size_t)1); i < line.n; i++) {
                const char *at = memchr(line.p + i, '=', line.n - i);

                if (!at)
                        return 0;
                i = (size_t)(at - line.p);
                if (marked(str_n(at, line.n - i)))
                        return i;
        }
        return 0;
}

/* Adds a piece of a line, and cuts it where a mark stands. */
static bool add(struct ncu_console *c, struct str piece)
{
        bool news = false;

        while (piece.n) {
                size_t n = MIN(piece.n, LINE_KEPT - c->line.n), at;
                size_t from = c->line.n > MARK_MAX ? c->line.n - MARK_MAX : 0;

                if (n == 0 && marked(buf_str(&c->line)))
                        break;
                if (n == 0) { /* a program's endless line: ncu's may follow in it */
                        take_program(c, buf_str(&c->line));
                        buf_consume(&c->line, LINE_KEPT - MARK_MAX);
                        continue;
                }
                buf_add(&c->line, piece.p, n);
                piece.p += n;
                piece.n -= n;
                while ((at = find_mark(buf_str(&c->line), from))) {
                        news |= take_line(c, str_n(c->line.p, at));
                        buf_consume(&c->line, at);
                        from = 0;
                }
        }
        return news;
}

/* How many bytes of PIECE are before the end of a line; all of them: there is none. */
static size_t line_length(struct str piece)
{
        const char *end = memchr(piece.p, '\n', piece.n), *cr;
        size_t n = end ? (size_t)(end - piece.p) : piece.n;

        cr = memchr(piece.p, '\r', n);
        return cr ? (size_t)(cr - piece.p) : n;
}

bool ncu_console_feed(struct ncu_console *c, struct str piece)
{
        bool news = false;

        while (piece.n) {
                size_t n = line_length(piece);

                news |= add(c, str_n(piece.p, n));
                if (n < piece.n) {
                        news |= take_line(c, buf_str(&c->line));
                        buf_clear(&c->line);
                        n++;
                }
                piece.p += n;
                piece.n -= n;
        }
        return follow(c, buf_str(&c->line), false) || news;
}

void ncu_console_init(struct ncu_console *c)
{
        *c = (struct ncu_console){.program_code = -1, .line = BUF_INIT(LINE_KEPT)};
}

void ncu_console_done(struct ncu_console *c)
{
        buf_done(&c->line);
}
