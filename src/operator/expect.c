#include "operator/runtime.h"

enum { SETTLED_MAX = 256 }; /* of one request */

static void add(struct item *item, struct source *source, const char *text, bool gone)
{
        size_t n = strlen(text) + 1;
        struct expectation *e = xmalloc(sizeof(*e) + n);

        e->source = source;
        e->epoch = reflector_epoch(source->reflector);
        e->gone = gone;
        memcpy(e->text, text, n);
        e->next = item->expectations;
        item->expectations = e;
}

void expect_version(struct item *item, struct source *source, const char *version)
{
        if (version)
                add(item, source, version, false);
}

void expect_gone(struct item *item, struct source *source, const char *uid)
{
        add(item, source, uid, true);
}

static bool met(const struct expectation *e)
{
        /* After an etcd restore the version may never come; the new list has told all there is. */
        if (e->epoch != reflector_epoch(e->source->reflector))
                return true;
        if (e->gone) {
                const struct cache_entry *entry = cache_get_uid(e->source->cache, e->text);

                return !entry || entry->deleting;
        }
        return rv_cmp(str_of(reflector_version(e->source->reflector)), str_of(e->text)) >= 0;
}

bool expectations_met(struct item *item)
{
        struct expectation **at = &item->expectations;

        while (*at) {
                struct expectation *e = *at;

                if (met(e)) {
                        *at = e->next;
                        free(e);
                } else {
                        at = &e->next;
                }
        }
        return !item->expectations;
}

void expectations_clear(struct item *item)
{
        struct expectation *next;

        for (struct expectation *e = TAKE_PTR(item->expectations); e; e = next) {
                next = e->next;
                free(e);
        }
}

static void settled_free(struct settled *s)
{
        free(s->uid);
        free(s->version);
        free(s->hash);
        free(s);
}

/* The newest are kept: children that are made again and again come with ever new uids. */
static void forget_oldest(struct item *item)
{
        struct settled **last = &item->settled;
        size_t n = 0;

        for (; *last && (*last)->next; last = &(*last)->next)
                n++;
        if (n + 1 >= SETTLED_MAX)
                settled_free(TAKE_PTR(*last));
}

void settled_remember(struct item *item, const char *uid, const char *version, const char *hash)
{
        struct settled *s;

        for (s = item->settled; s; s = s->next)
                if (streq(s->uid, uid))
                        break;
        if (!s) {
                forget_oldest(item);
                s = xcalloc(1, sizeof(*s));
                s->uid = xstrdup(uid);
                s->next = item->settled;
                item->settled = s;
        }
        free(s->version);
        free(s->hash);
        s->version = xstrdup(version);
        s->hash = xstrdup(hash);
}

void settled_forget(struct item *item, const char *uid)
{
        for (struct settled **s = &item->settled; *s; s = &(*s)->next)
                if (streq((*s)->uid, uid)) {
                        struct settled *gone = *s;

                        *s = gone->next;
                        settled_free(gone);
                        return;
                }
}

bool settled_known(const struct item *item, const char *uid, const char *version, const char *hash)
{
        for (const struct settled *s = item->settled; s; s = s->next)
                if (streq(s->uid, uid))
                        return streq(s->version, version) && streq(s->hash, hash);
        return false;
}

void settled_clear(struct item *item)
{
        struct settled *next;

        for (struct settled *s = TAKE_PTR(item->settled); s; s = next) {
                next = s->next;
                settled_free(s);
        }
}
