#include "text/text.h"

#include <unicase.h>

enum { REPLACEMENT = 0xFFFD, HALF_BYTES = 3 };

/* ---- characters ---- */

static bool is_tail(const char *p) {
    return ((unsigned char)*p & 0xC0) == 0x80;
}

unsigned text_decode(const char *p, const char *end, uint32_t *character_out) {
    unsigned char first = (unsigned char)*p;
    unsigned n = first < 0x80 ? 1 : first < 0xC2 ? 0 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : first < 0xF5 ? 4 : 0;
    *character_out = TEXT_INVALID;
    if (n == 0 || (size_t)(end - p) < n) {
        return 1;
    }
    uint32_t character = n == 1 ? first : first & (0xFFu >> (n + 1));
    for (unsigned i = 1; i < n; i++) {
        if (!is_tail(p + i)) {
            return 1;
        }
        character = character << 6 | ((unsigned char)p[i] & 0x3F);
    }
    bool overlong = (n == 3 && character < 0x800) || (n == 4 && character < 0x10000);
    if (overlong || character > 0x10FFFF || (character >= 0xD800 && character < 0xE000)) {
        return 1;
    }
    *character_out = character;
    return n;
}

unsigned text_encode(char *p, uint32_t character) {
    if (character < 0x80) {
        p[0] = (char)character;
        return 1;
    }
    unsigned n = character < 0x800 ? 2 : character < 0x10000 ? 3 : 4;
    for (unsigned i = n - 1; i > 0; i--) {
        p[i] = (char)(0x80 | (character & 0x3F));
        character >>= 6;
    }
    p[0] = (char)(0xF00u >> n | character);
    return n;
}

bool text_is_ascii(slice s) {
    uint64_t all = 0;
    size_t i = 0;
    for (; i + 8 <= s.n; i += 8) {
        uint64_t word;
        memcpy(&word, s.p + i, 8);
        all |= word;
    }
    for (; i < s.n; i++) {
        all |= (unsigned char)s.p[i];
    }
    return (all & 0x8080808080808080) == 0;
}

bool text_is_valid(slice s) {
    uint32_t character = 0;
    if (text_is_ascii(s)) {
        return true;
    }
    for (const char *p = s.p, *end = s.p + s.n; p < end && character != TEXT_INVALID;) {
        p += text_decode(p, end, &character);
    }
    return character != TEXT_INVALID;
}

/* ---- units ---- */

static unsigned units_of(uint32_t character) {
    return character != TEXT_INVALID && character > 0xFFFF ? 2 : 1;
}

size_t text_unit_at(slice s, size_t byte) {
    return text_units(slice_of(s.p, byte < s.n ? byte : s.n));
}

size_t text_units(slice s) {
    if (text_is_ascii(s)) {
        return s.n;
    }
    size_t units = 0;
    uint32_t character;
    for (const char *p = s.p, *end = s.p + s.n; p < end; units += units_of(character)) {
        p += text_decode(p, end, &character);
    }
    return units;
}

/* Finds the character that contains a unit; *half_out: the unit is its second one. */
static const char *seek(slice s, size_t unit, bool *half_out) {
    const char *p = s.p, *end = s.p + s.n;
    *half_out = false;
    while (unit > 0 && p < end) {
        uint32_t character;
        unsigned n = text_decode(p, end, &character);
        if (unit < units_of(character)) {
            *half_out = true;
            return p;
        }
        unit -= units_of(character);
        p += n;
    }
    return p;
}

size_t text_byte_at(slice s, size_t unit) {
    bool half;
    if (unit >= s.n) { /* a unit has at least one byte */
        return s.n;
    }
    return text_is_ascii(slice_of(s.p, unit)) ? unit : (size_t)(seek(s, unit, &half) - s.p);
}

slice text_part(arena *a, slice s, size_t start, size_t n) {
    bool half_first, half_last;
    if (start >= s.n || n == 0) {
        return slice_of(s.p, 0);
    }
    n = n < s.n - start ? n : s.n - start;
    if (text_is_ascii(slice_of(s.p, start + n))) {
        return slice_of(s.p + start, n);
    }
    const char *from = seek(s, start, &half_first), *to = seek(s, start + n, &half_last);
    if (!half_first && !half_last) {
        return slice_of(from, (size_t)(to - from));
    }
    from += half_first ? 4 : 0;
    size_t whole = to > from ? (size_t)(to - from) : 0;
    char *made = arena_alloc_aligned(a, whole + 2 * HALF_BYTES, 1), *p = made;
    p += half_first ? text_encode(p, REPLACEMENT) : 0;
    if (whole) {
        memcpy(p, from, whole);
    }
    p += whole;
    p += half_last ? text_encode(p, REPLACEMENT) : 0;
    return slice_of(made, (size_t)(p - made));
}

/* ---- case ---- */

static uint32_t lower_of(uint32_t c) {
    return c < 0x80 ? (c >= 'A' && c <= 'Z' ? c + 32 : c) : uc_tolower(c);
}

static uint32_t upper_of(uint32_t c) {
    return c < 0x80 ? (c >= 'a' && c <= 'z' ? c - 32 : c) : uc_toupper(c);
}

/* Upper case first, then lower case: some small letters, such as dotless i and long s, have ASCII capitals. */
static uint32_t fold_of(uint32_t c) {
    return c < 0x80 ? lower_of(c) : uc_tolower(uc_toupper(c));
}

/* A mapped character has at most half again as many bytes. */
static slice map(arena *a, slice s, uint32_t (*to)(uint32_t)) {
    char *made = arena_alloc_aligned(a, s.n + s.n / 2 + 4, 1), *out = made;
    for (const char *p = s.p, *end = s.p + s.n; p < end;) {
        uint32_t character;
        unsigned n = text_decode(p, end, &character);
        if (character == TEXT_INVALID) {
            *out++ = *p;
        } else {
            out += text_encode(out, to(character));
        }
        p += n;
    }
    return slice_of(made, (size_t)(out - made));
}

static slice lower_ascii(arena *a, slice s) {
    char *made = arena_alloc_aligned(a, s.n + 1, 1);
    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];
        made[i] = (char)(c >= 'A' && c <= 'Z' ? c + 32 : c);
    }
    return slice_of(made, s.n);
}

static slice upper_ascii(arena *a, slice s) {
    char *made = arena_alloc_aligned(a, s.n + 1, 1);
    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];
        made[i] = (char)(c >= 'a' && c <= 'z' ? c - 32 : c);
    }
    return slice_of(made, s.n);
}

slice text_lower(arena *a, slice s) {
    return text_is_ascii(s) ? lower_ascii(a, s) : map(a, s, lower_of);
}

slice text_upper(arena *a, slice s) {
    return text_is_ascii(s) ? upper_ascii(a, s) : map(a, s, upper_of);
}

slice text_fold(arena *a, slice s) {
    return text_is_ascii(s) ? lower_ascii(a, s) : map(a, s, fold_of);
}

bool text_equal_nocase(slice a, slice b) {
    if (a.n == 0 || b.n == 0) {
        return a.n == b.n;
    }
    const char *pa = a.p, *pb = b.p, *end_a = a.p + a.n, *end_b = b.p + b.n;
    while (pa < end_a && pb < end_b) {
        uint32_t ca, cb;
        const char *at_a = pa, *at_b = pb;
        pa += text_decode(pa, end_a, &ca);
        pb += text_decode(pb, end_b, &cb);
        bool valid = ca != TEXT_INVALID && cb != TEXT_INVALID;
        if (ca != cb ? !valid || fold_of(ca) != fold_of(cb) : !valid && *at_a != *at_b) {
            return false;
        }
    }
    return pa == end_a && pb == end_b;
}

/* ---- others ---- */

slice text_reverse(arena *a, slice s) {
    if (s.n == 0) {
        return s;
    }
    char *made = arena_alloc_aligned(a, s.n + 1, 1), *out = made + s.n;
    for (const char *p = s.p, *end = s.p + s.n; p < end;) {
        uint32_t character;
        unsigned n = text_decode(p, end, &character);
        out -= n;
        memcpy(out, p, n);
        p += n;
    }
    return slice_of(made, s.n);
}

static bool is_blank(uint32_t c) {
    return (c >= 9 && c <= 13) || c == 0x20 || c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 ||
           c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

/* A set of characters as bits, in pages of 256 characters; empty pages are NULL. */
typedef struct char_set {
    uint64_t *pages[0x110000 / 256];
} char_set;

static char_set *set_of(arena *a, slice characters) {
    char_set *set = arena_new(a, char_set);
    for (const char *p = characters.p, *end = p + characters.n; p < end;) {
        uint32_t c;
        p += text_decode(p, end, &c);
        if (c != TEXT_INVALID) {
            uint64_t **page = &set->pages[c / 256];
            *page = *page ? *page : arena_array(a, uint64_t, 4);
            (*page)[c % 256 / 64] |= (uint64_t)1 << c % 64;
        }
    }
    return set;
}

static bool in_set(const char_set *set, slice few, uint32_t c) {
    if (c == TEXT_INVALID) {
        return false;
    }
    if (set) {
        return set->pages[c / 256] && (set->pages[c / 256][c % 256 / 64] >> c % 64 & 1);
    }
    for (const char *p = few.p, *end = p + few.n; p < end;) {
        uint32_t each;
        p += text_decode(p, end, &each);
        if (each == c) {
            return true;
        }
    }
    return false;
}

/* The character before p. */
static const char *before(const char *start, const char *p, uint32_t *character_out) {
    for (const char *at = p - 1; at >= start && p - at <= 4; at--) {
        if (!is_tail(at) && at + text_decode(at, p, character_out) == p) {
            return at;
        }
    }
    *character_out = TEXT_INVALID;
    return p - 1;
}

slice text_trim(arena *a, slice s, const slice *set, text_side side) {
    enum { FEW = 32 };
    if (s.n == 0 || (set && set->n == 0)) {
        return s;
    }
    const char_set *large = set && set->n > FEW ? set_of(a, *set) : NULL;
    const char *p = s.p, *end = s.p + s.n;
    uint32_t c;
    while (side & TEXT_LEFT && p < end) {
        unsigned n = text_decode(p, end, &c);
        if (set ? !in_set(large, *set, c) : !is_blank(c)) {
            break;
        }
        p += n;
    }
    while (side & TEXT_RIGHT && p < end) {
        const char *at = before(p, end, &c);
        if (set ? !in_set(large, *set, c) : !is_blank(c)) {
            break;
        }
        end = at;
    }
    return slice_of(p, (size_t)(end - p));
}

size_t text_find(slice s, slice needle) {
    if (needle.n == 0) {
        return 0;
    }
    const char *at = needle.n > s.n ? NULL : needle.n == 1 ? memchr(s.p, needle.p[0], s.n) : memmem(s.p, s.n, needle.p, needle.n);
    return at ? (size_t)(at - s.p) : SIZE_MAX;
}

static slice backwards(arena *a, slice s) {
    char *made = arena_alloc_aligned(a, s.n + 1, 1);
    for (size_t i = 0; i < s.n; i++) {
        made[i] = s.p[s.n - 1 - i];
    }
    return slice_of(made, s.n);
}

static size_t find_last_short(slice s, slice needle) {
    for (size_t n = s.n - needle.n + 1; n > 0;) {
        const char *at = memrchr(s.p, needle.p[0], n);
        if (!at || memcmp(at, needle.p, needle.n) == 0) {
            return at ? (size_t)(at - s.p) : SIZE_MAX;
        }
        n = (size_t)(at - s.p);
    }
    return SIZE_MAX;
}

size_t text_find_last(arena *a, slice s, slice needle) {
    enum { SHORT = 16 };
    if (needle.n == 0 || needle.n > s.n) {
        return needle.n == 0 ? s.n : SIZE_MAX;
    }
    if (needle.n <= SHORT) {
        return find_last_short(s, needle);
    }
    size_t at = text_find(backwards(a, s), backwards(a, needle));
    return at == SIZE_MAX ? at : s.n - needle.n - at;
}
