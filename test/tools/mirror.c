/*
 * mirror - keeps a cache of one type through the reflector and shows it on request.
 *
 * Commands on standard input, one a line, each answered by one line of JSON:
 *   dump    {"synced": true, "version": "12", "epoch": 0, "lists": 1, "objects": {"ns/name": OBJECT, ...}}
 *   stats   the same without the objects
 * The end of the input ends the program. It checks by itself, at every change, that no object goes back in version within
 * an epoch, and says "BACK ns/name before after" if one does.
 */
#include <fcntl.h>
#include <unistd.h>

#include "tools/tool.h"

struct mirror {
        struct tool tool;
        const char *ns, *type, *selector;
        usec_t watchdog;
        unsigned page;
        struct loop *loop;
        struct cache *cache;
        struct reflector *reflector;
        struct io input;
        struct buf line, out;
        struct arena arena;
        unsigned synced, changes;
};

static void on_change(void *arg, enum cache_change change, const struct cache_entry *before,
                      const struct cache_entry *after, bool initial)
{
        struct mirror *m = arg;

        m->changes++;
        if (change != CACHE_UPDATED || !streq(before->uid, after->uid))
                return;
        /* In the list after an etcd restore versions do go back; that epoch is counted when the list is complete. */
        if (rv_cmp(str_of(after->rv), str_of(before->rv)) <= 0 && !initial) {
                printf("BACK %s/%s %s %s\n", after->ns, after->name, before->rv, after->rv);
                fflush(stdout);
        }
}

static void on_synced(void *arg, bool first)
{
        ((struct mirror *)arg)->synced++;
}

static void answer(struct mirror *m, bool objects)
{
        const struct cache_entry *e;
        const struct err *err = reflector_error(m->reflector);
        size_t i = 0;
        bool first = true;

        buf_clear(&m->out);
        buf_printf(&m->out,
                   "{\"synced\":%s,\"version\":\"%s\",\"epoch\":%llu,\"lists\":%u,\"changes\":%u,\"count\":%"
                   "zu",
                   reflector_synced(m->reflector) ? "true" : "false", reflector_version(m->reflector),
                   (unsigned long long)reflector_epoch(m->reflector), m->synced, m->changes,
                   cache_count(m->cache));
        buf_adds(&m->out, ",\"error\":");
        json_write_string(str_of(err ? err->text : ""), &m->out);
        if (objects) {
                buf_adds(&m->out, ",\"objects\":{");
                while ((e = cache_next(m->cache, &i))) {
                        buf_printf(&m->out, "%s\"%s/%s\":", first ? "" : ",", e->ns, e->name);
                        json_write(cache_parse(m->cache, e, &m->arena), JSON_COMPACT, &m->out);
                        arena_reset(&m->arena, SIZE_MAX);
                        first = false;
                }
                buf_addc(&m->out, '}');
        }
        buf_adds(&m->out, "}\n");
        fwrite(m->out.p, 1, m->out.n, stdout);
        fflush(stdout);
}

static void on_input(struct io *io, uint32_t events)
{
        struct mirror *m = CONTAINER_OF(io, struct mirror, input);
        char *to = buf_reserve(&m->line, 256), *end;
        ssize_t n = to ? read(io->fd, to, 256) : 0;

        if (n <= 0) {
                loop_stop(m->loop, 0);
                return;
        }
        m->line.n += (size_t)n;
        while ((end = memchr(m->line.p, '\n', m->line.n))) {
                struct str command = str_n(m->line.p, (size_t)(end - m->line.p));

                answer(m, str_eq(command, STR("dump")));
                buf_consume(&m->line, command.n + 1);
        }
}

static const struct kube_type SAMPLE = {"example.sonde.dev", "v1", "samples", "Sample", true, true};

static const struct kube_type *find_type(const char *name)
{
        static const struct kube_type *const types[] = {&KUBE_CONFIGMAP, &KUBE_JOB, &KUBE_POD, &SAMPLE};

        for (size_t i = 0; i < ARRAY_LEN(types); i++)
                if (streq(types[i]->plural, name))
                        return types[i];
        return NULL;
}

static int run(struct mirror *m, struct err *err)
{
        _cleanup_(loop_free) struct loop *loop = m->loop = loop_new(NULL, &m->tool.log, err);
        _cleanup_(kube_free) struct kube *kube = loop ? kube_new(loop, &m->tool.config, NULL, err) : NULL;
        struct cache_config cc = {.type = find_type(m->type)};
        struct reflector_config rc = {
                .kube = kube,
                .ns = m->ns,
                .label_selector = m->selector,
                .watchdog = m->watchdog,
                .page = m->page,
                .on_synced = on_synced,
                .arg = m,
        };
        int code;

        if (!kube)
                return -1;
        if (!cc.type)
                return err_set(err, E_CONFIG, "--type: '%s' is not configmaps, jobs, pods or samples",
                               m->type);
        rc.cache = m->cache = cache_new(&cc);
        cache_listen(m->cache, on_change, m);
        m->reflector = reflector_new(&rc);
        fd_set_nonblock(STDIN_FILENO);
        io_add(loop, &m->input, STDIN_FILENO, EPOLLIN, on_input);
        code = loop_run(loop);
        io_remove(&m->input);
        reflector_free(m->reflector);
        cache_free(m->cache);
        return code;
}

int main(int argc, char **argv)
{
        static struct mirror m = {.tool.log_level = "debug",
                                  .type = "configmaps",
                                  .line = BUF_INIT(4096),
                                  .out = BUF_INIT(1 << 30)};
        static const struct option_def options[] = {
                TOOL_OPTIONS(&m.tool),
                {"namespace", 'n', "NS", "only this namespace", OPT_STR, &m.ns},
                {"type", 0, "PLURAL", "configmaps, jobs, pods or samples", OPT_STR, &m.type},
                {"selector", 'l', "LABELS", "label selector", OPT_STR, &m.selector},
                {"watchdog", 0, "TIME", "ask after this long a silence", OPT_DURATION, &m.watchdog},
                {"page", 0, "N", "objects a page", OPT_UINT, &m.page},
                {0},
        };
        struct err err = ERR_INIT;
        int code = tool_init(&m.tool, options, argc, argv);

        if (code >= 0)
                return code;
        code = run(&m, &err);
        if (err.code)
                cli_error("%s", err.text);
        buf_done(&m.line);
        buf_done(&m.out);
        arena_done(&m.arena);
        tool_done(&m.tool);
        return code < 0 ? 1 : code;
}
