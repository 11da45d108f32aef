#include "client/value.h"

#include <stdlib.h>

#include "base/memory.h"
#include "doc/json.h"

typedef enum rank { RANK_UNDEFINED, RANK_NULL, RANK_BOOL, RANK_NUMBER, RANK_STRING, RANK_ARRAY, RANK_OBJECT } rank;

static rank rank_of(const doc_element *e) {
    if (!e) {
        return RANK_UNDEFINED;
    }
    switch (e->type) {
    case BSON_TYPE_NULL:
        return RANK_NULL;
    case BSON_TYPE_BOOL:
        return RANK_BOOL;
    case BSON_TYPE_UTF8:
        return RANK_STRING;
    case BSON_TYPE_ARRAY:
        return RANK_ARRAY;
    case BSON_TYPE_DOCUMENT:
        return RANK_OBJECT;
    default:
        return doc_is_number(e->type) ? RANK_NUMBER : RANK_UNDEFINED;
    }
}

static double number_of(const doc_element *e) {
    switch (e->type) {
    case BSON_TYPE_INT32:
        return doc_load_i32(e->value.p);
    case BSON_TYPE_INT64:
        return (double)doc_load_i64(e->value.p);
    default:
        return doc_load_double(e->value.p);
    }
}

/* ---- members of an object, by name ---- */

static int by_name(const void *a, const void *b) {
    return slice_cmp(((const doc_element *)a)->key, ((const doc_element *)b)->key);
}

static doc_element *sorted_members(slice bson, size_t *n_out) {
    doc_element *list = NULL, e;
    size_t n = 0;
    doc_walk w;
    if (doc_walk_init(&w, bson)) {
        while (doc_walk_next(&w, &e)) {
            if ((n & (n - 1)) == 0) {
                list = mem_resize(list, (n ? n * 2 : 1) * sizeof *list);
            }
            list[n++] = e;
        }
    }
    if (n) {
        qsort(list, n, sizeof *list, by_name);
    }
    *n_out = n;
    return list;
}

/* ---- order ---- */

static int compare_objects(slice a, slice b) {
    size_t n, m, i = 0;
    doc_element *x = sorted_members(a, &n), *y = sorted_members(b, &m);
    int c = 0;
    for (; c == 0 && i < n && i < m; i++) {
        c = slice_cmp(x[i].key, y[i].key);
        c = c ? c : client__value_compare(&x[i], &y[i]);
    }
    free(x);
    free(y);
    return c ? c : (n > m) - (n < m);
}

static int compare_arrays(slice a, slice b) {
    doc_walk v, w;
    doc_element x, y;
    if (!doc_walk_init(&v, a) || !doc_walk_init(&w, b)) {
        return 0;
    }
    for (;;) {
        bool more = doc_walk_next(&v, &x), other = doc_walk_next(&w, &y);
        if (!more || !other) {
            return more - other;
        }
        int c = client__value_compare(&x, &y);
        if (c) {
            return c;
        }
    }
}

int client__value_compare(const doc_element *a, const doc_element *b) {
    rank x = rank_of(a), y = rank_of(b);
    double m, n;
    if (x != y) {
        return x < y ? -1 : 1;
    }
    switch (x) {
    case RANK_BOOL:
        return a->value.p[0] - b->value.p[0];
    case RANK_NUMBER:
        m = number_of(a);
        n = number_of(b);
        return (m > n) - (m < n);
    case RANK_STRING:
        return slice_cmp(doc_element_text(a), doc_element_text(b));
    case RANK_ARRAY:
        return compare_arrays(a->value, b->value);
    case RANK_OBJECT:
        return compare_objects(a->value, b->value);
    default:
        return 0;
    }
}

/* ---- one text for equal values: a JSON-like form with lengths, numbers as JavaScript writes them ---- */

static void canonical_text(buf *out, slice text) {
    buf_addf(out, "%zu:", text.n);
    buf_add_slice(out, text);
}

static void canonical_object(buf *out, slice bson) {
    size_t n;
    doc_element *members = sorted_members(bson, &n);
    buf_add_byte(out, '{');
    for (size_t i = 0; i < n; i++) {
        canonical_text(out, members[i].key);
        client__value_canonical(out, &members[i]);
    }
    buf_add_byte(out, '}');
    free(members);
}

static void canonical_array(buf *out, slice bson) {
    doc_walk w;
    doc_element e;
    buf_add_byte(out, '[');
    if (doc_walk_init(&w, bson)) {
        while (doc_walk_next(&w, &e)) {
            client__value_canonical(out, &e);
        }
    }
    buf_add_byte(out, ']');
}

void client__value_canonical(buf *out, const doc_element *e) {
    switch (rank_of(e)) {
    case RANK_NULL:
        buf_add_byte(out, 'n');
        break;
    case RANK_BOOL:
        buf_add_byte(out, e->value.p[0] ? 't' : 'f');
        break;
    case RANK_NUMBER:
        buf_add_byte(out, '#');
        json_add_double(out, number_of(e));
        buf_add_byte(out, ';');
        break;
    case RANK_STRING:
        buf_add_byte(out, '"');
        canonical_text(out, doc_element_text(e));
        break;
    case RANK_ARRAY:
        canonical_array(out, e->value);
        break;
    case RANK_OBJECT:
        canonical_object(out, e->value);
        break;
    default:
        buf_add_byte(out, 'u');
    }
}

bool client__value_read(slice json, buf *bson, doc_element *element_out) {
    buf wrapped = buf_init(json.n + 2);
    json_root root;
    doc_walk w;
    buf_add_byte(&wrapped, '[');
    buf_add_slice(&wrapped, json);
    buf_add_byte(&wrapped, ']');
    buf_clear(bson);
    bool good = json.n && json_to_bson(buf_view(&wrapped), NULL, bson, &root, NULL) == OK && doc_walk_init(&w, buf_view(bson)) &&
                doc_walk_next(&w, element_out);
    buf_free(&wrapped);
    return good;
}
