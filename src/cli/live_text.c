/*
 * Text and frames as a terminal shows them.
 */
#include "cli/live.h"

#include <math.h>

#include "cli/show.h"

enum { ESCAPE = 0x1b };

/* ---- text */

/* Bytes of the colour at the begin of S; 0: there is none. */
static size_t colour_length(struct str s)
{
        size_t i = 2;

        if (s.n < 3 || s.p[0] != ESCAPE || s.p[1] != '[')
                return 0;
        while (i < s.n && ((s.p[i] >= '0' && s.p[i] <= '9') || s.p[i] == ';'))
                i++;
        return i < s.n && s.p[i] == 'm' ? i + 1 : 0;
}

/* The character or colour at the begin of S, which is not empty; takes it off. */
static struct str take_piece(struct str *s, bool *ret_colour)
{
        unsigned char first = (unsigned char)s->p[0];
        size_t n = colour_length(*s);
        struct str piece;

        *ret_colour = n > 0;
        if (!n)
                n = first < 0xc0 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
        piece = str_n(s->p, MIN(n, s->n));
        *s = str_n(s->p + piece.n, s->n - piece.n);
        return piece;
}

unsigned live_width(struct str s)
{
        unsigned columns = 0;
        bool colour;

        while (s.n) {
                struct str piece = take_piece(&s, &colour);

                columns += colour ? 0 : (unsigned)text_width(piece);
        }
        return columns;
}

void live_text(struct buf *out, struct str s, unsigned columns)
{
        bool cut = live_width(s) > columns, full = false, colour;
        unsigned room = cut && columns ? columns - 1 : columns;

        while (s.n) {
                struct str piece = take_piece(&s, &colour);
                unsigned width = colour ? 0 : (unsigned)text_width(piece);

                if (!colour && !full && width > room) {
                        full = true;
                        buf_adds(out, columns ? "…" : "");
                }
                if (colour || !full) {
                        buf_addstr(out, piece);
                        room -= width;
                }
        }
}

void live_pad(struct buf *out, struct str s, unsigned columns)
{
        live_text(out, s, columns);
        for (unsigned n = live_width(s); n < columns; n++)
                buf_addc(out, ' ');
}

void live_bar(struct buf *out, double share, unsigned columns)
{
        static const char *const parts[] = {"·", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
        double clean = isnan(share) ? 0 : MIN(MAX(share, 0.0), 1.0);
        unsigned eighths = (unsigned)(clean * 8 * columns);

        for (unsigned i = 0; i < columns; i++)
                if (eighths >= 8 * (i + 1))
                        buf_adds(out, "█");
                else
                        buf_adds(out, eighths > 8 * i ? parts[eighths % 8] : "·");
}

/* ---- frames */

static unsigned lines_of(struct str frame)
{
        unsigned n = 0;

        for (size_t i = 0; i < frame.n; i++)
                n += frame.p[i] == '\n';
        return n;
}

void frame_fit(struct str frame, unsigned columns, unsigned rows, struct buf *out)
{
        unsigned n = lines_of(frame), shown = n > rows ? rows - 1 : n;

        if (!rows)
                return;
        for (unsigned i = 0; i < shown; i++) {
                live_text(out, str_split(&frame, '\n'), columns);
                buf_addc(out, '\n');
        }
        if (n > shown) {
                char more[64];

                snprintf(more, sizeof(more), "… %u more lines", n - shown);
                live_text(out, str_of(more), columns);
                buf_addc(out, '\n');
        }
}

#define SYNC_BEGIN "\033[?2026h"
#define SYNC_END   "\033[?2026l"
#define ERASE_LINE "\033[2K"
#define ERASE_DOWN "\033[J"

static void go_up(struct buf *out, unsigned lines)
{
        buf_addc(out, '\r');
        if (lines)
                buf_printf(out, "\033[%uA", lines);
}

void frame_diff(struct str before, struct str after, struct buf *out)
{
        unsigned had = lines_of(before), has = lines_of(after);

        if (str_eq(before, after))
                return;
        buf_adds(out, SYNC_BEGIN);
        go_up(out, had);
        for (unsigned i = 0; i < has; i++) {
                struct str old = i < had ? str_split(&before, '\n') : STR_NULL;
                struct str line = str_split(&after, '\n');

                if (i >= had || !str_eq(old, line)) {
                        buf_adds(out, i < had ? ERASE_LINE : "");
                        buf_addstr(out, line);
                        buf_addc(out, '\r');
                }
                buf_addc(out, '\n'); /* also where there was no line yet: it may scroll */
        }
        buf_adds(out, had > has ? ERASE_DOWN : "");
        buf_adds(out, SYNC_END);
}

void frame_redraw(struct str before, struct str after, unsigned columns, unsigned rows, struct buf *out)
{
        unsigned up = 0;

        while (before.n) {
                unsigned n = live_width(str_split(&before, '\n'));

                up += columns && n > columns ? (n + columns - 1) / columns : 1;
        }
        buf_adds(out, SYNC_BEGIN);
        go_up(out, MIN(up, rows ? rows - 1 : up));
        /* Not all at once: some terminals move what they erase from the first line on into their history. */
        for (unsigned i = 0, n = lines_of(after); i < n; i++) {
                buf_adds(out, ERASE_LINE);
                buf_addstr(out, str_split(&after, '\n'));
                buf_adds(out, "\r\n");
        }
        buf_adds(out, ERASE_DOWN);
        buf_adds(out, SYNC_END);
}
