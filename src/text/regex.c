#include "text/regex.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/memory.h"

enum {
    PATTERN_BYTES_MAX = 32 * 1024,
    BACKTRACKS_MAX = 1000000, /* from one start position */
    DEPTH_MAX = 20000,
    HEAP_KB_MAX = 4 * 1024,
    PLACES = 16, /* start positions tried at a time, in bytes */
};

/* What PCRE2 knows about the first byte of a match. */
typedef enum first_kind { FIRST_ANY, FIRST_BYTE, FIRST_BITMAP, FIRST_LINE, FIRST_ONLY } first_kind;

struct text_regex {
    pcre2_code *code;
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

static void learn_first(text_regex *r) {
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

/* Stores why PCRE2 refused a pattern. */
static bool invalid(arena *a, int code, size_t at, slice *reason_out) {
    char text[160];
    pcre2_get_error_message(code, (PCRE2_UCHAR *)text, sizeof text);
    *reason_out = arena_printf(a, "%s at offset %zu", text, at);
    return false;
}

bool text_regex_compile(arena *a, slice pattern, slice modifiers, const text_regex **regex_out, slice *reason_out) {
    uint32_t options;
    int code;
    size_t at;
    if (pattern.n > PATTERN_BYTES_MAX || !options_of(modifiers, &options) || (pattern.n && memmem(pattern.p, pattern.n, "(*", 2))) {
        *reason_out = pattern.n > PATTERN_BYTES_MAX ? SLICE_LIT("pattern is too large") : SLICE_LIT("unknown option or verb");
        return false;
    }
    text_regex *r = arena_new(a, text_regex);
    pcre2_general_context *memory = pcre2_general_context_create(allocate, release, a);
    const char *p = pattern.n ? pattern.p : "";
    r->code = pcre2_compile((PCRE2_SPTR)p, pattern.n, options, &code, &at, pcre2_compile_context_create(memory));
    if (!r->code) {
        return invalid(a, code, at, reason_out);
    }
    pcre2_pattern_info(r->code, PCRE2_INFO_CAPTURECOUNT, &r->groups);
    learn_first(r);
    *regex_out = r;
    return true;
}

unsigned text_regex_groups(const text_regex *r) {
    return r->groups < TEXT_REGEX_GROUPS_MAX - 1 ? r->groups : TEXT_REGEX_GROUPS_MAX - 1;
}

/* ---- working memory: one per thread, made on first use ---- */

typedef struct scratch {
    pcre2_match_data *found;
    pcre2_match_context *limits;
    unsigned careful; /* searches for which time is measured as the thread's own, see `stopwatch` */
} scratch;

static pthread_key_t scratch_key;
static pthread_once_t scratch_once = PTHREAD_ONCE_INIT;

static void free_scratch(void *p) {
    scratch *s = p;
    pcre2_match_data_free(s->found);
    pcre2_match_context_free(s->limits);
    free(s);
}

static void make_key(void) {
    if (pthread_key_create(&scratch_key, free_scratch) != 0) {
        abort();
    }
}

static scratch *scratch_of_thread(void) {
    pthread_once(&scratch_once, make_key);
    scratch *s = pthread_getspecific(scratch_key);
    if (!s) {
        s = mem_zero(sizeof *s);
        s->found = pcre2_match_data_create(TEXT_REGEX_GROUPS_MAX, NULL);
        s->limits = pcre2_match_context_create(NULL);
        if (!s->found || !s->limits || pthread_setspecific(scratch_key, s) != 0) {
            abort();
        }
        pcre2_set_match_limit(s->limits, BACKTRACKS_MAX);
        pcre2_set_depth_limit(s->limits, DEPTH_MAX);
        pcre2_set_heap_limit(s->limits, HEAP_KB_MAX);
    }
    return s;
}

/* ---- matching ---- */

/* The first position from `at` on where a match could begin; SIZE_MAX: none. PCRE2 does the same search, but would scan all the rest of the
 * text each time. */
static size_t next_place(const text_regex *r, slice text, size_t at, size_t from) {
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

static void take_groups(const text_regex *r, const scratch *s, const char *text, int n, slice groups[TEXT_REGEX_GROUPS_MAX]) {
    const size_t *ends = pcre2_get_ovector_pointer(s->found);
    n = n ? n : TEXT_REGEX_GROUPS_MAX; /* 0: there are more groups than places for them */
    for (unsigned i = 0; i <= text_regex_groups(r); i++) {
        bool took_part = (int)i < n && ends[2 * i] != PCRE2_UNSET && ends[2 * i] <= ends[2 * i + 1];
        groups[i] = took_part ? slice_of(text + ends[2 * i], ends[2 * i + 1] - ends[2 * i]) : SLICE_EMPTY;
    }
}

/* ---- paying ---- */

/* Measures the time of matching. The wall clock is quick to read, but runs on while others have the processor. So once a search seems slow,
 * this thread's next searches are measured by the time that the thread itself ran; the slow one pays a moderate price. */
typedef struct stopwatch {
    scratch *scratch;
    bool careful;
    int64_t before_us;
} stopwatch;

enum { SLOW_US = 1000, CAREFUL_SEARCHES = 1000 };

static int64_t clock_us(bool careful) {
    struct timespec now;
    if (!careful) {
        return clock_monotonic_us(&clock_system);
    }
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static stopwatch stopwatch_start(scratch *s) {
    bool careful = s->careful > 0;
    s->careful -= careful;
    return (stopwatch){s, careful, clock_us(careful)};
}

/* Microseconds since the last call. */
static int64_t stopwatch_lap(stopwatch *w) {
    int64_t now = clock_us(w->careful), lap = now - w->before_us;
    w->before_us = now;
    if (w->careful || lap <= SLOW_US) {
        return lap;
    }
    w->scratch->careful = CAREFUL_SEARCHES;
    w->careful = true;
    w->before_us = clock_us(true);
    return SLOW_US;
}

static bool spend(uint64_t *steps, uint64_t n) {
    if (!steps) {
        return true;
    }
    *steps = *steps > n ? *steps - n : 0;
    return *steps > 0;
}

text_regex_answer text_regex_find(const text_regex *r, slice text, size_t from, slice groups[TEXT_REGEX_GROUPS_MAX], uint64_t *steps) {
    const unsigned us_steps = 100; /* a step is about 10 ns */
    scratch *s = scratch_of_thread();
    stopwatch watch = stopwatch_start(s);
    text = text.n ? text : SLICE_LIT("");
    for (size_t at = from; (at = next_place(r, text, at, from)) != SIZE_MAX; at = after_places(text, at)) {
        pcre2_set_offset_limit(s->limits, at + PLACES - 1);
        int n = pcre2_match(r->code, (PCRE2_SPTR)text.p, text.n, at, PCRE2_NO_UTF_CHECK, s->found, s->limits);
        bool in_time = spend(steps, 10 + (uint64_t)stopwatch_lap(&watch) * us_steps);
        if (!in_time || (n < 0 && n != PCRE2_ERROR_NOMATCH)) {
            return REGEX_TOO_LONG;
        }
        if (n >= 0) {
            if (groups) {
                take_groups(r, s, text.p, n, groups);
            }
            return REGEX_YES;
        }
    }
    return REGEX_NO;
}
