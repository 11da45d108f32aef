/* Any bytes as a query are rejected with a well-formed message about a place in the text, or parsed into a bounded tree. The tree's text
 * parses to a tree with the same text. */
#include <assert.h>
#include <stdio.h>

#include "doc/json.h"
#include "query/parse.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_refusal(const op *o, size_t size) {
    buf bson = buf_init(BUF_NO_LIMIT);
    unsigned start, end;
    slice sentence = slice_of(o->detail, o->detail_n);
    err code = json_to_bson(sentence, NULL, &bson, NULL, NULL);
    assert(code == OK);
    int read = sscanf(o->detail, "{\"errors\":[{\"severity\":\"Error\",\"location\":{\"start\":%u,\"end\":%u},\"code\":\"SC", &start, &end);
    assert(read == 2 && start <= end && end <= size);
    buf_free(&bson);
}

static void check_span(query_span span, size_t size) {
    assert(span.start <= span.end && span.end <= size);
}

static void check_expr(const query_expr *e, size_t size) {
    check_span(e->span, size);
    assert(e->depth >= 1 && e->depth <= QUERY_DEPTH_MAX);
    for (size_t i = 0; i < e->items_n; i++) {
        check_expr(e->items[i], size);
        assert(e->items[i]->depth < e->depth);
    }
}

static void check_select(const query_select *s, size_t size) {
    check_span(s->span, size);
    check_span(s->columns_span, size);
    check_span(s->where_span, size);
    assert(s->depth <= QUERY_DEPTH_MAX);
    assert(s->star ? s->columns_n == 0 : s->columns_n > 0);
    for (size_t i = 0; i < s->columns_n; i++) {
        check_expr(s->columns[i].expr, size);
    }
    for (size_t i = 0; i < s->sources_n; i++) {
        check_span(s->sources[i].span, size);
        assert(!s->sources[i].from != !s->sources[i].select);
    }
    if (s->where) {
        check_expr(s->where, size);
    }
}

static void check_printed(const query_select *s, void (*print)(buf *, const query_select *)) {
    arena memory = arena_init();
    buf first = buf_init(BUF_NO_LIMIT);
    buf second = buf_init(BUF_NO_LIMIT);
    query_ast *again;
    op o;
    op_init(&o, &memory, 0);
    print(&first, s);
    if (first.n <= 512 * 1024) { /* printed parentheses may make it too long */
        err code = query_parse(&o, &memory, buf_view(&first), &again);
        assert(code == OK);
        print(&second, again->select);
        assert(slice_eq(buf_view(&first), buf_view(&second)));
    }
    buf_free(&first);
    buf_free(&second);
    arena_free(&memory);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    arena memory = arena_init();
    query_ast *ast;
    op o;
    op_init(&o, &memory, 0);
    err code = query_parse(&o, &memory, slice_of(data, size), &ast);
    assert(code == OK || code == E_BAD_QUERY);
    if (code == OK) {
        check_select(ast->select, size);
        check_printed(ast->select, query_print_select);
        check_printed(ast->select, query_print_lines);
    } else {
        check_refusal(&o, size);
    }
    arena_free(&memory);
    return 0;
}
