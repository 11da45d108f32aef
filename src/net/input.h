/* input.h — bytes that have come on a connection and are not used up yet. For the files of this folder.
 *
 * p, n: what is there now, the first byte of a request first. It lies in memory lent for a call, or in `own` between calls. So a request
 * that comes in one read is parsed in place, and a connection without one holds no memory. */
#pragma once

#include "base/buf.h"

typedef struct net_loop net_loop;

typedef struct net_input {
    char *p;
    size_t n;
    buf own;
    size_t weighed; /* of `own`, in the loop's input_bytes and its budget */
} net_input;

void net_input_give(net_input *in, char *p, size_t n); /* after what is kept; n may be 0 */
void net_input_skip(net_input *in, size_t n);
void net_input_take(net_input *in, size_t n, buf *taken_out); /* skips n; `own`, in which they lie from its start, goes to taken_out */
void net_input_keep(net_input *in);                           /* before the lent memory goes; nothing left frees `own` */
void net_input_free(net_input *in);

/* Counts what is kept, after each of the calls above that may have changed it. Nobody has been asked yet whether these bytes are welcome,
 * so all connections together may keep only so many. */
void net_input_weigh_to(net_input *in, net_loop *loop, size_t bytes); /* if more is kept than lies in `own` */
static inline void net_input_weigh(net_input *in, net_loop *loop) {
    if (in->own.cap != in->weighed) {
        net_input_weigh_to(in, loop, in->own.cap);
    }
}
bool net_input_weighs_too_much(const net_input *in, net_loop *loop); /* all keep too much, and this one is not among the small */
