/* fan.c — exchanges in flight beside each other, driven by the thread that asks for the next one that is done. */
#include <stdlib.h>

#include "base/memory.h"
#include "client/client_int.h"

struct fan {
    tesela_client *client;
    CURLM *multi;
    exchange **flight; /* in the multi handle; exchange.at is the index */
    size_t flight_n, flight_cap;
    exchange *waiting; /* for their time to be sent again */
    exchange *done, **done_end;
    unsigned count;
};

fan *client__fan_new(tesela_client *c) {
    fan *f = mem_zero(sizeof *f);
    f->client = c;
    f->multi = client__multi_take(c);
    f->done_end = &f->done;
    return f;
}

static void free_list(exchange *x) {
    for (exchange *next; x; x = next) {
        next = x->next;
        client__exchange_free(x);
    }
}

void client__fan_free(fan *f) {
    if (!f) {
        return;
    }
    for (size_t i = 0; i < f->flight_n; i++) {
        curl_multi_remove_handle(f->multi, f->flight[i]->lane->easy);
        f->flight[i]->fields.n = f->flight[i]->own_fields_n;
        client__exchange_free(f->flight[i]);
    }
    free_list(f->waiting);
    free_list(f->done);
    free(f->flight);
    client__multi_give(f->client, f->multi);
    free(f);
}

static void each(exchange *x, void (*drop)(void *tag)) {
    for (; x; x = x->next) {
        drop(x->tag);
    }
}

void client__fan_each(fan *f, void (*drop)(void *tag)) {
    for (size_t i = 0; i < f->flight_n; i++) {
        drop(f->flight[i]->tag);
    }
    each(f->waiting, drop);
    each(f->done, drop);
}

unsigned client__fan_count(const fan *f) {
    return f->count;
}

static void launch(fan *f, exchange *x) {
    if (f->flight_n == f->flight_cap) {
        f->flight_cap = f->flight_cap ? f->flight_cap * 2 : 16;
        f->flight = mem_resize(f->flight, f->flight_cap * sizeof(exchange *));
    }
    client__exchange_prepare(x);
    x->at = f->flight_n;
    f->flight[f->flight_n++] = x;
    curl_multi_add_handle(f->multi, x->lane->easy);
}

static void add_done(fan *f, exchange *x) {
    x->next = NULL;
    *f->done_end = x;
    f->done_end = &x->next;
}

void client__fan_add(fan *f, exchange *x) {
    f->count++;
    if (!buf_ok(&x->path) || !buf_ok(&x->fields) || !buf_ok(&x->body)) {
        x->status = TESELA_TOO_LARGE;
        memcpy(x->why, "The request is too large.", 26);
        add_done(f, x);
    } else {
        launch(f, x);
    }
}

static void land(fan *f, exchange *x, CURLcode how) {
    curl_multi_remove_handle(f->multi, x->lane->easy);
    f->flight[x->at] = f->flight[--f->flight_n];
    f->flight[x->at]->at = x->at;
    if (client__exchange_judge(x, how)) {
        client__lane_give(f->client, x->lane);
        x->lane = NULL;
        add_done(f, x);
    } else {
        x->next = f->waiting;
        f->waiting = x;
    }
}

/* Sends those whose time has come; returns how long until the next one's, −1: none waits. */
static int64_t relaunch(fan *f) {
    int64_t now = client__now_us(), least = -1;
    for (exchange **at = &f->waiting, *x; (x = *at);) {
        int64_t left = x->not_before_us - now;
        if (left <= 0) {
            *at = x->next;
            launch(f, x);
        } else {
            least = least < 0 || left < least ? left : least;
            at = &x->next;
        }
    }
    return least;
}

static void collect(fan *f) {
    int running, left;
    curl_multi_perform(f->multi, &running);
    for (CURLMsg *m; (m = curl_multi_info_read(f->multi, &left));) {
        if (m->msg == CURLMSG_DONE) {
            CURLcode how = m->data.result;
            lane *l;
            curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, &l);
            land(f, l->exchange, how);
        }
    }
}

exchange *client__fan_next(fan *f, int64_t wait_us) {
    int64_t until = wait_us < 0 ? INT64_MAX : client__now_us() + wait_us;
    while (f->count) {
        int64_t later = relaunch(f);
        collect(f);
        if (f->done) {
            exchange *x = f->done;
            f->done = x->next;
            if (!f->done) {
                f->done_end = &f->done;
            }
            f->count--;
            return x;
        }
        int64_t left = until - client__now_us();
        if (left <= 0) {
            return NULL;
        }
        left = later >= 0 && later < left ? later : left;
        curl_multi_poll(f->multi, NULL, 0, left > 1000000 ? 1000 : (int)(left / 1000 + 1), NULL);
    }
    return NULL;
}
