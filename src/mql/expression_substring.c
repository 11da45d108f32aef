/* expression_substring.c — parts of strings, lengths and positions: in bytes, and in code points (…CP). */
#include <inttypes.h>

#include "mql/expression_int.h"
#include "mql/number.h"

/* ---- code points ---- */

static size_t count_characters(slice text) {
    size_t n = 0;
    for (size_t at = 0; at < text.n; at += mql__character(text, at)) {
        n++;
    }
    return n;
}

/* Where the n-th character begins; the end of the text if it has fewer. */
static size_t place_of_character(slice text, size_t from, size_t n) {
    while (n-- && from < text.n) {
        from += mql__character(text, from);
    }
    return from;
}

/* ---- lengths ---- */

static err length(const mql__call *c, mql_value *value_out) {
    bool characters = c->e->operator->variant;
    if (!mql_is_text(c->args[0])) {
        return mql__fail(c, characters ? 34471 : 34473, "%s requires a string argument, found: %s", mql__name(c),
                         mql_type_name(c->args[0].type));
    }
    slice text = mql_as_text(c->args[0]);
    TRY(mql_pay(c->run, 1 + (characters ? text.n / 8 : 0)));
    return mql__integer_result(c, (int64_t)(characters ? count_characters(text) : text.n), value_out);
}

/* ---- $indexOfBytes, $indexOfCP ---- */

static err check_texts(const mql__call *c, int code) {
    static const char *const places[] = {"first", "second"};
    for (int i = 0; i < 2; i++) {
        if (!mql_is_text(c->args[i])) {
            return mql__fail(c, code + i, "%s requires a string as the %s argument, found: %s", mql__name(c), places[i],
                             mql_type_name(c->args[i].type));
        }
    }
    return OK;
}

static err index_of_bytes(const mql__call *c, mql_value *value_out) {
    size_t from, to;
    if (mql_is_nullish(c->args[0])) {
        *value_out = mql_null();
        return OK;
    }
    TRY(check_texts(c, 40091));
    slice text = mql_as_text(c->args[0]), part = mql_as_text(c->args[1]);
    TRY(mql__bounds(c, text.n, &from, &to));
    TRY(mql_pay(c->run, 2 + text.n / 8));
    size_t at = from <= to ? mql__find_text(slice_of(text.p, to), part, from) : SIZE_MAX;
    return mql__integer_result(c, at == SIZE_MAX ? -1 : (int64_t)at, value_out);
}

static err index_of_characters(const mql__call *c, mql_value *value_out) {
    size_t from, to;
    if (mql_is_nullish(c->args[0])) {
        *value_out = mql_null();
        return OK;
    }
    TRY(check_texts(c, 40093));
    slice text = mql_as_text(c->args[0]), part = mql_as_text(c->args[1]);
    TRY(mql_pay(c->run, 2 + text.n / 4));
    TRY(mql__bounds(c, count_characters(text), &from, &to));
    size_t first = place_of_character(text, 0, from), end = place_of_character(text, 0, to);
    size_t at = from <= to ? mql__find_text(slice_of(text.p, end), part, first) : SIZE_MAX;
    return mql__integer_result(c, at == SIZE_MAX ? -1 : (int64_t)count_characters(slice_of(text.p, at)), value_out);
}

/* ---- $substrBytes, $substrCP ---- */

/* A number of any type, cut off to an integer. */
static int64_t cut_off(mql_run *r, mql_value v) {
    mql_value integer;
    int64_t n = 0;
    return mql_number_to(r->arena, v, BSON_TYPE_INT64, &integer) && mql_as_integer(integer, &n) ? n : 0;
}

static err check_positions(const mql__call *c) {
    if (!mql_is_number(c->args[1])) {
        return mql__fail(c, 16034, "$substrBytes:  starting index must be a numeric type (is BSON type %s)",
                         mql_type_name(c->args[1].type));
    }
    if (!mql_is_number(c->args[2])) {
        return mql__fail(c, 16035, "$substrBytes:  length must be a numeric type (is BSON type %s)", mql_type_name(c->args[2].type));
    }
    return OK;
}

static err substring_bytes(const mql__call *c, mql_value *value_out) {
    slice text;
    TRY(mql__coerce_text(c, c->args[0], &text));
    TRY(check_positions(c));
    int64_t from = cut_off(c->run, c->args[1]), n = cut_off(c->run, c->args[2]);
    if (from < 0) {
        return mql__fail(c, 50752, "$substrBytes:  starting index must be non-negative (got: %" PRId64 ")", from);
    }
    slice rest = slice_skip(text, (uint64_t)from > text.n ? text.n : (size_t)from);
    size_t taken = n < 0 || (uint64_t)n > rest.n ? rest.n : (size_t)n;
    if (mql__is_continuation(rest, 0)) {
        return mql__fail(c, 28656, "$substrBytes:  Invalid range, starting index is a UTF-8 continuation byte.");
    }
    if (mql__is_continuation(rest, taken)) {
        return mql__fail(c, 28657, "$substrBytes:  Invalid range, ending index is in the middle of a UTF-8 character.");
    }
    return mql__text_result(c, slice_of(rest.p, taken), value_out);
}

static err take_position(const mql__call *c, size_t which, int code, const char *name, int32_t *position_out) {
    mql_value v = c->args[which];
    if (!mql_is_number(v)) {
        return mql__fail(c, code, "$substrCP: %s must be a numeric type (is BSON type %s)", name, mql_type_name(v.type));
    }
    if (!mql__as_int32(v, position_out)) {
        return mql__fail(c, code + 1, "$substrCP: %s cannot be represented as a 32-bit integral value: %s", name,
                         mql__show(c->run->arena, v));
    }
    return OK;
}

static err substring_characters(const mql__call *c, mql_value *value_out) {
    slice text;
    int32_t from, n;
    TRY(mql__coerce_text(c, c->args[0], &text));
    TRY(take_position(c, 1, 34450, "starting index", &from));
    TRY(take_position(c, 2, 34452, "length", &n));
    if (n < 0) {
        return mql__fail(c, 34454, "$substrCP: length must be a nonnegative integer.");
    }
    if (from < 0) {
        return mql__fail(c, 34455, "$substrCP: the starting index must be nonnegative integer.");
    }
    TRY(mql_pay(c->run, 2 + text.n / 8));
    size_t first = place_of_character(text, 0, (size_t)from), end = place_of_character(text, first, (size_t)n);
    return mql__text_result(c, slice_of(text.p + first, end - first), value_out);
}

static const mql__operator rows[] = {
    {"$strLenBytes", 1, 1, MQL__SERVICE, .function = length, .variant = false},
    {"$strLenCP", 1, 1, MQL__SERVICE, .function = length, .variant = true},
    {"$indexOfBytes", 2, 4, MQL__SERVICE, .function = index_of_bytes},
    {"$indexOfCP", 2, 4, MQL__SERVICE, .function = index_of_characters},
    {"$substr", 3, 3, MQL__SERVICE, .function = substring_bytes},
    {"$substrBytes", 3, 3, MQL__SERVICE, .function = substring_bytes},
    {"$substrCP", 3, 3, MQL__SERVICE, .function = substring_characters},
};
const mql__operators mql__substring_operators = MQL__OPERATORS(rows);
