#include "client/routing.h"

#include <math.h>
#include <stdlib.h>

#include "base/memory.h"
#include "client/json.h"
#include "client/resolver_int.h"
#include "doc/json.h"

enum { RANGES_MAX = 1 << 16, PARENTS_MAX = 1 << 18, PAGES_MAX = 2000 };

/* ---- the definition ---- */

static bool read_paths(routing *r, slice paths) {
    json_walk w;
    slice value;
    if (!json_enter(paths, &w)) {
        return false;
    }
    while (json_next(&w, NULL, &value)) {
        buf text = buf_init(64 * 1024);
        bool good = r->definition.n < LIMIT_KEY_LEVELS && json_text(value, &text) && buf_ok(&text) &&
                    doc_path_parse(&r->memory, arena_copy(&r->memory, buf_view(&text)), &r->definition.paths[r->definition.n]) == OK;
        buf_free(&text);
        if (!good) {
            return false;
        }
        r->definition.n++;
    }
    return !w.broken;
}

/* A container without a key, or with the system key, has items with the empty key. */
static bool read_definition(routing *r, slice body) {
    slice key = json_member(body, "partitionKey");
    buf kind = buf_init(64), rid = buf_init(64);
    bool good = json_text(json_member(body, "_rid"), &rid);
    r->rid = mem_text(rid.p ? rid.p : "", rid.n);
    r->definition.version = 1;
    if (good && key.n && !json_true(json_member(key, "systemKey"))) {
        r->definition.version = json_number(json_member(key, "version"), 1) == 2 ? 2 : 1;
        if (json_text(json_member(key, "kind"), &kind) && slice_eq(buf_view(&kind), SLICE_LIT("MultiHash"))) {
            r->definition.kind = PKEY_MULTI_HASH;
            r->definition.version = 2;
        }
        good = read_paths(r, json_member(key, "paths"));
    }
    buf_free(&kind);
    buf_free(&rid);
    return good;
}

/* ---- the ranges ---- */

static char *text_member(slice object, const char *name) {
    buf text = buf_init(1024);
    char *copy = json_text(json_member(object, name), &text) ? mem_text(text.p ? text.p : "", text.n) : NULL;
    buf_free(&text);
    return copy;
}

static bool read_range(routing *r, slice object) {
    if (r->n == RANGES_MAX) {
        return false;
    }
    if ((r->n & (r->n - 1)) == 0) {
        r->ranges = mem_resize(r->ranges, (r->n ? r->n * 2 : 1) * sizeof *r->ranges);
    }
    routing_range *g = &r->ranges[r->n++];
    *g = (routing_range){text_member(object, "id"), {0}, {0}, text_member(object, "minInclusive"), text_member(object, "maxExclusive")};
    return g->id && g->min_text && g->max_text && epk_parse(slice_str(g->min_text), &g->min) && epk_parse(slice_str(g->max_text), &g->max);
}

static int by_min(const void *a, const void *b) {
    return epk_cmp(&((const routing_range *)a)->min, &((const routing_range *)b)->min);
}

static void free_range(routing_range *g) {
    free(g->id);
    free(g->min_text);
    free(g->max_text);
}

static bool is_whole(const routing *r) {
    epk last = epk_min(), end = epk_max();
    for (size_t i = 0; i < r->n; i++) {
        if (epk_cmp(&r->ranges[i].min, &last) != 0 || epk_cmp(&r->ranges[i].max, &last) <= 0) {
            return false;
        }
        last = r->ranges[i].max;
    }
    return r->n && epk_cmp(&last, &end) == 0;
}

/* A page's ranges, and the ids of those that they were made of by a split or a merge. */
static bool read_page(routing *r, slice body, tesela_texts *parents) {
    json_walk w;
    slice range;
    if (!json_enter(json_member(body, "PartitionKeyRanges"), &w) || w.object) {
        return false;
    }
    while (json_next(&w, NULL, &range)) {
        slice list = json_member(range, "parents");
        if (!read_range(r, range) || (list.n && *list.p == '[' && !client__texts_read(list, parents)) || parents->n > PARENTS_MAX) {
            return false;
        }
    }
    return !w.broken;
}

static int by_text(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Ranges of before a split, which may still be listed with their children. */
static void drop_parents(routing *r, tesela_texts *parents) {
    size_t kept = 0;
    qsort(parents->texts, parents->n, sizeof(char *), by_text);
    for (size_t i = 0; i < r->n; i++) {
        if (bsearch(&r->ranges[i].id, parents->texts, parents->n, sizeof(char *), by_text)) {
            free_range(&r->ranges[i]);
        } else {
            r->ranges[kept++] = r->ranges[i];
        }
    }
    r->n = kept;
}

/* Sorts the ranges of all pages; false: they do not make up the whole key space. */
static bool order_ranges(routing *r, tesela_texts *parents) {
    if (!r->n) {
        return false;
    }
    qsort(r->ranges, r->n, sizeof *r->ranges, by_min);
    if (!is_whole(r) && parents->n) {
        drop_parents(r, parents);
    }
    return is_whole(r);
}

/* ---- taking one ---- */

void client__routing_give(routing *r) {
    if (r && atomic_fetch_sub(&r->references, 1) == 1) {
        for (size_t i = 0; i < r->n; i++) {
            free_range(&r->ranges[i]);
        }
        free(r->ranges);
        free(r->rid);
        arena_free(&r->memory);
        free(r);
    }
}

exchange *client__container_exchange(tesela_container *k, const char *verb, const char *type, bool read) {
    exchange *x = client__exchange_new(k->client, verb, type, read);
    client__exchange_segment(x, SLICE_LIT("dbs"));
    client__exchange_segment(x, slice_str(k->database));
    client__exchange_segment(x, SLICE_LIT("colls"));
    client__exchange_segment(x, slice_str(k->name));
    if (strcmp(type, "docs") == 0 || strcmp(type, "sprocs") == 0) { /* tokens of other resources are of other ranges */
        x->owner = slice_str(k->owner);
    }
    x->container = k;
    return x;
}

static tesela_status not_understood(const tesela_container *k, tesela_error *error) {
    return client__fail(error, TESELA_BAD_RESPONSE, "%s: its partition key or ranges cannot be understood.", k->owner);
}

static tesela_status ask_definition(tesela_container *k, routing *r, tesela_error *error) {
    exchange *x = client__container_exchange(k, "GET", "colls", true);
    x->container = NULL; /* it is what a stale routing is replaced by */
    tesela_status status = client__exchange_run(x, error);
    if (status == TESELA_OK && !read_definition(r, client__response_body(x->response))) {
        status = not_understood(k, error);
    }
    client__exchange_free(x);
    return status;
}

/* One page of the ranges; `continuation`, empty for the first, becomes that of the next page, empty after the last. */
static tesela_status ask_page(tesela_container *k, routing *r, tesela_texts *parents, buf *continuation, tesela_error *error) {
    exchange *x = client__container_exchange(k, "GET", "pkranges", true);
    size_t before = r->n;
    x->container = NULL;
    buf_add_lit(&x->path, "/pkranges");
    client__exchange_field(x, "x-ms-continuation", buf_view(continuation));
    tesela_status status = client__exchange_run(x, error);
    if (status == TESELA_OK) {
        buf_clear(continuation);
        buf_add_slice(continuation, client__response_field(x->response, "x-ms-continuation"));
        if (!read_page(r, client__response_body(x->response), parents) || (continuation->n && r->n == before)) {
            status = not_understood(k, error);
        }
    }
    client__exchange_free(x);
    return status;
}

static tesela_status ask_ranges(tesela_container *k, routing *r, tesela_error *error) {
    buf continuation = buf_init(CLIENT_HEADER_BYTES_MAX);
    tesela_texts parents = {0};
    tesela_status status;
    size_t pages = 0;
    do {
        status = ask_page(k, r, &parents, &continuation, error);
    } while (status == TESELA_OK && continuation.n && ++pages < PAGES_MAX);
    if (status == TESELA_OK && (continuation.n || !order_ranges(r, &parents))) {
        status = not_understood(k, error);
    }
    for (size_t i = 0; i < parents.n; i++) {
        free(parents.texts[i]);
    }
    free(parents.texts);
    buf_free(&continuation);
    return status;
}

static tesela_status read_routing(tesela_container *k, routing **routing_out, tesela_error *error) {
    routing *r = mem_zero(sizeof *r);
    r->references = 1;
    r->memory = arena_init_small();
    tesela_status status = ask_definition(k, r, error);
    if (status == TESELA_OK) {
        status = ask_ranges(k, r, error);
    }
    if (status != TESELA_OK) {
        client__routing_give(r);
        r = NULL;
    }
    *routing_out = r;
    return status;
}

tesela_status client__routing_take(tesela_container *k, routing **routing_out, tesela_error *error) {
    tesela_status status = TESELA_OK;
    *routing_out = NULL;
    pthread_mutex_lock(&k->lock);
    if (!k->routing || atomic_exchange(&k->stale, false)) {
        routing *fresh;
        status = read_routing(k, &fresh, error);
        if (status == TESELA_OK) {
            if (k->routing && strcmp(k->routing->rid, fresh->rid) != 0) {
                client__sessions_forget(k->client->sessions, slice_str(k->owner));
            }
            client__routing_give(k->routing);
            k->routing = fresh;
        } else {
            k->stale = k->routing != NULL;
        }
    }
    if (status == TESELA_OK) {
        atomic_fetch_add(&k->routing->references, 1);
        *routing_out = k->routing;
    }
    pthread_mutex_unlock(&k->lock);
    return status;
}

void client__routing_stale(tesela_container *k) {
    k->stale = true;
}

const routing_range *client__routing_find(const routing *r, const epk *e) {
    size_t low = 0, high = r->n;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (epk_cmp(&r->ranges[middle].min, e) <= 0) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return &r->ranges[low];
}

size_t client__routing_overlap(const routing *r, const epk *min, const epk *max, size_t *first_out) {
    size_t first = 0, n = 0;
    while (first < r->n && epk_cmp(&r->ranges[first].max, min) <= 0) {
        first++;
    }
    while (first + n < r->n && epk_cmp(&r->ranges[first + n].min, max) < 0) {
        n++;
    }
    *first_out = first < r->n ? first : r->n - 1; /* a key beyond the last range's end: there is none, but a caller may ask */
    return n;
}

/* ---- keys ---- */

bool client__key_of(const tesela_key *key, pkey *out) {
    static const pkey_type types[] = {PKEY_UNDEFINED, PKEY_NULL, PKEY_FALSE, PKEY_NUMBER, PKEY_STRING};
    out->n = key->count;
    if (key->count > 3) {
        return false;
    }
    for (size_t i = 0; i < key->count; i++) {
        const tesela_key_value *v = &key->values[i];
        if ((unsigned)v->kind > TESELA_KEY_STRING || (v->kind == TESELA_KEY_STRING && !v->text) ||
            (v->kind == TESELA_KEY_NUMBER && !isfinite(v->number)) ||
            (v->kind == TESELA_KEY_STRING && !bson_utf8_validate(v->text, strlen(v->text), false))) {
            return false;
        }
        out->values[i] = (pkey_value){.type = v->kind == TESELA_KEY_BOOL && v->truth ? PKEY_TRUE : types[v->kind],
                                      .number = v->number,
                                      .text = v->kind == TESELA_KEY_STRING ? slice_str(v->text) : SLICE_EMPTY};
    }
    return true;
}

bool client__key_write(const tesela_key *key, buf *out) {
    pkey k;
    if (!client__key_of(key, &k)) {
        return false;
    }
    pkey_write(out, &k);
    return true;
}

tesela_status client__key_extract(const routing *r, slice item, arena *memory, pkey *key_out, tesela_error *error) {
    buf bson = buf_init(CLIENT_REQUEST_BYTES_MAX * 2);
    json_root root;
    op o;
    op_init(&o, memory, 0);
    if (json_to_bson(item, NULL, &bson, &root, NULL) != OK || root != JSON_OBJECT) {
        buf_free(&bson);
        return client__fail(error, TESELA_BAD_ARGUMENT, "The item is not a JSON object.");
    }
    slice document = arena_copy(memory, buf_view(&bson));
    buf_free(&bson);
    if (pkey_extract(&o, document, &r->definition, key_out) != OK) {
        return client__fail(error, TESELA_BAD_ARGUMENT, "%.*s", (int)o.detail_n, o.detail);
    }
    return TESELA_OK;
}
