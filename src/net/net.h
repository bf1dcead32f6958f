/*
 * net - the event loop, HTTP/1.1 both ways, and TLS.
 *
 *   loop.h  one thread, one epoll: descriptors, timers, signals, children, blocking work handed to a worker
 *   tls.h   contexts and verification; TLS 1.2 and later, verification always on
 *   ca.h    a certificate authority of one's own, for whoever serves on loopback
 *   http.h  what client and server share: limits and headers
 *   http_client.h  a pool of connections to one origin
 *   http_server.h  listening, requests, answers and endless streams
 *
 * Nothing here blocks the loop and nothing calls back into a caller that is still on the stack: a callback always
 * comes from the loop. Objects that a callback may want to get rid of are freed at the end of the loop turn, because
 * their events can still sit in the batch that epoll returned.
 */
#pragma once

#include "base/base.h"
#include "net/ca.h"
#include "net/http.h"
#include "net/http_client.h"
#include "net/http_server.h"
#include "net/loop.h"
#include "net/tls.h"
