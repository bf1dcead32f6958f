/*
 * web_rig.h - the web layer on an API server that a test plays by hand, and a peer that asks it.
 *
 * Its caches are never listed: what is in them a test puts there, when it says so.
 */
#pragma once

#include "unit/api_rig.h"

#include "web/internal.h"

#define AP_PATH "/apis/dprofiler.io/v1alpha1/namespaces/default/algorithmprofilings"

struct web_rig {
        struct api api;
        struct web *web;
        int fd; /* of the peer; below 0: none */
        struct buf got;
};

static inline int web_rig_setup(void **state)
{
        struct web_rig *r = xcalloc(1, sizeof(*r));
        struct err err = ERR_INIT;

        api_init(&r->api, NULL);
        r->got = (struct buf)BUF_INIT(16 << 20);
        r->fd = -1;
        r->web = web_new(&(struct web_config){.loop = r->api.net.loop,
                                              .server = &r->api.config,
                                              .kube = r->api.kube,
                                              .listen = "127.0.0.1:0"},
                         &err);
        assert_non_null(r->web);
        *state = r;
        return 0;
}

static inline int web_rig_teardown(void **state)
{
        struct web_rig *r = *state;

        fd_close(r->fd);
        web_free(r->web);
        api_done(&r->api);
        buf_done(&r->got);
        free(r);
        return 0;
}

/* One request, as somebody with a token. */
static inline void web_ask(struct web_rig *r, const char *line)
{
        _cleanup_(free_ptr) char *text = xasprintf(
                "%s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer abc\r\n\r\n", line);

        buf_clear(&r->got);
        r->fd = r->fd < 0 ? net_connect(web_port(r->web)) : r->fd;
        net_say(r->fd, text);
}

static inline void web_until(struct web_rig *r, const char *text)
{
        net_until(&r->api.net, net_heard(r->fd, &r->got, text));
}

/* What the caller may see is asked for once for each kind, and may be seen. */
static inline void web_allow(struct web_rig *r, size_t kinds)
{
        for (size_t i = 0; i < kinds; i++)
                api_answer(
                        api_find(&r->api, "POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"),
                        201, "{\"status\":{\"allowed\":true}}");
}
