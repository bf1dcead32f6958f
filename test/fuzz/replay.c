/*
 * replay.c - runs a fuzzer on the files of its kept corpus, each once, without libFuzzer.
 *
 * The sanitizers end the program at a finding; the last line of output then names the file.
 */
#include "fuzz/fuzz.h"

#include <dirent.h>
#include <sanitizer/common_interface_defs.h>

static const char *current = "no file";

static void print_current(void)
{
        fprintf(stderr, "# while replaying %s\n", current);
}

/* An input has exactly its own size on the heap, so that reading past its end is found. */
static int replay_file(const char *path)
{
        _cleanup_(buf_done) struct buf b = BUF_INIT((size_t)16 << 20);
        uint8_t *input;

        if (file_read(path, &b, NULL) < 0) {
                fprintf(stderr, "# cannot read %s\n", path);
                return -1;
        }
        input = xmalloc(b.n ? b.n : 1);
        if (b.n)
                memcpy(input, b.p, b.n);
        current = path;
        LLVMFuzzerTestOneInput(input, b.n);
        free(input);
        return 0;
}

static int replay_directory(const char *directory, unsigned *ret_files)
{
        DIR *d = opendir(directory);
        char path[4096];
        int r = d ? 0 : -1;

        for (struct dirent *e; d && (e = readdir(d)) && r == 0;) {
                if (e->d_name[0] == '.')
                        continue;
                snprintf(path, sizeof path, "%s/%s", directory, e->d_name);
                r = replay_file(path);
                (*ret_files)++;
        }
        if (d)
                closedir(d);
        return r;
}

int main(int argc, char **argv)
{
        unsigned files = 0;

        if (argc != 2) {
                fprintf(stderr, "usage: %s CORPUS\n", argv[0]);
                return 2;
        }
        __sanitizer_set_death_callback(print_current);
        if (replay_directory(argv[1], &files) < 0 || files == 0) {
                printf("1..1\nnot ok 1 - %u files of %s\n", files, argv[1]);
                return 1;
        }
        printf("1..1\nok 1 - %u files of %s\n", files, argv[1]);
        return 0;
}
