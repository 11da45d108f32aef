#include "net/head.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

/* ---- finding the end of a name, of a target, of a value ---- */

static bool is_name(unsigned char c) { /* HTTP allows more, and no client uses it */
    return (unsigned)((c | 0x20) - 'a') < 26u || (unsigned)(c - '0') < 10u || c == '-';
}

static bool is_target(unsigned char c) {
    return c > 0x20 && c < 0x7F && c != '#';
}

static bool is_value(unsigned char c) { /* a tab is allowed too, but rare */
    return c >= 0x20 && c != 0x7F;
}

#ifdef __SSE2__

static __m128i below(__m128i v, unsigned char first, unsigned char count) { /* the bytes from `first` on, `count` of them */
    return _mm_cmplt_epi8(_mm_add_epi8(v, _mm_set1_epi8((char)(0x80 - first))), _mm_set1_epi8((char)(0x80 + count)));
}

static unsigned wrong_in_name(__m128i v) {
    __m128i letter = below(_mm_or_si128(v, _mm_set1_epi8(0x20)), 'a', 26), digit = below(v, '0', 10);
    __m128i good = _mm_or_si128(_mm_or_si128(letter, digit), _mm_cmpeq_epi8(v, _mm_set1_epi8('-')));
    return (unsigned)_mm_movemask_epi8(good) ^ 0xFFFF;
}

static unsigned wrong_in_target(__m128i v) {
    __m128i good = _mm_andnot_si128(_mm_cmpeq_epi8(v, _mm_set1_epi8('#')), below(v, 0x21, 0x7F - 0x21));
    return (unsigned)_mm_movemask_epi8(good) ^ 0xFFFF;
}

static unsigned wrong_in_value(__m128i v) {
    return (unsigned)_mm_movemask_epi8(_mm_or_si128(below(v, 0, 0x20), _mm_cmpeq_epi8(v, _mm_set1_epi8(0x7F))));
}

#define SKIP_SIXTEEN(p, end, wrong)                                                                                                        \
    for (; (end) - (p) >= 16; (p) += 16) {                                                                                                 \
        unsigned mask = wrong(_mm_loadu_si128((const __m128i *)(const void *)(p)));                                                        \
        if (mask) {                                                                                                                        \
            return (p) + __builtin_ctz(mask);                                                                                              \
        }                                                                                                                                  \
    }
#else
#define SKIP_SIXTEEN(p, end, wrong)
#endif

/* Each returns the first byte that is not one of these, or `end`. */

static const char *name_end(const char *p, const char *end) {
    SKIP_SIXTEEN(p, end, wrong_in_name)
    while (p < end && is_name((unsigned char)*p)) {
        p++;
    }
    return p;
}

static const char *target_end(const char *p, const char *end) {
    SKIP_SIXTEEN(p, end, wrong_in_target)
    while (p < end && is_target((unsigned char)*p)) {
        p++;
    }
    return p;
}

static const char *value_end(const char *p, const char *end) {
    SKIP_SIXTEEN(p, end, wrong_in_value)
    while (p < end && is_value((unsigned char)*p)) {
        p++;
    }
    return p;
}

/* ---- the request line ---- */

#define METHOD(text, number)                                                                                                               \
    if (memcmp(p, text " ", sizeof text) == 0) {                                                                                           \
        *method_out = number;                                                                                                              \
        return sizeof text;                                                                                                                \
    }

enum { LEAST_BYTES = sizeof "GET / HTTP/1.1\r\n\r\n" - 1 };

/* The length of the method and the blank; 0: a rare method. There are at least LEAST_BYTES. */
static size_t read_method(const char *p, uint8_t *method_out) {
    METHOD("GET", HTTP_GET)
    METHOD("POST", HTTP_POST)
    METHOD("PUT", HTTP_PUT)
    METHOD("PATCH", HTTP_PATCH)
    METHOD("DELETE", HTTP_DELETE)
    METHOD("HEAD", HTTP_HEAD)
    METHOD("OPTIONS", HTTP_OPTIONS)
    METHOD("MERGE", HTTP_MERGE)
    return 0;
}

/* Returns the beginning of the first field; NULL: an unusual request line. */
static const char *read_request_line(http_framing *f, const char *end, http_head *head) {
    const char *url = f->base + read_method(f->base, &head->method);
    if (url == f->base || *url != '/') {
        return NULL;
    }
    const char *p = target_end(url, end);
    f->url = (http_span){(uint32_t)(url - f->base), (uint32_t)(p - url)};
    slice rest = SLICE_LIT(" HTTP/1.1\r\n");
    bool usual = (size_t)(end - p) >= rest.n && memcmp(p, rest.p, rest.n) == 0 && f->url.n <= f->limits->url_bytes;
    return usual ? p + rest.n : NULL;
}

/* ---- fields ---- */

static bool read_length(slice digits, http_head *head) {
    enum { DIGITS_MAX = 9 };
    if (head->has_length || digits.n == 0 || digits.n > DIGITS_MAX) {
        return false;
    }
    for (size_t i = 0; i < digits.n; i++) {
        unsigned digit = (unsigned)(digits.p[i] - '0');
        if (digit > 9) {
            return false;
        }
        head->length = head->length * 10 + digit;
    }
    head->has_length = true;
    return true;
}

static bool read_connection(slice value, http_head *head) {
    bool close = slice_eq_nocase(value, SLICE_LIT("close"));
    head->closes |= close;
    return close || slice_eq_nocase(value, SLICE_LIT("keep-alive"));
}

/* Net's own fields. */
static bool take_own(http_framing *f, http_own_field own, http_head *head) {
    slice value = slice_of(f->base + f->value.at, f->value.n);
    switch (own) {
    case HTTP_OWN_CONTENT_LENGTH:
        return read_length(value, head);
    case HTTP_OWN_CONNECTION:
        return read_connection(value, head);
    case HTTP_OWN_PROXY_CONNECTION:
    case HTTP_OWN_UPGRADE:
    case HTTP_OWN_TRANSFER_ENCODING:
        return false;
    case HTTP_OWN_NONE:
    case HTTP_OWN_HOST:
    case HTTP_OWN_ORIGIN:
    case HTTP_OWN_EXPECT:
        break;
    }
    return !f->refusal;
}

/* http-parser takes a name that only begins like this for it, and refuses such a field beside a Content-Length. */
static bool begins_like_transfer_encoding(const char *name, size_t n) {
    slice prefix = SLICE_LIT("transfer-encoding");
    return (name[0] | 0x20) == 't' && n > prefix.n && slice_eq_nocase(slice_of(name, prefix.n), prefix);
}

/* Returns the beginning of the next line; NULL: an unusual line. */
static const char *read_field(http_framing *f, const char *name, const char *end, http_head *head) {
    const char *p = name_end(name, end);
    size_t name_n = (size_t)(p - name);
    if (name_n == 0 || p == end || *p != ':') {
        return NULL;
    }
    do {
        p++;
    } while (p < end && *p == ' ');
    const char *value = p, *next = value_end(p, end);
    if (end - next < 2 || memcmp(next, "\r\n", 2) != 0) {
        return NULL;
    }
    const http_name *known = http__name_find(f->names, name, name_n);
    f->fields++;
    if (!known) {
        return begins_like_transfer_encoding(name, name_n) ? NULL : next + 2;
    }
    for (p = next; p > value && p[-1] == ' '; p--) {
    }
    f->value = (http_span){(uint32_t)(value - f->base), (uint32_t)(p - value)};
    bool taken = http__record(f, known) && (!known->own || take_own(f, (http_own_field)known->own, head));
    return taken ? next + 2 : NULL;
}

bool http__head_read(http_framing *f, size_t n, http_head *head_out) {
    const char *end = f->base + n;
    *head_out = (http_head){0};
    const char *p = n >= LEAST_BYTES ? read_request_line(f, end, head_out) : NULL;
    while (p && p < end && *p != '\r') {
        p = read_field(f, p, end, head_out);
    }
    if (!p || end - p < 2 || p[1] != '\n' || !f->host_seen || f->fields > f->limits->fields) {
        return false;
    }
    head_out->n = (uint32_t)(p + 2 - f->base);
    return true;
}
