/*
 * kube - the Kubernetes API: finding it, talking to it, keeping a copy of what is there.
 *
 *   config.h     kubeconfig and in-cluster configuration
 *   auth.h       credentials that are renewed: token files, exec plugins
 *   type.h       resource types, their paths, resource versions
 *   client.h     requests with typed errors, retries where they are safe, rate limit
 *   cache.h      objects as compact text with indexes
 *   squeeze.h    (inside) texts that are alike in few bytes, for the cache
 *   reflector.h  keeps a cache equal to the server
 *   queue.h      keys waiting to be reconciled
 *   lease.h      leader election
 *   events.h     event recorder
 *   names.h      names that fit, owner references
 *   select.h     label selectors
 *   quantity.h   amounts of resources
 *
 * Everything that can go wrong with the API (401, 409, 410, 422, 429, 5xx, timeouts, dead peers, stale reads) is
 * handled here, once. Nothing here knows about runs.
 */
#pragma once

#include "base/base.h"
#include "kube/auth.h"
#include "kube/cache.h"
#include "kube/client.h"
#include "kube/config.h"
#include "kube/events.h"
#include "kube/lease.h"
#include "kube/names.h"
#include "kube/quantity.h"
#include "kube/queue.h"
#include "kube/reflector.h"
#include "kube/select.h"
#include "kube/type.h"
#include "net/net.h"
#include "json/json.h"
