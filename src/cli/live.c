#include "cli/live.h"

#include <errno.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

enum { COLUMNS_DEFAULT = 80, ROWS_DEFAULT = 24, COLUMNS_MOST = 1000, FRAME_MAX = 256 * 1024 };

struct live {
        struct live_config config;
        unsigned columns, rows;
        struct io keys;
        struct termios before; /* of `in`, if has_before */
        bool has_before, shown, resized;
        struct buf last, next, out;
};

/* ---- what the terminal is told */

static void put(struct live *s, struct str text)
{
        while (text.n) {
                ssize_t n = write(s->config.out, text.p, text.n);

                if (n < 0 && errno == EINTR)
                        continue;
                if (n <= 0) /* nobody looks any more */
                        return;
                text = str_n(text.p + n, text.n - (size_t)n);
        }
}

static void measure(struct live *s)
{
        struct winsize size;

        s->columns = COLUMNS_DEFAULT;
        s->rows = ROWS_DEFAULT;
        if (ioctl(s->config.out, TIOCGWINSZ, &size) < 0 || !size.ws_col || !size.ws_row)
                return;
        s->columns = MIN((unsigned)size.ws_col, (unsigned)COLUMNS_MOST);
        s->rows = size.ws_row;
}

static void enter(struct live *s)
{
        struct termios raw = s->before;

        put(s, STR("\033[?25l"));
        s->shown = true;
        if (!s->has_before)
                return;
        raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
        raw.c_cc[VMIN] = 1;
        raw.c_cc[VTIME] = 0;
        (void)tcsetattr(s->config.in, TCSADRAIN, &raw);
}

static void leave(struct live *s)
{
        if (!s->shown)
                return;
        s->shown = false;
        put(s, STR("\033[?25h"));
        if (s->has_before)
                (void)tcsetattr(s->config.in, TCSADRAIN, &s->before);
}

/* ---- what it tells */

static void on_keys(struct io *io, uint32_t events)
{
        struct live *s = CONTAINER_OF(io, struct live, keys);
        char keys[64];
        ssize_t n = read(io->fd, keys, sizeof(keys));

        if (n <= 0 && errno != EAGAIN && errno != EINTR) {
                io_remove(&s->keys);
                return;
        }
        if (n > 0 && s->config.on_key)
                s->config.on_key(s->config.arg, keys[0]);
}

static void on_winch(void *arg, int signo)
{
        struct live *s = arg;

        measure(s);
        s->resized = true;
        s->config.on_resize(s->config.arg);
}

/* Ctrl-Z: the shell gets a terminal as it should be. We go on behind raise() when somebody says so. */
static void on_stop(void *arg, int signo)
{
        struct live *s = arg;

        leave(s);
        (void)raise(SIGSTOP);
        enter(s);
        measure(s);
        buf_clear(&s->last); /* the shell has written below it */
        s->config.on_resize(s->config.arg);
}

struct live *live_new(const struct live_config *config)
{
        struct live *s = xcalloc(1, sizeof(*s));

        *s = (struct live){.config = *config,
                           .last = BUF_INIT(FRAME_MAX),
                           .next = BUF_INIT(FRAME_MAX),
                           .out = BUF_INIT(2 * FRAME_MAX)};
        measure(s);
        s->has_before = tcgetattr(config->in, &s->before) == 0;
        if (s->has_before)
                (void)io_add(config->loop, &s->keys, config->in, EPOLLIN, on_keys);
        (void)loop_on_signal(config->loop, SIGWINCH, on_winch, s);
        (void)loop_on_signal(config->loop, SIGTSTP, on_stop, s);
        enter(s);
        return s;
}

void live_free(struct live *s)
{
        if (!s)
                return;
        (void)loop_on_signal(s->config.loop, SIGWINCH, NULL, NULL);
        (void)loop_on_signal(s->config.loop, SIGTSTP, NULL, NULL);
        io_remove(&s->keys);
        leave(s);
        buf_done(&s->last);
        buf_done(&s->next);
        buf_done(&s->out);
        free(s);
}

/* A full line would leave the cursor hanging at the edge. */
unsigned live_columns(const struct live *s)
{
        return MAX(s->columns, 2U) - 1;
}

void live_draw(struct live *s, struct str frame)
{
        struct buf last;

        buf_clear(&s->next);
        buf_clear(&s->out);
        /* The cursor needs a line below the frame. */
        frame_fit(frame, live_columns(s), MAX(s->rows, 2U) - 1, &s->next);
        if (s->resized)
                frame_redraw(buf_str(&s->last), buf_str(&s->next), s->columns, s->rows, &s->out);
        else
                frame_diff(buf_str(&s->last), buf_str(&s->next), &s->out);
        s->resized = false;
        put(s, buf_str(&s->out));
        last = s->last;
        s->last = s->next;
        s->next = last;
}
