#include "net/request_int.h"

#include "base/log.h"

/* ---- memory ---- */

void net_serving_init(net_serving *s, net_loop *loop, size_t own_bytes) {
    s->bytes = buf_init_counted(BUF_NO_LIMIT, &loop->memory);
    s->budget = budget_init_own(&loop->shared->requests, loop->shared->options.request_memory_max, own_bytes);
    s->arena = arena_init_counted(&s->budget);
}

void net_serving_free(net_serving *s) {
    arena_free(&s->arena);
    budget_end(&s->budget);
    buf_free(&s->bytes);
}

void net_serving_end(net_serving *s, net_loop *loop, bool reuse) {
    unsigned n = atomic_load_explicit(&loop->requests_live, memory_order_relaxed);
    atomic_store_explicit(&loop->requests_live, n - 1, memory_order_relaxed);
    if (!reuse) {
        net_serving_free(s);
        return;
    }
    if (s->bytes.p) {
        buf_free(&s->bytes);
    }
    arena_reset(&s->arena);
    budget_renew(&s->budget);
    budget_end(&s->budget);
}

static void count_bytes(net_serving *s, net_loop *loop) {
    s->bytes.budget = &loop->memory;
    budget_force(&loop->memory, s->bytes.cap);
}

char *net_serving_adopt(net_serving *s, net_loop *loop, net_input *in, size_t n, size_t used) {
    if (n > NET_TAKE_OVER_BYTES && in->own.n && in->p == in->own.p) {
        net_input_take(in, used, &s->bytes);
        count_bytes(s, loop);
        return s->bytes.p;
    }
    char *copy = arena_alloc_aligned(&s->arena, n, 1);
    memcpy(copy, in->p, n);
    net_input_skip(in, used);
    return copy;
}

slice net_serving_take(net_serving *s, net_loop *loop, buf *collected) {
    slice bytes;
    if (collected->n > NET_TAKE_OVER_BYTES) {
        s->bytes = *collected;
        *collected = buf_init(s->bytes.max);
        count_bytes(s, loop);
        bytes = buf_view(&s->bytes);
    } else {
        bytes = arena_copy(&s->arena, buf_view(collected));
        buf_free(collected);
    }
    return bytes;
}

/* ---- memory shortage ---- */

err net_count_starved(net_loop *loop) {
    net_shared *shared = loop->shared;
    unsigned times = net_count_event(&shared->starved, loop->now_ms);
    if (times) {
        log_warn("net", "requests refused for want of memory", "max_bytes=%zu waiting_bytes=%zu refused=%u", shared->buffers.max,
                 atomic_load_explicit(&shared->waiting_bytes, memory_order_relaxed), times);
    }
    return E_BUSY_MEMORY;
}

bool net_answer_starved(net_loop *loop) {
    bool starved = loop->memory.starved;
    loop->memory.starved = loop->memory.exceeded = false;
    return starved;
}

/* ---- time ---- */

void net_reading_time(net_reading *r, net_conn *c, bool head_whole) {
    const net_loop *loop = net_conn_loop(c);
    const net_options *options = &loop->shared->options;
    if (head_whole) {
        if (r->timing != NET_TIMING_BODY) {
            r->timing = NET_TIMING_BODY;
            r->began_ms = loop->now_ms;
            r->bytes = 0;
            r->progress = NET_PROGRESS_BYTES;
        }
        if (r->progress >= NET_PROGRESS_BYTES) {
            r->bytes += (int64_t)r->progress;
            r->progress = 0;
            net_conn_deadline(c, net_time_left(options, r->began_ms, r->bytes, loop->now_ms));
        }
    } else if (r->timing != NET_TIMING_HEAD) {
        r->timing = NET_TIMING_HEAD;
        net_conn_deadline(c, net_conn_is_trusted(c) ? options->header_timeout_ms : options->untrusted_timeout_ms);
    }
}

bool net_reading_progress(const net_reading *r, const net_input *in, net_progress *progress_out) {
    if (r->timing != NET_TIMING_BODY || in->weighed <= NET_INPUT_BYTES_SPARED) {
        return false;
    }
    *progress_out = (net_progress){r->began_ms, r->bytes + (int64_t)r->progress, in->weighed};
    return true;
}
