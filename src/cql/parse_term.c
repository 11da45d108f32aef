/* parse_term.c — the grammar of terms and selectors. */
#include "cql/parse_int.h"

static cql_term *new_term(cql__parser *p, cql_term_kind kind) {
    cql_term *t = arena_new(p->memory, cql_term);
    t->kind = kind;
    t->line = p->now.line;
    t->column = p->now.column;
    return t;
}

static void set_items(cql__parser *p, cql_term *t, const cql_term *first, const cql_term *second, const cql_term *third, uint32_t n) {
    const cql_term *items[] = {first, second, third};
    t->items = arena_array(p->memory, const cql_term *, n);
    t->n = n;
    for (uint32_t i = 0; i < n; i++) {
        t->items[i] = items[i];
    }
}

/* One term or selector after another, up to `close`, which is passed too. */
static bool items_until(cql__parser *p, cql_term *t, const char *close) {
    cql__list list = {0};
    while (!cql__is(p, close)) {
        const cql_term **item = cql__push(p, &list, sizeof *item);
        if (!item || !cql__term(p, item)) {
            return false;
        }
        if (!cql__is(p, close) && !cql__expect(p, ",")) {
            return false;
        }
        if (cql__is(p, close) && p->recent[(p->passed - 1) % CQL__RECENT][0] == ',') {
            return cql__fail_input(p);
        }
    }
    t->items = list.items;
    t->n = list.n;
    return cql__expect(p, close);
}

/* ---- bind markers ---- */

bool cql__is_marker(const cql__parser *p) {
    return cql__is(p, "?") || cql__is(p, ":");
}

bool cql__marker(cql__parser *p, const cql_term **term_out) {
    cql_term *t = new_term(p, CQL_TERM_BIND);
    bool named = cql__is(p, ":");
    *term_out = t;
    if (!cql__is_marker(p)) {
        return cql__fail_input(p);
    }
    if (p->markers.n >= CQL_MARKERS_MAX) {
        return cql__fail_invalid(p, "Too many bind markers: at most %d are allowed", CQL_MARKERS_MAX);
    }
    t->index = p->markers.n;
    cql_marker *marker = cql__push(p, &p->markers, sizeof *marker);
    return marker && cql__advance(p) && (!named || cql__name(p, &marker->name));
}

/* ---- constants ---- */

static bool constant(cql__parser *p, cql_term_kind kind, const cql_term **term_out) {
    cql_term *t = new_term(p, kind);
    *term_out = t;
    t->text = p->now.text;
    if (kind == CQL_TERM_STRING) {
        return cql__string(p, &t->text);
    }
    if (kind == CQL_TERM_HEX) {
        t->text = slice_skip(t->text, 2);
    }
    return cql__advance(p);
}

/* -5 and -1d are constants; any other -x is an operation. */
static bool negative(cql__parser *p, const cql_term **term_out) {
    cql_term *t = new_term(p, CQL_TERM_NEGATE);
    bool adjacent = p->next.text.p == p->now.text.p + 1;
    const cql_term *inner;
    if (!cql__advance(p) || !cql__enter(p) || !cql__simple_term(p, &inner)) {
        return false;
    }
    cql__leave(p);
    bool number = inner->kind == CQL_TERM_INTEGER || inner->kind == CQL_TERM_FLOAT || inner->kind == CQL_TERM_DURATION;
    if (number && inner->text.p[0] != '-') {
        *t = *inner;
        t->text =
            adjacent ? slice_of(inner->text.p - 1, inner->text.n + 1) : arena_printf(p->memory, "-%.*s", (int)inner->text.n, inner->text.p);
    } else {
        set_items(p, t, inner, NULL, NULL, 1);
    }
    *term_out = t;
    return true;
}

/* ---- collections ---- */

static bool is_constant_word(const cql__parser *p) {
    return cql__is_word(p, "true") || cql__is_word(p, "false") || cql__is_word(p, "null") || cql__is_word(p, "NaN") ||
           cql__is_word(p, "Infinity");
}

static bool udt_fields(cql__parser *p, cql_term *t) {
    cql__list items = {0}, names = {0};
    do {
        slice *name = cql__push(p, &names, sizeof *name);
        const cql_term **item = cql__push(p, &items, sizeof *item);
        if (!name || !item || !cql__name(p, name) || !cql__expect(p, ":") || !cql__term(p, item)) {
            return false;
        }
    } while (cql__accept(p, ","));
    t->kind = CQL_TERM_UDT;
    t->names = names.items;
    t->items = items.items;
    t->n = items.n;
    return cql__expect(p, "}");
}

static bool map_entries(cql__parser *p, cql_term *t, const cql_term *first) {
    cql__list list = {0};
    const cql_term *key = first;
    t->kind = CQL_TERM_MAP;
    for (;;) {
        const cql_term **key_at = cql__push(p, &list, sizeof *key_at);
        if (!key_at) {
            return false;
        }
        *key_at = key;
        const cql_term **value = cql__push(p, &list, sizeof *value);
        if (!value || !cql__expect(p, ":") || !cql__term(p, value)) {
            return false;
        }
        t->items = list.items;
        t->n = list.n;
        if (!cql__accept(p, ",")) {
            return cql__expect(p, "}");
        }
        if (!cql__term(p, &key)) {
            return false;
        }
    }
}

static bool set_members(cql__parser *p, cql_term *t, const cql_term *first) {
    cql__list list = {0};
    const cql_term *member = first;
    for (;;) {
        const cql_term **at = cql__push(p, &list, sizeof *at);
        if (!at) {
            return false;
        }
        *at = member;
        t->items = list.items;
        t->n = list.n;
        if (!cql__accept(p, ",")) {
            return cql__expect(p, "}");
        }
        if (!cql__term(p, &member)) {
            return false;
        }
    }
}

static bool braces(cql__parser *p, const cql_term **term_out) {
    cql_term *t = new_term(p, CQL_TERM_SET);
    const cql_term *first;
    *term_out = t;
    if (!cql__advance(p)) {
        return false;
    }
    if (cql__accept(p, "}")) {
        return true;
    }
    if (cql__is_name(p) && cql__next_is(p, ":") && !is_constant_word(p)) {
        return udt_fields(p, t);
    }
    return cql__term(p, &first) && (cql__is(p, ":") ? map_entries(p, t, first) : set_members(p, t, first));
}

static bool brackets(cql__parser *p, const cql_term **term_out) {
    cql_term *t = new_term(p, CQL_TERM_LIST);
    *term_out = t;
    return cql__advance(p) && items_until(p, t, "]");
}

/* ---- parentheses: a tuple, or a type hint ---- */

static bool begins_term(const cql__parser *p) {
    switch (p->now.kind) {
    case CQL_TOKEN_END:
    case CQL_TOKEN_BAD:
        return false;
    case CQL_TOKEN_SYMBOL:
        return cql__is(p, "(") || cql__is(p, "[") || cql__is(p, "{") || cql__is(p, "-") || cql__is_marker(p);
    case CQL_TOKEN_NAME:
        return !cql_is_reserved(p->now.text) || cql__is_word(p, "TOKEN") || is_constant_word(p);
    default:
        return true;
    }
}

/* Looks ahead for "(type) x"; otherwise the parser stays where it is. A type has no parentheses, so each is looked at once. */
static bool try_hint(cql__parser *p, const cql_type **type_out) {
    cql__parser before = *p;
    if (p->now.kind != CQL_TOKEN_NAME && p->now.kind != CQL_TOKEN_QUOTED && p->now.kind != CQL_TOKEN_STRING) {
        return false;
    }
    p->trying = true;
    bool found = cql__type(p, type_out) && cql__is(p, ")") && cql__advance(p) && begins_term(p);
    if (found && p->selecting && cql__is(p, "-")) {
        found = (*type_out)->kind != CQL_UDT; /* (a) - 1 */
    }
    if (p->code != OK) {
        return false;
    }
    if (!found) {
        *p = before;
    }
    p->trying = before.trying;
    return found;
}

static bool parentheses(cql__parser *p, const cql_term **term_out) {
    cql_term *t = new_term(p, CQL_TERM_TUPLE);
    const cql_term *inner;
    *term_out = t;
    if (!cql__advance(p)) {
        return false;
    }
    if (try_hint(p, &t->type)) {
        t->kind = CQL_TERM_HINT;
        if (!cql__simple_term(p, &inner)) {
            return false;
        }
        set_items(p, t, inner, NULL, NULL, 1);
        return true;
    }
    if (p->code != OK || !items_until(p, t, ")")) {
        return false;
    }
    if (t->n == 0) {
        return cql__fail_input(p);
    }
    if (t->n == 1 && p->selecting) {
        *term_out = t->items[0];
    }
    return true;
}

/* ---- functions ---- */

static bool count_rows(cql__parser *p, cql_term *t) {
    if (cql__is(p, "*")) {
        t->star = true;
        return cql__advance(p) && cql__expect(p, ")");
    }
    if (p->now.kind == CQL_TOKEN_INTEGER && cql__next_is(p, ")")) {
        if (!slice_eq(p->now.text, SLICE_LIT("1"))) {
            return cql__fail_invalid(p, "Only COUNT(1) is supported, got COUNT(%.*s)", slice_shown(p->now.text), p->now.text.p);
        }
        t->star = true;
        return cql__advance(p) && cql__expect(p, ")");
    }
    return items_until(p, t, ")");
}

static bool cast_as(cql__parser *p, cql_term *t) {
    const cql_term *inner;
    t->kind = CQL_TERM_CAST;
    if (!cql__term(p, &inner) || !cql__expect_word(p, "AS") || !cql__type(p, &t->type)) {
        return false;
    }
    set_items(p, t, inner, NULL, NULL, 1);
    return cql__expect(p, ")");
}

static bool cell_function(cql__parser *p, cql_term *t, cql_term_kind kind) {
    const cql_term *inner;
    t->kind = kind;
    if (!cql__simple_term(p, &inner)) {
        return false;
    }
    set_items(p, t, inner, NULL, NULL, 1);
    return cql__expect(p, ")");
}

/* What follows `name(`. */
static bool arguments(cql__parser *p, cql_term *t) {
    slice name = t->name;
    if (p->selecting && t->keyspace.n == 0) {
        if (slice_eq(name, SLICE_LIT("cast"))) {
            return cast_as(p, t);
        }
        if (slice_eq(name, SLICE_LIT("writetime"))) {
            return cell_function(p, t, CQL_TERM_WRITETIME);
        }
        if (slice_eq(name, SLICE_LIT("maxwritetime"))) {
            return cell_function(p, t, CQL_TERM_MAXWRITETIME);
        }
        if (slice_eq(name, SLICE_LIT("ttl"))) {
            return cell_function(p, t, CQL_TERM_TTL);
        }
        if (slice_eq(name, SLICE_LIT("count"))) {
            return count_rows(p, t);
        }
    }
    return items_until(p, t, ")");
}

static bool token_function(cql__parser *p, const cql_term **term_out) {
    cql_term *t = new_term(p, CQL_TERM_FUNCTION);
    *term_out = t;
    t->name = SLICE_LIT("token");
    return cql__advance(p) && cql__expect(p, "(") && items_until(p, t, ")");
}

/* A column in a selector, or a function: f(…), ks.f(…). */
static bool named(cql__parser *p, const cql_term **term_out) {
    cql_term *t = new_term(p, CQL_TERM_COLUMN);
    *term_out = t;
    if (!cql__name(p, &t->name)) {
        return false;
    }
    if (cql__is(p, ".")) {
        cql__parser before = *p;
        slice second;
        if (!cql__advance(p) || !cql__name(p, &second)) {
            return false;
        }
        if (cql__is(p, "(")) {
            t->keyspace = t->name;
            t->name = second;
        } else {
            *p = before;
        }
    }
    if (cql__is(p, "(")) {
        t->kind = CQL_TERM_FUNCTION;
        return cql__advance(p) && arguments(p, t);
    }
    return p->selecting || cql__fail_input(p);
}

/* ---- simple terms ---- */

static bool word(cql__parser *p, const cql_term **term_out) {
    if (cql__is_word(p, "null")) {
        return constant(p, CQL_TERM_NULL, term_out);
    }
    if (!cql__next_is(p, "(") && (cql__is_word(p, "true") || cql__is_word(p, "false"))) {
        return constant(p, CQL_TERM_BOOLEAN, term_out);
    }
    if (cql__is_word(p, "NaN") || cql__is_word(p, "Infinity")) {
        return constant(p, CQL_TERM_FLOAT, term_out);
    }
    return cql__is_word(p, "TOKEN") ? token_function(p, term_out) : named(p, term_out);
}

static bool symbol(cql__parser *p, const cql_term **term_out) {
    if (cql__is_marker(p)) {
        return cql__marker(p, term_out);
    }
    if (cql__is(p, "[")) {
        return brackets(p, term_out);
    }
    if (cql__is(p, "{")) {
        return braces(p, term_out);
    }
    if (cql__is(p, "(")) {
        return parentheses(p, term_out);
    }
    return cql__is(p, "-") ? negative(p, term_out) : cql__fail_input(p);
}

static bool primary(cql__parser *p, const cql_term **term_out) {
    switch (p->now.kind) {
    case CQL_TOKEN_STRING:
        return constant(p, CQL_TERM_STRING, term_out);
    case CQL_TOKEN_INTEGER:
        return constant(p, CQL_TERM_INTEGER, term_out);
    case CQL_TOKEN_FLOAT:
        return constant(p, CQL_TERM_FLOAT, term_out);
    case CQL_TOKEN_UUID:
        return constant(p, CQL_TERM_UUID, term_out);
    case CQL_TOKEN_HEX:
        return constant(p, CQL_TERM_HEX, term_out);
    case CQL_TOKEN_DURATION:
        return constant(p, CQL_TERM_DURATION, term_out);
    case CQL_TOKEN_NAME:
        return word(p, term_out);
    case CQL_TOKEN_QUOTED:
        return named(p, term_out);
    case CQL_TOKEN_SYMBOL:
        return symbol(p, term_out);
    default:
        return cql__fail_input(p);
    }
}

/* ---- what follows a selector: .field, [element], [from..to] ---- */

static bool element(cql__parser *p, const cql_term *of, const cql_term **term_out) {
    cql_term *t = new_term(p, CQL_TERM_ELEMENT);
    const cql_term *from = NULL, *to = NULL;
    *term_out = t;
    if (!cql__advance(p) || (!cql__is(p, "..") && !cql__term(p, &from))) {
        return false;
    }
    if (!cql__is(p, "..")) {
        set_items(p, t, of, from, NULL, 2);
        return cql__expect(p, "]");
    }
    if (!cql__advance(p) || (!cql__is(p, "]") && !cql__term(p, &to))) {
        return false;
    }
    t->kind = CQL_TERM_SLICE;
    set_items(p, t, of, from, to, 3);
    return cql__expect(p, "]");
}

static bool suffixes(cql__parser *p, const cql_term **term) {
    unsigned levels = 0;
    while (p->code == OK && (cql__is(p, ".") || cql__is(p, "["))) {
        if (++levels > CQL_TYPE_DEPTH) {
            return cql__fail_input(p);
        }
        if (cql__is(p, "[")) {
            if (!element(p, *term, term)) {
                return false;
            }
            continue;
        }
        cql_term *t = new_term(p, CQL_TERM_FIELD);
        set_items(p, t, *term, NULL, NULL, 1);
        if (!cql__advance(p) || !cql__name(p, &t->name)) {
            return false;
        }
        *term = t;
    }
    return p->code == OK;
}

bool cql__simple_term(cql__parser *p, const cql_term **term_out) {
    if (!cql__enter(p) || !primary(p, term_out)) {
        return false;
    }
    cql__leave(p);
    return !p->selecting || suffixes(p, term_out);
}

/* ---- operators ---- */

static bool operation(cql__parser *p, cql_term_kind kind, const cql_term **left, bool (*operand)(cql__parser *, const cql_term **)) {
    cql_term *t = new_term(p, kind);
    const cql_term *right;
    if (!cql__advance(p) || !operand(p, &right)) {
        return false;
    }
    set_items(p, t, *left, right, NULL, 2);
    *left = t;
    return true;
}

/* A chain like 1 + 1 + 1 + … nests as deep as it is long. */
enum { CHAIN_MAX = CQL_PARSE_DEPTH };

static bool product(cql__parser *p, const cql_term **term_out) {
    if (!cql__simple_term(p, term_out)) {
        return false;
    }
    for (unsigned n = 0; p->code == OK; n++) {
        cql_term_kind kind = cql__is(p, "*")   ? CQL_TERM_MULTIPLY
                             : cql__is(p, "/") ? CQL_TERM_DIVIDE
                             : cql__is(p, "%") ? CQL_TERM_MODULO
                                               : CQL_TERM_NULL;
        if (kind == CQL_TERM_NULL) {
            return true;
        }
        if (n == CHAIN_MAX) {
            return cql__fail_invalid(p, "The expression has too many operations");
        }
        if (!operation(p, kind, term_out, cql__simple_term)) {
            return false;
        }
    }
    return false;
}

/* `+ column` at the end of an assignment: SET l = [1] + l. */
static bool adds_column(const cql__parser *p) {
    if (!p->assigning || !cql__is(p, "+")) {
        return false;
    }
    cql__parser ahead = *p;
    ahead.trying = true;
    return cql__advance(&ahead) && cql__is_name(&ahead) && !is_constant_word(&ahead) && !cql__next_is(&ahead, "(") &&
           !cql__next_is(&ahead, ".");
}

bool cql__term(cql__parser *p, const cql_term **term_out) {
    if (!cql__enter(p) || !product(p, term_out)) {
        return false;
    }
    for (unsigned n = 0; (cql__is(p, "+") || cql__is(p, "-")) && !adds_column(p); n++) {
        if (n == CHAIN_MAX) {
            return cql__fail_invalid(p, "The expression has too many operations");
        }
        if (!operation(p, cql__is(p, "+") ? CQL_TERM_ADD : CQL_TERM_SUBTRACT, term_out, product)) {
            return false;
        }
    }
    return cql__leave(p) && p->code == OK;
}

bool cql__selector_term(cql__parser *p, const cql_term **term_out) {
    bool before = p->selecting;
    p->selecting = true;
    bool ok = cql__term(p, term_out);
    p->selecting = before;
    return ok;
}
