/*
 * object_metrics.h - series about the requests themselves: how each stands, how far it is, what it uses.
 *
 * They come and go with their objects, so they are no part of the registry. There is a row for each object, in the order of
 * their last change. A change (a cache's listener) moves the row to the front and marks it, which costs the same however many
 * there are; the object is unpacked and summed up when somebody scrapes, and only if it has changed since the last time. So a
 * run that reports five times a second costs one look a scrape, and an operator that nobody scrapes none.
 *
 * Bounds: of the rows the first MAX are written, which are those that changed last; the others are counted in
 * sonde_object_series_left_out. Nothing is part of the metrics while `exports` says no: where each process is scraped by
 * itself, two that tell the same would have every alert twice. Where one address stands for all of them, whoever answers
 * there tells them (object_metrics_write).
 */
#pragma once

#include "kube/kube.h"

struct object_metrics;

enum { OBJECT_METRICS_MAX = 5000 };

struct object_metrics_config {
        const struct clock *clock;
        struct metrics *metrics; /* NULL: they are part of none */
        size_t max;              /* 0: OBJECT_METRICS_MAX */
        bool (*exports)(void *arg);
        void *arg;
};

struct object_metrics *object_metrics_new(const struct object_metrics_config *config);
/* Before the metrics, behind the caches. */
void object_metrics_free(struct object_metrics *o);
/* All of them, whatever `exports` says. */
void object_metrics_write(struct object_metrics *o, struct buf *out);
/* The objects of this cache, if they are of one of our kinds: those that will be in it, so before it is filled. */
void object_metrics_add(struct object_metrics *o, struct cache *cache);
