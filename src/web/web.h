/*
 * web - the REST API, the live stream and the dashboard.
 *
 * Planned; this header is the design until the code is here. Served by the operator, by the embedded engine, or by a
 * Deployment of its own, from one place: the same custom resources that kubectl sees.
 *
 * What the layer will own: the endpoints and their shapes, the stream of progress changes (server-sent events), the
 * pages (sources in web/, embedded in the binary), sessions and their cookie, the checks of Host, Origin and token,
 * the limits on body, header, time and connections.
 *
 * What it must not do: have rights of its own (a request is served with the caller's token, cached data only after
 * the API server has allowed that caller); keep state that is not in an object or in the history; load anything from
 * another host; say "running" where there is no data.
 */
#pragma once

#include "base/base.h"
