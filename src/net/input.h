/* input.h — bytes received on a connection and not consumed yet. Private to this folder.
 *
 * p and n are the unconsumed bytes; the first one begins a request. They lie in memory borrowed for one call, or in `own` between calls. So
 * a request that comes in one read is parsed in place, and an idle connection holds no memory. */
#pragma once

#include "base/buf.h"

typedef struct net_loop net_loop;

typedef struct net_input {
    char *p;
    size_t n;
    buf own;
    size_t weighed; /* bytes counted in the loop's input_bytes and budget */
} net_input;

void net_input_give(net_input *in, char *p, size_t n); /* appends to the kept bytes; n may be 0 */
void net_input_skip(net_input *in, size_t n);
void net_input_take(net_input *in, size_t n, buf *taken_out); /* skips n bytes and moves `own`, which starts with them, to taken_out */
void net_input_keep(net_input *in); /* copies the rest to `own` before the borrowed memory is reused; frees `own` if nothing is left */
void net_input_free(net_input *in);

/* Counts the kept memory; call it after each of the calls above that may have changed it. The bytes come from clients that are not
 * authenticated yet, so there is a limit for all connections together. */
void net_input_weigh_to(net_input *in, net_loop *loop, size_t bytes); /* counts `bytes`, which may include memory outside `own` */
static inline void net_input_weigh(net_input *in, net_loop *loop) {
    if (in->own.cap != in->weighed) {
        net_input_weigh_to(in, loop, in->own.cap);
    }
}
bool net_input_weighs_too_much(const net_input *in, net_loop *loop); /* the limit is exceeded, and this input is not a small one */
