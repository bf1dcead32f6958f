#include "base/base.h"

#include <sys/random.h>

/* SipHash-1-3, as in the reference by Aumasson and Bernstein: short keys, keyed, fast enough. */
static uint64_t rotl(uint64_t x, int b)
{
        return x << b | x >> (64 - b);
}

static void sip_round(uint64_t v[4])
{
        v[0] += v[1];
        v[1] = rotl(v[1], 13) ^ v[0];
        v[0] = rotl(v[0], 32);
        v[2] += v[3];
        v[3] = rotl(v[3], 16) ^ v[2];
        v[0] += v[3];
        v[3] = rotl(v[3], 21) ^ v[0];
        v[2] += v[1];
        v[1] = rotl(v[1], 17) ^ v[2];
        v[2] = rotl(v[2], 32);
}

static const uint64_t *hash_seed(void)
{
        static uint64_t seed[2];
        static bool drawn;

        if (!drawn) {
                /* Before the pool is ready there are no strangers either; a fixed seed is then good enough. */
                if (getrandom(seed, sizeof(seed), GRND_NONBLOCK) != sizeof(seed))
                        seed[0] = 0x736f6e6465ull;
                drawn = true;
        }
        return seed;
}

uint64_t str_hash(struct str s)
{
        const uint64_t *k = hash_seed();
        uint64_t v[4] = {k[0] ^ 0x736f6d6570736575ull, k[1] ^ 0x646f72616e646f6dull,
                         k[0] ^ 0x6c7967656e657261ull, k[1] ^ 0x7465646279746573ull};
        uint64_t m, last = (uint64_t)s.n << 56;
        size_t i;

        for (i = 0; i + 8 <= s.n; i += 8) {
                memcpy(&m, s.p + i, 8);
                v[3] ^= m;
                sip_round(v);
                v[0] ^= m;
        }
        m = 0;
        if (s.n > i)
                memcpy(&m, s.p + i, s.n - i);
        m |= last;
        v[3] ^= m;
        sip_round(v);
        v[0] ^= m;
        v[2] ^= 0xff;
        sip_round(v);
        sip_round(v);
        sip_round(v);
        return v[0] ^ v[1] ^ v[2] ^ v[3];
}

void map_done(struct map *m)
{
        free(m->slots);
        *m = (struct map)MAP_INIT;
}

/* The slot of KEY, or the free one where it belongs. The table is never full. */
static struct map_slot *probe(const struct map *m, struct str key, uint32_t hash)
{
        size_t mask = m->cap - 1;

        for (size_t i = hash & mask;; i = (i + 1) & mask) {
                struct map_slot *s = &m->slots[i];

                if (!s->key)
                        return s;
                if (s->hash == hash && s->len == key.n && memcmp(s->key, key.p, key.n) == 0)
                        return s;
        }
}

static void resize(struct map *m, size_t cap)
{
        struct map_slot *old = m->slots;
        size_t old_cap = m->cap;

        m->slots = xcalloc(cap, sizeof(*m->slots));
        m->cap = cap;
        for (size_t i = 0; i < old_cap; i++)
                if (old[i].key)
                        *probe(m, str_n(old[i].key, old[i].len), old[i].hash) = old[i];
        free(old);
}

void *map_get(const struct map *m, struct str key)
{
        return m->n ? probe(m, key, (uint32_t)str_hash(key))->value : NULL;
}

void *map_put(struct map *m, struct str key, void *value)
{
        uint32_t hash = (uint32_t)str_hash(key);
        struct map_slot *s;
        void *old;

        if (m->cap == 0 || (m->n + 1) * 4 > m->cap * 3)
                resize(m, m->cap ? m->cap * 2 : 16);
        s = probe(m, key, hash);
        old = s->value;
        m->n += s->key == NULL;
        *s = (struct map_slot){key.p, value, (uint32_t)key.n, hash};
        return old;
}

void *map_remove(struct map *m, struct str key)
{
        size_t mask = m->cap - 1, hole, i;
        struct map_slot *s;
        void *old;

        if (m->n == 0)
                return NULL;
        s = probe(m, key, (uint32_t)str_hash(key));
        if (!s->key)
                return NULL;
        old = s->value;
        hole = (size_t)(s - m->slots);
        /* Move later entries of the same run back, so that no tombstones are needed. */
        for (i = (hole + 1) & mask; m->slots[i].key; i = (i + 1) & mask) {
                size_t home = m->slots[i].hash & mask;

                if (((i - home) & mask) >= ((i - hole) & mask)) {
                        m->slots[hole] = m->slots[i];
                        hole = i;
                }
        }
        m->slots[hole] = (struct map_slot){0};
        m->n--;
        if (m->cap > 64 && m->n * 8 < m->cap)
                resize(m, m->cap / 4);
        return old;
}

bool map_next(const struct map *m, size_t *i, void **ret_value)
{
        while (*i < m->cap) {
                struct map_slot *s = &m->slots[(*i)++];

                if (s->key) {
                        *ret_value = s->value;
                        return true;
                }
        }
        return false;
}
