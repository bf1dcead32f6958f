#include "base/base.h"

void vec_grow_raw(void **v, size_t n, size_t *cap, size_t size)
{
        size_t more = *cap ? *cap * 2 : 8, bytes;

        if (more <= n || __builtin_mul_overflow(more, size, &bytes))
                abort();
        *v = xrealloc(*v, bytes);
        *cap = more;
}
