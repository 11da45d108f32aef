/* $filter: parsing and evaluation. */
#include "api/table/filter.h"

#include "api/table/entity.h"
#include "base/hex.h"
#include "doc/number.h"
#include "doc/path.h"

enum { DEPTH_MAX = 100, NODES_MAX = 4096 };

typedef struct parser {
    op *op;
    slice text;
    size_t at;
    unsigned depth, nodes;
} parser;

/* ---- words ---- */

static table_error fail(parser *p, const char *why) {
    op_fail(p->op, E_BAD_REQUEST, "Syntax error at position %zu in the filter: %s.", p->at, why);
    return TABLE_INVALID_INPUT;
}

static void skip_blanks(parser *p) {
    while (p->at < p->text.n && (p->text.p[p->at] == ' ' || p->text.p[p->at] == '\t')) {
        p->at++;
    }
}

static bool is_letter(char c) {
    return (unsigned)((c | 0x20) - 'a') < 26u || c == '_' || (unsigned char)c >= 0x80;
}

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

/* The word at the position, without taking it; empty: none. */
static slice peek_word(parser *p) {
    skip_blanks(p);
    size_t end = p->at;
    while (end < p->text.n && (is_letter(p->text.p[end]) || (end > p->at && is_digit(p->text.p[end])))) {
        end++;
    }
    return slice_of(p->text.p + p->at, end - p->at);
}

static bool take_word(parser *p, const char *word) {
    slice next = peek_word(p);
    bool is = slice_eq(next, slice_str(word));
    p->at += is ? next.n : 0;
    return is;
}

static bool take_char(parser *p, char c) {
    skip_blanks(p);
    bool is = p->at < p->text.n && p->text.p[p->at] == c;
    p->at += is;
    return is;
}

/* ---- literals ---- */

/* The text between quotes; a quote in it is doubled. */
static table_error take_quoted(parser *p, slice *text_out) {
    size_t from = ++p->at, n = 0;
    char *copy = arena_alloc_aligned(p->op->arena, p->text.n - from + 1, 1);
    for (; p->at < p->text.n; p->at++) {
        bool quote = p->text.p[p->at] == '\'';
        if (quote && !(p->at + 1 < p->text.n && p->text.p[p->at + 1] == '\'')) {
            p->at++;
            *text_out = slice_of(copy, n);
            return TABLE_FINE;
        }
        copy[n++] = p->text.p[p->at];
        p->at += quote;
    }
    return fail(p, "a quote is not closed");
}

static bool read_hex(arena *a, slice text, slice *bytes_out) {
    char *bytes = arena_alloc_aligned(a, text.n / 2 + 1, 1);
    for (size_t i = 0; i + 1 < text.n; i += 2) {
        int high = hex_digit(text.p[i]), low = hex_digit(text.p[i + 1]);
        if (high < 0 || low < 0) {
            return false;
        }
        bytes[i / 2] = (char)(high << 4 | low);
    }
    *bytes_out = slice_of(bytes, text.n / 2);
    return text.n % 2 == 0;
}

/* A word directly before a quote names the literal's type. */
static table_error take_typed(parser *p, slice type, edm_value *v) {
    slice text;
    char *guid = arena_alloc_aligned(p->op->arena, EDM_GUID_BYTES, 1);
    p->at += type.n;
    TABLE_TRY(take_quoted(p, &text));
    if (slice_eq(type, SLICE_LIT("datetime"))) {
        v->type = EDM_DATE_TIME;
        return edm_time_parse(text, &v->number) ? TABLE_FINE : fail(p, "datetime'…' must be an ISO 8601 time");
    }
    if (slice_eq(type, SLICE_LIT("guid"))) {
        v->type = EDM_GUID;
        v->text = slice_of(guid, EDM_GUID_BYTES);
        return edm_guid_parse(text, guid) ? TABLE_FINE : fail(p, "guid'…' must be a GUID");
    }
    if (slice_eq(type, SLICE_LIT("X")) || slice_eq(type, SLICE_LIT("binary"))) {
        v->type = EDM_BINARY;
        return read_hex(p->op->arena, text, &v->text) ? TABLE_FINE : fail(p, "X'…' must be pairs of hexadecimal digits");
    }
    return fail(p, "a literal's type must be datetime, guid, binary or X");
}

/* "5", "5L", "5.5", "1e3", and the suffixes of OData: L; d, f, m. */
static table_error take_number(parser *p, edm_value *v) {
    number_value number;
    const char *reason = "", *from = p->text.p + p->at, *end = p->text.p + p->text.n, *after = number_read(from, end, &number, &reason);
    if (!after) {
        return fail(p, "a number is malformed");
    }
    char suffix = after < end ? (char)(*after | 0x20) : ' ';
    bool is_long = suffix == 'l', is_real = suffix == 'd' || suffix == 'f' || suffix == 'm';
    if (is_long && !number.integer) {
        return fail(p, "an Int64 literal must be a whole number");
    }
    v->type = is_real || !number.integer ? EDM_DOUBLE : is_long || number.i != (int32_t)number.i ? EDM_INT64 : EDM_INT32;
    v->number = number.integer ? number.i : 0;
    v->real = number.integer ? (double)number.i : number.d;
    p->at += (size_t)(after - from) + (is_long || is_real);
    return p->at < p->text.n && is_letter(p->text.p[p->at]) ? fail(p, "a blank must follow a number") : TABLE_FINE;
}

/* A property's name, or a literal. */
static table_error take_operand(parser *p, slice *name_out, edm_value *v) {
    slice word = peek_word(p);
    char next = p->at + word.n < p->text.n ? p->text.p[p->at + word.n] : ' ';
    *name_out = SLICE_EMPTY;
    *v = (edm_value){0};
    if (word.n && next == '\'') {
        return take_typed(p, word, v);
    }
    if (slice_eq(word, SLICE_LIT("true")) || slice_eq(word, SLICE_LIT("false"))) {
        *v = (edm_value){.type = EDM_BOOLEAN, .number = word.p[0] == 't'};
        p->at += word.n;
        return TABLE_FINE;
    }
    if (word.n) {
        *name_out = word;
        p->at += word.n;
        return TABLE_FINE;
    }
    if (next == '\'') {
        v->type = EDM_STRING;
        return take_quoted(p, &v->text);
    }
    return is_digit(next) || next == '-' ? take_number(p, v) : fail(p, "a property or a literal must stand here");
}

/* ---- the tree ---- */

static table_error parse_or(parser *p, filter **out);
static table_error parse_unary(parser *p, filter **out);

static table_error new_node(parser *p, filter_kind kind, filter *left, filter *right, filter **out) {
    if (++p->nodes > NODES_MAX) {
        return fail(p, "the filter has too many parts");
    }
    *out = arena_new(p->op->arena, filter);
    **out = (filter){.kind = kind, .left = left, .right = right};
    return TABLE_FINE;
}

static bool take_operator(parser *p, filter_operator *op_out) {
    static const char *const names[FILTER_OPERATORS] = {"eq", "ne", "gt", "ge", "lt", "le"};
    for (filter_operator i = 0; i < FILTER_OPERATORS; i++) {
        if (take_word(p, names[i])) {
            *op_out = i;
            return true;
        }
    }
    return false;
}

static filter_operator flipped(filter_operator op) {
    static const filter_operator other[FILTER_OPERATORS] = {FILTER_EQ, FILTER_NE, FILTER_LT, FILTER_LE, FILTER_GT, FILTER_GE};
    return other[op];
}

static table_error parse_comparison(parser *p, filter **out) {
    slice left, right;
    edm_value left_value, right_value;
    filter_operator op = FILTER_EQ;
    TABLE_TRY(take_operand(p, &left, &left_value));
    if (!take_operator(p, &op)) {
        if (!left.n) {
            return fail(p, "eq, ne, gt, ge, lt or le must stand here");
        }
        right = SLICE_EMPTY;
        right_value = (edm_value){.type = EDM_BOOLEAN, .number = 1};
    } else {
        TABLE_TRY(take_operand(p, &right, &right_value));
    }
    if ((left.n != 0) == (right.n != 0)) {
        return fail(p, "a comparison must have a property on one side and a literal on the other");
    }
    TABLE_TRY(new_node(p, FILTER_COMPARE, NULL, NULL, out));
    (*out)->name = left.n ? left : right;
    (*out)->op = left.n ? op : flipped(op);
    (*out)->value = left.n ? right_value : left_value;
    return TABLE_FINE;
}

static table_error parse_inner(parser *p, filter **out) {
    filter *inner;
    if (take_word(p, "not")) {
        TABLE_TRY(parse_unary(p, &inner));
        return new_node(p, FILTER_NOT, inner, NULL, out);
    }
    if (!take_char(p, '(')) {
        return parse_comparison(p, out);
    }
    TABLE_TRY(parse_or(p, out));
    return take_char(p, ')') ? TABLE_FINE : fail(p, "a parenthesis is not closed");
}

/* Counts "not" and parentheses inside each other, since each takes stack. */
static table_error parse_unary(parser *p, filter **out) {
    if (++p->depth > DEPTH_MAX) {
        return fail(p, "it is nested too deeply");
    }
    table_error error = parse_inner(p, out);
    p->depth--;
    return error;
}

static table_error parse_and(parser *p, filter **out) {
    TABLE_TRY(parse_unary(p, out));
    while (take_word(p, "and")) {
        filter *right;
        TABLE_TRY(parse_unary(p, &right));
        TABLE_TRY(new_node(p, FILTER_AND, *out, right, out));
    }
    return TABLE_FINE;
}

static table_error parse_or(parser *p, filter **out) {
    TABLE_TRY(parse_and(p, out));
    while (take_word(p, "or")) {
        filter *right;
        TABLE_TRY(parse_and(p, &right));
        TABLE_TRY(new_node(p, FILTER_OR, *out, right, out));
    }
    return TABLE_FINE;
}

table_error filter_parse(op *o, slice text, const filter **filter_out) {
    parser p = {.op = o, .text = text};
    filter *f = NULL;
    *filter_out = NULL;
    skip_blanks(&p);
    if (p.at == text.n) {
        return TABLE_FINE;
    }
    TABLE_TRY(parse_or(&p, &f));
    skip_blanks(&p);
    *filter_out = f;
    return p.at == text.n ? TABLE_FINE : fail(&p, "and, or, or the end must stand here");
}

/* ---- evaluation ---- */

static bool compare(const filter *f, const edm_value *v) {
    int order;
    if (!edm_compare(v, &f->value, &order)) {
        return f->op == FILTER_NE;
    }
    switch (f->op) {
    case FILTER_EQ:
        return order == 0;
    case FILTER_NE:
        return order != 0;
    case FILTER_GT:
        return order > 0;
    case FILTER_GE:
        return order >= 0;
    case FILTER_LT:
        return order < 0;
    default:
        return order <= 0;
    }
}

/* Chains of "and" and "or" lean to the left: the loop follows them, so that only parentheses take stack. */
bool filter_passes(const filter *f, filter_get get, const void *context) {
    edm_value v;
    for (; f && (f->kind == FILTER_AND || f->kind == FILTER_OR); f = f->left) {
        bool right = filter_passes(f->right, get, context);
        if (right == (f->kind == FILTER_OR)) {
            return right;
        }
    }
    if (!f || f->kind == FILTER_NOT) {
        return !f || !filter_passes(f->left, get, context);
    }
    return get(context, f->name, &v) && compare(f, &v);
}

bool filter_entity_get(const void *context, slice name, edm_value *v) {
    const filter_entity *e = context;
    doc_element found;
    if (slice_eq(name, SLICE_LIT("Timestamp"))) {
        *v = (edm_value){.type = EDM_DATE_TIME, .number = entity_timestamp(e->body, e->version, e->ts)};
        return true;
    }
    return doc_find_member(e->body, name, &found) && edm_of_element(e->body, &found, v);
}

bool filter_accepts(const filter *f, const access_sas *bounds, const filter_entity *e) {
    if (bounds && !access_sas_covers(bounds, entity_text(e->body, SLICE_LIT("PartitionKey")), entity_text(e->body, SLICE_LIT("RowKey")))) {
        return false;
    }
    return filter_passes(f, filter_entity_get, e);
}
