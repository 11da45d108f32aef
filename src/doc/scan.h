/* scan.h — finding the next special byte, sixteen bytes at a time with SSE2, else eight. For this folder. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#ifdef __SSE2__
#include <emmintrin.h>

#define SCAN_STEP 16

static inline unsigned scan_mask_zero(const char *p) {
    return (unsigned)_mm_movemask_epi8(_mm_cmpeq_epi8(_mm_loadu_si128((const __m128i *)(const void *)p), _mm_setzero_si128()));
}

/* Quote, backslash, control bytes. */
static inline unsigned scan_mask_escape(const char *p) {
    __m128i v = _mm_loadu_si128((const __m128i *)(const void *)p);
    __m128i low = _mm_cmpeq_epi8(_mm_min_epu8(v, _mm_set1_epi8(0x1F)), v);
    __m128i hit = _mm_or_si128(_mm_cmpeq_epi8(v, _mm_set1_epi8('"')), _mm_cmpeq_epi8(v, _mm_set1_epi8('\\')));
    return (unsigned)_mm_movemask_epi8(_mm_or_si128(hit, low));
}

/* The same, and all bytes that are not ASCII: as signed bytes, those are less than a blank too. */
static inline unsigned scan_mask_special(const char *p) {
    __m128i v = _mm_loadu_si128((const __m128i *)(const void *)p);
    __m128i low = _mm_cmplt_epi8(v, _mm_set1_epi8(0x20));
    __m128i hit = _mm_or_si128(_mm_cmpeq_epi8(v, _mm_set1_epi8('"')), _mm_cmpeq_epi8(v, _mm_set1_epi8('\\')));
    return (unsigned)_mm_movemask_epi8(_mm_or_si128(hit, low));
}

#define SCAN_FIRST(mask) ((unsigned)__builtin_ctz(mask))

static inline bool scan_is_plain(__m128i v, bool is_key) {
    __m128i low = _mm_cmpeq_epi8(_mm_min_epu8(v, _mm_set1_epi8(0x1F)), v);
    __m128i hit = _mm_or_si128(_mm_cmpeq_epi8(v, _mm_set1_epi8('"')), _mm_cmpeq_epi8(v, _mm_set1_epi8('\\')));
    if (is_key) {
        hit = _mm_or_si128(hit, _mm_cmpeq_epi8(v, _mm_set1_epi8((char)0xC0)));
    }
    return _mm_movemask_epi8(_mm_or_si128(hit, low)) == 0;
}

/* Copies n bytes; false if one of them needs escaping (then the copy must be discarded). The last bytes are copied by a step that overlaps
 * the previous one, so that no byte outside is touched. */
static inline bool scan_copy_plain(char *to, const char *from, size_t n, bool is_key) {
    if (n >= 16) {
        size_t last = n - 16;
        for (size_t i = 0; i < last; i += 16) {
            __m128i v = _mm_loadu_si128((const __m128i *)(const void *)(from + i));
            _mm_storeu_si128((__m128i *)(void *)(to + i), v);
            if (!scan_is_plain(v, is_key)) {
                return false;
            }
        }
        __m128i v = _mm_loadu_si128((const __m128i *)(const void *)(from + last));
        _mm_storeu_si128((__m128i *)(void *)(to + last), v);
        return scan_is_plain(v, is_key);
    }
    uint64_t head = 0x2020202020202020;
    uint64_t tail = head;
    if (n >= 8) {
        memcpy(&head, from, 8);
        memcpy(&tail, from + n - 8, 8);
        memcpy(to, &head, 8);
        memcpy(to + n - 8, &tail, 8);
    } else if (n >= 4) {
        memcpy(&head, from, 4);
        memcpy(&tail, from + n - 4, 4);
        memcpy(to, &head, 4);
        memcpy(to + n - 4, &tail, 4);
    } else if (n) {
        memcpy(&head, from, 1);
        memcpy((char *)&head + 1, from + n / 2, 1);
        memcpy((char *)&head + 2, from + n - 1, 1);
        to[0] = from[0];
        to[n / 2] = from[n / 2];
        to[n - 1] = from[n - 1];
    }
    return scan_is_plain(_mm_set_epi64x((int64_t)tail, (int64_t)head), is_key);
}

#else /* eight bytes in one word; masks have the top bit set for each special byte; only the lowest set bit is reliable */
#include <endian.h>

#define SCAN_STEP 8
#define SCAN_ONES 0x0101010101010101ULL
#define SCAN_TOPS 0x8080808080808080ULL

static inline uint64_t scan_load(const char *p) {
    uint64_t v;
    memcpy(&v, p, sizeof v);
    return le64toh(v);
}

static inline uint64_t scan_equal(uint64_t v, unsigned char c) {
    uint64_t x = v ^ (SCAN_ONES * c);
    return (x - SCAN_ONES) & ~x & SCAN_TOPS;
}

static inline uint64_t scan_mask_zero(const char *p) {
    return scan_equal(scan_load(p), 0);
}

static inline uint64_t scan_mask_escape(const char *p) {
    uint64_t v = scan_load(p);
    return ((v - SCAN_ONES * 0x20) & ~v & SCAN_TOPS) | scan_equal(v, '"') | scan_equal(v, '\\');
}

static inline uint64_t scan_mask_special(const char *p) {
    return scan_mask_escape(p) | (scan_load(p) & SCAN_TOPS);
}

#define SCAN_FIRST(mask) ((unsigned)__builtin_ctzll(mask) / 8)

static inline bool scan_copy_plain(char *to, const char *from, size_t n, bool is_key) {
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)from[i];
        if (c < 0x20 || c == '"' || c == '\\' || (is_key && c == 0xC0)) {
            return false;
        }
        to[i] = (char)c;
    }
    return true;
}
#endif

#define SCAN_LOOP(p, end, mask_of, wanted)                                                                                                 \
    for (; (end) - (p) >= SCAN_STEP; (p) += SCAN_STEP) {                                                                                   \
        __typeof__(mask_of(p)) mask_ = mask_of(p);                                                                                         \
        if (mask_) {                                                                                                                       \
            return (p) + SCAN_FIRST(mask_);                                                                                                \
        }                                                                                                                                  \
    }                                                                                                                                      \
    while ((p) < (end) && !(wanted)) {                                                                                                     \
        (p)++;                                                                                                                             \
    }                                                                                                                                      \
    return (p)

/* Each returns the position of the first matching byte, or `end`. */
static inline const char *scan_zero(const char *p, const char *end) {
    SCAN_LOOP(p, end, scan_mask_zero, *p == 0);
}

static inline const char *scan_escape(const char *p, const char *end) {
    SCAN_LOOP(p, end, scan_mask_escape, (unsigned char)*p < 0x20 || *p == '"' || *p == '\\');
}

static inline const char *scan_special(const char *p, const char *end) {
    SCAN_LOOP(p, end, scan_mask_special, (signed char)*p < 0x20 || *p == '"' || *p == '\\');
}
