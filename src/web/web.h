/*
 * web - the REST API, the live stream and the dashboard.
 *
 * Served by the operator (`sonde operator --listen`), by a Deployment of its own (`--api-only`) or by the embedded engine
 * (`sonde up`), from one place: the same custom resources that kubectl sees. docs/api.md has every path and shape.
 *
 *   /                            the pages (sources in web/, embedded in the binary)
 *   /health /ready /metrics      without a token
 *   /api/v1/session              POST {token}: an HttpOnly, SameSite=Strict cookie for the page; DELETE ends it
 *   /api/v1/runs[/...]           runs of every kind as rows (kinds/summary.h), one run with events, log and data; controls
 *   /api/v1/runs/stream          server-sent events: every change of every run the caller may see
 *   /api/v1/history, queue, compare
 *   /api/v1/jobs, ml, compare, workers, metrics, algorithms      the paths of dProfiler's API, on the same resources
 *   /api/v1/openapi.json         all of it, OpenAPI 3.1
 *
 * Who may. The layer has no rights of its own to give away. Every read and write for a caller is made with the caller's own
 * token; what is in a cache is served after the API server has said, in a SelfSubjectAccessReview made with that token, that the
 * caller may list that kind in that namespace (remembered for 10 s). No TokenReview, no impersonation.
 *
 * What it refuses: a Host that is not one of its own, an Origin that is not its Host's, a body above 1 MiB, a request without
 * a token outside the first two lines, more connections than it has been given.
 *
 * What it must not do: keep state that is not in an object or in the history; load anything from another host; say "running"
 * where there is no data; log or echo a token.
 */
#pragma once

#include "base/base.h"
