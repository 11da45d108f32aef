#include "query/find_int.h"

#include "base/limits.h"
#include "partition/murmur.h"
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
    query_out->counts = find->counts && !find->skip && find->limit == UINT64_MAX;
    return find->each.n ? query__find_each(o, a, c, find->each, query_out) : OK;
}

/* ---- continuations ----
 *
 * {"q": hash of the conditions and the order, "w": cursor (item_cursor_write), "p": position} */

static int64_t check_of(const query_find *f) {
    hash128 where = hash_murmur3_128(f->where), order = hash_murmur3_128(f->order);
    return (int64_t)(where.h1 * 31 + order.h1 + f->skip * 7 + f->limit + f->counts);
}

static void append_cursor(bson_t *to, const item_cursor *c) {
    buf bytes = buf_init(BUF_NO_LIMIT);
    item_cursor_write(&bytes, c);
    bson_append_binary(to, "w", 1, BSON_SUBTYPE_BINARY, (const uint8_t *)bytes.p, (uint32_t)bytes.n);
    buf_free(&bytes);
}

static slice write_continuation(query_find_page *p) {
    bson_t document = BSON_INITIALIZER, position;
    arena *a = p->page.ask.op->arena;
    bson_append_int64(&document, "q", 1, check_of(p->find));
    append_cursor(&document, &p->cursor);
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

static bool read_continuation(query_find_page *p) {
    enum { BINARY_HEAD = 5 }; /* length and subtype */
    doc_element check, cursor, position;
    if (p->from.n > LIMIT_FIND_CONTINUATION_BYTES || !doc_is_well_formed(p->from, LIMIT_JSON_DEPTH) ||
        !member_of(p->from, "q", BSON_TYPE_INT64, &check) || doc_load_i64(check.value.p) != check_of(p->find) ||
        !member_of(p->from, "w", BSON_TYPE_BINARY, &cursor) || !member_of(p->from, "p", BSON_TYPE_DOCUMENT, &position)) {
        return false;
    }
    return cursor.value.n >= BINARY_HEAD && item_cursor_read(slice_skip(cursor.value, BINARY_HEAD), &p->cursor) && p->cursor.n > 0 &&
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
        p->cursor.moment = p->find->moment;
    } else {
        item_cursor_init(&p->cursor, &scope->min, &scope->max);
        p->cursor.prefix = scope->prefix;
    }
}

err query_find_run(query_find_page *p) {
    query_page *page = &p->page;
    TRY(query_find_prepare(page->ask.op, page->ask.op->arena, page->ask.container, p->find, &p->query));
    begin(p);
    page->ask.narrow = p->find->narrow;
    page->ask.verified = p->find->verified;
    if (p->from.n && !read_continuation(p)) {
        return E_BAD_CONTINUATION;
    }
    TRY(query_position_restore(page));
    TRY(query_run_page(page));
    p->next = page->outcome.more ? write_continuation(p) : SLICE_EMPTY;
    return OK;
}
