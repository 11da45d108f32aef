#include "api/cassandra/range.h"

#include <stdio.h>

#include "doc/walk.h"

/* ---- bounds ---- */

static int compare(cass_bound a, cass_bound b) {
    size_t n = a.at.n < b.at.n ? a.at.n : b.at.n;
    int c = n ? memcmp(a.at.p, b.at.p, n) : 0;
    if (c) {
        return c;
    }
    if (a.at.n == b.at.n) {
        return a.after - b.after;
    }
    return a.at.n < b.at.n ? (a.after ? 1 : -1) : (b.after ? -1 : 1); /* the shorter one is the beginning of the other */
}

cass_range cass_range_of(const item_row_bound *from, const item_row_bound *to, int64_t us, int64_t until_s) {
    cass_range r = {.us = us, .until_s = until_s, .to.after = true};
    if (from->given) {
        r.from = (cass_bound){from->prefix, from->exclusive};
    }
    if (to->given) {
        r.to = (cass_bound){to->prefix, !to->exclusive};
    }
    return r;
}

bool cass_ranges_hide(const cass_range *ranges, uint32_t n, slice row, int64_t *us_out) {
    cass_bound at = {.at = row};
    bool any = false;
    for (uint32_t i = 0; i < n; i++) {
        const cass_range *r = &ranges[i];
        if (compare(at, r->from) >= 0 && compare(at, r->to) < 0 && (!any || r->us > *us_out)) {
            *us_out = r->us;
            any = true;
        }
    }
    return any;
}

/* ---- a list ---- */

static bool covers(const cass_range *r, const cass_range *other) {
    return r->us >= other->us && compare(r->from, other->from) <= 0 && compare(r->to, other->to) >= 0;
}

static size_t bytes_of(const cass_range *ranges, uint32_t n) {
    enum { OTHER_BYTES = 64 };
    size_t bytes = 0;
    for (uint32_t i = 0; i < n; i++) {
        bytes += OTHER_BYTES + ranges[i].from.at.n + ranges[i].to.at.n;
    }
    return bytes;
}

static void drop_earliest(cass_range *ranges, uint32_t *n) {
    uint32_t earliest = 0;
    for (uint32_t i = 1; i < *n; i++) {
        earliest = ranges[i].us < ranges[earliest].us ? i : earliest;
    }
    ranges[earliest] = ranges[--*n];
}

err cass_ranges_add(op *o, const cass_range *ranges, uint32_t n, const cass_range *more, cass_range **ranges_out, uint32_t *n_out) {
    if (!arena_fits(o->arena, ((size_t)n + 1) * sizeof(cass_range))) {
        return budget_error(o->budget);
    }
    cass_range *all = arena_array(o->arena, cass_range, n + 1);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (!covers(more, &ranges[i])) {
            all[kept++] = ranges[i];
        }
    }
    all[kept++] = *more;
    while (kept > CASS_RANGES_MAX || (kept > 1 && bytes_of(all, kept) > CASS_RANGES_BYTES)) {
        drop_earliest(all, &kept);
    }
    *ranges_out = all;
    *n_out = kept;
    return OK;
}

/* ---- BSON ---- */

static void add_head(buf *out, bson_type_t type, const char *key) {
    buf_add_byte(out, (char)type);
    buf_add(out, key, strlen(key) + 1);
}

static void add_bound(buf *out, const char *at_key, const char *after_key, cass_bound b) {
    char n[4];
    doc_store_i32(n, (int32_t)b.at.n);
    add_head(out, BSON_TYPE_BINARY, at_key);
    buf_add(out, n, sizeof n);
    buf_add_byte(out, BSON_SUBTYPE_BINARY);
    buf_add_slice(out, b.at);
    add_head(out, BSON_TYPE_BOOL, after_key);
    buf_add_byte(out, b.after);
}

static void add_long(buf *out, const char *key, int64_t number) {
    char bytes[8];
    doc_store_i64(bytes, number);
    add_head(out, BSON_TYPE_INT64, key);
    buf_add(out, bytes, sizeof bytes);
}

void cass_ranges_put(buf *out, const cass_range *ranges, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) {
        char key[16];
        snprintf(key, sizeof key, "%u", i);
        add_head(out, BSON_TYPE_DOCUMENT, key);
        size_t at = out->n;
        buf_add(out, "\0\0\0\0", 4);
        add_bound(out, "f", "g", ranges[i].from);
        add_bound(out, "t", "u", ranges[i].to);
        add_long(out, "d", ranges[i].us);
        add_long(out, "e", ranges[i].until_s);
        buf_add_byte(out, 0);
        if (buf_ok(out)) {
            doc_store_i32(out->p + at, (int32_t)(out->n - at));
        }
    }
}

static void read_range(slice document, cass_range *r) {
    enum { BINARY_HEAD = 5 };
    doc_walk w;
    doc_element e;
    *r = (cass_range){.us = INT64_MIN};
    for (doc_walk_init(&w, document); doc_walk_next(&w, &e);) {
        char name = e.key.n == 1 ? e.key.p[0] : 0;
        if (e.type == BSON_TYPE_BINARY && e.value.n >= BINARY_HEAD && (name == 'f' || name == 't')) {
            *(name == 'f' ? &r->from.at : &r->to.at) = slice_skip(e.value, BINARY_HEAD);
        } else if (e.type == BSON_TYPE_BOOL && (name == 'g' || name == 'u')) {
            *(name == 'g' ? &r->from.after : &r->to.after) = e.value.p[0] != 0;
        } else if (e.type == BSON_TYPE_INT64 && (name == 'd' || name == 'e')) {
            *(name == 'd' ? &r->us : &r->until_s) = doc_load_i64(e.value.p);
        }
    }
}

err cass_ranges_read(op *o, slice array, int64_t now_s, cass_range **ranges_out, uint32_t *n_out) {
    doc_walk w;
    doc_element e;
    uint32_t most = 0, n = 0;
    *n_out = 0;
    for (doc_walk_init(&w, array); doc_walk_next(&w, &e);) {
        most++;
    }
    if (!arena_fits(o->arena, most * sizeof(cass_range))) {
        return budget_error(o->budget);
    }
    *ranges_out = arena_array(o->arena, cass_range, most + 1);
    for (doc_walk_init(&w, array); doc_walk_next(&w, &e);) {
        if (e.type == BSON_TYPE_DOCUMENT) {
            read_range(e.value, &(*ranges_out)[n]);
            n += (*ranges_out)[n].until_s > now_s;
        }
    }
    *n_out = n;
    return OK;
}
