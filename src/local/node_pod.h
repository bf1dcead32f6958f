/*
 * node_pod.h - what the files that make a plan share.
 */
#pragma once

#include "local/node_private.h"

#define NODE_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

/* ---- node_env.c */
/* The environment of a container but for HOME, which is found where it runs. NULL: a reference leads nowhere. */
struct json *env_of(const struct pod_context *c, const struct json *container, struct err *err) _must_check_;
/* NULL: no such field. */
const char *downward_field(const struct pod_context *c, const struct json *ref);
const char *downward_resource(const struct pod_context *c, const struct json *ref, const char *container);
struct json *source_object(const struct pod_context *c, enum pod_source_kind kind, const char *name);
/* The bytes under KEY of a ConfigMap or a Secret. */
bool source_value(const struct pod_context *c, enum pod_source_kind kind, const struct json *object,
                  const char *key, struct str *ret);

/* ---- node_volumes.c */
/* {name, kind, files: [{path, mode, data (base64)}], source}: what is to be at the volume. */
struct json *volume_plan(const struct pod_context *c, const struct json *volume, struct err *err)
        _must_check_;
/* How often each reference of VOLUME is needed: calls FN with what it refers to. */
void volume_sources(const struct json *pod, const struct json *volume,
                    void (*fn)(void *arg, const struct pod_source *s), void *arg);
