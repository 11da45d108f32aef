/* changes.c — the change feed: a position for each range, read in turns.
 *
 * A position is moved past a page when all of its items were handed out, so that a continuation never leaves one out. */
#include <tesela/changes.h>

#include <stdlib.h>

#include "base/date.h"
#include "base/memory.h"
#include "client/json.h"
#include "client/routing.h"
#include "doc/json.h"

enum { MOVES_MAX = 200, MOVE_WAIT_US = 50000 };

typedef struct position {
    epk min, max;
    char *etag; /* NULL: at the beginning, which is what the options say */
} position;

struct tesela_changes {
    tesela_container *container;
    bool from_now, all_versions;
    int64_t since;
    int page_items;
    char *key; /* of one logical partition, as its header */
    position *positions;
    size_t n, turn;
    bool begun;
    epk min, max; /* the part of the key space that is asked for */
    tesela_response *page;
    slice *items;
    size_t items_n, at;
    size_t from; /* whose page it is */
    char *next_etag;
    double charge;
    buf continuation;
};

static void drop_page(tesela_changes *c) {
    tesela_response_free(c->page);
    free(c->items);
    free(c->next_etag);
    c->page = NULL;
    c->items = NULL;
    c->next_etag = NULL;
    c->items_n = c->at = 0;
}

void tesela_changes_close(tesela_changes *c) {
    if (c) {
        drop_page(c);
        for (size_t i = 0; i < c->n; i++) {
            free(c->positions[i].etag);
        }
        free(c->positions);
        free(c->key);
        buf_free(&c->continuation);
        free(c);
    }
}

/* ---- opening ---- */

static void add_position(tesela_changes *c, const epk *min, const epk *max, const char *etag) {
    c->positions = mem_resize(c->positions, (c->n + 1) * sizeof *c->positions);
    c->positions[c->n++] = (position){*min, *max, etag ? mem_text(etag, strlen(etag)) : NULL};
}

static bool read_position(tesela_changes *c, slice one) {
    epk min, max;
    buf text = buf_init(64 * 1024);
    bool good = json_text(json_member(one, "min"), &text) && epk_parse(buf_view(&text), &min);
    buf_clear(&text);
    good = good && json_text(json_member(one, "max"), &text) && epk_parse(buf_view(&text), &max) && epk_cmp(&min, &max) < 0;
    buf_clear(&text);
    bool has_etag = good && json_text(json_member(one, "etag"), &text);
    buf_add_byte(&text, 0);
    if (good && buf_ok(&text)) {
        add_position(c, &min, &max, has_etag ? text.p : NULL);
    }
    buf_free(&text);
    return good;
}

static bool read_continuation(tesela_changes *c, slice text) {
    json_walk w;
    slice one;
    bool good = json_is_value(text) && json_number(json_member(text, "version"), 0) == 1 && json_enter(json_member(text, "ranges"), &w);
    while (good && json_next(&w, NULL, &one)) {
        good = read_position(c, one);
    }
    c->begun = true;
    return good && c->n && !w.broken;
}

static bool read_bounds(tesela_changes *c, const tesela_changes_options *o) {
    c->min = epk_min();
    c->max = epk_max();
    return (!o->min || epk_parse(slice_str(o->min), &c->min)) && (!o->max || epk_parse(slice_str(o->max), &c->max)) &&
           epk_cmp(&c->min, &c->max) < 0;
}

static tesela_status set_options(tesela_changes *c, const tesela_changes_options *o, tesela_error *error) {
    c->from_now = o->from_now;
    c->all_versions = o->all_versions;
    c->since = o->since;
    c->page_items = o->page_items;
    if (!read_bounds(c, o)) {
        return client__fail(error, TESELA_BAD_ARGUMENT, "min and max must be hex texts, min before max.");
    }
    if (o->key) {
        buf header = buf_init(64 * 1024);
        bool good = client__key_write(o->key, &header);
        c->key = good ? mem_text(header.p, header.n) : NULL;
        buf_free(&header);
        if (!good) {
            return client__fail(error, TESELA_BAD_ARGUMENT,
                                "The partition key has a text that is not UTF-8, or a number that is not finite.");
        }
    }
    if (o->continuation && !read_continuation(c, slice_str(o->continuation))) {
        return client__fail(error, TESELA_BAD_ARGUMENT, "The continuation is not one of a change feed.");
    }
    return TESELA_OK;
}

tesela_status tesela_changes_open(tesela_container *k, const tesela_changes_options *options, tesela_changes **changes_out,
                                  tesela_error *error) {
    static const tesela_changes_options defaults;
    tesela_changes *c = mem_zero(sizeof *c);
    c->container = k;
    c->continuation = buf_init(16 << 20);
    tesela_status status = set_options(c, options ? options : &defaults, error);
    *changes_out = status == TESELA_OK ? c : NULL;
    if (status != TESELA_OK) {
        tesela_changes_close(c);
    }
    return status;
}

/* ---- reading ---- */

/* One position for each range of the part that is asked for; with a key only one. */
static tesela_status begin(tesela_changes *c, tesela_error *error) {
    routing *r;
    size_t first;
    if (c->key) {
        add_position(c, &c->min, &c->max, NULL);
        c->begun = true;
        return TESELA_OK;
    }
    tesela_status status = client__routing_take(c->container, &r, error);
    if (status == TESELA_OK) {
        size_t n = client__routing_overlap(r, &c->min, &c->max, &first);
        for (size_t i = first; i < first + n; i++) {
            const routing_range *g = &r->ranges[i];
            add_position(c, epk_cmp(&g->min, &c->min) > 0 ? &g->min : &c->min, epk_cmp(&g->max, &c->max) < 0 ? &g->max : &c->max, NULL);
        }
        client__routing_give(r);
        c->begun = true;
    }
    return status;
}

/* Divides a position that lies in several ranges by now: each part goes on where the whole was. */
static void divide(tesela_changes *c, size_t at, const routing *r, size_t first, size_t n) {
    position whole = c->positions[at];
    c->positions = mem_resize(c->positions, (c->n + n) * sizeof *c->positions);
    memmove(c->positions + at + n, c->positions + at + 1, (c->n - at - 1) * sizeof *c->positions);
    for (size_t i = 0; i < n; i++) {
        const routing_range *g = &r->ranges[first + i];
        c->positions[at + i] =
            (position){epk_cmp(&g->min, &whole.min) > 0 ? g->min : whole.min, epk_cmp(&g->max, &whole.max) < 0 ? g->max : whole.max,
                       whole.etag ? mem_text(whole.etag, strlen(whole.etag)) : NULL};
    }
    c->n += n - 1;
    free(whole.etag);
}

static void add_bound(exchange *x, const char *name, const epk *e) {
    buf text = buf_init(1024);
    epk_write(&text, e);
    client__exchange_field(x, name, buf_view(&text));
    buf_free(&text);
}

static void add_start(exchange *x, const tesela_changes *c, const position *p) {
    char date[DATE_TEXT_BYTES];
    if (p->etag) {
        client__exchange_text(x, "If-None-Match", p->etag);
    } else if (c->since) {
        client__exchange_text(x, "If-Modified-Since", date_http(c->since, date));
    } else if (c->from_now) {
        client__exchange_text(x, "If-None-Match", "*");
    }
}

static tesela_status page_exchange(tesela_changes *c, size_t at, exchange **x_out, tesela_error *error) {
    exchange *x = client__container_exchange(c->container, "GET", "docs", true);
    buf_add_lit(&x->path, "/docs");
    client__exchange_text(x, "A-IM", c->all_versions ? "Full-Fidelity Feed" : "Incremental feed");
    if (c->page_items) {
        client__exchange_number(x, "x-ms-max-item-count", c->page_items);
    }
    *x_out = x;
    if (c->key) {
        client__exchange_text(x, "x-ms-documentdb-partitionkey", c->key);
        add_start(x, c, &c->positions[at]);
        return TESELA_OK;
    }
    routing *r;
    size_t first;
    tesela_status status = client__routing_take(c->container, &r, error);
    if (status != TESELA_OK) {
        return status;
    }
    position *p = &c->positions[at];
    size_t n = client__routing_overlap(r, &p->min, &p->max, &first);
    if (n > 1) {
        divide(c, at, r, first, n);
        p = &c->positions[at];
    }
    const routing_range *g = &r->ranges[first];
    client__exchange_text(x, "x-ms-documentdb-partitionkeyrangeid", g->id);
    x->routed = true;
    if (epk_cmp(&g->min, &p->min) < 0 || epk_cmp(&g->max, &p->max) > 0) {
        add_bound(x, "x-ms-start-epk", &p->min);
        add_bound(x, "x-ms-end-epk", &p->max);
        client__exchange_text(x, "x-ms-read-key-type", "EffectivePartitionKeyRange");
    }
    add_start(x, c, p);
    client__routing_give(r);
    return TESELA_OK;
}

/* The texts of items end with a zero byte: it overwrites the comma or bracket that follows each. */
static bool take_items(tesela_changes *c, tesela_response *page) {
    json_walk w;
    slice item;
    size_t cap = 0;
    c->page = page;
    if (!json_enter(json_member(client__response_body(page), "Documents"), &w)) {
        return false;
    }
    while (json_next(&w, NULL, &item)) {
        if (c->items_n == cap) {
            cap = cap ? cap * 2 : 128;
            c->items = mem_resize(c->items, cap * sizeof *c->items);
        }
        c->items[c->items_n++] = item;
    }
    for (size_t i = 0; i < c->items_n; i++) {
        page->body[c->items[i].p + c->items[i].n - page->body] = 0;
    }
    return !w.broken;
}

static void move_to(tesela_changes *c, size_t at, slice etag) {
    free(c->positions[at].etag);
    c->positions[at].etag = etag.n ? mem_text(etag.p, etag.n) : NULL;
}

static void settle(tesela_changes *c) {
    if (c->next_etag) {
        free(c->positions[c->from].etag);
        c->positions[c->from].etag = c->next_etag;
        c->next_etag = NULL;
    }
}

/* Reads the next page of one position. TESELA_NOT_MODIFIED: it has none. */
static tesela_status read_one(tesela_changes *c, size_t at, tesela_error *error) {
    for (unsigned moves = 0;; moves++) {
        exchange *x;
        tesela_status status = page_exchange(c, at, &x, error);
        if (status == TESELA_OK) {
            status = client__exchange_run(x, error);
            c->charge += x->charge;
        }
        if (status == TESELA_GONE && x->routed && !client__retry_gone_spent(&x->retries) && moves < MOVES_MAX) {
            client__exchange_free(x);
            client__routing_stale(c->container);
            client__sleep_us(moves ? MOVE_WAIT_US : 0);
            continue;
        }
        if (status == TESELA_OK) {
            slice etag = client__response_field(x->response, "etag");
            c->from = at;
            c->next_etag = mem_text(etag.p ? etag.p : "", etag.n);
            if (!take_items(c, x->response)) {
                status = client__fail(error, TESELA_BAD_RESPONSE, "A page of the change feed has no list of Documents.");
            }
            x->response = NULL;
            if (status == TESELA_OK && !c->items_n) {
                settle(c);
                status = TESELA_NOT_MODIFIED;
            }
        } else if (status == TESELA_NOT_MODIFIED) {
            slice etag = client__response_field(x->response, "etag");
            if (etag.n) {
                move_to(c, at, etag);
            }
        }
        client__exchange_free(x);
        return status;
    }
}

tesela_status tesela_changes_page(tesela_changes *c, size_t *count_out, tesela_error *error) {
    *count_out = 0;
    settle(c);
    drop_page(c);
    tesela_status status = c->begun ? TESELA_OK : begin(c, error);
    for (size_t quiet = 0; status == TESELA_OK && quiet < c->n; quiet++) {
        c->turn = c->turn < c->n ? c->turn : 0;
        status = read_one(c, c->turn, error);
        c->turn++;
        if (status == TESELA_OK) {
            c->at = *count_out = c->items_n;
            return TESELA_OK;
        }
        drop_page(c);
        status = status == TESELA_NOT_MODIFIED ? TESELA_OK : status;
    }
    return status == TESELA_OK ? TESELA_DONE : status;
}

const char *tesela_changes_item(const tesela_changes *c, size_t index, size_t *length_out) {
    if (index >= c->items_n) {
        return NULL;
    }
    if (length_out) {
        *length_out = c->items[index].n;
    }
    return c->items[index].p;
}

tesela_status tesela_changes_next(tesela_changes *c, const char **item_out, size_t *length_out, tesela_error *error) {
    size_t count;
    *item_out = NULL;
    if (c->at == c->items_n) {
        tesela_status status = tesela_changes_page(c, &count, error);
        if (status != TESELA_OK) {
            return status;
        }
        c->at = 0;
    }
    *item_out = tesela_changes_item(c, c->at++, length_out);
    return TESELA_OK;
}

const char *tesela_changes_continuation(tesela_changes *c) {
    buf *out = &c->continuation;
    buf_clear(out);
    if (c->at == c->items_n) {
        settle(c);
    }
    if (!c->begun && begin(c, NULL) != TESELA_OK) {
        return NULL;
    }
    buf_add_lit(out, "{\"version\":1,\"ranges\":[");
    for (size_t i = 0; i < c->n; i++) {
        buf_addf(out, "%s{\"min\":\"", i ? "," : "");
        epk_write(out, &c->positions[i].min);
        buf_add_lit(out, "\",\"max\":\"");
        epk_write(out, &c->positions[i].max);
        buf_add_byte(out, '"');
        if (c->positions[i].etag) {
            buf_add_lit(out, ",\"etag\":");
            json_add_string(out, slice_str(c->positions[i].etag));
        }
        buf_add_byte(out, '}');
    }
    buf_add_lit(out, "]}");
    buf_add_byte(out, 0);
    return buf_ok(out) ? out->p : NULL;
}

double tesela_changes_charge(const tesela_changes *c) {
    return c->charge;
}
