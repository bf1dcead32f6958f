/*
 * local.h - a server as a process of this machine: started, waited for, taken down. For the targets `process` and `sim`.
 *
 * The process has a group of its own and is killed when we die, however. Its output goes to a file, where what it says of its KV
 * cache and its last words are read.
 */
#pragma once

#include "probe/sla/sla.h"

struct local {
        pid_t pid; /* 0: none */
        int pidfd, log_fd;
        bool reaped;
        int status; /* waitpid()'s, once reaped */
        uint16_t port;
        char *url;
};

/* A port of 127.0.0.1 that is free now. */
int local_port(uint16_t *ret, struct err *err) _must_check_;
/* Starts ARGV, with its output in LOG_FILE (NULL: in memory). */
int local_start(char *const *argv, const char *log_file, struct local *ret, struct err *err) _must_check_;
/* Waits until http://127.0.0.1:PORT/health (or /v1/models) answers: E_CANCELED by the stop descriptor, E_TIMEOUT, or the
 * process' last words when it ended. */
int local_wait(struct local *l, uint16_t port, const struct sla_target_config *c, struct err *err)
        _must_check_;
/* The begin of its output, at most a MiB. */
void local_output(const struct local *l, struct buf *out);
/* "it exited with status 3: last line"; NULL: it still runs. */
const char *local_end(struct local *l, struct arena *a);
/* The same of one that has just failed: it is given a moment to end. */
const char *local_last_words(struct local *l, struct arena *a);
/* SIGTERM to the group, SIGKILL after a while; waits for its end. */
void local_take_down(struct local *l);

/* endpoint: waits until URL serves. */
int local_wait_url(const char *url, struct local *l, const struct sla_target_config *c, struct err *err)
        _must_check_;

/* ---- target_process.c: what the targets that start processes share */

/* Starts ARGV for CANDIDATE, waits until it serves at PORT, and reads its KV size from its output. */
int local_start_candidate(const struct sla_target_config *c, char *const *argv,
                          const struct sla_candidate *candidate, enum sla_role role, uint16_t port,
                          struct sla_server *ret, struct err *err) _must_check_;
/* ops->stop and ops->why */
void local_stop_candidate(struct sla_target *t, struct sla_server *s);
const char *local_why(struct sla_target *t, const struct sla_server *s, struct arena *a);
