/* request.h — what requests of all protocols have in common.
 *
 * http_request and frames_request begin with these members: r->arena is the request's arena, and &r->net is what net_work_start takes. So
 * work that is done for a request need not know which protocol it came by. The members live until the request is answered. */
#pragma once

#include <stdatomic.h>

#include "base/arena.h"
#include "net/loop.h"

typedef struct net_work net_work; /* net/work.h */

#define NET_REQUEST_MEMBERS                                                                                                                \
    arena *arena; /* its budget is the request's (net_options.request_memory_max) */                                                       \
    net_loop *loop;                                                                                                                        \
    net_work *working; /* net/work.c's: what a worker does for it */                                                                       \
    atomic_bool left;  /* the client has closed its side, or has gone; any thread may look */

typedef struct net_request {
    NET_REQUEST_MEMBERS
} net_request;

/* The first member of a protocol's request. */
#define NET_REQUEST                                                                                                                        \
    union {                                                                                                                                \
        net_request net;                                                                                                                   \
        struct {                                                                                                                           \
            NET_REQUEST_MEMBERS                                                                                                            \
        };                                                                                                                                 \
    }
