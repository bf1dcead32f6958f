#include "net/loop_private.h"

#include <errno.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

/*
 * One thread beside the loop, for what cannot be done without blocking. It and the loop share two lists under a
 * mutex; an eventfd says that something is done. A name look-up can hang for half a minute and cannot be cancelled,
 * so worker_free() does not wait for it: the thread is left behind with what it works on, and cleans up after itself.
 */
struct worker {
        struct io io;
        pthread_t thread;
        pthread_mutex_t lock;
        pthread_cond_t wake;
        struct list queue, finished; /* under the lock */
        bool busy, stop;             /* under the lock */
        size_t outstanding;          /* the loop's: submitted and not yet done */
};

static struct work *pop(struct list *list)
{
        struct list *node = list_pop(list);

        return node ? CONTAINER_OF(node, struct work, node) : NULL;
}

/* After this nobody else knows W. */
static void destroy(struct worker *w)
{
        pthread_cond_destroy(&w->wake);
        pthread_mutex_destroy(&w->lock);
        fd_close(w->io.fd);
        free(w);
}

static void signal_loop(int fd)
{
        uint64_t one = 1;

        while (write(fd, &one, sizeof(one)) < 0 && errno == EINTR)
                continue;
}

static void *worker_main(void *arg)
{
        struct worker *w = arg;
        struct work *work;

        pthread_mutex_lock(&w->lock);
        for (;;) {
                while (!w->stop && list_empty(&w->queue))
                        pthread_cond_wait(&w->wake, &w->lock);
                if (w->stop)
                        break;
                work = pop(&w->queue);
                w->busy = true;
                pthread_mutex_unlock(&w->lock);
                work->run(work);
                pthread_mutex_lock(&w->lock);
                w->busy = false;
                if (w->stop) { /* left behind by worker_free() */
                        pthread_mutex_unlock(&w->lock);
                        work->canceled = true;
                        work->done(work);
                        destroy(w);
                        return NULL;
                }
                list_append(&w->finished, &work->node);
                signal_loop(w->io.fd);
        }
        pthread_mutex_unlock(&w->lock);
        return NULL;
}

static void worker_ready(struct io *io, uint32_t events)
{
        struct worker *w = CONTAINER_OF(io, struct worker, io);
        struct work *work;
        uint64_t count;

        if (read(io->fd, &count, sizeof(count)) < 0)
                return;
        for (;;) {
                pthread_mutex_lock(&w->lock);
                work = pop(&w->finished);
                pthread_mutex_unlock(&w->lock);
                if (!work)
                        return;
                w->outstanding--;
                work->done(work);
        }
}

struct worker *worker_new(struct loop *loop)
{
        struct worker *w = xcalloc(1, sizeof(*w));
        sigset_t all, old;
        int fd, r;

        list_init(&w->queue);
        list_init(&w->finished);
        pthread_mutex_init(&w->lock, NULL);
        pthread_cond_init(&w->wake, NULL);
        fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        if (fd < 0 || io_add_internal(loop, &w->io, fd, EPOLLIN, worker_ready) < 0) {
                LOG_ERROR(loop_log(loop), "Cannot start the worker thread",
                          F_STR("error", strerrordesc_np(errno)));
                abort();
        }
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &old);
        r = pthread_create(&w->thread, NULL, worker_main, w);
        pthread_sigmask(SIG_SETMASK, &old, NULL);
        if (r != 0) {
                LOG_ERROR(loop_log(loop), "Cannot start the worker thread",
                          F_STR("error", strerrordesc_np(r)));
                abort();
        }
        return w;
}

void worker_submit(struct worker *w, struct work *work)
{
        w->outstanding++;
        pthread_mutex_lock(&w->lock);
        list_append(&w->queue, &work->node);
        pthread_cond_signal(&w->wake);
        pthread_mutex_unlock(&w->lock);
}

size_t worker_outstanding(const struct worker *w)
{
        return w->outstanding;
}

void worker_free(struct worker *w)
{
        struct list left;
        struct work *work;
        bool busy;

        if (!w)
                return;
        list_init(&left);
        pthread_mutex_lock(&w->lock);
        w->stop = true;
        busy = w->busy;
        while ((work = pop(&w->finished)) || (work = pop(&w->queue)))
                list_append(&left, &work->node);
        if (busy)
                pthread_detach(w->thread);
        pthread_cond_signal(&w->wake);
        pthread_mutex_unlock(&w->lock);
        if (!busy) {
                pthread_join(w->thread, NULL);
                destroy(w);
        }
        while ((work = pop(&left))) {
                work->canceled = true;
                work->done(work);
        }
}
