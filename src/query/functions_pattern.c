/* functions_pattern.c — RegexMatch, RegexExtract, RegexExtractAll. An invalid pattern gives undefined, and so does a match that takes too
 * long. */
#include "query/function_int.h"
#include "query/regex.h"
#include "text/text.h"

static const text_regex *take_pattern(query_context *c, const query_value *args, size_t n) {
    if (!function_texts(args, n < 3 ? n : 3) || !text_is_valid(args[0].bytes)) {
        return NULL;
    }
    return query_regex_get(c, args[1].bytes, n > 2 ? args[2].bytes : SLICE_LIT(""));
}

static query_value regex_match(query_context *c, const query_value *args, size_t n) {
    const text_regex *r = take_pattern(c, args, n);
    text_regex_answer answer = r ? text_regex_find(r, args[0].bytes, 0, NULL, c->steps) : REGEX_TOO_LONG;
    return answer == REGEX_TOO_LONG ? value_undefined() : value_bool(answer == REGEX_YES);
}

static bool group_number(const text_regex *r, const query_value *v, unsigned *group_out) {
    int64_t number;
    if (!function_whole(v, &number) || number < 0 || number > text_regex_groups(r)) {
        return false;
    }
    *group_out = (unsigned)number;
    return true;
}

/* The first match of the pattern, or of one of its groups. */
static query_value regex_extract(query_context *c, const query_value *args, size_t n) {
    slice groups[TEXT_REGEX_GROUPS_MAX];
    unsigned group = 0;
    const text_regex *r = take_pattern(c, args, n);
    if (!r || (n > 3 && !group_number(r, &args[3], &group)) || text_regex_find(r, args[0].bytes, 0, groups, c->steps) != REGEX_YES) {
        return value_undefined();
    }
    return groups[group].p ? value_string(groups[group]) : value_undefined();
}

/* Reads the group numbers of the fourth argument; without it, the whole match. */
static bool take_groups(query_context *c, const text_regex *r, const query_value *args, size_t n, unsigned *groups, size_t *n_out) {
    groups[0] = 0;
    *n_out = 1;
    if (n < 4) {
        return true;
    }
    size_t count;
    query_value *list = args[3].type == TYPE_ARRAY ? function_elements(c, &args[3], &count) : NULL;
    if (!list || count == 0 || count > TEXT_REGEX_GROUPS_MAX) {
        return false;
    }
    *n_out = count;
    for (size_t i = 0; i < count; i++) {
        if (!group_number(r, &list[i], &groups[i])) {
            return false;
        }
    }
    return true;
}

typedef struct matches {
    query_value *list;
    size_t n, cap;
} matches;

static bool add_match(query_context *c, matches *m, query_value v) {
    if (m->n == m->cap) {
        size_t cap = m->cap ? 2 * m->cap : 8;
        if (!arena_fits(c->arena, cap * sizeof *m->list)) {
            return false;
        }
        query_value *list = arena_alloc(c->arena, cap * sizeof *list);
        memcpy(list, m->n ? (const void *)m->list : "", m->n * sizeof *list);
        m->list = list;
        m->cap = cap;
    }
    m->list[m->n++] = v;
    return true;
}

/* Where to search for the next match: after this one, and after an empty one a character further. */
static size_t next_start(slice text, slice match) {
    size_t end = (size_t)(match.p - text.p) + match.n;
    uint32_t character;
    return match.n || end >= text.n ? end + (match.n == 0) : end + text_decode(text.p + end, text.p + text.n, &character);
}

/* All matches, each an array of the requested groups. */
static query_value regex_extract_all(query_context *c, const query_value *args, size_t n) {
    slice found[TEXT_REGEX_GROUPS_MAX];
    unsigned groups[TEXT_REGEX_GROUPS_MAX];
    size_t groups_n, at = 0;
    matches all = {0};
    const text_regex *r = take_pattern(c, args, n);
    if (!r || !take_groups(c, r, args, n, groups, &groups_n)) {
        return value_undefined();
    }
    slice text = args[0].bytes.n ? args[0].bytes : SLICE_LIT("");
    text_regex_answer answer = REGEX_NO;
    while (at <= text.n && (answer = text_regex_find(r, text, at, found, c->steps)) == REGEX_YES) {
        query_value parts[TEXT_REGEX_GROUPS_MAX];
        for (size_t i = 0; i < groups_n; i++) {
            slice part = found[groups[i]];
            parts[i] = part.p ? value_string(part) : value_null();
        }
        if (!function_spend_bytes(c, 64 * groups_n + found[0].n) || !add_match(c, &all, function_array(c, parts, groups_n))) {
            return value_undefined();
        }
        at = next_start(text, found[0]);
    }
    return answer == REGEX_TOO_LONG ? value_undefined() : function_array(c, all.list, all.n);
}

const query_function query_functions_pattern[] = {
    {"RegexMatch", 2, 3, false, true, regex_match},
    {"RegexExtract", 2, 4, false, true, regex_extract},
    {"RegexExtractAll", 2, 4, false, true, regex_extract_all},
    {0},
};
