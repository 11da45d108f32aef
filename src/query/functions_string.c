/* functions_string.c — string functions. text.h defines what a character is. */
#include "query/function_int.h"
#include "text/text.h"

enum { REPLICATE_MAX = 10000 }; /* characters, as documented */

/* Pays for a result of up to `n` bytes; false: no memory or steps left. */
static bool afford(query_context *c, size_t n) {
    return function_spend_bytes(c, n);
}

/* ---- substrings ---- */

static query_value string_length(query_context *c, const query_value *args, size_t n) {
    (void)n;
    if (args[0].type != TYPE_STRING || !function_spend(c, args[0].bytes.n / 64)) {
        return value_undefined();
    }
    return value_integer((int64_t)text_units(args[0].bytes));
}

static query_value part(query_context *c, slice s, int64_t start, int64_t length) {
    if (start < 0 || length <= 0) {
        return value_string(SLICE_LIT(""));
    }
    return function_spend(c, s.n / 64) ? value_string(text_part(c->arena, s, (size_t)start, (size_t)length)) : value_undefined();
}

static query_value string_substring(query_context *c, const query_value *args, size_t n) {
    int64_t start, length;
    (void)n;
    if (args[0].type != TYPE_STRING || !function_whole(&args[1], &start) || !function_whole(&args[2], &length)) {
        return value_undefined();
    }
    return part(c, args[0].bytes, start, length);
}

static query_value string_left(query_context *c, const query_value *args, size_t n) {
    int64_t length;
    (void)n;
    return args[0].type == TYPE_STRING && function_whole(&args[1], &length) ? part(c, args[0].bytes, 0, length) : value_undefined();
}

static query_value string_right(query_context *c, const query_value *args, size_t n) {
    int64_t length;
    (void)n;
    if (args[0].type != TYPE_STRING || !function_whole(&args[1], &length)) {
        return value_undefined();
    }
    int64_t units = (int64_t)text_units(args[0].bytes);
    return length >= units ? args[0] : part(c, args[0].bytes, units - length, length);
}

static query_value trim(query_context *c, const query_value *args, size_t n, text_side side) {
    if (!function_texts(args, n) || !function_spend(c, args[0].bytes.n / 8 + (n > 1 ? args[1].bytes.n : 0))) {
        return value_undefined();
    }
    return value_string(text_trim(c->arena, args[0].bytes, n > 1 ? &args[1].bytes : NULL, side));
}

static query_value string_ltrim(query_context *c, const query_value *args, size_t n) {
    return trim(c, args, n, TEXT_LEFT);
}

static query_value string_rtrim(query_context *c, const query_value *args, size_t n) {
    return trim(c, args, n, TEXT_RIGHT);
}

static query_value string_trim(query_context *c, const query_value *args, size_t n) {
    return trim(c, args, n, TEXT_BOTH);
}

/* ---- searching ---- */

/* Reads two strings, and whether to ignore case; false: wrong types, or no steps left. */
static bool take_search(query_context *c, const query_value *args, size_t n, bool *nocase_out) {
    *nocase_out = n > 2 && value_is_true(&args[2]);
    return function_texts(args, 2) && (n < 3 || args[2].type == TYPE_BOOL) &&
           function_spend(c, (args[0].bytes.n + args[1].bytes.n) / (*nocase_out ? 8 : 64));
}

static bool contains(query_context *c, slice s, slice needle, bool nocase) {
    return text_find(nocase ? text_fold(c->arena, s) : s, nocase ? text_fold(c->arena, needle) : needle) != SIZE_MAX;
}

static query_value string_contains(query_context *c, const query_value *args, size_t n) {
    bool nocase;
    return take_search(c, args, n, &nocase) ? value_bool(contains(c, args[0].bytes, args[1].bytes, nocase)) : value_undefined();
}

/* Case folding may change the number of bytes, but not of characters, so four times the prefix's bytes suffice. */
static bool starts_nocase(query_context *c, slice s, slice prefix) {
    s.n = s.n / 4 > prefix.n ? 4 * prefix.n : s.n;
    return slice_starts(text_fold(c->arena, s), text_fold(c->arena, prefix));
}

static bool ends(slice s, slice suffix) {
    return s.n >= suffix.n && slice_eq(slice_skip(s, s.n - suffix.n), suffix);
}

static bool ends_nocase(query_context *c, slice s, slice suffix) {
    s = s.n / 4 > suffix.n ? slice_skip(s, s.n - 4 * suffix.n) : s;
    return ends(text_fold(c->arena, s), text_fold(c->arena, suffix));
}

static query_value string_starts_with(query_context *c, const query_value *args, size_t n) {
    bool nocase;
    if (!take_search(c, args, n, &nocase)) {
        return value_undefined();
    }
    return value_bool(nocase ? starts_nocase(c, args[0].bytes, args[1].bytes) : slice_starts(args[0].bytes, args[1].bytes));
}

static query_value string_ends_with(query_context *c, const query_value *args, size_t n) {
    bool nocase;
    if (!take_search(c, args, n, &nocase)) {
        return value_undefined();
    }
    return value_bool(nocase ? ends_nocase(c, args[0].bytes, args[1].bytes) : ends(args[0].bytes, args[1].bytes));
}

static query_value string_equals(query_context *c, const query_value *args, size_t n) {
    bool nocase;
    if (!take_search(c, args, n, &nocase)) {
        return value_undefined();
    }
    return value_bool(nocase ? text_equal_nocase(args[0].bytes, args[1].bytes) : slice_eq(args[0].bytes, args[1].bytes));
}

/* A chain of CONTAINS joined by OR (any) or AND: an undefined operand decides only if no other does. */
static query_value contains_several(query_context *c, const query_value *args, size_t n, bool any, bool nocase) {
    bool some_undefined = false;
    if (args[0].type != TYPE_STRING) {
        return value_undefined();
    }
    slice s = nocase ? text_fold(c->arena, args[0].bytes) : args[0].bytes;
    for (size_t i = 1; i < n; i++) {
        if (args[i].type != TYPE_STRING || !function_spend(c, (s.n + args[i].bytes.n) / 64)) {
            some_undefined = true;
        } else if ((text_find(s, nocase ? text_fold(c->arena, args[i].bytes) : args[i].bytes) != SIZE_MAX) == any) {
            return value_bool(any);
        }
    }
    return some_undefined ? value_undefined() : value_bool(!any);
}

static query_value string_contains_all_ci(query_context *c, const query_value *args, size_t n) {
    return contains_several(c, args, n, false, true);
}

static query_value string_contains_all_cs(query_context *c, const query_value *args, size_t n) {
    return contains_several(c, args, n, false, false);
}

static query_value string_contains_any_ci(query_context *c, const query_value *args, size_t n) {
    return contains_several(c, args, n, true, true);
}

static query_value string_contains_any_cs(query_context *c, const query_value *args, size_t n) {
    return contains_several(c, args, n, true, false);
}

/* ---- positions ---- */

static query_value string_index_of(query_context *c, const query_value *args, size_t n) {
    int64_t start = 0;
    if (!function_texts(args, 2) || (n > 2 && !function_whole(&args[2], &start))) {
        return value_undefined();
    }
    slice s = args[0].bytes;
    if (!function_spend(c, (s.n + args[1].bytes.n) / 64)) {
        return value_undefined();
    }
    size_t units = text_units(s);
    if (start > (int64_t)units) {
        return value_integer(-1);
    }
    size_t from = start > 0 ? text_byte_at(s, (size_t)start) : 0;
    size_t at = text_find(slice_skip(s, from), args[1].bytes);
    return value_integer(at == SIZE_MAX ? -1 : (int64_t)text_unit_at(s, from + at));
}

/* Searches backwards from `start`: a match must end there or before. */
static query_value string_last_index_of(query_context *c, const query_value *args, size_t n) {
    int64_t start = INT64_MAX;
    if (!function_texts(args, 2) || (n > 2 && !function_whole(&args[2], &start))) {
        return value_undefined();
    }
    slice s = args[0].bytes;
    if (start < 0 || !function_spend(c, (s.n + args[1].bytes.n) / 16)) {
        return start < 0 ? value_integer(-1) : value_undefined();
    }
    s.n = start < (int64_t)s.n ? text_byte_at(s, (size_t)start + 1) : s.n;
    size_t at = text_find_last(c->arena, s, args[1].bytes);
    return value_integer(at == SIZE_MAX ? -1 : (int64_t)text_unit_at(s, at));
}

/* The part before or after the first or last occurrence of another string; undefined if there is none. */
static query_value around(query_context *c, const query_value *args, bool after, bool last) {
    if (!function_texts(args, 2) || !function_spend(c, args[0].bytes.n / 16)) {
        return value_undefined();
    }
    slice s = args[0].bytes, mark = args[1].bytes;
    size_t at = last ? text_find_last(c->arena, s, mark) : text_find(s, mark);
    if (at == SIZE_MAX) {
        return value_undefined();
    }
    return value_string(after ? slice_skip(s, at + mark.n) : slice_of(s.p, at));
}

static query_value string_substring_after(query_context *c, const query_value *args, size_t n) {
    (void)n;
    return around(c, args, true, false);
}

static query_value string_substring_before(query_context *c, const query_value *args, size_t n) {
    (void)n;
    return around(c, args, false, false);
}

static query_value string_last_substring_after(query_context *c, const query_value *args, size_t n) {
    (void)n;
    return around(c, args, true, true);
}

static query_value string_last_substring_before(query_context *c, const query_value *args, size_t n) {
    (void)n;
    return around(c, args, false, true);
}

/* ---- making strings ---- */

static query_value string_concat(query_context *c, const query_value *args, size_t n) {
    size_t bytes = 0;
    for (size_t i = 0; i < n; i++) {
        bytes += args[i].bytes.n;
    }
    if (!function_texts(args, n) || !afford(c, bytes)) {
        return value_undefined();
    }
    char *made = arena_alloc_aligned(c->arena, bytes + 1, 1), *p = made;
    for (size_t i = 0; i < n; i++) {
        p = mempcpy(p, args[i].bytes.n ? args[i].bytes.p : "", args[i].bytes.n);
    }
    return value_string(slice_of(made, bytes));
}

static query_value string_lower(query_context *c, const query_value *args, size_t n) {
    (void)n;
    bool can = args[0].type == TYPE_STRING && afford(c, 2 * args[0].bytes.n);
    return can ? value_string(text_lower(c->arena, args[0].bytes)) : value_undefined();
}

static query_value string_upper(query_context *c, const query_value *args, size_t n) {
    (void)n;
    bool can = args[0].type == TYPE_STRING && afford(c, 2 * args[0].bytes.n);
    return can ? value_string(text_upper(c->arena, args[0].bytes)) : value_undefined();
}

static query_value string_reverse(query_context *c, const query_value *args, size_t n) {
    (void)n;
    bool can = args[0].type == TYPE_STRING && afford(c, args[0].bytes.n);
    return can ? value_string(text_reverse(c->arena, args[0].bytes)) : value_undefined();
}

static query_value string_replicate(query_context *c, const query_value *args, size_t n) {
    (void)n;
    if (args[0].type != TYPE_STRING || args[1].type != TYPE_NUMBER || !(args[1].number >= 0)) {
        return value_undefined();
    }
    slice s = args[0].bytes;
    double times = trunc(args[1].number), units = (double)text_units(s);
    if (!isfinite(times) || units * times > REPLICATE_MAX || !afford(c, s.n * (size_t)(s.n ? times : 0))) {
        return value_undefined();
    }
    size_t bytes = s.n ? s.n * (size_t)times : 0;
    char *made = arena_alloc_aligned(c->arena, bytes + 1, 1);
    for (size_t at = 0; at < bytes; at += s.n) {
        memcpy(made + at, s.p, s.n);
    }
    return value_string(slice_of(made, bytes));
}

static size_t count_of(slice s, slice needle) {
    size_t count = 0;
    for (size_t at; (at = text_find(s, needle)) != SIZE_MAX; count++) {
        s = slice_skip(s, at + needle.n);
    }
    return count;
}

/* Replacing an empty string changes nothing. */
static query_value string_replace(query_context *c, const query_value *args, size_t n) {
    if (!function_texts(args, n) || !function_spend(c, args[0].bytes.n / 16)) {
        return value_undefined();
    }
    slice s = args[0].bytes, find = args[1].bytes, with = args[2].bytes;
    size_t count = find.n ? count_of(s, find) : 0;
    if (count == 0) {
        return args[0];
    }
    size_t bytes = s.n - count * find.n + count * with.n;
    if (!afford(c, bytes)) {
        return value_undefined();
    }
    char *made = arena_alloc_aligned(c->arena, bytes + 1, 1), *p = made;
    for (; count > 0; count--) {
        size_t at = text_find(s, find);
        p = mempcpy(p, s.p, at);
        p = mempcpy(p, with.n ? with.p : "", with.n);
        s = slice_skip(s, at + find.n);
    }
    memcpy(p, s.p, s.n);
    return value_string(slice_of(made, bytes));
}

/* ---- joining and splitting ---- */

static query_value string_join(query_context *c, const query_value *args, size_t n) {
    size_t count, bytes = 0;
    (void)n;
    if (args[0].type != TYPE_ARRAY || args[1].type != TYPE_STRING) {
        return value_undefined();
    }
    query_value *parts = function_elements(c, &args[0], &count);
    slice by = args[1].bytes;
    if (!parts || !function_texts(parts, count)) {
        return value_undefined();
    }
    for (size_t i = 0; i < count; i++) {
        bytes += parts[i].bytes.n + (i ? by.n : 0);
    }
    if (!afford(c, bytes)) {
        return value_undefined();
    }
    char *made = arena_alloc_aligned(c->arena, bytes + 1, 1), *p = made;
    for (size_t i = 0; i < count; i++) {
        p = i && by.n ? mempcpy(p, by.p, by.n) : p;
        p = mempcpy(p, parts[i].bytes.p, parts[i].bytes.n);
    }
    return value_string(slice_of(made, bytes));
}

static query_value string_split(query_context *c, const query_value *args, size_t n) {
    if (!function_texts(args, n) || !function_spend(c, args[0].bytes.n / 16)) {
        return value_undefined();
    }
    slice s = args[0].bytes, by = args[1].bytes;
    size_t count = by.n ? count_of(s, by) : 0;
    if (!function_spend_memory(c, s.n + count * sizeof(query_value))) {
        return value_undefined();
    }
    query_value *parts = arena_alloc(c->arena, (count + 1) * sizeof *parts);
    for (size_t i = 0; i < count; i++) {
        size_t at = text_find(s, by);
        parts[i] = value_string(slice_of(s.p, at));
        s = slice_skip(s, at + by.n);
    }
    parts[count] = value_string(s);
    return function_array(c, parts, count + 1);
}

const query_function query_functions_string[] = {
    {"CONCAT", 2, QUERY_ANY_NUMBER, false, true, string_concat},
    {"CONTAINS", 2, 3, false, true, string_contains},
    {"CONTAINS_ALL_CI", 2, QUERY_ANY_NUMBER, true, true, string_contains_all_ci},
    {"ContainsAllCi", 2, QUERY_ANY_NUMBER, true, true, string_contains_all_ci},
    {"CONTAINS_ALL_CS", 2, QUERY_ANY_NUMBER, true, true, string_contains_all_cs},
    {"ContainsAllCs", 2, QUERY_ANY_NUMBER, true, true, string_contains_all_cs},
    {"CONTAINS_ANY_CI", 2, QUERY_ANY_NUMBER, true, true, string_contains_any_ci},
    {"ContainsAnyCi", 2, QUERY_ANY_NUMBER, true, true, string_contains_any_ci},
    {"CONTAINS_ANY_CS", 2, QUERY_ANY_NUMBER, true, true, string_contains_any_cs},
    {"ContainsAnyCs", 2, QUERY_ANY_NUMBER, true, true, string_contains_any_cs},
    {"ENDSWITH", 2, 3, false, true, string_ends_with},
    {"INDEX_OF", 2, 3, false, true, string_index_of},
    {"LastIndexOf", 2, 3, false, true, string_last_index_of},
    {"LastSubstringAfter", 2, 2, false, true, string_last_substring_after},
    {"LastSubstringBefore", 2, 2, false, true, string_last_substring_before},
    {"LEFT", 2, 2, false, true, string_left},
    {"LENGTH", 1, 1, false, true, string_length},
    {"LOWER", 1, 1, false, true, string_lower},
    {"LTRIM", 1, 2, false, true, string_ltrim},
    {"REPLACE", 3, 3, false, true, string_replace},
    {"REPLICATE", 2, 2, false, true, string_replicate},
    {"REVERSE", 1, 1, false, true, string_reverse},
    {"RIGHT", 2, 2, false, true, string_right},
    {"RTRIM", 1, 2, false, true, string_rtrim},
    {"STARTSWITH", 2, 3, false, true, string_starts_with},
    {"StringEquals", 2, 3, false, true, string_equals},
    {"STRING_EQUALS", 2, 3, false, true, string_equals},
    {"StringJoin", 2, 2, false, true, string_join},
    {"STRING_JOIN", 2, 2, false, true, string_join},
    {"StringSplit", 2, 2, false, true, string_split},
    {"STRING_SPLIT", 2, 2, false, true, string_split},
    {"SUBSTRING", 3, 3, false, true, string_substring},
    {"SubstringAfter", 2, 2, false, true, string_substring_after},
    {"SubstringBefore", 2, 2, false, true, string_substring_before},
    {"TRIM", 1, 2, false, true, string_trim},
    {"UPPER", 1, 1, false, true, string_upper},
    {0},
};
