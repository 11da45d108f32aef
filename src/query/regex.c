#include "query/regex.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "base/clock.h"
#include "query/function_int.h"

enum {
    PATTERN_BYTES_MAX = 32 * 1024,
    BACKTRACKS_MAX = 1000000, /* from one start position */
    DEPTH_MAX = 20000,
    HEAP_KB_MAX = 4 * 1024,
    PLACES = 16, /* start positions tried at a time, in bytes */
};

/* What PCRE2 knows about the first byte of a match. */
typedef enum first_kind { FIRST_ANY, FIRST_BYTE, FIRST_BITMAP, FIRST_LINE, FIRST_ONLY } first_kind;

struct query_regex {
    slice pattern, modifiers; /* as passed */
    pcre2_code *code;         /* NULL: invalid */
    pcre2_match_data *found;
    pcre2_match_context *limits;
    uint32_t groups;
    first_kind first;
    unsigned char byte, other; /* FIRST_BYTE: both cases of the letter */
    const uint8_t *bitmap;
};

/* ---- compiling ---- */

/* PCRE2's memory comes from an arena, and is freed with it. */
static void *allocate(size_t n, void *context) {
    return arena_alloc(context, n);
}

static void release(void *p, void *context) {
    (void)p;
    (void)context;
}

static bool options_of(slice modifiers, uint32_t *options_out) {
    static const uint32_t options[128] = {['i'] = PCRE2_CASELESS, ['m'] = PCRE2_MULTILINE, ['s'] = PCRE2_DOTALL, ['x'] = PCRE2_EXTENDED};
    *options_out = PCRE2_UTF | PCRE2_USE_OFFSET_LIMIT | PCRE2_NEVER_BACKSLASH_C;
    for (size_t i = 0; i < modifiers.n; i++) {
        unsigned char c = (unsigned char)modifiers.p[i];
        if (c >= 128 || !options[c]) {
            return false;
        }
        *options_out |= options[c];
    }
    return true;
}

static void learn_first(query_regex *r) {
    uint32_t type = 0, byte = 0, options = 0;
    pcre2_pattern_info(r->code, PCRE2_INFO_ALLOPTIONS, &options);
    pcre2_pattern_info(r->code, PCRE2_INFO_FIRSTCODETYPE, &type);
    pcre2_pattern_info(r->code, PCRE2_INFO_FIRSTCODEUNIT, &byte);
    pcre2_pattern_info(r->code, PCRE2_INFO_FIRSTBITMAP, &r->bitmap);
    r->first = options & PCRE2_ANCHORED ? FIRST_ONLY
               : type == 1              ? FIRST_BYTE
               : type == 2              ? FIRST_LINE
               : r->bitmap              ? FIRST_BITMAP
                                        : FIRST_ANY;
    r->byte = r->other = (unsigned char)byte;
    if ((byte | 32) >= 'a' && (byte | 32) <= 'z') {
        r->other ^= 32;
    }
}

static query_regex *compile(arena *a, slice pattern, slice modifiers) {
    query_regex *r = arena_new(a, query_regex);
    uint32_t options;
    int code;
    size_t at;
    r->pattern = arena_copy(a, pattern);
    r->modifiers = arena_copy(a, modifiers);
    if (pattern.n > PATTERN_BYTES_MAX || !options_of(modifiers, &options) || memmem(r->pattern.p, pattern.n, "(*", 2)) {
        return r;
    }
    pcre2_general_context *memory = pcre2_general_context_create(allocate, release, a);
    r->code = pcre2_compile((PCRE2_SPTR)r->pattern.p, pattern.n, options, &code, &at, pcre2_compile_context_create(memory));
    if (r->code) {
        r->found = pcre2_match_data_create_from_pattern(r->code, memory);
        r->limits = pcre2_match_context_create(memory);
        pcre2_set_match_limit(r->limits, BACKTRACKS_MAX);
        pcre2_set_depth_limit(r->limits, DEPTH_MAX);
        pcre2_set_heap_limit(r->limits, HEAP_KB_MAX);
        pcre2_pattern_info(r->code, PCRE2_INFO_CAPTURECOUNT, &r->groups);
        learn_first(r);
    }
    return r;
}

/* The first pattern of a call is cached for the query, since it usually is the only one; others live as long as their row. */
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

/* ---- matching ---- */

/* The first position from `at` on where a match could begin; SIZE_MAX: none. PCRE2 does the same search, but would scan all the rest of the
 * text each time. */
static size_t next_place(const query_regex *r, slice text, size_t at, size_t from) {
    const unsigned char *p = (const unsigned char *)text.p;
    switch (r->first) {
    case FIRST_BYTE:
        while (at < text.n && p[at] != r->byte && p[at] != r->other) {
            at++;
        }
        return at < text.n ? at : SIZE_MAX;
    case FIRST_BITMAP:
        while (at < text.n && !(r->bitmap[p[at] / 8] >> p[at] % 8 & 1)) {
            at++;
        }
        return at < text.n ? at : SIZE_MAX;
    case FIRST_LINE:
        while (at > 0 && at <= text.n && p[at - 1] != '\n') {
            at++;
        }
        break;
    case FIRST_ONLY:
        return at == from ? at : SIZE_MAX;
    default:
        break;
    }
    return at <= text.n ? at : SIZE_MAX;
}

/* Start positions are between characters. */
static size_t after_places(slice text, size_t at) {
    at += PLACES;
    while (at < text.n && ((unsigned char)text.p[at] & 0xC0) == 0x80) {
        at++;
    }
    return at;
}

static void take_groups(const query_regex *r, const char *text, int n, slice groups[REGEX_GROUPS_MAX]) {
    const size_t *ends = pcre2_get_ovector_pointer(r->found);
    for (unsigned i = 0; i <= query_regex_groups(r); i++) {
        bool took_part = (int)i < n && ends[2 * i] != PCRE2_UNSET && ends[2 * i] <= ends[2 * i + 1];
        groups[i] = took_part ? slice_of(text + ends[2 * i], ends[2 * i + 1] - ends[2 * i]) : SLICE_EMPTY;
    }
}

regex_answer query_regex_find(query_context *c, query_regex *r, slice text, size_t from, slice groups[REGEX_GROUPS_MAX]) {
    const unsigned us_steps = 100; /* a step is about 10 ns */
    text = text.n ? text : SLICE_LIT("");
    int64_t before = clock_monotonic_us(&clock_system);
    for (size_t at = from; (at = next_place(r, text, at, from)) != SIZE_MAX; at = after_places(text, at)) {
        pcre2_set_offset_limit(r->limits, at + PLACES - 1);
        int n = pcre2_match(r->code, (PCRE2_SPTR)text.p, text.n, at, PCRE2_NO_UTF_CHECK, r->found, r->limits);
        int64_t now = clock_monotonic_us(&clock_system);
        bool in_time = function_spend(c, 10 + (uint64_t)(now - before) * us_steps);
        before = now;
        if (!in_time || (n < 0 && n != PCRE2_ERROR_NOMATCH)) {
            return REGEX_TOO_LONG;
        }
        if (n >= 0) {
            if (groups) {
                take_groups(r, text.p, n, groups);
            }
            return REGEX_YES;
        }
    }
    return REGEX_NO;
}
