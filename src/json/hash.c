#include "json/internal.h"

static uint64_t mix(uint64_t h, uint64_t word)
{
        h = (h ^ word) * 0x9e3779b97f4a7c15ull;
        return h ^ h >> 32;
}

static uint64_t mix_bytes(uint64_t h, const char *p, size_t n)
{
        uint64_t word;

        h = mix(h, n);
        for (; n >= 8; p += 8, n -= 8) {
                memcpy(&word, p, 8);
                h = mix(h, word);
        }
        word = 0;
        if (n)
                memcpy(&word, p, n);
        return mix(h, word);
}

static uint64_t hash(uint64_t h, const struct json *j)
{
        h = mix(h, j->type);
        if (j->type == JSON_BOOL)
                return mix(h, j->truth);
        if (j->type == JSON_STRING || j->type == JSON_NUMBER)
                return mix_bytes(h, j->text, j->len);
        json_foreach (child, j) {
                if (j->type == JSON_OBJECT)
                        h = mix_bytes(h, child->key, child->key_len);
                h = hash(h, child);
        }
        return mix(h, j->type);
}

uint64_t json_hash(const struct json *j)
{
        return hash(0x736f6e6465ull, j);
}
