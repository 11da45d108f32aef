#include "query/read_many.h"

#include <stdlib.h>

#include "item/range_info.h"
#include "query/target_ranges.h"

typedef struct named {
    item_key key;
    size_t position; /* index of its range in the container */
    bool there;
    item_found found;
} named;

static bool in_stretches(const item_cursor *cursor, const epk *e) {
    bool found = false;
    for (size_t i = 0; i < cursor->n && !found; i++) {
        found = epk_cmp(&cursor->stretches[i].min, e) <= 0 && epk_cmp(e, &cursor->stretches[i].max) < 0;
    }
    return found;
}

static bool in_scope(const item_cursor *cursor, const item_key *key) {
    if (cursor->partition) {
        return pkey_equal(&cursor->partition->partition, &key->partition);
    }
    return in_stretches(cursor, &key->epk) && (!cursor->prefix || pkey_starts(&key->partition, cursor->prefix));
}

/* Takes the keys that are in the request's scope. False: one is not a valid key. */
static bool take_keys(const query_page *p, const query_point *points, size_t n, item_key *keys, size_t *n_out) {
    *n_out = 0;
    for (size_t i = 0; i < n; i++) {
        item_key *key = &keys[*n_out];
        if (item_check_key(p->ask.op, p->ask.container, &points[i].key, points[i].id, key) != OK) {
            return false;
        }
        *n_out += in_scope(p->cursor, key);
    }
    return true;
}

/* Range by range, and within a range in creation order: as a query would find them. */
static int by_place(const void *a, const void *b) {
    const named *x = a, *y = b;
    if (x->there != y->there) {
        return x->there ? -1 : 1;
    }
    if (x->position != y->position) {
        return x->position < y->position ? -1 : 1;
    }
    return x->found.head.number < y->found.head.number ? -1 : x->found.head.number > y->found.head.number;
}

static err read_all(query_page *p, const item_key *keys, size_t n, named *list) {
    TRY(item_admit_many(p->ask.items, p->ask.op, p->ask.container, keys, n));
    for (size_t i = 0; i < n && p->outcome.metrics.read_bytes <= p->ask.bytes_max; i++) {
        list[i].key = keys[i];
        list[i].position = range_position(p->ask.container, &keys[i].epk);
        TRY(op_check(p->ask.op));
        err code = item_read(p->ask.items, p->ask.op, p->ask.container, &keys[i], &list[i].found);
        list[i].there = code == OK;
        if (code != OK && code != E_NOT_FOUND) {
            return code;
        }
        p->outcome.metrics.read += list[i].there;
        p->outcome.metrics.matched += list[i].there;
        p->outcome.metrics.read_bytes += list[i].there ? list[i].found.body.n : 0;
    }
    return OK;
}

static void write_row(query_page *p, const item_found *found) {
    query_item item = {.body = found->body, .number = found->head.number, .version = item_version(&found->head), .ts = found->head.ts};
    memcpy(item.container_rid, p->ask.container->rid, sizeof item.container_rid);
    query_value row = value_of_item(&item);
    value_write(p->ask.out, &row);
}

static void write_all(query_page *p, named *list, size_t n) {
    qsort(list, n, sizeof *list, by_place);
    for (size_t i = 0; i < n && list[i].there; i++) {
        bool again = i && by_place(&list[i - 1], &list[i]) == 0;
        if (again) {
            continue;
        }
        if (p->outcome.rows++) {
            buf_add_byte(p->ask.out, ',');
        }
        write_row(p, &list[i].found);
    }
    p->outcome.metrics.rows = p->outcome.rows;
    p->outcome.metrics.rows_bytes = p->ask.out->n;
}

/* A result that does not fit one page is left to the query engine, which has continuations. */
static bool fits(const query_page *p) {
    return p->outcome.metrics.read_bytes <= p->ask.bytes_max && p->ask.out->n <= p->ask.bytes_max && p->outcome.rows <= p->ask.rows_max;
}

bool query_read_many(query_page *p, err *code_out) {
    size_t n;
    if (p->ask.container->row.n) { /* `id` is not the row key */
        return false;
    }
    const query_point *points = query_named_items(p->ask.op->arena, p->ask.query, &p->ask.container->key, &n);
    item_key *keys = points && n >= 2 ? arena_array(p->ask.op->arena, item_key, n) : NULL;
    if (!keys || !take_keys(p, points, n, keys, &n) || n == 0) {
        p->ask.op->detail_n = 0;
        return false;
    }
    named *list = arena_array(p->ask.op->arena, named, n);
    *code_out = read_all(p, keys, n, list);
    if (*code_out == OK) {
        write_all(p, list, n);
    }
    for (size_t i = 0; i < n; i++) {
        if (list[i].there) {
            item_give(&list[i].found);
        }
    }
    if (*code_out == OK && !fits(p)) {
        p->ask.out->n = 0;
        p->outcome.rows = 0;
        p->outcome.metrics = (query_metrics){0};
        return false;
    }
    return true;
}
