#include <unistd.h>

#include "proxy.h"
#include "json/json.h"

static void add_member(struct buf *b, const char *name, const char *value)
{
        if (!value)
                return;
        buf_printf(b, ",\"%s\":", name);
        json_write_string(str_of(value), b);
}

void report_write(struct proxy *p, const struct report *r)
{
        _cleanup_(buf_done) struct buf line = BUF_INIT(1 << 20);
        char now[TIME_TEXT_MAX];

        if (p->log_fd < 0)
                return;
        buf_printf(&line, "{\"time\":\"%s\",\"n\":%llu", time_format_micro(loop_wall(p->loop), now),
                   (unsigned long long)r->number);
        add_member(&line, "event", r->event);
        add_member(&line, "method", r->method);
        add_member(&line, "target", r->target);
        add_member(&line, "class", r->class);
        add_member(&line, "agent", r->agent);
        buf_printf(&line, ",\"status\":%d", r->status);
        add_member(&line, "fault", r->fault);
        add_member(&line, "detail", r->detail);
        buf_adds(&line, "}\n");
        if (!line.overflow && fd_write_all(p->log_fd, buf_str(&line), NULL) < 0)
                p->log_fd = -1;
}

static void reply_stats(struct proxy *p, struct http_exchange *ex)
{
        _cleanup_(buf_done) struct buf b = BUF_INIT(16384);
        uint64_t total = 0;

        buf_printf(&b, "{\"enabled\":%s,\"requests\":%llu,\"forwarded\":%llu,\"errors\":%llu,\"faults\":{",
                   p->enabled ? "true" : "false", (unsigned long long)p->requests,
                   (unsigned long long)p->forwarded, (unsigned long long)p->errors);
        for (int i = FAULT_NONE + 1; i < FAULT_KINDS_; i++) {
                buf_printf(&b, "%s\"%s\":%llu", i > FAULT_NONE + 1 ? "," : "", fault_name((enum fault_kind)i),
                           (unsigned long long)p->counts[i]);
                total += p->counts[i];
        }
        for (int i = 0; i < STATUS_MAX; i++)
                if (p->answers[i])
                        buf_printf(&b, ",\"answer-%d\":%llu", i, (unsigned long long)p->answers[i]);
        buf_printf(&b, "},\"total\":%llu}\n", (unsigned long long)total);
        http_reply(ex, 200, "application/json", buf_str(&b));
}

static void reply_text(struct http_exchange *ex, int status, const char *text)
{
        http_reply(ex, status, "text/plain; charset=utf-8", str_of(text));
}

static void replace_script(struct proxy *p, struct http_exchange *ex)
{
        struct err err = ERR_INIT;
        struct script *s = script_parse(http_body(ex), &err);

        if (!s) {
                reply_text(ex, 400, err.text);
                return;
        }
        script_free(p->script);
        p->script = s;
        p->enabled = true;
        reply_text(ex, 200, "replaced\n");
}

bool control(struct proxy *p, struct http_exchange *ex)
{
        struct str path = http_path(ex);
        bool post = str_eq(http_method(ex), STR("POST"));

        if (!str_has_prefix(path, STR("/__faults/")))
                return false;
        if (str_eq(path, STR("/__faults/stats"))) {
                reply_stats(p, ex);
        } else if (post && (str_eq(path, STR("/__faults/off")) || str_eq(path, STR("/__faults/on")))) {
                p->enabled = str_eq(path, STR("/__faults/on"));
                reply_text(ex, 200, p->enabled ? "on\n" : "off\n");
        } else if (post && str_eq(path, STR("/__faults/script"))) {
                replace_script(p, ex);
        } else {
                reply_text(ex, 404,
                           "POST /__faults/off, /__faults/on, /__faults/script; GET /__faults/stats\n");
        }
        return true;
}
