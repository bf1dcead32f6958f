/*
 * args.h - the words of a container's command line, to be changed.
 *
 * People write them as a list (`args: [--model, x]`), in longer pieces (`args: [--model x]`), or as a script for a shell
 * (`command: [sh, -c], args: ["python3 -m dynamo.vllm --model x 2>&1"]`). All become words here. What was not touched is
 * written back as it stood, a shell's script with its blanks and comments, and what is new in quotes: where the flag stood,
 * else behind the program's own words, before any pipe, redirection or next line.
 *
 * A flag is a list of its names, ended by NULL: the first is what is written, the others (--tp for
 * --tensor-parallel-size) are recognized. `--flag value` and `--flag=value` are the same.
 */
#pragma once

#include "json/json.h"

typedef const char *const sla_flag[];

struct sla_word {
        const char *value;
        const char *raw;    /* as it stood in a shell's line; NULL: it is new */
        const char *before; /* blanks and comments in front of it, there; NULL: one blank */
        bool ends;          /* it is a shell's operator */
};

struct sla_args {
        struct arena *arena;
        bool shell;
        const char *tail; /* blanks behind the last word of a shell's line */
        VEC(struct sla_word) words;
};

/* Whether they can be changed: a shell's line is alone in args. What is wrong is said of a container ("its ..."). */
int sla_args_check(const struct json *container, struct err *err) _must_check_;
/* Of a container: its members command and args. */
void sla_args_load(struct arena *a, const struct json *container, struct sla_args *ret);
void sla_args_done(struct sla_args *args);
void sla_args_store(const struct sla_args *args, struct json *container);

bool sla_args_has(const struct sla_args *args, sla_flag flag);
const char *sla_args_get(const struct sla_args *args, sla_flag flag); /* its value; NULL: none */
/* In place of the value there is, else before a pipe or at the end. */
void sla_args_set(struct sla_args *args, sla_flag flag, const char *value);
void sla_args_turn_on(struct sla_args *args, sla_flag flag); /* a flag without a value */
void sla_args_drop(struct sla_args *args, sla_flag flag, bool has_value);

DEFINE_CLEANUP_STRUCT(struct sla_args, sla_args_done)
