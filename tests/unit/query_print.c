/* Printing: parsing a printed random tree gives the same tree, on one line and on several; the lines are as the service's planner writes
 * them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>

#include "base/random.h"
#include "query/lex.h"
#include "query/parse.h"

static arena memory;
static random_source dice;

static size_t roll(size_t bound) {
    return (size_t)random_below(&dice, bound);
}

#define PICK(list) (list)[roll(sizeof(list) / sizeof *(list))]

/* ---- random trees of the kinds that the parser makes ---- */

static query_expr *random_expr(unsigned depth);
static query_select *random_select(unsigned depth);

static slice random_name(void) {
    static const char *const names[] = {"c", "root", "r1", "_x", "rank", "LET", "All", "first", "TRUE", "Null", "a_long_name_2"};
    return slice_str(PICK(names));
}

static slice random_string(void) {
    static const char *const texts[] = {"",    "a",        "order", "two words", "\"quoted\"", "it's", "back\\slash",
                                        "é€😀", "\x01\n\t", "$1",    "x.y",       "--"};
    return roll(8) ? slice_str(PICK(texts)) : SLICE_LIT("zero\0byte");
}

static query_expr *node(query_kind kind) {
    query_expr *e = arena_new(&memory, query_expr);
    e->kind = kind;
    return e;
}

static query_expr *literal(query_value v) {
    query_expr *e = node(EXPR_LITERAL);
    e->value = v;
    return e;
}

static query_value random_number(void) {
    switch (roll(4)) {
    case 0:
        return value_integer((int64_t)roll(100) - 50);
    case 1:
        return value_integer((int64_t)random_u64(&dice));
    case 2:
        return value_number(((double)roll(2000) - 1000) / 8);
    default: {
        double d;
        uint64_t bits = random_u64(&dice);
        memcpy(&d, &bits, sizeof d);
        return value_number(isfinite(d) ? d : 1e300);
    }
    }
}

static query_expr *random_literal(void) {
    switch (roll(6)) {
    case 0:
        return literal(value_undefined());
    case 1:
        return literal(value_null());
    case 2:
        return literal(value_bool(roll(2)));
    case 3:
        return literal(value_string(random_string()));
    default:
        return literal(random_number());
    }
}

static query_expr *random_leaf(void) {
    static const char *const parameters[] = {"@p", "@P1", "@select", "@_"};
    query_expr *e;
    switch (roll(4)) {
    case 0:
        e = node(EXPR_PARAMETER);
        e->name = slice_str(PICK(parameters));
        return e;
    case 1:
        return random_literal();
    default:
        e = node(EXPR_NAME);
        e->name = random_name();
        return e;
    }
}

static void add_items(query_expr *e, unsigned depth, size_t n) {
    e->items = arena_array(&memory, query_expr *, n);
    e->items_n = n;
    for (size_t i = 0; i < n; i++) {
        e->items[i] = random_expr(depth);
    }
}

static bool is_number(const query_expr *e) {
    return e->kind == EXPR_LITERAL && e->value.type == TYPE_NUMBER;
}

static query_expr *random_member(query_expr *inner) {
    query_expr *e = node(EXPR_MEMBER);
    e->name = roll(2) ? random_name() : random_string();
    e->quoted = roll(2) || !query_lex_is_name(e->name);
    e->items = arena_array(&memory, query_expr *, 1);
    e->items[0] = inner;
    e->items_n = 1;
    return e;
}

static query_expr *random_operator(query_kind kind, unsigned depth) {
    query_expr *e = node(kind);
    add_items(e, depth, kind == EXPR_UNARY ? 1 : 2);
    e->op = kind == EXPR_UNARY    ? (query_operator)roll(OP_BIT_NOT + 1)
            : kind == EXPR_BINARY ? (query_operator)(OP_MULTIPLY + roll(OP_OR - OP_MULTIPLY + 1))
                                  : (query_operator)0;
    if (kind == EXPR_UNARY && e->op == OP_MINUS && is_number(e->items[0])) {
        e->op = OP_PLUS; /* minus before a number would be a literal */
    }
    if (kind == EXPR_INDEX && e->items[1]->kind == EXPR_LITERAL && e->items[1]->value.type == TYPE_STRING) {
        e->items[1] = literal(value_integer(3)); /* a string literal would make it a member */
    }
    return e;
}

static query_expr *random_predicate(query_kind kind, unsigned depth) {
    query_expr *e = node(kind);
    e->negated = roll(2);
    add_items(e, depth, kind == EXPR_BETWEEN ? 3 : 2 + roll(2));
    if (kind == EXPR_LIKE && e->items_n == 3) {
        e->items[2] = literal(value_string(random_string()));
    }
    return e;
}

static query_expr *random_call(unsigned depth) {
    static const char *const names[] = {"f", "COUNT", "Left", "RIGHT", "first", "rank"};
    query_expr *e = node(EXPR_CALL);
    e->udf = roll(4) == 0;
    e->name = e->udf ? random_name() : slice_str(PICK(names));
    add_items(e, depth, roll(3));
    return e;
}

static query_expr *random_object(unsigned depth) {
    query_expr *e = node(EXPR_OBJECT);
    add_items(e, depth, roll(3));
    slice *names = arena_array(&memory, slice, e->items_n + 1);
    for (size_t i = 0; i < e->items_n; i++) {
        names[i] = roll(2) ? random_name() : random_string();
    }
    e->names = names;
    return e;
}

static query_expr *random_expr(unsigned depth) {
    if (depth == 0 || roll(5) == 0) {
        return random_leaf();
    }
    query_kind kind = (query_kind)roll(EXPR_LAST + 1);
    switch (kind) {
    case EXPR_MEMBER:
        return random_member(random_expr(depth - 1));
    case EXPR_INDEX:
    case EXPR_UNARY:
    case EXPR_BINARY:
    case EXPR_COALESCE:
        return random_operator(kind, depth - 1);
    case EXPR_BETWEEN:
    case EXPR_IN:
    case EXPR_LIKE:
        return random_predicate(kind, depth - 1);
    case EXPR_CALL:
        return random_call(depth - 1);
    case EXPR_OBJECT:
        return random_object(depth - 1);
    case EXPR_CONDITIONAL:
    case EXPR_ARRAY: {
        query_expr *e = node(kind);
        add_items(e, depth - 1, kind == EXPR_ARRAY ? roll(4) : 3);
        return e;
    }
    case EXPR_SUBQUERY:
    case EXPR_EXISTS:
    case EXPR_ARRAY_OF:
    case EXPR_ALL:
    case EXPR_FIRST:
    case EXPR_LAST: {
        query_expr *e = node(kind);
        e->select = random_select(depth - 1);
        return e;
    }
    default:
        return random_leaf();
    }
}

/* ---- random queries ---- */

static query_count random_count(void) {
    query_expr *e = node(EXPR_PARAMETER);
    e->name = SLICE_LIT("@n");
    return (query_count){.given = true, .expr = roll(2) ? literal(value_integer((int64_t)roll(1000))) : e};
}

static void random_columns(query_select *s, unsigned depth) {
    s->star = roll(5) == 0;
    s->value = !s->star && roll(2);
    s->columns_n = s->star ? 0 : s->value ? 1 : 1 + roll(3);
    s->columns = arena_array(&memory, query_column, s->columns_n + 1);
    for (size_t i = 0; i < s->columns_n; i++) {
        query_column *column = &s->columns[i];
        column->expr = random_expr(depth);
        column->alias_given = !s->value && roll(2);
        column->alias = roll(2) ? random_name() : random_string();
    }
}

static query_expr *random_path(void) {
    query_expr *e = node(EXPR_NAME);
    e->name = random_name();
    while (roll(2)) {
        query_expr *index = node(EXPR_INDEX);
        index->items = arena_array(&memory, query_expr *, 2);
        index->items_n = 2;
        index->items[0] = e;
        index->items[1] = literal(value_integer((int64_t)roll(5)));
        e = roll(3) ? random_member(e) : index;
    }
    return e;
}

static query_source random_source_of(unsigned depth) {
    query_source source = {.kind = (query_source_kind)roll(3), .alias = random_name()};
    source.alias_given = source.kind == SOURCE_ITEMS || roll(2);
    if (source.kind == SOURCE_SUBQUERY) {
        source.select = random_select(depth);
    } else if (source.kind == SOURCE_ITEMS && roll(4) == 0) {
        source.from = node(EXPR_SUBQUERY);
        source.from->select = random_select(depth);
    } else {
        source.from = random_path();
    }
    return source;
}

static void random_order(query_select *s, unsigned depth) {
    s->order_n = roll(3);
    s->order = arena_array(&memory, query_order, s->order_n + 1);
    s->order_by_rank = s->order_n && roll(3) == 0;
    for (size_t i = 0; i < s->order_n; i++) {
        query_order *item = &s->order[i];
        item->expr = s->order_by_rank ? random_call(depth) : random_expr(depth);
        item->direction_given = roll(2);
        item->descending = item->direction_given && roll(2);
    }
}

static query_select *random_select(unsigned depth) {
    query_select *s = arena_new(&memory, query_select);
    unsigned inner = depth ? depth - 1 : 0;
    s->distinct = roll(4) == 0;
    if (roll(4) == 0) {
        s->top = random_count();
    }
    random_columns(s, inner);
    s->sources_n = depth ? roll(3) : roll(2);
    s->sources = arena_array(&memory, query_source, s->sources_n + 1);
    for (size_t i = 0; i < s->sources_n; i++) {
        s->sources[i] = random_source_of(inner);
        while (depth == 0 && (s->sources[i].select || s->sources[i].from->kind == EXPR_SUBQUERY)) {
            s->sources[i] = (query_source){.kind = SOURCE_ROOT, .alias = random_name(), .from = random_path()};
        }
    }
    s->where = roll(2) ? random_expr(inner) : NULL;
    s->group_n = roll(4) == 0 ? 1 + roll(2) : 0;
    s->group = arena_array(&memory, query_expr *, s->group_n + 1);
    for (size_t i = 0; i < s->group_n; i++) {
        s->group[i] = random_expr(inner);
    }
    random_order(s, inner);
    if (roll(4) == 0) {
        s->offset = random_count();
        s->limit = random_count();
    }
    return s;
}

/* ---- comparing trees ---- */

static bool same_select(const query_select *a, const query_select *b);

static bool same_value(const query_value *a, const query_value *b) {
    return a->type == b->type && a->truth == b->truth && (a->type != TYPE_NUMBER || a->number == b->number) &&
           (!a->is_integer || (b->is_integer && a->integer == b->integer)) && (a->type != TYPE_STRING || slice_eq(a->bytes, b->bytes));
}

static bool same_expr(const query_expr *a, const query_expr *b) {
    if (!a || !b) {
        return a == b;
    }
    bool same = a->kind == b->kind && a->op == b->op && a->negated == b->negated && a->udf == b->udf && a->quoted == b->quoted &&
                slice_eq(a->name, b->name) && a->items_n == b->items_n && same_value(&a->value, &b->value) &&
                same_select(a->select, b->select);
    for (size_t i = 0; same && i < a->items_n; i++) {
        same = same_expr(a->items[i], b->items[i]) && (a->kind != EXPR_OBJECT || slice_eq(a->names[i], b->names[i]));
    }
    return same;
}

static bool same_columns(const query_select *a, const query_select *b) {
    bool same = a->columns_n == b->columns_n;
    for (size_t i = 0; same && i < a->columns_n; i++) {
        const query_column *x = &a->columns[i];
        const query_column *y = &b->columns[i];
        same = same_expr(x->expr, y->expr) && x->alias_given == y->alias_given && (!x->alias_given || slice_eq(x->alias, y->alias));
    }
    return same;
}

static bool same_sources(const query_select *a, const query_select *b) {
    bool same = a->sources_n == b->sources_n;
    for (size_t i = 0; same && i < a->sources_n; i++) {
        const query_source *x = &a->sources[i];
        const query_source *y = &b->sources[i];
        same = x->kind == y->kind && same_expr(x->from, y->from) && same_select(x->select, y->select) && x->alias_given == y->alias_given &&
               (!x->alias_given || slice_eq(x->alias, y->alias));
    }
    return same;
}

static bool same_order(const query_select *a, const query_select *b) {
    bool same = a->order_n == b->order_n && a->order_by_rank == b->order_by_rank;
    for (size_t i = 0; same && i < a->order_n; i++) {
        same = same_expr(a->order[i].expr, b->order[i].expr) && a->order[i].descending == b->order[i].descending &&
               a->order[i].direction_given == b->order[i].direction_given;
    }
    return same;
}

static bool same_select(const query_select *a, const query_select *b) {
    if (!a || !b) {
        return a == b;
    }
    bool same = a->distinct == b->distinct && a->star == b->star && a->value == b->value && same_expr(a->top.expr, b->top.expr) &&
                same_expr(a->offset.expr, b->offset.expr) && same_expr(a->limit.expr, b->limit.expr) && same_expr(a->where, b->where) &&
                a->group_n == b->group_n && same_columns(a, b) && same_sources(a, b) && same_order(a, b);
    for (size_t i = 0; same && i < a->group_n; i++) {
        same = same_expr(a->group[i], b->group[i]);
    }
    return same;
}

/* ---- tests ---- */

static query_select *parsed(slice text) {
    query_ast *ast;
    op o;
    op_init(&o, &memory, 0);
    if (query_parse(&o, &memory, text, &ast) != OK) {
        fail_msg("%.*s\n%.*s", (int)text.n, text.p, (int)o.detail_n, o.detail);
    }
    return ast->select;
}

static void check_printed(const query_select *s, void (*print)(buf *, const query_select *)) {
    buf first = buf_init(BUF_NO_LIMIT);
    buf second = buf_init(BUF_NO_LIMIT);
    print(&first, s);
    query_select *again = parsed(buf_view(&first));
    print(&second, again);
    size_t at = 0;
    while (at < first.n && at < second.n && first.p[at] == second.p[at]) {
        at++;
    }
    if (at < first.n || at < second.n) {
        fail_msg("%.*s\nis printed otherwise from its byte %zu on", (int)first.n, first.p, at);
    }
    if (!same_select(s, again)) {
        fail_msg("%.*s\nis read as another tree", (int)first.n, first.p);
    }
    buf_free(&first);
    buf_free(&second);
}

static void random_trees_come_back(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 20000; seed++) {
        memory = arena_init();
        random_seed(&dice, seed);
        query_select *s = random_select(1 + (unsigned)(seed / 4000)); /* small ones first, since they are easier to inspect */
        check_printed(s, query_print_select);
        check_printed(s, query_print_lines);
        arena_free(&memory);
    }
}

static void lines_are_the_planners(void **state) {
    (void)state;
    memory = arena_init();
    buf out = buf_init(BUF_NO_LIMIT);
    query_select *s =
        parsed(SLICE_LIT("select distinct top 3 info, Count(1) n from c join (select value s from s in c.scores group by s) s join "
                         "(select * from c.x join (select 1) y where true) info where info.a = s.a and exists(select 1 from c) "
                         "group by info order by c.a desc, c.b offset 1 limit 2"));
    query_print_lines(&out, s);
    buf_add_byte(&out, 0);
    assert_string_equal(out.p, "SELECT DISTINCT TOP 3 info, Count(1) AS n\n"
                               "FROM c\n"
                               "JOIN (\n"
                               "    SELECT VALUE s\n"
                               "    FROM s IN c.scores\n"
                               "    GROUP BY s\n"
                               ") AS s\n"
                               "JOIN (\n"
                               "    SELECT *\n"
                               "    FROM c.x\n"
                               "    JOIN (\n"
                               "        SELECT 1\n"
                               "    ) AS y\n"
                               "    WHERE true\n"
                               ") AS info\n"
                               "WHERE ((info.a = s.a) AND EXISTS(SELECT 1 FROM c))\n"
                               "GROUP BY info\n"
                               "ORDER BY c.a DESC, c.b\n"
                               "OFFSET 1 LIMIT 2");
    buf_clear(&out);
    query_print_sources(&out, parsed(SLICE_LIT("SELECT * FROM root c JOIN t IN c.tags")));
    buf_add_byte(&out, 0);
    assert_string_equal(out.p, "root AS c\nJOIN t IN c.tags");
    buf_clear(&out);
    query_print_expr(&out, s->where);
    buf_add_byte(&out, 0);
    assert_string_equal(out.p, "((info.a = s.a) AND EXISTS(SELECT 1 FROM c))");
    buf_free(&out);
    arena_free(&memory);
}

/* Rewrites build trees without regard to how a name must be written. */
static void names_are_quoted_where_they_must_be(void **state) {
    (void)state;
    static const struct {
        const char *name, *printed;
    } cases[] = {
        {"a", "c.a"},
        {"_rid", "c._rid"},
        {"order", "c[\"order\"]"},
        {"Value", "c[\"Value\"]"},
        {"two words", "c[\"two words\"]"},
        {"", "c[\"\"]"},
        {"1a", "c[\"1a\"]"},
        {"é", "c[\"é\"]"},
        {"q\"", "c[\"q\\\"\"]"},
        {"TRUE", "c.TRUE"},
        {"true", "c[\"true\"]"},
        {"rank", "c.rank"},
    };
    memory = arena_init();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        buf out = buf_init(BUF_NO_LIMIT);
        query_expr *c = node(EXPR_NAME);
        query_expr *member = node(EXPR_MEMBER);
        c->name = SLICE_LIT("c");
        member->name = slice_str(cases[i].name);
        member->items = &c;
        member->items_n = 1;
        query_print_expr(&out, member);
        assert_true(slice_eq(buf_view(&out), slice_str(cases[i].printed)));
        buf_free(&out);
    }
    arena_free(&memory);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_trees_come_back),
        cmocka_unit_test(lines_are_the_planners),
        cmocka_unit_test(names_are_quoted_where_they_must_be),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
