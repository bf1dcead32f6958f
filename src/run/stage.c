/*
 * The init container: the binary, the FIFO, a clean directory, the last checkpoint. All of it may be done again, after an
 * interruption or because the pod's sandbox was made anew.
 */
#include "run/pod.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "run/fence.h"
#include "run/gzip.h"
#include "run/stage_private.h"

#define TARGET_DEFAULT "/sonde/sonde-pod"

enum {
        PROGRAM_MODE = 0755,
        CTL_MODE = 0770, /* the containers of a pod share user or group */
        FIFO_MODE = 0660,
        DIR_MODE = 0775,
        HASH_MAX = 4096,
        STORED_MAX = 1 << 20,      /* of a ConfigMap */
        CHECKPOINT_MAX = 32 << 20, /* unpacked */
};

/* ---- the binary */

static int stage_program(const char *program, const char *target, struct err *err)
{
        _cleanup_(fd_close) int from = open(program, O_RDONLY | O_CLOEXEC);

        if (from < 0)
                return err_errno(err, E_IO, errno, "cannot open %s", program);
        return file_copy(from, target, PROGRAM_MODE, err);
}

/* ---- the control directory */

/* MODE whatever the umask, and still setgid where the volume is. */
static int widen(int dir_fd, const char *name, unsigned mode, const char *where, struct err *err)
{
        struct stat st;

        if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
                return err_errno(err, E_IO, errno, "cannot look at %s/%s", where, name);
        if ((st.st_mode & mode) == mode || st.st_uid != geteuid())
                return 0; /* who made it has decided */
        if (fchmodat(dir_fd, name, (st.st_mode & 07777) | mode, 0) < 0)
                return err_errno(err, E_IO, errno, "cannot give access to %s/%s", where, name);
        return 0;
}

/* A FIFO that is there is used again: a relay may have it open. */
static int make_fifo(int dir_fd, const char *where, struct err *err)
{
        struct stat st;

        if (fstatat(dir_fd, RUN_ALIVE_FILE, &st, AT_SYMLINK_NOFOLLOW) == 0 && !S_ISFIFO(st.st_mode) &&
            volume_remove(dir_fd, RUN_ALIVE_FILE, where, err) < 0)
                return -1;
        if (mkfifoat(dir_fd, RUN_ALIVE_FILE, FIFO_MODE) < 0 && errno != EEXIST)
                return err_errno(err, E_IO, errno, "cannot make the FIFO %s/%s", where, RUN_ALIVE_FILE);
        return widen(dir_fd, RUN_ALIVE_FILE, FIFO_MODE, where, err);
}

static int stage_ctl(const char *ctl, struct err *err)
{
        /* The claim stays: it is the pod's, however often its containers start. */
        static const char *const old[] = {RUN_EXIT_FILE, RUN_STARTED_FILE};
        _cleanup_(fd_close) int fd = -1;

        if (dir_make(ctl, DIR_MODE, err) < 0)
                return -1;
        fd = open(ctl, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0)
                return err_errno(err, E_IO, errno, "cannot open %s", ctl);
        for (size_t i = 0; i < ARRAY_LEN(old); i++)
                if (volume_remove(fd, old[i], ctl, err) < 0)
                        return -1;
        if (widen(fd, ".", CTL_MODE, ctl, err) < 0)
                return -1;
        return make_fifo(fd, ctl, err);
}

/* ---- the checkpoint */

/* The text of DIR/NAME, a mounted ConfigMap's key. 1: there is none. */
static int read_key(const char *dir, const char *name, struct buf *out, struct err *err)
{
        _cleanup_(free_ptr) char *path = xasprintf("%s/%s", dir, name);

        if (file_read(path, out, err) == 0)
                return 0;
        if (err->code != E_NOT_FOUND)
                return -1;
        err_clear(err);
        return 1;
}

/* Whether what is mounted was made by this spec. */
static int same_spec(const struct run_stage *s, const struct log *log, struct err *err)
{
        _cleanup_(buf_done) struct buf hash = BUF_INIT(HASH_MAX);
        int r = read_key(s->checkpoint_dir, RUN_KEY_SPEC_HASH, &hash, err);

        if (r != 0)
                return r < 0 ? -1 : 0;
        if (str_eq(str_trim(buf_str(&hash)), str_of(s->spec_hash)))
                return 1;
        LOG_INFO(log, "The checkpoint is of another spec: not used", F_STRN("its", str_trim(buf_str(&hash))),
                 F_STR("ours", s->spec_hash));
        return 0;
}

/* 0: OUT has it. 1: there is none. */
static int read_checkpoint(const char *dir, struct buf *out, struct err *err)
{
        _cleanup_(buf_done) struct buf packed = BUF_INIT(STORED_MAX);
        int r = read_key(dir, RUN_KEY_CHECKPOINT, out, err);

        if (r != 1)
                return r;
        r = read_key(dir, RUN_KEY_CHECKPOINT ".gz", &packed, err);
        if (r != 0)
                return r;
        buf_clear(out);
        if (gunzip_add(out, buf_str(&packed), err) < 0)
                return err_wrap(err, "%s/%s.gz", dir, RUN_KEY_CHECKPOINT);
        return 0;
}

/* A checkpoint that cannot be read costs a repeated measurement, not the run. */
static int stage_checkpoint(const struct run_stage *s, const struct log *log, struct err *err)
{
        _cleanup_(buf_done) struct buf checkpoint = BUF_INIT(CHECKPOINT_MAX);
        _cleanup_(free_ptr) char *path = xasprintf("%s/%s", s->dir, RUN_CHECKPOINT_FILE);
        struct err why = ERR_INIT;
        int r;

        if (!s->checkpoint_dir || !s->spec_hash || !s->spec_hash[0])
                return 0;
        r = same_spec(s, log, &why);
        if (r == 1)
                r = read_checkpoint(s->checkpoint_dir, &checkpoint, &why) == 0 ? 2 : 0;
        if (why.code != E_OK)
                LOG_WARN(log, "The last checkpoint cannot be read: the run begins anew", F_ERR(&why));
        if (r != 2)
                return 0;
        if (file_replace(path, buf_str(&checkpoint), 0664, err) < 0)
                return err_wrap(err, "checkpoint");
        LOG_INFO(log, "Laid down the last checkpoint", F_STR("file", path), F_UINT("bytes", checkpoint.n));
        return 0;
}

/* ---- all of it */

static int stage_dir(const char *path, struct err *err)
{
        _cleanup_(fd_close) int fd = -1;

        if (dir_make(path, DIR_MODE, err) < 0)
                return -1;
        fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0)
                return err_errno(err, E_IO, errno, "cannot open %s", path);
        if (volume_set_aside(fd, path, err) < 0)
                return -1;
        if (mkdirat(fd, RUN_ARTIFACTS_DIR, DIR_MODE) < 0 && errno != EEXIST)
                return err_errno(err, E_IO, errno, "cannot make %s/%s", path, RUN_ARTIFACTS_DIR);
        return widen(fd, RUN_ARTIFACTS_DIR, DIR_MODE, path, err);
}

int run_stage(const struct run_stage *s, const struct log *log, struct err *err)
{
        struct err own = ERR_INIT;

        if (!err)
                err = &own;
        if (stage_dir(s->dir, err) < 0 || stage_ctl(s->ctl, err) < 0 ||
            stage_program(s->program ? s->program : "/proc/self/exe", s->target ? s->target : TARGET_DEFAULT,
                          err) < 0)
                return -1;
        return stage_checkpoint(s, log, err);
}
