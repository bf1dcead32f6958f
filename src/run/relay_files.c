/*
 * The run directory and the directory beside it: what changed, and how the workload ended.
 *
 * inotify says where to look, a look at everything each 10 s is the safety net: it also finds directories that were
 * replaced, and mounts that do not tell. What a read finds is judged as a whole: a text that cannot be read is a problem
 * only if it still cannot a second later, because somebody may be writing it.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "run/relay_internal.h"

enum { CLAIM_MAX = 128, EVENTS_MAX = 4096 };
enum { LOOK_STATUS = 1, LOOK_END = 2, LOOK_DATA = 4, LOOK_ALL = 7 };

#define TORN_FOR  (1 * USEC_PER_SEC) /* a bad text may be one that is being written */
#define DOUBT_FOR (20 * USEC_PER_MS) /* a process that is being killed lets go of one thing after the other */
#define WATCH_FOR ((uint32_t)(IN_MOVED_TO | IN_CLOSE_WRITE | IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR))

static void look(struct relay *r, unsigned what);

static usec_t now(const struct relay *r)
{
        return loop_now(r->config.loop);
}

/* ---- the status file */

static void take_status(struct relay *r, const struct run_status *s)
{
        char *text = json_print(&r->scratch, run_status_json(&r->scratch, s));

        if (s->sequence)
                r->file_sequence = s->sequence;
        r->phase_over = run_phase_terminal(s->phase);
        r->phase_failed = streq(s->phase, "Failed");
        if (streq(text, r->status)) /* as an earlier relay has sent it */
                return;
        free(r->status);
        r->status = xstrdup(text);
        if (track_event(&r->track, s, loop_wall(r->config.loop)))
                r->track_changed = true;
        r->state = RUN_RUNNING;
        r->dirty = true;
}

static void status_refused(struct relay *r, const struct err *err)
{
        if (!r->bad_since)
                r->bad_since = now(r);
        if (now(r) - r->bad_since >= TORN_FOR || r->ended || r->flushing)
                relay_problem(r, ABOUT_STATUS, err->text);
        else if (!timer_pending(&r->recheck))
                timer_at(&r->recheck, r->bad_since + TORN_FOR);
}

/* Above 0: it was read and is valid. 0: there is none, or it is the one that was taken last. Below 0: what is wrong. */
static int read_status(struct relay *r, struct run_status *ret, struct err *err)
{
        int fd = r->places[PLACE_DIR].fd;
        int got = fd < 0 ? 1 : run_file_read(fd, RUN_STATUS_FILE, RUN_STATUS_FILE_MAX, &r->text, err);
        uint64_t hash;

        if (got)
                return got < 0 ? -1 : 0;
        hash = str_hash(buf_str(&r->text)) | 1;
        if (hash == r->text_hash)
                return 0;
        arena_reset(&r->scratch, RUN_STATUS_FILE_MAX);
        if (run_status_parse(&r->scratch, buf_str(&r->text), loop_wall(r->config.loop), ret, err) < 0)
                return -1;
        r->text_hash = hash;
        return 1;
}

static void look_at_status(struct relay *r)
{
        struct run_status s;
        struct err err = ERR_INIT;
        int got = read_status(r, &s, &err);

        if (got < 0) {
                status_refused(r, &err);
                return;
        }
        r->bad_since = 0;
        relay_problem(r, ABOUT_STATUS, NULL);
        if (!got || r->phase_over)
                return;
        if (s.sequence && s.sequence < r->file_sequence) {
                LOG_DEBUG(r->config.log, "Ignoring a status file that is older than the last one",
                          F_UINT("sequence", s.sequence));
                return;
        }
        take_status(r, &s);
}

static void restore_track(struct relay *r, const char *text)
{
        struct json *j = text ? json_parse(&r->scratch, str_of(text), NULL, NULL) : NULL;

        if (!j || track_parse(j, &r->track, NULL) < 0)
                r->track = (struct track){0};
}

void relay_files_restore(struct relay *r, const struct json *data)
{
        const char *text = json_str(data, RUN_KEY_STATUS);
        struct run_status s;

        if (!r->adopted)
                restore_track(r, json_str(data, RUN_KEY_TRACK));
        if (!text || streq(text, r->status) ||
            run_status_parse(&r->scratch, str_of(text), loop_wall(r->config.loop), &s, NULL) < 0)
                return;
        /* What came late from a relay before this one is mostly older than what we know. But the last phase is the last. */
        if (r->adopted && !run_phase_terminal(s.phase) && s.sequence <= r->file_sequence)
                return;
        free(r->status);
        r->status = xstrdup(text);
        r->file_sequence = MAX(r->file_sequence, s.sequence);
        r->phase_over = run_phase_terminal(s.phase);
        r->phase_failed = streq(s.phase, "Failed");
}

/* ---- the end */

/* `run` holds a lock on its file while it lives. False also when there is no such file. */
static bool lock_is_free(const struct relay *r)
{
        _cleanup_(fd_close) int fd = openat(r->places[PLACE_CTL].fd, RUN_STARTED_FILE,
                                            O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

        return fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) == 0;
}

static bool has_started(const struct relay *r)
{
        struct stat st;

        return fstatat(r->places[PLACE_CTL].fd, RUN_STARTED_FILE, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
               S_ISREG(st.st_mode);
}

/*
 * A hang-up is the end of `run`, unless it still holds its lock a moment later: then something else opened and closed
 * the FIFO before `run` did.
 */
static bool run_is_dead(struct relay *r, bool started)
{
        if (!started || lock_is_free(r))
                return started || r->hung_up;
        if (r->hung_up && !r->doubted)
                timer_after(&r->recheck, DOUBT_FOR);
        else
                r->hung_up = false;
        r->doubted = r->hung_up;
        return false;
}

static bool read_exit(struct relay *r)
{
        _cleanup_(buf_done) struct buf text = BUF_INIT(RUN_EXIT_FILE_MAX);
        struct err err = ERR_INIT;
        int got = run_file_read(r->places[PLACE_CTL].fd, RUN_EXIT_FILE, RUN_EXIT_FILE_MAX, &text, &err);

        if (got == 1)
                return false;
        if (got == 0 && run_exit_parse(&r->exit_arena, buf_str(&text), &r->exit, &err) == 0)
                return true;
        LOG_WARN(r->config.log, "Cannot read how the workload ended", F_ERR(&err));
        arena_reset(&r->exit_arena, 0);
        return false;
}

static void look_at_end(struct relay *r)
{
        bool started, dead;

        if (r->ended || r->places[PLACE_CTL].fd < 0)
                return;
        started = has_started(r);
        if (started && r->state == RUN_PENDING) {
                r->state = RUN_RUNNING;
                r->dirty = true;
        }
        dead = run_is_dead(r, started); /* asked first: one that lives now may still write how it ended */
        if (read_exit(r)) {
                r->ended = true;
        } else if (dead) {
                r->exit = (struct run_exit){
                        .code = -1, .lost = true, .finished_at = loop_wall(r->config.loop)};
                r->ended = true;
        }
        if (!r->ended)
                return;
        LOG_INFO(r->config.log, "The workload has ended",
                 F_STR("how", run_exit_sentence(&r->exit_arena, &r->exit)));
        look(r, LOOK_STATUS | LOOK_DATA); /* nobody writes any more: this is how it stays */
}

/* ---- looking */

static void look(struct relay *r, unsigned what)
{
        if (what & LOOK_STATUS)
                look_at_status(r);
        if (what & LOOK_DATA)
                relay_data_look(r);
        if (what & LOOK_END)
                look_at_end(r);
}

static void hung_up(struct io *io, uint32_t events)
{
        struct relay *r = CONTAINER_OF(io, struct relay, alive);

        io_remove(io);
        fd_close(TAKE_FD(r->alive_fd));
        r->hung_up = true;
        if (!r->adopted)
                return;
        look(r, LOOK_END);
        relay_pump(r);
}

/* Only a hang-up is of interest, and that is always told; what somebody may write into it is not read. */
static void open_alive(struct relay *r)
{
        struct stat st;
        int fd;

        if (r->alive_fd >= 0 || r->hung_up || r->places[PLACE_CTL].fd < 0)
                return;
        if (fstatat(r->places[PLACE_CTL].fd, RUN_ALIVE_FILE, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
            !S_ISFIFO(st.st_mode))
                return;
        fd = openat(r->places[PLACE_CTL].fd, RUN_ALIVE_FILE, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
        if (fd >= 0 && io_add(r->config.loop, &r->alive, fd, 0, hung_up) == 0)
                r->alive_fd = fd;
        else
                fd_close(fd);
}

/*
 * The directory may be another one by now. A watch of the same one is the same again. One that is not there may come yet;
 * what else is wrong stays until somebody hears of it.
 */
static void refresh(struct relay *r, struct relay_place *p, struct err *err)
{
        int watch = r->inotify.fd < 0 ? -1 : inotify_add_watch(r->inotify.fd, p->path, WATCH_FOR);

        if (p->watch >= 0 && p->watch != watch)
                inotify_rm_watch(r->inotify.fd, p->watch);
        p->watch = watch;
        fd_close(p->fd);
        p->fd = open(p->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (p->fd < 0 && errno != ENOENT)
                err_errno(err, E_IO, errno, "cannot open the directory %s", p->path);
}

static void refresh_all(struct relay *r)
{
        struct err err = ERR_INIT;

        for (size_t i = 0; i < PLACES; i++)
                refresh(r, &r->places[i], &err);
        relay_problem(r, ABOUT_PLACES, err.code ? err.text : NULL);
        open_alive(r);
}

void relay_files_look(struct relay *r)
{
        refresh_all(r);
        if (r->adopted)
                look(r, LOOK_ALL);
}

static usec_t until_rescan(const struct relay *r)
{
        for (size_t i = 0; i < PLACES; i++)
                if (r->places[i].fd >= 0 && r->places[i].watch < 0)
                        return RELAY_RESCAN_BLIND;
        return r->inotify.fd < 0 ? RELAY_RESCAN_BLIND : RELAY_RESCAN;
}

static void on_rescan(struct timer *t)
{
        struct relay *r = CONTAINER_OF(t, struct relay, rescan);

        relay_files_look(r);
        timer_after(&r->rescan, until_rescan(r));
        relay_pump(r);
}

static void on_recheck(struct timer *t)
{
        struct relay *r = CONTAINER_OF(t, struct relay, recheck);

        look(r, LOOK_STATUS | LOOK_END);
        if (!r->over)
                open_alive(r);
        relay_pump(r);
}

/* ---- inotify */

static unsigned what_changed(const struct relay *r, const struct inotify_event *ev)
{
        static const struct {
                int place;
                const char *name;
                unsigned what;
        } names[] = {
                {PLACE_DIR, RUN_STATUS_FILE, LOOK_STATUS},   {PLACE_DIR, RUN_RESULT_FILE, LOOK_DATA},
                {PLACE_DIR, RUN_CHECKPOINT_FILE, LOOK_DATA}, {PLACE_CTL, RUN_EXIT_FILE, LOOK_END},
                {PLACE_CTL, RUN_STARTED_FILE, LOOK_END},
        };
        unsigned what = ev->mask & IN_Q_OVERFLOW ? LOOK_ALL : 0;

        for (size_t i = 0; ev->len && i < ARRAY_LEN(names); i++)
                if (r->places[names[i].place].watch == ev->wd && streq(ev->name, names[i].name))
                        what |= names[i].what;
        return what;
}

static void forget_watch(struct relay *r, int watch)
{
        for (size_t i = 0; i < PLACES; i++)
                if (r->places[i].watch == watch)
                        r->places[i].watch = -1;
}

static unsigned read_events(struct relay *r)
{
        char events[EVENTS_MAX] __attribute__((aligned(__alignof__(struct inotify_event))));
        unsigned what = 0;
        ssize_t n;

        while ((n = read(r->inotify.fd, events, sizeof(events))) > 0)
                for (char *p = events; p < events + n;) {
                        const struct inotify_event *ev = (const struct inotify_event *)(void *)p;

                        if (ev->mask & IN_IGNORED)
                                forget_watch(r, ev->wd);
                        what |= what_changed(r, ev);
                        p += sizeof(*ev) + ev->len;
                }
        return what;
}

static void on_inotify(struct io *io, uint32_t events)
{
        struct relay *r = CONTAINER_OF(io, struct relay, inotify);
        unsigned what = read_events(r);

        if (!what || !r->adopted) /* the first look is yet to come */
                return;
        look(r, what);
        relay_pump(r);
}

/* ---- the claim */

uint64_t relay_claim_read(const struct relay *r)
{
        _cleanup_(buf_done) struct buf text = BUF_INIT(CLAIM_MAX);
        struct str rest, number;
        uint64_t attempt;

        if (r->places[PLACE_CTL].fd < 0 ||
            run_file_read(r->places[PLACE_CTL].fd, RUN_CLAIM_FILE, CLAIM_MAX, &text, NULL) != 0)
                return 0;
        rest = str_trim(buf_str(&text));
        number = str_split(&rest, ' ');
        return str_to_u64(number, &attempt) && str_eq(rest, str_of(r->config.pod_uid)) ? attempt : 0;
}

/* Appears whole, and is not synced: it does not outlive the pod, and a slow disk must not hold up the first state. */
static int write_claim(int ctl_fd, struct str text, struct err *err)
{
        static const char tmp[] = "." RUN_CLAIM_FILE ".tmp";
        _cleanup_(fd_close) int fd = openat(ctl_fd, tmp,
                                            O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644);

        if (fd < 0)
                return err_errno(err, E_IO, errno, "cannot create %s", tmp);
        if (fd_write_all(fd, text, err) < 0)
                return -1;
        return renameat(ctl_fd, tmp, ctl_fd, RUN_CLAIM_FILE) < 0
                       ? err_errno(err, E_IO, errno, "cannot make %s", RUN_CLAIM_FILE)
                       : 0;
}

void relay_claim_write(const struct relay *r, uint64_t attempt)
{
        char text[CLAIM_MAX];
        struct err err = ERR_INIT;

        snprintf(text, sizeof(text), "%llu %s\n", (unsigned long long)attempt, r->config.pod_uid);
        if (write_claim(r->places[PLACE_CTL].fd, str_of(text), &err) < 0)
                LOG_WARN(r->config.log, "Cannot keep the attempt's number for a restart", F_ERR(&err));
}

/* ---- life */

/* A user has 128 inotify instances on a node, for all pods: without one it is slower, not dead. */
void relay_files_init(struct relay *r)
{
        int fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);

        r->alive_fd = -1;
        r->inotify.fd = -1;
        r->places[PLACE_DIR] = (struct relay_place){r->config.dir, -1, -1};
        r->places[PLACE_CTL] = (struct relay_place){r->config.ctl, -1, -1};
        r->text = (struct buf)BUF_INIT(RUN_STATUS_FILE_MAX);
        timer_init(&r->rescan, r->config.loop, on_rescan);
        timer_init(&r->recheck, r->config.loop, on_recheck);
        if (fd < 0 || io_add(r->config.loop, &r->inotify, fd, EPOLLIN, on_inotify) < 0) {
                LOG_WARN(r->config.log, "Cannot watch directories, looking every second instead",
                         F_STR("error", strerror(errno)));
                fd_close(fd);
                r->inotify.fd = -1;
        }
        refresh_all(r);
}

void relay_files_begin(struct relay *r)
{
        relay_files_look(r);
        timer_after(&r->rescan, until_rescan(r));
}

void relay_files_done(struct relay *r)
{
        if (r->inotify.loop) {
                io_remove(&r->inotify);
                fd_close(TAKE_FD(r->inotify.fd));
        }
        if (r->alive_fd >= 0) {
                io_remove(&r->alive);
                fd_close(TAKE_FD(r->alive_fd));
        }
        for (size_t i = 0; i < PLACES; i++)
                fd_close(TAKE_FD(r->places[i].fd));
        timer_cancel(&r->rescan);
        timer_cancel(&r->recheck);
}
