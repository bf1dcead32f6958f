/*
 * The machine that a measurement was made on.
 */
#include "probe/measure/internal.h"

#include <sched.h>
#include <sys/utsname.h>
#include <unistd.h>

enum { CPUINFO_MAX = 4 << 20, NAME_MAX_ = 200, NODE_NAME_MAX = 253 };

/* The value of the first line "NAME : value". */
static struct str line_of(struct str text, const char *name)
{
        while (text.p) {
                struct str line = str_split(&text, '\n');
                struct str key = str_trim(str_split(&line, ':'));

                if (line.p && str_eq(key, str_of(name)))
                        return str_trim(line);
        }
        return STR_NULL;
}

/* x86 has "model name", others the board or nothing that names it. */
static void add_cpu(struct arena *a, const char *root, struct json *m)
{
        static const char *const names[] = {"model name", "Model", "cpu model",
                                            "Processor",  "uarch", "machine"};
        _cleanup_(free_ptr) char *path = xasprintf("%s/proc/cpuinfo", root);
        _cleanup_(buf_done) struct buf text = BUF_INIT(CPUINFO_MAX);
        struct str model = STR_NULL;

        if (file_read(path, &text, NULL) < 0)
                return;
        for (size_t i = 0; i < ARRAY_LEN(names) && !model.n; i++)
                model = line_of(buf_str(&text), names[i]);
        model.n = model.n ? utf8_cut(model.p, model.n, NAME_MAX_) : 0;
        if (model.n)
                json_set(a, m, "cpu", json_stringn(a, model));
        if (memmem(text.p, text.n, " hypervisor", 11))
                json_set(a, m, "virtual", json_truth(a, true));
}

/* Two of one type are two machines all the same: only their name tells, which a pod is told by its environment. */
static void add_node(struct arena *a, struct json *m)
{
        const char *name = getenv("SONDE_NODE_NAME");
        size_t n = name ? utf8_cut(name, strlen(name), NODE_NAME_MAX) : 0;

        if (n)
                json_set(a, m, "node", json_stringn(a, str_n(name, n)));
}

static void add_governor(struct arena *a, const char *root, struct json *m)
{
        _cleanup_(free_ptr) char *path = xasprintf("%s/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor",
                                                   root);
        char text[64];

        if (proc_read(path, text, sizeof(text)) > 0)
                json_set(a, m, "governor", json_stringn(a, str_trim(str_of(text))));
}

static int64_t cpus(void)
{
        cpu_set_t set;

        return sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : sysconf(_SC_NPROCESSORS_ONLN);
}

static int64_t memory(const char *root)
{
        _cleanup_(free_ptr) char *path = xasprintf("%s/proc/meminfo", root);
        char text[PROC_TEXT_MAX];

        return proc_read(path, text, sizeof(text)) > 0 ? proc_number(text, "MemTotal") * 1024 : -1;
}

static bool hardware_counters(void)
{
        struct counters c;
        bool there;

        counters_open(&c, true);
        there = c.fds[COUNTER_CYCLES] >= 0;
        counters_close(&c);
        return there;
}

struct json *measure_machine(struct arena *a, const char *root)
{
        struct json *m = json_object(a);
        struct utsname name;
        struct cgroup c;

        root = root ? root : "";
        add_node(a, m);
        add_cpu(a, root, m);
        json_set(a, m, "cpus", json_i64(a, cpus()));
        add_governor(a, root, m);
        if (uname(&name) == 0) {
                json_set(a, m, "kernel", json_string(a, name.release));
                json_set(a, m, "architecture", json_string(a, name.machine));
        }
        if (memory(root) > 0)
                json_set(a, m, "memory", json_i64(a, memory(root)));
        cgroup_open(&c, root);
        json_set(a, m, "cgroup", json_i64(a, c.version));
        cgroup_done(&c);
        cgroup_limits(a, root, m);
        json_set(a, m, "counters", json_truth(a, hardware_counters()));
        return m;
}
