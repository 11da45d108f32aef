#include "client/producers.h"

#include <stdlib.h>

#include "base/memory.h"
#include "client/json.h"

enum { MOVES_MAX = 200, MOVE_WAIT_US = 50000 };

producer *client__producers_add(producers *p, const epk *min, const epk *max, bool whole) {
    producer *d = mem_zero(sizeof *d);
    d->min = *min;
    d->max = *max;
    d->whole = whole;
    d->order = buf_init(16 << 20);
    p->list = mem_resize(p->list, (p->n + 1) * sizeof(producer *));
    p->list[p->n++] = d;
    return d;
}

static void drop_page(producers *p, producer *d) {
    p->buffered -= d->rows_n - d->at;
    tesela_response_free(d->page);
    free(d->rows);
    d->page = NULL;
    d->rows = NULL;
    d->rows_n = d->at = 0;
}

static void free_producer(producers *p, producer *d) {
    drop_page(p, d);
    free(d->token);
    free(d->before);
    buf_free(&d->order);
    free(d);
}

void client__producers_free(producers *p) {
    client__fan_free(p->fan);
    for (size_t i = 0; i < p->n; i++) {
        free_producer(p, p->list[i]);
    }
    free(p->list);
    free(p->body);
}

/* ---- requests ---- */

static void add_bounds(exchange *x, const producer *d) {
    buf text = buf_init(1024);
    epk_write(&text, &d->min);
    client__exchange_field(x, "x-ms-start-epk", buf_view(&text));
    buf_clear(&text);
    epk_write(&text, &d->max);
    client__exchange_field(x, "x-ms-end-epk", buf_view(&text));
    client__exchange_text(x, "x-ms-read-key-type", "EffectivePartitionKeyRange");
    buf_free(&text);
}

static exchange *page_exchange(producers *p, producer *d, const routing_range *range, bool bounds) {
    exchange *x = client__container_exchange(p->container, "POST", "docs", true);
    buf_add_lit(&x->path, "/docs");
    client__exchange_text(x, "Content-Type", "application/query+json");
    client__exchange_text(x, "x-ms-documentdb-isquery", "True");
    client__exchange_text(x, "x-ms-documentdb-query-enablecrosspartition", "True");
    client__exchange_text(x, "x-ms-documentdb-partitionkeyrangeid", range->id);
    client__exchange_text(x, "x-ms-continuation", d->token);
    client__exchange_text(x, "x-ms-consistency-level", p->consistency);
    if (p->session_token) {
        client__exchange_text(x, "x-ms-session-token", p->session_token);
        x->own_session = true;
    }
    if (p->page_items) {
        client__exchange_number(x, "x-ms-max-item-count", p->page_items);
    }
    if (bounds) {
        add_bounds(x, d);
    }
    x->routed = true;
    x->has_body = true;
    x->body_view = slice_str(p->body);
    x->tag = d;
    return x;
}

/* Replaces a producer, which holds nothing, by one for each range that it overlaps. */
static void replace(producers *p, size_t i, const routing *r, size_t first, size_t n) {
    producer *old = p->list[i];
    size_t after = p->n - i - 1;
    p->list = mem_resize(p->list, (p->n + n) * sizeof(producer *));
    memmove(p->list + i + n, p->list + i + 1, after * sizeof(producer *));
    for (size_t k = 0; k < n; k++) {
        const routing_range *g = &r->ranges[first + k];
        producer *d = mem_zero(sizeof *d);
        d->min = epk_cmp(&g->min, &old->min) > 0 ? g->min : old->min;
        d->max = epk_cmp(&g->max, &old->max) < 0 ? g->max : old->max;
        d->whole = old->whole;
        d->order = buf_init(16 << 20);
        d->token = old->token ? mem_text(old->token, strlen(old->token)) : NULL;
        d->before = old->before ? mem_text(old->before, strlen(old->before)) : NULL;
        d->skip = old->skip;
        d->moves = old->moves;
        p->list[i + k] = d;
    }
    p->n += n - 1;
    p->changes++;
    free_producer(p, old);
}

/* Begins the request for the next page of producer i. The ranges may have changed; then it is replaced, and the first successor asks. */
static tesela_status ask(producers *p, size_t i, tesela_error *error) {
    routing *r;
    size_t first;
    tesela_status status = client__routing_take(p->container, &r, error);
    if (status != TESELA_OK) {
        return status;
    }
    producer *d = p->list[i];
    size_t n = client__routing_overlap(r, &d->min, &d->max, &first);
    if (n > 1) {
        replace(p, i, r, first, n);
        d = p->list[i];
    }
    const routing_range *range = &r->ranges[first];
    bool bounds = !d->whole || epk_cmp(&range->min, &d->min) < 0 || epk_cmp(&range->max, &d->max) > 0;
    d->started = true;
    d->flight = page_exchange(p, d, range, bounds);
    if (!p->fan) {
        p->fan = client__fan_new(p->container->client);
    }
    client__fan_add(p->fan, d->flight);
    client__routing_give(r);
    return TESELA_OK;
}

/* ---- answers ---- */

static bool take_rows(producers *p, producer *d) {
    json_walk w;
    slice row;
    size_t cap = 0;
    if (!json_enter(json_member(client__response_body(d->page), "Documents"), &w)) {
        return false;
    }
    while (json_next(&w, NULL, &row)) {
        if (d->rows_n == cap) {
            cap = cap ? cap * 2 : 128;
            d->rows = mem_resize(d->rows, cap * sizeof *d->rows);
        }
        d->rows[d->rows_n++] = row;
    }
    d->at = d->skip < d->rows_n ? d->skip : d->rows_n;
    d->skip -= d->at;
    p->buffered += d->rows_n - d->at;
    return !w.broken;
}

static tesela_status take_page(producers *p, producer *d, exchange *x, tesela_error *error) {
    slice token = client__response_field(x->response, "x-ms-continuation");
    d->page = x->response;
    x->response = NULL;
    free(d->before);
    d->before = d->token;
    d->token = token.n ? mem_text(token.p, token.n) : NULL;
    d->done = !token.n;
    d->moves = 0;
    buf_clear(&d->order);
    return take_rows(p, d) ? TESELA_OK : client__fail(error, TESELA_BAD_RESPONSE, "A page of the query has no list of Documents.");
}

/* Waits for one answer, of whichever producer. */
static tesela_status take_answer(producers *p, tesela_error *error) {
    exchange *x = client__fan_next(p->fan, -1);
    if (!x) {
        return TESELA_OK;
    }
    producer *d = x->tag;
    tesela_status status = x->status;
    d->flight = NULL;
    client__cursor_count(p->cursor, x);
    if (status == TESELA_OK) {
        status = take_page(p, d, x, error);
    } else if (status == TESELA_GONE && !client__retry_gone_spent(&x->retries) && d->moves++ < MOVES_MAX) {
        client__routing_stale(p->container);
        if (d->moves > 1) {
            client__sleep_us(MOVE_WAIT_US);
        }
        status = TESELA_OK;
    } else {
        status = client__exchange_error(x, error);
    }
    client__exchange_free(x);
    return status;
}

static bool wants_page(const producer *d) {
    return !d->flight && d->at == d->rows_n && !(d->started && d->done);
}

/* Begins the request that is waited for, and those of others ahead of their time. */
static tesela_status ask_ahead(producers *p, size_t i, tesela_error *error) {
    tesela_status status = TESELA_OK;
    if (wants_page(p->list[i])) {
        drop_page(p, p->list[i]);
        status = ask(p, i, error);
    }
    for (size_t k = i + 1; status == TESELA_OK && p->parallelism > 1 && k < p->n; k++) {
        if (client__fan_count(p->fan) >= (unsigned)p->parallelism || p->buffered >= (size_t)p->buffered_max) {
            break;
        }
        if (wants_page(p->list[k])) {
            drop_page(p, p->list[k]);
            status = ask(p, k, error);
        }
    }
    return status;
}

tesela_status client__producers_head(producers *p, size_t i, slice *row_out, tesela_error *error) {
    *row_out = SLICE_EMPTY;
    for (unsigned empty = 0;; empty++) {
        producer *d = p->list[i];
        if (d->at < d->rows_n) {
            *row_out = d->rows[d->at];
            return TESELA_OK;
        }
        if (!d->flight && d->started && d->done) {
            return TESELA_OK;
        }
        if (empty == CLIENT_EMPTY_PAGES_MAX) {
            return client__fail(error, TESELA_BAD_RESPONSE, "The server goes on giving pages without rows.");
        }
        tesela_status status = ask_ahead(p, i, error);
        if (status == TESELA_OK) {
            status = take_answer(p, error);
        }
        if (status != TESELA_OK) {
            return status;
        }
    }
}

static bool holds_row(const producer *d) {
    return d->at < d->rows_n;
}

/* Begins requests of those that want a page, until `parallelism` pages are held or under way. */
static tesela_status ask_all(producers *p, tesela_error *error) {
    tesela_status status = TESELA_OK;
    size_t most = p->parallelism > 1 ? (size_t)p->parallelism : 1, pages = 0;
    for (size_t i = 0; i < p->n; i++) {
        pages += holds_row(p->list[i]) || p->list[i]->flight;
    }
    for (size_t i = 0; status == TESELA_OK && i < p->n && pages < most && p->buffered < (size_t)p->buffered_max; i++) {
        if (wants_page(p->list[i])) {
            drop_page(p, p->list[i]);
            status = ask(p, i, error);
            pages++;
        }
    }
    return status;
}

tesela_status client__producers_any(producers *p, size_t *at_out, tesela_error *error) {
    for (size_t empty = 0;; empty++) {
        *at_out = p->turn;
        if (p->turn < p->n && holds_row(p->list[p->turn])) {
            return TESELA_OK;
        }
        tesela_status status = ask_all(p, error);
        for (size_t i = 0; status == TESELA_OK && i < p->n; i++) {
            *at_out = (p->turn + i) % p->n;
            if (holds_row(p->list[*at_out])) {
                p->turn = *at_out;
                return TESELA_OK;
            }
        }
        if (status == TESELA_OK && (!p->fan || client__fan_count(p->fan) == 0)) {
            *at_out = p->n;
            return TESELA_OK;
        }
        if (status == TESELA_OK && empty / p->n >= CLIENT_EMPTY_PAGES_MAX) {
            status = client__fail(error, TESELA_BAD_RESPONSE, "The server goes on giving pages without rows.");
        }
        if (status == TESELA_OK) {
            status = take_answer(p, error);
        }
        if (status != TESELA_OK) {
            return status;
        }
    }
}

void client__producers_pop(producers *p, size_t i) {
    producer *d = p->list[i];
    d->at++;
    p->buffered--;
    buf_clear(&d->order);
}
