/*
 * Processes that belong to a container, found in /proc.
 *
 * A container has a mount namespace of its own, in which the file for its termination message is mounted; its
 * descendants keep that whoever their parent has become. So they are found by the name of that file in their mountinfo,
 * also when their supervisor was killed, and nobody else ever is: pids and numbers of namespaces are used again at once.
 * Where there is no namespace, their session does it.
 */
#include "local/node_private.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

enum { MOUNTINFO_MAX = 8 << 20, STAT_MAX = 4096, FIELD_STATE = 3, FIELD_SESSION = 6, FIELD_START = 22 };

/* Field N (from 3) of /proc/PID/stat; the second, a name in parentheses, may hold anything. */
static bool stat_field(struct str text, int n, struct str *ret)
{
        const char *close = memrchr(text.p, ')', text.n);
        struct str rest;

        if (!close || close + 2 > text.p + text.n)
                return false;
        rest = str_n(close + 2, text.n - (size_t)(close + 2 - text.p));
        for (int i = FIELD_STATE; rest.p; i++) {
                *ret = str_split(&rest, ' ');
                if (i == n)
                        return true;
        }
        return false;
}

static bool read_stat(pid_t pid, struct buf *out)
{
        char path[64];

        snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
        return file_read(path, out, NULL) == 0 && out->n > 0;
}

static bool start_and_state(pid_t pid, uint64_t *ret_start, char *ret_state)
{
        _cleanup_(buf_done) struct buf text = BUF_INIT(STAT_MAX);
        struct str field;

        if (!read_stat(pid, &text) || !stat_field(buf_str(&text), FIELD_STATE, &field) || !field.n)
                return false;
        *ret_state = field.p[0];
        return stat_field(buf_str(&text), FIELD_START, &field) && str_to_u64(field, ret_start);
}

bool proc_identify(pid_t pid, struct proc_id *ret)
{
        char state;

        ret->pid = pid;
        return start_and_state(pid, &ret->start, &state);
}

bool proc_alive(struct proc_id id)
{
        uint64_t start;
        char state;

        return id.pid > 0 && start_and_state(id.pid, &start, &state) && start == id.start && state != 'Z' &&
               state != 'X';
}

const char *proc_boot_id(struct arena *a)
{
        _cleanup_(buf_done) struct buf text = BUF_INIT(STAT_MAX);
        struct str id;

        if (file_read("/proc/sys/kernel/random/boot_id", &text, NULL) < 0)
                return "";
        id = str_trim(buf_str(&text));
        return arena_strndup(a, id.p, id.n);
}

uint64_t proc_mount_ns(pid_t pid)
{
        char path[64], target[64];
        struct str text;
        uint64_t number;
        ssize_t n;

        snprintf(path, sizeof(path), "/proc/%d/ns/mnt", (int)pid);
        n = readlink(path, target, sizeof(target));
        text = str_n(target, n > 0 ? (size_t)n : 0);
        if (!str_has_prefix(text, STR("mnt:[")) || !str_has_suffix(text, STR("]")))
                return 0;
        return str_to_u64(str_n(text.p + 5, text.n - 6), &number) ? number : 0;
}

static bool in_session(pid_t pid, pid_t sid)
{
        _cleanup_(buf_done) struct buf text = BUF_INIT(STAT_MAX);
        struct str field;
        int64_t session;

        return read_stat(pid, &text) && stat_field(buf_str(&text), FIELD_SESSION, &field) &&
               str_to_i64(field, &session) && session == sid;
}

static bool is_zombie(pid_t pid)
{
        uint64_t start;
        char state = 'Z';

        return !start_and_state(pid, &start, &state) || state == 'Z' || state == 'X';
}

char *proc_mark(struct arena *a, const char *uid, const char *container, unsigned restart)
{
        /* The blank ends the name in mountinfo: main-1 is not main-10. */
        return container ? arena_printf(a, "/%s/messages/%s-%u ", uid, container, restart)
                         : arena_printf(a, "/%s/messages/", uid);
}

/* Whether something whose name holds MARK is mounted where PID is. OWN: our own namespace, where it is not. */
static bool has_mounted(pid_t pid, const char *mark, uint64_t own)
{
        _cleanup_(buf_done) struct buf text = BUF_INIT(MOUNTINFO_MAX);
        uint64_t ns = proc_mount_ns(pid);
        char path[64];

        if (!ns || ns == own)
                return false;
        snprintf(path, sizeof(path), "/proc/%d/mountinfo", (int)pid);
        return file_read(path, &text, NULL) == 0 && text.n && memmem(text.p, text.n, mark, strlen(mark));
}

size_t proc_kill_members(const char *mark, pid_t sid, int signo)
{
        DIR *dir = opendir("/proc");
        uint64_t own = proc_mount_ns(getpid());
        struct dirent *entry;
        size_t n = 0;

        if (!dir)
                return 0;
        while ((entry = readdir(dir))) {
                int64_t pid;

                if (!str_to_i64(str_of(entry->d_name), &pid) || pid == getpid() || pid <= 1)
                        continue;
                if (!has_mounted((pid_t)pid, mark, own) && (!sid || !in_session((pid_t)pid, sid)))
                        continue;
                if (is_zombie((pid_t)pid))
                        continue;
                n++;
                kill((pid_t)pid, signo);
        }
        closedir(dir);
        return n;
}
