#include "api/sql/readmany.h"

#include <stdlib.h>

#include "query/ranges.h"

typedef struct named {
    item_key key;
    size_t position; /* of its range among the container's */
    bool there;
    item_found found;
} named;

static bool in_scope(const sql_target *t, const item_key *key) {
    if (t->cursor.partition) {
        return pkey_equal(&t->key.partition, &key->partition);
    }
    const pkey *prefix = t->cursor.prefix;
    return epk_cmp(&t->scope.min, &key->epk) <= 0 && epk_cmp(&key->epk, &t->scope.end) < 0 &&
           (!prefix || pkey_starts(&key->partition, prefix));
}

/* Those that the request is about. False: one is no key at all. */
static bool take_keys(sql_request *q, const sql_target *t, const query_point *points, size_t n, item_key *keys, size_t *n_out) {
    *n_out = 0;
    for (size_t i = 0; i < n; i++) {
        item_key *key = &keys[*n_out];
        if (item_check_key(&q->op, q->container, &points[i].key, points[i].id, key) != OK) {
            return false;
        }
        *n_out += in_scope(t, key);
    }
    return true;
}

/* Range by range, and in a range as they were created: the order in which the engine would find them. */
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

static err read_all(sql_request *q, query_page *p, const item_key *keys, size_t n, named *list) {
    TRY(item_admit_many(p->ask.items, &q->op, q->container, keys, n));
    for (size_t i = 0; i < n && p->told.metrics.read_bytes <= p->ask.bytes_max; i++) {
        list[i].key = keys[i];
        list[i].position = container_position(q->container->tiles, &keys[i].epk);
        TRY(op_check(&q->op));
        err code = item_read(p->ask.items, &q->op, q->container, &keys[i], &list[i].found);
        list[i].there = code == OK;
        if (code != OK && code != E_NOT_FOUND) {
            return code;
        }
        p->told.metrics.read += list[i].there;
        p->told.metrics.matched += list[i].there;
        p->told.metrics.read_bytes += list[i].there ? list[i].found.body.n : 0;
    }
    return OK;
}

static void write_all(sql_request *q, query_page *p, named *list, size_t n) {
    qsort(list, n, sizeof *list, by_place);
    for (size_t i = 0; i < n && list[i].there; i++) {
        bool again = i && by_place(&list[i - 1], &list[i]) == 0;
        if (again) {
            continue;
        }
        if (p->told.rows++) {
            buf_add_byte(p->ask.out, ',');
        }
        sql_write_item(p->ask.out, q->container, list[i].found.body, &list[i].found.head);
    }
    p->told.metrics.rows = p->told.rows;
    p->told.metrics.rows_bytes = p->ask.out->n;
}

/* What does not fit one page is for the engine, which has continuations. */
static bool fits(const query_page *p) {
    return p->told.metrics.read_bytes <= p->ask.bytes_max && p->ask.out->n <= p->ask.bytes_max && p->told.rows <= p->ask.rows_max;
}

bool sql_read_many(sql_request *q, const sql_target *t, query_page *p, err *code_out) {
    size_t n;
    const query_point *points = query_points(q->http->arena, p->ask.query, &q->container->key, &n);
    item_key *keys = points && n >= 2 ? arena_array(q->http->arena, item_key, n) : NULL;
    if (!keys || !take_keys(q, t, points, n, keys, &n) || n == 0) {
        q->op.detail_n = 0;
        return false;
    }
    named *list = arena_array(q->http->arena, named, n);
    *code_out = read_all(q, p, keys, n, list);
    if (*code_out == OK) {
        write_all(q, p, list, n);
    }
    for (size_t i = 0; i < n; i++) {
        if (list[i].there) {
            item_give(&list[i].found);
        }
    }
    if (*code_out == OK && !fits(p)) {
        p->ask.out->n = 0;
        p->told.rows = 0;
        p->told.metrics = (query_metrics){0};
        return false;
    }
    return true;
}
