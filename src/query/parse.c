/* parse.c — parses queries and their clauses, and formats errors. Expressions are in parse_expr.c. */
#include "query/parse.h"

#include <stdio.h>

#include "base/limits.h"
#include "doc/json.h"
#include "query/parse_int.h"

enum { NESTING_MAX = 3 * QUERY_DEPTH_MAX };

/* ---- errors ---- */

static bool is_continuation(slice text, uint32_t i) {
    return i < text.n && ((unsigned char)text.p[i] & 0xC0) == 0x80;
}

query_span query_location(slice text, query_span bytes) {
    query_span units = {0, 0};
    for (uint32_t i = 0; i < bytes.end && i < text.n; i++) {
        uint32_t n = is_continuation(text, i) ? 0 : (unsigned char)text.p[i] >= 0xF0 && is_continuation(text, i + 1) ? 2 : 1;
        units.start += i < bytes.start ? n : 0;
        units.end += n;
    }
    return units;
}

#define ERRORS_OPEN "{\"errors\":["
#define ERRORS_CLOSE "]}"

/* The bytes of a message that fit, once escaped, into `room` bytes of JSON. */
static size_t sentence_room(slice sentence, size_t room) {
    size_t used = 0;
    size_t n = 0;
    while (n < sentence.n) {
        unsigned char c = (unsigned char)sentence.p[n];
        used += c < 0x20 ? 6 : c == '"' || c == '\\' ? 2 : 1;
        if (used > room) {
            break;
        }
        n++;
    }
    while (n > 0 && n < sentence.n && (sentence.p[n] & 0xC0) == 0x80) {
        n--;
    }
    return n;
}

static void add_error(buf *json, query_span where, const char *code, slice sentence, size_t room) {
    buf_addf(json, "{\"severity\":\"Error\",\"location\":{\"start\":%u,\"end\":%u},\"code\":\"%s\",\"message\":", where.start, where.end,
             code);
    sentence.n = sentence_room(sentence, room > json->n ? room - json->n : 0);
    json_add_string(json, sentence);
    buf_add_byte(json, '}');
}

err query_fail(op *o, query_span where, const char *code, const char *format, ...) {
    char sentence[sizeof o->detail];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(sentence, sizeof sentence, format, args);
    va_end(args);
    slice text = slice_of(sentence, n < 0 ? 0 : (size_t)n < sizeof sentence ? (size_t)n : sizeof sentence - 1);
    buf json = buf_init(BUF_NO_LIMIT);
    buf_add_lit(&json, ERRORS_OPEN);
    add_error(&json, where, code, text, sizeof o->detail - sizeof "\"\"}" ERRORS_CLOSE);
    buf_add_lit(&json, ERRORS_CLOSE);
    err result = op_fail(o, E_BAD_QUERY, "%.*s", (int)json.n, json.p);
    buf_free(&json);
    return result;
}

err query_fail_also(op *o, query_span where, const char *code, slice sentence) {
    buf json = buf_init(BUF_NO_LIMIT);
    buf_add(&json, o->detail, o->detail_n - (sizeof ERRORS_CLOSE - 1));
    buf_add_byte(&json, ',');
    add_error(&json, where, code, sentence, SIZE_MAX);
    buf_add_lit(&json, ERRORS_CLOSE);
    if (json.n < sizeof o->detail) {
        (void)op_fail(o, E_BAD_QUERY, "%.*s", (int)json.n, json.p);
    }
    buf_free(&json);
    return E_BAD_QUERY;
}

static query_span location(const parser *p, query_span span) {
    return query_location(p->ast->text, span);
}

bool query__unexpected(parser *p) {
    slice text = query__text(p, p->token.span);
    if (p->token.kind == TOKEN_END) {
        p->code = query_fail(p->op, location(p, p->token.span), "SC1002", "Syntax error, unexpected end-of-file.");
    } else {
        p->code = query_fail(p->op, location(p, p->token.span), "SC1001", "Syntax error, incorrect syntax near '%.*s'.", slice_shown(text),
                             text.p);
    }
    return false;
}

bool query__too_deep(parser *p) {
    p->code = query_fail(p->op, location(p, p->token.span), "SC3021", "The query is nested more than %d levels deep.", QUERY_DEPTH_MAX);
    return false;
}

bool query__enter(parser *p) {
    return ++p->nesting <= NESTING_MAX || query__too_deep(p);
}

void query__leave(parser *p) {
    p->nesting--;
}

/* Bytes that are not UTF-8 are shown as the replacement character, since the message is sent as JSON. */
static bool bad_token(parser *p, query_lex_result result) {
    static const char *const codes[] = {[LEX_BAD_TOKEN] = "SC1010", [LEX_BAD_NUMBER] = "SC1011", [LEX_BAD_STRING] = "SC1012"};
    static const char *const kinds[] = {[LEX_BAD_TOKEN] = "", [LEX_BAD_NUMBER] = "numeric value ", [LEX_BAD_STRING] = "string literal "};
    slice text = query__text(p, p->token.span);
    if (!bson_utf8_validate(text.p, text.n, true)) {
        text = SLICE_LIT("\xEF\xBF\xBD");
    }
    p->code = query_fail(p->op, location(p, p->token.span), codes[result], "Syntax error, invalid %stoken '%.*s'.", kinds[result],
                         slice_shown(text), text.p);
    return false;
}

/* ---- tokens ---- */

bool query__advance(parser *p) {
    p->last_end = p->token.span.end;
    query_lex_result result = query_lex_next(&p->lexer, &p->token);
    if (p->arena->budget && p->arena->budget->exceeded) {
        p->code = budget_error(p->arena->budget);
        return false;
    }
    return result == LEX_OK || bad_token(p, result);
}

bool query__expect(parser *p, query_token_kind kind) {
    return p->token.kind == kind ? query__advance(p) : query__unexpected(p);
}

bool query__name(parser *p, slice *name_out) {
    *name_out = query__text(p, p->token.span);
    return query__expect(p, TOKEN_NAME);
}

void *query__grow(parser *p, void *list, size_t n, size_t size) {
    if (n & (n - 1)) {
        return list; /* grows at 0, 1, 2, 4, 8, … */
    }
    void *larger = arena_alloc(p->arena, (n ? 2 * n : 1) * size);
    memcpy(larger, n ? list : larger, n * size);
    return larger;
}

static void note_depth(query_select *s, const query_expr *e) {
    if (e->depth >= s->depth) {
        s->depth = (uint16_t)(e->depth + 1);
    }
}

/* Reads an expression of the current clause. */
static query_expr *clause_scalar(parser *p) {
    query_expr *e = query__scalar(p);
    if (e) {
        note_depth(p->select, e);
    }
    return e;
}

/* ---- SELECT ---- */

static bool has_fraction_or_exponent(slice number) {
    return memchr(number.p, '.', number.n) || (!memchr(number.p, 'x', number.n) && !memchr(number.p, 'X', number.n) &&
                                               (memchr(number.p, 'e', number.n) || memchr(number.p, 'E', number.n)));
}

/* TOP accepts any number, and binding rejects fractions; OFFSET and LIMIT accept integer literals only. */
static bool read_count(parser *p, bool whole, query_count *count_out) {
    bool number = p->token.kind == TOKEN_NUMBER;
    if (!number && p->token.kind != TOKEN_PARAMETER) {
        return query__unexpected(p);
    }
    if (number && whole && has_fraction_or_exponent(query__text(p, p->token.span))) {
        return query__unexpected(p);
    }
    count_out->given = true;
    count_out->span = p->token.span;
    count_out->expr = query__literal(p);
    return count_out->expr;
}

/* The default alias of a column or source: the last name of its path. */
static slice implied_alias(const query_expr *e) {
    return e->kind == EXPR_NAME || e->kind == EXPR_MEMBER ? e->name : SLICE_EMPTY;
}

/* [AS] name, [AS] "name" */
static bool read_column_alias(parser *p, query_column *column) {
    bool as = p->token.kind == TOKEN_AS;
    if (as && !query__advance(p)) {
        return false;
    }
    if (p->token.kind == TOKEN_STRING) {
        column->alias = query_lex_string(p->arena, query__text(p, p->token.span));
        column->alias_given = true;
        return query__advance(p);
    }
    if (!as && p->token.kind != TOKEN_NAME) {
        column->alias = implied_alias(column->expr);
        return true;
    }
    column->alias_given = true;
    return query__name(p, &column->alias);
}

static bool read_columns(parser *p, query_select *s) {
    unsigned unnamed = 0;
    do {
        if (s->columns_n && !query__advance(p)) {
            return false;
        }
        query_column column = {.expr = clause_scalar(p)};
        if (!column.expr || !read_column_alias(p, &column)) {
            return false;
        }
        bool named = column.alias_given || column.expr->kind == EXPR_NAME || column.expr->kind == EXPR_MEMBER;
        column.alias = named ? column.alias : arena_printf(p->arena, "$%u", ++unnamed);
        s->columns = query__grow(p, s->columns, s->columns_n, sizeof column);
        s->columns[s->columns_n++] = column;
    } while (p->token.kind == TOKEN_COMMA);
    return true;
}

static bool read_value(parser *p, query_select *s) {
    s->value = true;
    s->columns = arena_new(p->arena, query_column);
    s->columns_n = 1;
    return query__advance(p) && (s->columns->expr = clause_scalar(p));
}

static bool read_selection(parser *p, query_select *s) {
    s->columns_span.start = p->token.span.start;
    s->star = p->token.kind == TOKEN_STAR;
    bool good = s->star ? query__advance(p) : p->token.kind == TOKEN_VALUE ? read_value(p, s) : read_columns(p, s);
    s->columns_span.end = p->last_end;
    return good;
}

static bool read_select_clause(parser *p, query_select *s) {
    if (!query__expect(p, TOKEN_SELECT)) {
        return false;
    }
    if (p->token.kind == TOKEN_DISTINCT) {
        s->distinct = true;
        if (!query__advance(p)) {
            return false;
        }
    }
    if (p->token.kind == TOKEN_TOP && !(query__advance(p) && read_count(p, false, &s->top))) {
        return false;
    }
    return read_selection(p, s);
}

/* ---- FROM ---- */

/* [3], ["name"] */
static query_expr *read_path_index(parser *p, query_expr *inner, uint32_t start) {
    if (!query__advance(p)) {
        return NULL;
    }
    if (p->token.kind != TOKEN_NUMBER && p->token.kind != TOKEN_STRING) {
        query__unexpected(p);
        return NULL;
    }
    query_expr *index = query__literal(p);
    return index ? query__element(p, inner, index, start) : NULL;
}

/* Reads the path that begins with `name`. */
static query_expr *read_path(parser *p, slice name, uint32_t start) {
    query_expr *e = query__node(p, EXPR_NAME, start);
    e->name = name;
    e = query__finish(p, e, NULL, 0);
    while (e && (p->token.kind == TOKEN_DOT || p->token.kind == TOKEN_LEFT_BRACKET)) {
        e = p->token.kind == TOKEN_DOT ? query__member(p, e, start) : read_path_index(p, e, start);
    }
    return e;
}

/* Whether a call like OBJECTTOARRAY(c.x) follows. The documentation has such calls after IN, the SDKs' grammar has not. */
static bool is_call(const parser *p) {
    query_lexer ahead = p->lexer;
    query_token next;
    return p->token.kind == TOKEN_NAME && query_lex_next(&ahead, &next) == LEX_OK && next.kind == TOKEN_LEFT_PAREN;
}

/* Reads `x IN …`, where the name is the alias of the elements, or a path that begins with the name. */
static bool read_named_source(parser *p, query_source *source) {
    slice name;
    if (!query__name(p, &name)) {
        return false;
    }
    if (p->token.kind != TOKEN_IN) {
        source->from = read_path(p, name, source->span.start);
        return source->from;
    }
    source->kind = SOURCE_ITEMS;
    source->alias = name;
    source->alias_given = true;
    if (!query__advance(p)) {
        return false;
    }
    uint32_t start = p->token.span.start;
    source->from = p->token.kind == TOKEN_LEFT_PAREN ? query__subquery(p, EXPR_SUBQUERY)
                   : is_call(p)                      ? query__call(p)
                   : query__name(p, &name)           ? read_path(p, name, start)
                                                     : NULL;
    return source->from;
}

static bool read_subquery_source(parser *p, query_source *source) {
    source->kind = SOURCE_SUBQUERY;
    if (!query__advance(p)) {
        return false;
    }
    source->select = query__select(p);
    return source->select && query__expect(p, TOKEN_RIGHT_PAREN);
}

static bool read_source_alias(parser *p, query_source *source) {
    if (source->kind == SOURCE_ITEMS) {
        return true;
    }
    bool as = p->token.kind == TOKEN_AS;
    if (as && !query__advance(p)) {
        return false;
    }
    if (as || p->token.kind == TOKEN_NAME) {
        source->alias_given = true;
        return query__name(p, &source->alias);
    }
    source->alias = source->from ? implied_alias(source->from) : SLICE_EMPTY;
    return true;
}

static bool read_source(parser *p, query_select *s) {
    query_source source = {.kind = SOURCE_ROOT, .span = p->token.span};
    bool good = p->token.kind == TOKEN_LEFT_PAREN ? read_subquery_source(p, &source) : read_named_source(p, &source);
    if (!good || !read_source_alias(p, &source)) {
        return false;
    }
    source.span.end = p->last_end;
    if (source.from) {
        note_depth(s, source.from);
    } else if (source.select->depth >= s->depth) {
        s->depth = (uint16_t)(source.select->depth + 1);
    }
    s->sources = query__grow(p, s->sources, s->sources_n, sizeof source);
    s->sources[s->sources_n++] = source;
    p->ast->slots++;
    return true;
}

/* Sources are added one by one, because each can refer to those before it. */
static bool read_from(parser *p, query_select *s) {
    do {
        p->ast->joins += p->token.kind == TOKEN_JOIN;
        if (!query__advance(p) || !read_source(p, s)) {
            return false;
        }
    } while (p->token.kind == TOKEN_JOIN);
    return true;
}

/* ---- the other clauses ---- */

static bool read_where(parser *p, query_select *s) {
    if (!query__advance(p)) {
        return false;
    }
    s->where_span.start = p->token.span.start;
    s->where = clause_scalar(p);
    s->where_span.end = p->last_end;
    return s->where;
}

static bool read_group(parser *p, query_select *s) {
    if (!query__advance(p)) {
        return false;
    }
    if (p->token.kind != TOKEN_BY) {
        return query__unexpected(p);
    }
    do {
        query_expr *e = query__advance(p) ? clause_scalar(p) : NULL;
        if (!e) {
            return false;
        }
        s->group = query__grow(p, s->group, s->group_n, sizeof e);
        s->group[s->group_n++] = e;
    } while (p->token.kind == TOKEN_COMMA);
    return true;
}

static bool read_order_item(parser *p, query_select *s) {
    query_order item = {.expr = s->order_by_rank ? query__call(p) : clause_scalar(p)};
    if (!item.expr) {
        return false;
    }
    note_depth(s, item.expr);
    item.descending = p->token.kind == TOKEN_DESC;
    item.direction_given = item.descending || p->token.kind == TOKEN_ASC;
    s->order = query__grow(p, s->order, s->order_n, sizeof item);
    s->order[s->order_n++] = item;
    return !item.direction_given || query__advance(p);
}

/* RANK is a keyword only before a call: in ORDER BY RANK f(x), but not in ORDER BY rank.x or ORDER BY RANK(x). */
static bool is_rank(const parser *p) {
    query_lexer ahead = p->lexer;
    query_token next;
    return p->token.kind == TOKEN_NAME && slice_eq_nocase(query__text(p, p->token.span), SLICE_LIT("RANK")) &&
           query_lex_next(&ahead, &next) == LEX_OK &&
           (next.kind == TOKEN_NAME || next.kind == TOKEN_LEFT || next.kind == TOKEN_RIGHT || next.kind == TOKEN_UDF);
}

static bool read_order(parser *p, query_select *s) {
    if (!query__advance(p) || !query__expect(p, TOKEN_BY)) {
        return false;
    }
    s->order_by_rank = is_rank(p);
    if (s->order_by_rank && !query__advance(p)) {
        return false;
    }
    while (read_order_item(p, s)) {
        if (p->token.kind != TOKEN_COMMA) {
            return true;
        }
        if (!query__advance(p)) {
            return false;
        }
    }
    return false;
}

static bool read_offset(parser *p, query_select *s) {
    return query__advance(p) && read_count(p, true, &s->offset) && query__expect(p, TOKEN_LIMIT) && read_count(p, true, &s->limit);
}

static const struct {
    query_token_kind begins;
    bool (*read)(parser *p, query_select *s);
} clauses[] = {
    {TOKEN_FROM, read_from}, {TOKEN_WHERE, read_where}, {TOKEN_GROUP, read_group}, {TOKEN_ORDER, read_order}, {TOKEN_OFFSET, read_offset},
};

static bool read_clauses(parser *p, query_select *s) {
    if (!read_select_clause(p, s)) {
        return false;
    }
    for (size_t i = 0; i < sizeof clauses / sizeof *clauses; i++) {
        if (p->token.kind == clauses[i].begins && !clauses[i].read(p, s)) {
            return false;
        }
    }
    return s->depth <= QUERY_DEPTH_MAX || query__too_deep(p);
}

query_select *query__select(parser *p) {
    query_select *s = arena_new(p->arena, query_select);
    s->depth = 1;
    s->outer = p->select;
    s->span.start = p->token.span.start;
    if (!query__enter(p)) {
        return NULL;
    }
    p->select = s;
    bool good = read_clauses(p, s);
    p->select = s->outer;
    s->span.end = p->last_end;
    query__leave(p);
    return good ? s : NULL;
}

/* ---- the whole text ---- */

/* Reads FROM and WHERE alone, as if SELECT VALUE true stood before them. */
static query_select *condition(parser *p) {
    query_select *s = arena_new(p->arena, query_select);
    query_expr *truth = query__finish(p, query__node(p, EXPR_LITERAL, 0), NULL, 0);
    truth->value = value_bool(true);
    s->depth = 1;
    s->value = true;
    s->columns = arena_new(p->arena, query_column);
    s->columns_n = 1;
    s->columns->expr = truth;
    p->select = s;
    if (p->token.kind != TOKEN_FROM) {
        query__unexpected(p);
        return NULL;
    }
    bool good = read_from(p, s) && (p->token.kind != TOKEN_WHERE || read_where(p, s));
    s->span.end = p->last_end;
    return good && (s->depth <= QUERY_DEPTH_MAX || query__too_deep(p)) ? s : NULL;
}

static err parse(op *o, arena *a, slice text, query_select *(*read)(parser *), query_ast **ast_out) {
    *ast_out = NULL;
    text = text.n ? text : SLICE_LIT(""); /* not NULL, since spans are computed from it */
    parser p = {.op = o, .arena = a, .lexer = {.text = text}};
    if (text.n > LIMIT_QUERY_BYTES) {
        uint32_t end = text.n < UINT32_MAX ? (uint32_t)text.n : UINT32_MAX;
        return query_fail(o, (query_span){0, end}, "SC3020", "The SQL query text exceeded the maximum limit of %d characters.",
                          LIMIT_QUERY_BYTES);
    }
    p.ast = arena_new(a, query_ast);
    p.ast->text = text;
    if (!query__advance(&p) || !(p.ast->select = read(&p)) || !query__expect(&p, TOKEN_END)) {
        return p.code;
    }
    p.ast->depth = p.ast->select->depth;
    *ast_out = p.ast;
    return OK;
}

err query_parse(op *o, arena *a, slice text, query_ast **ast_out) {
    return parse(o, a, text, query__select, ast_out);
}

err query_parse_condition(op *o, arena *a, slice text, query_ast **ast_out) {
    return parse(o, a, text, condition, ast_out);
}
