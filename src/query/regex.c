#include "query/regex.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "query/function_int.h"

enum {
    PATTERN_BYTES_MAX = 32 * 1024,
    BACKTRACKS_MAX = 1000000,
    DEPTH_MAX = 20000,
    HEAP_KB_MAX = 4 * 1024,
};

struct query_regex {
    slice pattern, modifiers; /* as given */
    pcre2_code *code;         /* NULL: not valid */
    pcre2_match_data *found;
    pcre2_match_context *limits;
    uint32_t groups;
};

/* Everything PCRE2 needs comes from an arena, and goes with it. */
static void *allocate(size_t n, void *context) {
    return arena_alloc(context, n);
}

static void release(void *p, void *context) {
    (void)p;
    (void)context;
}

static bool options_of(slice modifiers, uint32_t *options_out) {
    *options_out = PCRE2_UTF | PCRE2_MATCH_INVALID_UTF | PCRE2_NEVER_BACKSLASH_C;
    for (size_t i = 0; i < modifiers.n; i++) {
        switch (modifiers.p[i]) {
        case 'i':
            *options_out |= PCRE2_CASELESS;
            break;
        case 'm':
            *options_out |= PCRE2_MULTILINE;
            break;
        case 's':
            *options_out |= PCRE2_DOTALL;
            break;
        case 'x':
            *options_out |= PCRE2_EXTENDED;
            break;
        default:
            return false;
        }
    }
    return true;
}

static query_regex *compile(arena *a, slice pattern, slice modifiers) {
    query_regex *r = arena_new(a, query_regex);
    uint32_t options;
    int code;
    size_t at;
    r->pattern = arena_copy(a, pattern);
    r->modifiers = arena_copy(a, modifiers);
    if (pattern.n > PATTERN_BYTES_MAX || !options_of(modifiers, &options)) {
        return r;
    }
    pcre2_general_context *memory = pcre2_general_context_create(allocate, release, a);
    pcre2_compile_context *rules = pcre2_compile_context_create(memory);
    r->code = pcre2_compile((PCRE2_SPTR)r->pattern.p, pattern.n, options, &code, &at, rules);
    if (r->code) {
        r->found = pcre2_match_data_create_from_pattern(r->code, memory);
        r->limits = pcre2_match_context_create(memory);
        pcre2_set_match_limit(r->limits, BACKTRACKS_MAX);
        pcre2_set_depth_limit(r->limits, DEPTH_MAX);
        pcre2_set_heap_limit(r->limits, HEAP_KB_MAX);
        pcre2_pattern_info(r->code, PCRE2_INFO_CAPTURECOUNT, &r->groups);
    }
    return r;
}

/* The first pattern of a call is kept through the query, for mostly it is the only one; others live as long as their row. */
query_regex *query_regex_get(query_context *c, slice pattern, slice modifiers) {
    query_regex *r = c->prepared ? (query_regex *)(uintptr_t)*c->prepared : NULL;
    if (!r || !slice_eq(r->pattern, pattern) || !slice_eq(r->modifiers, modifiers)) {
        bool keep = c->prepared && c->keep && !r;
        if (!function_spend(c, 1000 + pattern.n * 8)) {
            return NULL;
        }
        r = compile(keep ? c->keep : c->arena, pattern, modifiers);
        if (keep) {
            *c->prepared = r;
        }
    }
    return r->code ? r : NULL;
}

unsigned query_regex_groups(const query_regex *r) {
    return r->groups < REGEX_GROUPS_MAX - 1 ? r->groups : REGEX_GROUPS_MAX - 1;
}

regex_answer query_regex_find(query_context *c, query_regex *r, slice text, size_t from, bool valid, slice groups[REGEX_GROUPS_MAX]) {
    const char *p = text.n ? text.p : "";
    uint32_t options = valid ? PCRE2_NO_UTF_CHECK : 0;
    int n = pcre2_match(r->code, (PCRE2_SPTR)p, text.n, from, options, r->found, r->limits);
    bool failed = n < 0 && n != PCRE2_ERROR_NOMATCH;
    const size_t *ends = pcre2_get_ovector_pointer(r->found);
    size_t looked_at = (n > 0 && valid && ends[1] > from ? ends[1] : text.n) - from;
    if (!function_spend(c, failed ? BACKTRACKS_MAX : 10 + looked_at / 8) || failed) {
        return REGEX_TOO_LONG;
    }
    for (unsigned i = 0; n > 0 && groups && i <= query_regex_groups(r); i++) {
        bool took_part = (int)i < n && ends[2 * i] != PCRE2_UNSET && ends[2 * i] <= ends[2 * i + 1];
        groups[i] = took_part ? slice_of(p + ends[2 * i], ends[2 * i + 1] - ends[2 * i]) : SLICE_EMPTY;
    }
    return n < 0 ? REGEX_NO : REGEX_YES;
}
