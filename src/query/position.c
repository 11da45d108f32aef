#include "query/position.h"

#include "base/limits.h"
#include "partition/murmur.h"
#include "query/udf.h"

enum { VALUE_BYTES_LEAST = 16, ORDER_MAX = 16, CUT_MAX = 32 };

/* Not value_hash, whose seed differs in each process: continuations outlive the process. */
uint64_t query_position_check(const query_value *values, size_t n) {
    uint64_t check = 0;
    for (size_t i = 0; i < n; i++) {
        const query_value *v = &values[i];
        slice bytes = v->type >= TYPE_STRING ? v->bytes : slice_of(&v->number, v->type == TYPE_NUMBER ? sizeof v->number : 0);
        check = (check + hash_murmur3_128(bytes).h1 + v->type + v->extended) * 0x9E3779B97F4A7C15 + v->truth;
    }
    return check;
}

/* The largest cut of at most n bytes that does not split a character. */
static size_t cut_at(slice text, size_t n) {
    while (n && ((unsigned char)text.p[n] & 0xC0) == 0x80) {
        n--;
    }
    return n;
}

static const char nothing[5] = {5}; /* an empty document */

size_t query_position_values(const query *q) {
    const query_select *s = q->select;
    return s->order_n ? s->order_n : q->aggregates ? s->group_n : s->distinct;
}

void query_position_cut(arena *a, size_t n, query_position *at) {
    size_t most = n && QUERY_POSITION_BYTES / n > VALUE_BYTES_LEAST ? QUERY_POSITION_BYTES / n : VALUE_BYTES_LEAST;
    query_value *values = arena_array(a, query_value, n + 1);
    at->cut = 0;
    at->check = query_position_check(at->values, n);
    for (size_t i = 0; i < n; i++) {
        values[i] = at->values[i];
        if (values[i].type < TYPE_STRING || values[i].bytes.n <= most || i >= CUT_MAX) {
            continue;
        }
        at->cut |= 1u << i;
        values[i] = values[i].type == TYPE_STRING ? value_string(slice_of(values[i].bytes.p, cut_at(values[i].bytes, most)))
                                                  : value_document(values[i].type, slice_of(nothing, sizeof nothing));
    }
    at->values = values;
}

/* ---- restoring full values ---- */

typedef struct wanted {
    query_runner *runner;
    const query_select *select;
    uint64_t at, row;
    query_value *values;
    arena *keep;
    bool found;
} wanted;

static bool take_values(void *context) {
    wanted *w = context;
    if (w->at++ != w->row) {
        return true;
    }
    for (size_t i = 0; i < w->select->order_n; i++) {
        query_value v = query_eval(w->runner, w->select->order[i].expr);
        w->values[i] = value_keep(w->keep, &v);
    }
    w->found = w->runner->code == OK;
    return false;
}

/* Evaluates the order values of the position's row as the item is now. */
static bool values_of_row(const query_page *p, const item_found *found, query_value *values) {
    arena row = arena_init_counted(p->ask.op->budget);
    query_runner *r = arena_new(&row, query_runner);
    query_item item = {.body = found->body, .number = found->head.number, .version = item_version(&found->head), .ts = found->head.ts};
    memcpy(item.container_rid, p->ask.container->rid, sizeof item.container_rid);
    query_runner_init(r, p->ask.query, p->ask.op, &row, clock_wall_ms(p->ask.items->clock));
    query_calls calls;
    query_calls_init(&calls, p->ask.udfs, p->ask.items->clock, p->ask.until_us, p->ask.op->budget);
    r->calls = p->ask.udfs ? &calls : NULL;
    r->context.keep = p->ask.op->arena;
    query_value value = value_of_item(&item);
    wanted w = {r, p->ask.query->select, 0, p->position.row, values, p->ask.op->arena, false};
    query_each_row(r, p->ask.query->select, &value, take_values, &w);
    query_calls_free(&calls);
    arena_free(&row);
    return w.found;
}

/* A value at, or in the order's direction before, all values that have the shortened one as prefix. */
static query_value first_alike(arena *a, const query_value *v, bool descending) {
    if (v->type != TYPE_STRING) { /* any array or object: objects come after all arrays */
        return descending ? value_document(TYPE_OBJECT, v->bytes) : *v;
    }
    char *text = arena_array(a, char, v->bytes.n + 1);
    memcpy(text, v->bytes.n ? v->bytes.p : "", v->bytes.n);
    text[v->bytes.n] = descending ? (char)0xFF : 0; /* 0xFF is in no UTF-8 text; the full value was longer than the prefix */
    return value_string(slice_of(text, v->bytes.n + 1));
}

static void start_alike(const query_page *p, query_position *at) {
    const query_select *s = p->ask.query->select;
    size_t i = 0;
    while (i + 1 < s->order_n && !(at->cut & 1u << i)) {
        i++;
    }
    at->ordered = !(at->values[i].type == TYPE_OBJECT && s->order[i].descending); /* nothing comes after objects: begin with the first
                                                                                     row */
    at->values[i] = first_alike(p->ask.op->arena, &at->values[i], s->order[i].descending);
    at->number = at->row = 0;
}

/* The number comes from the client, and could name any item of the container: an item outside the query's partition must reveal nothing. */
static bool is_own(const query_page *p, const item_found *found) {
    return item_in_scope(p->ask.op, p->ask.container, &(item_scope){.partition = p->cursor->partition, .prefix = p->cursor->prefix},
                         found->body);
}

err query_position_restore(query_page *p) {
    query_position *at = &p->position;
    size_t n = p->ask.query->select->order_n;
    query_value values[ORDER_MAX];
    item_found found;
    if (!at->cut || n == 0 || n > ORDER_MAX) { /* exec_keyed.c restores keys itself */
        return OK;
    }
    const container_tiles *tiles = p->ask.container->tiles;
    err code = item_read_place(p->ask.items, p->ask.container, p->cursor->moment,
                               (item_place){tiles->segments_n ? tiles->segments[0] : 0, at->number}, &found);
    if (code != OK && code != E_NOT_FOUND) {
        return code;
    }
    bool same = code == OK && is_own(p, &found) && values_of_row(p, &found, values) && query_position_check(values, n) == at->check;
    if (code == OK) {
        item_give(&found);
    }
    if (same) {
        memcpy(at->values, values, n * sizeof *values);
    } else {
        start_alike(p, at);
    }
    at->cut = 0;
    return OK;
}

/* ---- from BSON: the bytes may be anything ---- */

static uint64_t number_of(slice bson, const char *name) {
    bson_iter_t it;
    return doc_find_key(bson, slice_str(name), &it) ? (uint64_t)bson_iter_as_int64(&it) : 0;
}

/* Rejects negative counts, and counts so large that adding rows could overflow. */
static bool read_count(slice bson, const char *name, uint64_t *count_out) {
    *count_out = number_of(bson, name);
    return *count_out < INT64_MAX / 2;
}

static bool read_values(arena *a, slice bson, size_t wanted, query_position *at) {
    bson_iter_t it, each;
    size_t n = 0;
    if (!doc_find_key(bson, SLICE_LIT("o"), &it)) {
        return true;
    }
    if (!BSON_ITER_HOLDS_ARRAY(&it) || !bson_iter_recurse(&it, &each)) {
        return false;
    }
    at->ordered = true;
    at->values = arena_array(a, query_value, wanted + 1);
    while (n < wanted && bson_iter_next(&each)) {
        at->values[n++] = value_of_exact(&each);
    }
    at->cut = (uint32_t)number_of(bson, "c");
    at->check = number_of(bson, "h");
    return n == wanted && wanted > 0;
}

/* The carried groups are checked where they are used. */
static bool read_carried(slice bson, query_position *at) {
    bson_iter_t it;
    const uint8_t *from;
    uint32_t n;
    uint64_t stage = number_of(bson, "t");
    if (stage > STAGE_PARTS) {
        return false;
    }
    at->stage = (query_stage)stage;
    if (stage && doc_find_key(bson, SLICE_LIT("m"), &it) && BSON_ITER_HOLDS_BINARY(&it)) {
        bson_iter_binary(&it, NULL, &n, &from);
        at->carried_from = slice_of(from, n);
    }
    if (stage && doc_find_key(bson, SLICE_LIT("a"), &it)) {
        query_value list = value_of_iter(&it);
        at->carried = list.type == TYPE_ARRAY ? list.bytes : SLICE_EMPTY;
        return list.type == TYPE_ARRAY;
    }
    return true;
}

/* A list of integers and EPKs in turn: number, rows, EPK. */
static bool take_begun(bson_iter_t *each, query_begun *b) {
    const uint8_t *bytes;
    uint32_t n;
    b->number = (uint64_t)bson_iter_as_int64(each);
    if (!bson_iter_next(each)) {
        return false;
    }
    b->rows = (uint64_t)bson_iter_as_int64(each);
    if (b->rows >= INT64_MAX / 2 || !bson_iter_next(each) || !BSON_ITER_HOLDS_BINARY(each)) {
        return false;
    }
    bson_iter_binary(each, NULL, &n, &bytes);
    slice rest = slice_of(bytes, n);
    return epk_take(&rest, &b->epk) && rest.n == 0;
}

static bool read_begun(arena *a, slice bson, query_position *at) {
    bson_iter_t it, each;
    query_begun b, *begun;
    if (!doc_find_key(bson, SLICE_LIT("b"), &it)) {
        return true;
    }
    if (!BSON_ITER_HOLDS_ARRAY(&it) || !bson_iter_recurse(&it, &each)) {
        return false;
    }
    at->begun = begun = arena_array(a, query_begun, QUERY_BEGUN_MAX);
    while (bson_iter_next(&each)) {
        if (at->begun_n == QUERY_BEGUN_MAX || !take_begun(&each, &b)) {
            return false;
        }
        begun[at->begun_n++] = b;
    }
    return true;
}

bool query_position_parse(arena *a, slice bson, size_t values, query_position *at) {
    *at = (query_position){0};
    if (!doc_is_well_formed(bson, LIMIT_JSON_DEPTH)) {
        return false;
    }
    at->number = number_of(bson, "n");
    return read_begun(a, bson, at) && read_count(bson, "s", &at->skipped) && read_count(bson, "g", &at->given) &&
           read_count(bson, "p", &at->passed) && read_count(bson, "r", &at->row) && read_values(a, bson, values, at) &&
           read_carried(bson, at);
}

/* ---- to BSON ---- */

static void write_values(bson_t *document, arena *a, size_t n, query_position at) {
    bson_t list;
    query_position_cut(a, n, &at);
    bson_append_int64(document, "r", 1, (int64_t)at.row);
    if (at.cut) {
        bson_append_int64(document, "c", 1, at.cut);
        bson_append_int64(document, "h", 1, (int64_t)at.check);
    }
    bson_append_array_begin(document, "o", 1, &list);
    for (size_t i = 0; i < n; i++) {
        value_append_exact(&list, i, &at.values[i]);
    }
    bson_append_array_end(document, &list);
}

static void write_carried(bson_t *document, const query_position *at) {
    bson_t list;
    bson_append_int32(document, "t", 1, (int32_t)at->stage);
    bson_append_binary(document, "m", 1, BSON_SUBTYPE_BINARY, (const uint8_t *)(at->carried_from.n ? at->carried_from.p : ""),
                       (uint32_t)at->carried_from.n);
    if (at->carried.n && bson_init_static(&list, (const uint8_t *)at->carried.p, at->carried.n)) {
        bson_append_array(document, "a", 1, &list);
    }
}

static void write_begun(bson_t *document, const query_position *at) {
    bson_t list;
    bson_append_array_begin(document, "b", 1, &list);
    for (size_t i = 0; i < at->begun_n; i++) {
        const query_begun *b = &at->begun[i];
        buf where = buf_init(BUF_NO_LIMIT);
        epk_put(&where, &b->epk);
        bson_append_int64(&list, "", 0, (int64_t)b->number);
        bson_append_int64(&list, "", 0, (int64_t)b->rows);
        bson_append_binary(&list, "", 0, BSON_SUBTYPE_BINARY, (const uint8_t *)where.p, (uint32_t)where.n);
        buf_free(&where);
    }
    bson_append_array_end(document, &list);
}

bool query_position_is_begun(const query_position *at) {
    return at->begun_n || at->skipped || at->given || at->ordered || at->stage;
}

void query_position_append(bson_t *document, arena *a, size_t values, const query_position *at) {
    if (at->begun_n) {
        write_begun(document, at);
    }
    bson_append_int64(document, "s", 1, (int64_t)at->skipped);
    bson_append_int64(document, "g", 1, (int64_t)at->given);
    bson_append_int64(document, "p", 1, (int64_t)at->passed);
    if (at->ordered) {
        bson_append_int64(document, "n", 1, (int64_t)at->number);
        write_values(document, a, values, *at);
    }
    if (at->stage) {
        write_carried(document, at);
    }
}
