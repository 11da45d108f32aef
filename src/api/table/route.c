#include "api/table/route.h"

#include <bson/bson.h>

#include "base/percent.h"

static bool is_ascii(const char *text, size_t n) {
    unsigned char all = 0;
    for (size_t i = 0; i < n; i++) {
        all |= (unsigned char)text[i];
    }
    return all < 0x80;
}

static bool decode(arena *a, slice raw, slice *text_out) {
    char *text = arena_alloc_aligned(a, raw.n + 1, 1);
    size_t n;
    bool good = percent_decode(raw, text, &n) && (is_ascii(text, n) || bson_utf8_validate(text, n, true));
    *text_out = slice_of(text, good ? n : 0);
    return good;
}

static slice until(slice s, char c) {
    const char *at = s.n ? memchr(s.p, c, s.n) : NULL;
    return slice_of(s.p, at ? (size_t)(at - s.p) : s.n);
}

/* ---- keys ---- */

static bool take(slice *rest, slice word) {
    bool there = slice_starts(*rest, word);
    *rest = slice_skip(*rest, there ? word.n : 0);
    return there;
}

/* 'it''s' is it's. */
static bool take_literal(arena *a, slice *rest, slice *text_out) {
    char *text = arena_alloc_aligned(a, rest->n + 1, 1);
    size_t n = 0;
    if (!take(rest, SLICE_LIT("'"))) {
        return false;
    }
    while (rest->n) {
        bool quote = rest->p[0] == '\'';
        if (quote && !(rest->n > 1 && rest->p[1] == '\'')) {
            *rest = slice_skip(*rest, 1);
            *text_out = slice_of(text, n);
            return true;
        }
        text[n++] = rest->p[0];
        *rest = slice_skip(*rest, quote ? 2 : 1);
    }
    return false;
}

static bool take_keys(arena *a, slice rest, table_route *r) {
    do {
        rest = slice_trim(rest);
        slice *key = take(&rest, SLICE_LIT("PartitionKey=")) ? &r->partition : take(&rest, SLICE_LIT("RowKey=")) ? &r->row : NULL;
        if (!key || key->p || !take_literal(a, &rest, key)) {
            return false;
        }
    } while (take(&rest, SLICE_LIT(",")));
    return r->partition.p && r->row.p && slice_eq(rest, SLICE_LIT(")"));
}

/* ---- paths ---- */

static table_error parse_tables(arena *a, slice keys, table_route *r) {
    r->kind = keys.n ? TABLE_TABLE : TABLE_TABLES;
    if (!keys.n || slice_eq(keys, SLICE_LIT(")"))) {
        r->kind = TABLE_TABLES;
        return TABLE_FINE;
    }
    return take_literal(a, &keys, &r->table) && slice_eq(keys, SLICE_LIT(")")) ? TABLE_FINE : TABLE_INVALID_INPUT;
}

/* "people", "people()", "people(PartitionKey='p',RowKey='r')", "Tables('people')", "$batch" */
static table_error parse_resource(arena *a, slice text, table_route *r) {
    slice name = until(text, '(');
    slice keys = slice_skip(text, name.n + 1);
    r->table = name;
    if (slice_eq(text, SLICE_LIT("$batch"))) {
        r->kind = TABLE_BATCH;
        return TABLE_FINE;
    }
    if (slice_eq_nocase(name, SLICE_LIT("Tables"))) {
        return parse_tables(a, keys, r);
    }
    r->kind = TABLE_ENTITIES;
    if (name.n == text.n || slice_eq(keys, SLICE_LIT(")"))) {
        return TABLE_FINE;
    }
    r->kind = TABLE_ENTITY;
    return take_keys(a, keys, r) ? TABLE_FINE : TABLE_INVALID_INPUT;
}

/* Matches "account"; or "account-secondary", the read-only endpoint of a second region, which is the same server here. The Python SDK turns
 * path-style addresses into "account-secondary/account". */
static slice take_account(slice *path) {
    slice first = until(*path, '/'), secondary = SLICE_LIT("-secondary");
    *path = slice_skip(*path, first.n + 1);
    bool second = first.n > secondary.n && slice_eq(slice_skip(first, first.n - secondary.n), secondary);
    if (!second) {
        return first;
    }
    first.n -= secondary.n;
    slice again = until(*path, '/');
    *path = again.n < path->n && slice_eq(again, first) ? slice_skip(*path, again.n + 1) : *path;
    return first;
}

table_error table_route_parse(arena *a, slice path, bool service, table_route *r) {
    slice resource;
    *r = (table_route){.kind = TABLE_SERVICE};
    if (!path.n || path.p[0] != '/') {
        return TABLE_INVALID_URI;
    }
    path = slice_skip(path, 1);
    bool has_account = until(path, '/').n < path.n || (service && path.n);
    if (has_account) {
        slice account = take_account(&path);
        if (!decode(a, account, &r->account) || (path.n && memchr(path.p, '/', path.n))) {
            return TABLE_INVALID_URI;
        }
    }
    if (path.n == 0) {
        return TABLE_FINE;
    }
    return decode(a, path, &resource) ? parse_resource(a, resource, r) : TABLE_INVALID_URI;
}

slice table_path_of_url(slice url) {
    slice rest = url;
    if (take(&rest, SLICE_LIT("http://")) || take(&rest, SLICE_LIT("https://"))) {
        rest = slice_skip(rest, until(rest, '/').n);
    }
    return until(rest, '?');
}

/* ---- parameters ---- */

table_error table_parameter(arena *a, slice query, const char *name, slice *value_out) {
    slice wanted = slice_str(name);
    *value_out = SLICE_EMPTY;
    while (query.n) {
        slice pair = until(query, '&'), key = until(pair, '='), decoded;
        query = slice_skip(query, pair.n + 1);
        if (!decode(a, key, &decoded) || !slice_eq(decoded, wanted)) {
            continue;
        }
        slice raw = slice_skip(pair, key.n + 1);
        char *blanks = arena_text(a, raw);
        for (size_t i = 0; i < raw.n; i++) {
            blanks[i] = blanks[i] == '+' ? ' ' : blanks[i];
        }
        return decode(a, slice_of(blanks, raw.n), value_out) ? TABLE_FINE : TABLE_INVALID_PARAMETER;
    }
    return TABLE_FINE;
}

bool table_name_is_good(slice name) {
    bool good = name.n >= 3 && name.n <= 63 && !slice_eq_nocase(name, SLICE_LIT("tables"));
    for (size_t i = 0; good && i < name.n; i++) {
        char c = name.p[i];
        good = (unsigned)((c | 0x20) - 'a') < 26u || (i && c >= '0' && c <= '9');
    }
    return good;
}
