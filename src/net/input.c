#include "net/input.h"

#include <assert.h>

#include "net/loop_int.h"
#include "net/request_int.h"

void net_input_give(net_input *in, char *p, size_t n) {
    if (in->own.n == 0) {
        in->p = p;
        in->n = n;
        return;
    }
    buf_add(&in->own, p, n);
    in->p = in->own.p;
    in->n = in->own.n;
}

void net_input_skip(net_input *in, size_t n) {
    assert(n <= in->n);
    in->p += n;
    in->n -= n;
}

void net_input_take(net_input *in, size_t n, buf *taken_out) {
    assert(in->p == in->own.p && n <= in->n);
    *taken_out = in->own;
    in->own = buf_init(taken_out->max);
    buf_add(&in->own, in->p + n, in->n - n);
    in->p = in->own.p;
    in->n = in->own.n;
}

void net_input_keep(net_input *in) {
    if (in->n == 0) {
        net_input_free(in);
        return;
    }
    if (in->own.n) { /* the bytes lie in `own` */
        if (in->p != in->own.p) {
            memmove(in->own.p, in->p, in->n);
        }
        in->own.n = in->n;
    } else {
        buf_add(&in->own, in->p, in->n);
    }
    in->p = in->own.p;
}

void net_input_free(net_input *in) {
    buf_free(&in->own);
    in->p = NULL;
    in->n = 0;
}

void net_input_weigh_to(net_input *in, net_loop *loop, size_t bytes) {
    size_t before = in->weighed;
    if (bytes == before) {
        return;
    }
    bytes > before ? budget_force(&loop->memory, bytes - before) : budget_give(&loop->memory, before - bytes);
    loop->input_bytes += bytes - before;
    in->weighed = bytes;
}

bool net_input_weighs_too_much(const net_input *in, net_loop *loop) {
    return in->weighed > NET_INPUT_BYTES_SPARED && (loop->input_bytes > loop->input_bytes_max || net_memory_is_short(loop, 1));
}
