/*
 * trouble.h - what stands between a command and what it watches, told to the person who waits.
 *
 * A reflector tries again by itself whatever it meets, and says nothing. What cannot pass by itself (credentials that are not
 * taken, a right that is missing, a request that is refused) ends the command: on_hopeless() stops the loop, and trouble_done()
 * says the sentence. A cluster that does not answer is waited for: that is said once, and once more when it is back.
 */
#pragma once

#include "cli/people.h"

/* How it stands with one cluster. */
struct trouble_cluster {
        const struct people_cluster *cluster;
        unsigned looks; /* in a row that found it in trouble */
        bool said;
        struct err err;
};

struct trouble_watch {
        const struct people_cluster *cluster;
        const struct reflector *reflector;
};

struct trouble {
        const char *what;             /* in front of what is said; NULL: nothing */
        bool drawn;                   /* trouble_draw() shows it: nothing goes to standard error meanwhile */
        void (*on_change)(void *arg); /* it came or went; may be NULL */
        void (*on_hopeless)(void *arg); /* stop the loop, please */
        void *arg;

        struct timer timer;
        VEC(struct trouble_watch) watches;
        VEC(struct trouble_cluster) clusters;
        const struct trouble_cluster *hopeless;
};

void trouble_begin(struct trouble *t, struct loop *loop);
/* R is of C, lives until trouble_done(), and the command is nothing without it. */
void trouble_watch(struct trouble *t, const struct people_cluster *c, const struct reflector *r);
/* A line for each cluster that does not answer now. */
void trouble_draw(const struct trouble *t, struct arena *a, const struct screen *s, struct buf *frame);
/* Says what has ended it, if anything did. One that was never begun, too. */
void trouble_done(struct trouble *t);
