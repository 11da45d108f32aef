/* functions_type.c — type tests and conversions. IS_… functions return false for undefined. */
#include <stdlib.h>

#include "doc/json.h"
#include "doc/number.h"
#include "query/calendar.h"
#include "query/function_int.h"

/* ---- type tests ---- */

#define IS(name, condition)                                                                                                                \
    static query_value name(query_context *c, const query_value *args, size_t n) {                                                         \
        (void)c;                                                                                                                           \
        (void)n;                                                                                                                           \
        const query_value *v = args;                                                                                                       \
        return value_bool(condition);                                                                                                      \
    }

static bool is_whole(const query_value *v) {
    int64_t whole;
    return function_whole(v, &whole);
}

static bool is_moment(const query_value *v) {
    calendar_ticks ticks;
    return v->type == TYPE_STRING && calendar_parse(v->bytes, &ticks);
}

IS(is_array, v->type == TYPE_ARRAY)
IS(is_bool, v->type == TYPE_BOOL)
IS(is_datetime, is_moment(v))
IS(is_defined, v->type != TYPE_UNDEFINED)
IS(is_finite_number, v->type == TYPE_NUMBER && isfinite(v->number))
IS(is_integer, is_whole(v))
IS(is_null, v->type == TYPE_NULL)
IS(is_number, v->type == TYPE_NUMBER)
IS(is_object, v->type == TYPE_OBJECT)
IS(is_primitive, v->type >= TYPE_NULL && v->type <= TYPE_STRING)
IS(is_string, v->type == TYPE_STRING)

/* ---- to text ---- */

static slice number_text(arena *a, const query_value *v) {
    char text[NUMBER_TEXT_MAX];
    if (!v->is_integer && !isfinite(v->number)) {
        return isnan(v->number) ? SLICE_LIT("NaN") : v->number > 0 ? SLICE_LIT("Infinity") : SLICE_LIT("-Infinity");
    }
    size_t n = v->is_integer ? number_write_integer(text, v->integer) : number_write_double(text, v->number);
    return arena_copy(a, slice_of(text, n));
}

/* Strings are unchanged, other values become JSON. */
static query_value to_string(query_context *c, const query_value *args, size_t n) {
    const query_value *v = args;
    (void)n;
    if (v->type == TYPE_STRING || v->type == TYPE_UNDEFINED) {
        return *v;
    }
    if (v->type == TYPE_NUMBER) {
        return value_string(number_text(c->arena, v));
    }
    buf out = buf_init_counted(VALUE_BYTES_MAX, c->arena->budget);
    value_write(&out, v);
    bool can = !function_too_large(c, buf_ok(&out) ? out.n : SIZE_MAX) && function_spend_bytes(c, out.n);
    query_value text = can ? value_string(arena_copy(c->arena, buf_view(&out))) : value_undefined();
    buf_free(&out);
    return text;
}

/* ---- from text: JSON, with white space around it ---- */

static bool is_json_blank(char c) {
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static slice without_blanks(const query_value *v) {
    slice s = v->bytes;
    while (s.n && is_json_blank(s.p[0])) {
        s = slice_skip(s, 1);
    }
    while (s.n && is_json_blank(s.p[s.n - 1])) {
        s.n--;
    }
    return s;
}

static query_value string_to_boolean(query_context *c, const query_value *args, size_t n) {
    (void)c;
    (void)n;
    slice s = args[0].type == TYPE_STRING ? without_blanks(&args[0]) : SLICE_EMPTY;
    return slice_eq(s, SLICE_LIT("true")) ? value_bool(true) : slice_eq(s, SLICE_LIT("false")) ? value_bool(false) : value_undefined();
}

static query_value string_to_null(query_context *c, const query_value *args, size_t n) {
    (void)c;
    (void)n;
    bool is = args[0].type == TYPE_STRING && slice_eq(without_blanks(&args[0]), SLICE_LIT("null"));
    return is ? value_null() : value_undefined();
}

static query_value string_to_number(query_context *c, const query_value *args, size_t n) {
    (void)n;
    slice s = args[0].type == TYPE_STRING ? without_blanks(&args[0]) : SLICE_EMPTY;
    number_value number;
    const char *reason;
    if (s.n == 0 || !function_spend(c, s.n / 8) || number_read(s.p, s.p + s.n, &number, &reason) != s.p + s.n) {
        return value_undefined();
    }
    return number.integer ? value_integer(number.i) : value_number(number.d);
}

static query_value parse(query_context *c, const query_value *v, json_root wanted) {
    query_value made = value_undefined();
    buf bson = buf_init_counted(VALUE_BYTES_MAX, c->arena->budget);
    json_root root;
    if (v->type == TYPE_STRING && v->bytes.n && json_to_bson(v->bytes, NULL, &bson, &root, NULL) == OK && root == wanted &&
        function_spend_bytes(c, bson.n)) {
        made = value_document(root == JSON_ARRAY ? TYPE_ARRAY : TYPE_OBJECT, arena_copy(c->arena, buf_view(&bson)));
    }
    buf_free(&bson);
    return made;
}

static query_value string_to_array(query_context *c, const query_value *args, size_t n) {
    (void)n;
    return parse(c, &args[0], JSON_ARRAY);
}

static query_value string_to_object(query_context *c, const query_value *args, size_t n) {
    (void)n;
    return parse(c, &args[0], JSON_OBJECT);
}

const query_function query_functions_type[] = {
    {"IS_ARRAY", 1, 1, true, true, is_array},
    {"IS_BOOL", 1, 1, true, true, is_bool},
    {"IS_BOOLEAN", 1, 1, true, true, is_bool},
    {"IS_DATETIME", 1, 1, true, true, is_datetime},
    {"IS_DEFINED", 1, 1, true, true, is_defined},
    {"IS_FINITE_NUMBER", 1, 1, true, true, is_finite_number},
    {"IS_INTEGER", 1, 1, true, true, is_integer},
    {"IS_NULL", 1, 1, true, true, is_null},
    {"IS_NUMBER", 1, 1, true, true, is_number},
    {"IS_OBJECT", 1, 1, true, true, is_object},
    {"IS_PRIMITIVE", 1, 1, true, true, is_primitive},
    {"IS_STRING", 1, 1, true, true, is_string},
    {"StringToArray", 1, 1, false, true, string_to_array},
    {"STRING_TO_ARRAY", 1, 1, false, true, string_to_array},
    {"StringToBoolean", 1, 1, false, true, string_to_boolean},
    {"STRING_TO_BOOLEAN", 1, 1, false, true, string_to_boolean},
    {"StringToNull", 1, 1, false, true, string_to_null},
    {"STRING_TO_NULL", 1, 1, false, true, string_to_null},
    {"StringToNumber", 1, 1, false, true, string_to_number},
    {"STRING_TO_NUMBER", 1, 1, false, true, string_to_number},
    {"StringToObject", 1, 1, false, true, string_to_object},
    {"STRING_TO_OBJECT", 1, 1, false, true, string_to_object},
    {"ToString", 1, 1, false, true, to_string},
    {"TO_STRING", 1, 1, false, true, to_string},
    {0},
};
