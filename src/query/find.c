#include "query/find_int.h"

#include "base/limits.h"
#include "partition/hash.h"
#include "query/bind_int.h"
#include "query/position.h"

query_scope query_scope_all(void) {
    return (query_scope){.min = epk_min(), .max = epk_max()};
}

query_scope query_scope_partition(const item_key *partition) {
    return (query_scope){.partition = partition};
}

err query_find_prepare(op *o, arena *a, const container *c, const query_find *find, query *query_out) {
    query_ast *ast;
    TRY(query__find_tree(o, a, c, find, &ast));
    TRY(query__bind_tree(o, a, ast, query_out));
    query_out->offset = find->skip ? (double)find->skip : -1;
    query_out->limit = find->limit == UINT64_MAX ? -1 : (double)find->limit;
    return OK;
}

/* ---- continuations ----
 *
 *   {"q": check of the conditions and the order, "w": [{"b": min, "e": max, "a": number}, …], "p": position}
 *
 * "w" are the stretches that are left, items behind number `a` each; of a partition it is one, of which only `a` counts. */

static int64_t check_of(const query_find *f) {
    hash128 where = hash_murmur3_128(f->where), order = hash_murmur3_128(f->order);
    return (int64_t)(where.h1 * 31 + order.h1 + f->skip * 7 + f->limit);
}

static void append_epk(bson_t *to, const char *name, const epk *e) {
    bson_append_binary(to, name, 1, BSON_SUBTYPE_BINARY, e->bytes, e->n);
}

static void append_stretches(bson_t *to, const item_cursor *c) {
    bson_t list, each;
    char index[16];
    bson_append_array_begin(to, "w", 1, &list);
    for (size_t i = 0; i < c->n; i++) {
        int n = snprintf(index, sizeof index, "%zu", i);
        bson_append_document_begin(&list, index, n, &each);
        if (!c->partition) {
            append_epk(&each, "b", &c->stretches[i].min);
            append_epk(&each, "e", &c->stretches[i].max);
        }
        bson_append_int64(&each, "a", 1, (int64_t)c->stretches[i].after);
        bson_append_document_end(&list, &each);
    }
    bson_append_array_end(to, &list);
}

static slice write_continuation(query_find_page *p) {
    bson_t document = BSON_INITIALIZER, position;
    arena *a = p->page.ask.op->arena;
    bson_append_int64(&document, "q", 1, check_of(p->find));
    append_stretches(&document, &p->cursor);
    bson_append_document_begin(&document, "p", 1, &position);
    query_position_append(&position, a, query_position_values(&p->query), &p->page.position);
    bson_append_document_end(&document, &position);
    slice bytes = arena_copy(a, slice_of(bson_get_data(&document), document.len));
    bson_destroy(&document);
    return bytes;
}

static bool member_of(slice bson, const char *name, bson_type_t type, doc_element *e) {
    uint64_t passed = 0;
    return doc_find_member_counted(bson, slice_str(name), e, &passed) && e->type == type;
}

static bool read_epk(slice bson, const char *name, epk *out) {
    enum { HEAD = 5 }; /* length and subtype */
    doc_element e;
    if (!member_of(bson, name, BSON_TYPE_BINARY, &e) || e.value.n < HEAD || e.value.n - HEAD > EPK_BYTES_MAX) {
        return false;
    }
    slice bytes = slice_skip(e.value, HEAD);
    out->n = (uint8_t)bytes.n;
    memcpy(out->bytes, bytes.p, bytes.n);
    return true;
}

/* In order, without overlap, within what is asked for. */
static bool read_stretch(const query_scope *scope, slice bson, item_cursor *c) {
    doc_element after;
    item_stretch *s = &c->stretches[c->n];
    if (c->n == (scope->partition ? 1 : ITEM_STRETCHES_MAX) || !member_of(bson, "a", BSON_TYPE_INT64, &after)) {
        return false;
    }
    *s = (item_stretch){.after = (uint64_t)doc_load_i64(after.value.p)};
    if (!scope->partition) {
        const epk *from = c->n ? &c->stretches[c->n - 1].max : &scope->min;
        if (!read_epk(bson, "b", &s->min) || !read_epk(bson, "e", &s->max) || epk_cmp(&s->min, from) < 0 ||
            epk_cmp(&s->min, &s->max) >= 0 || epk_cmp(&scope->max, &s->max) < 0) {
            return false;
        }
    }
    c->n++;
    return true;
}

static bool read_continuation(query_find_page *p) {
    const query_scope *scope = &p->find->scope;
    doc_element check, list, position, e;
    doc_walk w;
    if (p->from.n > LIMIT_FIND_CONTINUATION_BYTES || !doc_is_sound(p->from, LIMIT_JSON_DEPTH) ||
        !member_of(p->from, "q", BSON_TYPE_INT64, &check) || doc_load_i64(check.value.p) != check_of(p->find) ||
        !member_of(p->from, "w", BSON_TYPE_ARRAY, &list) || !member_of(p->from, "p", BSON_TYPE_DOCUMENT, &position)) {
        return false;
    }
    p->cursor.n = 0;
    for (doc_walk_init(&w, list.value); doc_walk_next(&w, &e);) {
        if (e.type != BSON_TYPE_DOCUMENT || !read_stretch(scope, e.value, &p->cursor)) {
            return false;
        }
    }
    return p->cursor.n > 0 &&
           query_position_parse(p->page.ask.op->arena, position.value, query_position_values(&p->query), &p->page.position) &&
           p->page.position.stage == STAGE_WHOLE;
}

/* ---- a page ---- */

void query_find_init(query_find_page *p, const items *items, op *o, container *c, const query_find *find, slice from, query_sink sink,
                     void *context) {
    p->find = find;
    p->from = from;
    p->next = SLICE_EMPTY;
    query_page_init(&p->page, items, o, c, &p->query, &p->cursor, NULL);
    p->page.ask.sink = sink;
    p->page.ask.sink_context = context;
    p->page.ask.sorts = true;
    p->page.ask.rows_max = LIMIT_FIND_ROWS;
}

static void begin(query_find_page *p) {
    const query_scope *scope = &p->find->scope;
    if (scope->partition) {
        item_cursor_init_partition(&p->cursor, scope->partition);
    } else {
        item_cursor_init(&p->cursor, &scope->min, &scope->max);
        p->cursor.prefix = scope->prefix;
    }
}

err query_find_run(query_find_page *p) {
    query_page *page = &p->page;
    TRY(query_find_prepare(page->ask.op, page->ask.op->arena, page->ask.container, p->find, &p->query));
    begin(p);
    if (p->from.n && !read_continuation(p)) {
        return E_BAD_CONTINUATION;
    }
    TRY(query_position_restore(page));
    TRY(query_run_page(page));
    p->next = page->told.more ? write_continuation(p) : SLICE_EMPTY;
    return OK;
}
