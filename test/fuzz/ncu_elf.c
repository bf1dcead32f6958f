/*
 * ELF files and ld.so.cache: whatever is in them, nothing is read outside, and all that comes out is bounded.
 */
#include <sys/mman.h>
#include <unistd.h>

#include "fuzz/fuzz.h"
#include "probe/ncu/elf.h"
#include "probe/ncu/workload.h"

static void read_cache(struct arena *a, struct str text)
{
        const char *path;
        size_t at = 0;

        while ((path = ld_cache_next(a, text, NULL, &at)))
                REQUIRE(strlen(path) < ELF_PATH_MAX);
        at = 0;
        (void)ld_cache_next(a, text, "libc.so.6", &at);
}

static void read_file(struct arena *a, struct str text)
{
        _cleanup_(fd_close) int fd = memfd_create("elf", MFD_CLOEXEC);
        struct shebang line;
        struct elf elf;

        REQUIRE(fd >= 0 && fd_write_all(fd, text, NULL) == 0);
        if (elf_read(a, fd, &elf, NULL) == 0) {
                REQUIRE(elf.n_needed <= ELF_NEEDED_MAX && elf_fits(fd, &elf));
                for (size_t i = 0; i < elf.n_needed; i++)
                        REQUIRE(strlen(elf.needed[i]) < ELF_PATH_MAX);
        }
        (void)shebang_read(a, fd, &line);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct str text = str_n((const char *)data, size);

        read_cache(&a, text);
        read_file(&a, text);
        return 0;
}
