/*
 * json-check - says whether a file is a JSON text as Sonde reads it, and writes it again.
 */
#include <unistd.h>

#include "json/doc.h"

enum { EXIT_ACCEPT = 0, EXIT_REJECT = 1, EXIT_USAGE = 2, FILE_MAX = 64 << 20 };

static const char usage[] =
        "usage: json-check [--echo] FILE\n"
        "\n"
        "Parses FILE as JSON (RFC 8259, valid UTF-8, at most 128 levels and 8 MiB).\n"
        "\n"
        "  --echo   print the document again, compact\n"
        "  --help   this text\n"
        "\n"
        "Exit status: 0 accepted, 1 rejected (why is on standard error), 2 wrong usage or\n"
        "the file cannot be read.\n";

static int check(const char *path, bool echo)
{
        _cleanup_(buf_done) struct buf text = BUF_INIT(FILE_MAX), out = BUF_INIT(SIZE_MAX);
        _cleanup_(doc_done) struct doc doc = DOC_INIT;
        struct err err = ERR_INIT;

        if (file_read(path, &text, &err) < 0) {
                fprintf(stderr, "json-check: %s\n", err.text);
                return EXIT_USAGE;
        }
        if (doc_parse(&doc, buf_str(&text), NULL, &err) < 0) {
                fprintf(stderr, "%s: %s\n", path, err.text);
                return EXIT_REJECT;
        }
        if (!echo)
                return EXIT_ACCEPT;
        json_write(doc.root, JSON_COMPACT, &out);
        buf_addc(&out, '\n');
        if (fd_write_all(STDOUT_FILENO, buf_str(&out), &err) < 0) {
                fprintf(stderr, "json-check: %s\n", err.text);
                return EXIT_USAGE;
        }
        return EXIT_ACCEPT;
}

int main(int argc, char **argv)
{
        bool echo = false;
        int i = 1;

        for (; i < argc && argv[i][0] == '-' && argv[i][1] == '-'; i++) {
                if (streq(argv[i], "--help")) {
                        fputs(usage, stdout);
                        return EXIT_ACCEPT;
                }
                if (streq(argv[i], "--")) {
                        i++;
                        break;
                }
                if (!streq(argv[i], "--echo")) {
                        fprintf(stderr, "json-check: unknown option '%s'\n%s", argv[i], usage);
                        return EXIT_USAGE;
                }
                echo = true;
        }
        if (argc - i != 1) {
                fputs(usage, stderr);
                return EXIT_USAGE;
        }
        return check(argv[i], echo);
}
