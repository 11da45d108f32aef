#include "partition/epk.h"

#include <assert.h>
#include <endian.h>

#include "base/hex.h"
#include "partition/murmur.h"
#include "partition/token.h"

/* Wide arithmetic on V2 hashes; gcc and clang have it on every 64-bit machine. */
__extension__ typedef unsigned __int128 u128;

static const u128 v2_max = ((u128)0x3FFFFFFFFFFFFFFFu << 64) | 0xFFFFFFFFFFFFFFFFu;
static const uint64_t v1_max = 0xFFFFFFFFu;

enum {
    V2_BYTES = 16,
    V1_TEXT_UNITS = 100, /* UTF-16 units of a string that are hashed */
    V1_TEXT_BYTES = 100, /* bytes of a string that are appended; one more if it is longer */
    V1_NUMBER_BYTES = 10,
};

static_assert(V1_NUMBER_BYTES + 1 + V1_TEXT_BYTES + 1 <= EPK_BYTES_MAX, "a V1 key fits");
static_assert(V2_BYTES * LIMIT_KEY_COMPONENTS + 1 <= EPK_BYTES_MAX, "a MultiHash prefix's end fits");

static void add_byte(epk *e, unsigned byte) {
    assert(e->n < EPK_BYTES_MAX);
    e->bytes[e->n++] = (unsigned char)byte;
}

epk epk_min(void) {
    return (epk){0};
}

epk epk_max(void) {
    return (epk){.n = 1, .bytes = {0xFF}};
}

/* ---- the input of the hashes ---- */

/* Appends the type byte, then for numbers the IEEE bits little-endian, for strings the bytes and a terminator (00 in V1, FF in V2). A typed
 * value that the SQL API can represent is hashed as the SQL API does; others as 09 and their spelling (doc/order.h), which is the same for
 * equal values. */
static void add_hashed(buf *out, const pkey_value *value, char terminator) {
    pkey_value plain;
    if (value->type == PKEY_TYPED) {
        if (pkey_plain(value, &plain)) {
            add_hashed(out, &plain, terminator);
        } else {
            pkey_encode(out, &(pkey){.n = 1, .values = {*value}});
        }
        return;
    }
    buf_add_byte(out, (char)value->type);
    if (value->type == PKEY_NUMBER) {
        uint64_t bits = 0;
        memcpy(&bits, &value->number, sizeof bits);
        bits = htole64(bits);
        buf_add(out, &bits, sizeof bits);
    } else if (value->type == PKEY_STRING) {
        buf_add_slice(out, value->text);
        buf_add_byte(out, terminator);
    }
}

/* ---- V2 ---- */

static void add_u128(epk *e, u128 v) {
    const uint64_t halves[] = {htobe64((uint64_t)(v >> 64)), htobe64((uint64_t)v)};
    assert(e->n + V2_BYTES <= EPK_BYTES_MAX);
    memcpy(e->bytes + e->n, halves, sizeof halves);
    e->n = (uint8_t)(e->n + V2_BYTES);
}

static u128 v2_of(slice hashed) {
    hash128 h = hash_murmur3_128(hashed);
    return ((u128)h.h2 << 64 | h.h1) & v2_max;
}

static u128 hash_v2_large(const pkey_value *values, size_t n) {
    buf bytes = buf_init(BUF_NO_LIMIT);
    for (size_t i = 0; i < n; i++) {
        add_hashed(&bytes, &values[i], '\xFF');
    }
    u128 hash = v2_of(buf_view(&bytes));
    buf_free(&bytes);
    return hash;
}

static u128 hash_v2(const pkey_value *values, size_t n) {
    char room[LIMIT_KEY_BYTES + 64]; /* enough for any key within limits */
    buf bytes = {.p = room, .cap = sizeof room, .max = sizeof room};
    for (size_t i = 0; i < n; i++) {
        add_hashed(&bytes, &values[i], '\xFF');
    }
    return buf_ok(&bytes) ? v2_of(buf_view(&bytes)) : hash_v2_large(values, n);
}

void epk_hash_v2(const pkey_value *values, size_t n, epk *epk_out) {
    *epk_out = epk_min();
    add_u128(epk_out, hash_v2(values, n));
}

/* ---- V1 ---- */

/* Appends 05, eight bits, then groups of seven bits whose low bit says that another group follows; trailing zeros are left out. Byte order
 * is number order, except that -0 and 0 are equal. */
static void add_number_v1(epk *e, double number) {
    uint64_t bits = 0;
    memcpy(&bits, &number, sizeof bits);
    uint64_t left = bits >> 63 ? ~bits + 1 : bits ^ (uint64_t)1 << 63;
    add_byte(e, PKEY_NUMBER);
    add_byte(e, (unsigned)(left >> 56));
    left <<= 8;
    do {
        unsigned group = (unsigned)(left >> 56) & 0xFE;
        left <<= 7;
        add_byte(e, left ? group | 1 : group);
    } while (left);
}

/* The hash at the beginning of a V1 bound; if it is malformed or out of range, 0 or v1_max, whichever is nearer. */
static uint64_t read_number_v1(const epk *e) {
    if (e->n && e->bytes[0] > PKEY_NUMBER) {
        return v1_max;
    }
    if (e->n < 3 || e->bytes[0] < PKEY_NUMBER) {
        return 0;
    }
    uint64_t payload = (uint64_t)e->bytes[1] << 56;
    int shift = 56;
    for (size_t i = 2; i < e->n && shift > 0; i++) {
        shift -= 7;
        payload |= (uint64_t)(e->bytes[i] >> 1) << shift;
        if ((e->bytes[i] & 1) == 0) {
            break;
        }
    }
    uint64_t bits = payload >> 63 ? payload ^ (uint64_t)1 << 63 : ~(payload - 1);
    double number = 0;
    memcpy(&number, &bits, sizeof number);
    return !(number > 0) ? 0 : number < (double)v1_max ? (uint64_t)number : v1_max;
}

/* Adds one to each byte but FF, so that the terminating 00 sorts below all. */
static void add_text_v1(epk *e, slice text) {
    bool whole = text.n <= V1_TEXT_BYTES;
    size_t n = whole ? text.n : V1_TEXT_BYTES + 1;
    add_byte(e, PKEY_STRING);
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)text.p[i];
        add_byte(e, c < 0xFF ? c + 1u : c);
    }
    if (whole) {
        add_byte(e, 0);
    }
}

/* Truncates to V1_TEXT_UNITS UTF-16 units. If that splits a surrogate pair, the lone half becomes U+FFFD, as in the service's encoder. */
static slice cut_text_v1(slice text, char room[3 * V1_TEXT_UNITS]) {
    size_t units = 0;
    size_t at = 0;
    bool torn = false;
    while (at < text.n && units < V1_TEXT_UNITS) {
        unsigned char c = (unsigned char)text.p[at];
        size_t n = c < 0x80 ? 1 : c < 0xE0 ? 2 : c < 0xF0 ? 3 : 4;
        torn = n == 4 && units + 1 == V1_TEXT_UNITS;
        if (torn) {
            break;
        }
        units += n == 4 ? 2 : 1;
        at = at + n < text.n ? at + n : text.n;
    }
    if (!torn) {
        return slice_of(text.p, at);
    }
    memcpy(room, text.p, at);
    memcpy(room + at, "\xEF\xBF\xBD", 3);
    return slice_of(room, at + 3);
}

void epk_hash_v1(const pkey_value *value, epk *epk_out) {
    char cut_room[3 * V1_TEXT_UNITS];
    char hash_room[3 * V1_TEXT_UNITS + 16];
    buf hashed = {.p = hash_room, .cap = sizeof hash_room, .max = sizeof hash_room};
    pkey_value cut = *value;
    if (cut.type == PKEY_STRING) {
        cut.text = cut_text_v1(value->text, cut_room);
    }
    add_hashed(&hashed, &cut, 0);
    assert(buf_ok(&hashed));
    *epk_out = epk_min();
    add_number_v1(epk_out, hash_murmur3_32(buf_view(&hashed)));
    if (cut.type == PKEY_STRING) {
        add_text_v1(epk_out, cut.text);
    } else if (cut.type == PKEY_NUMBER) {
        add_number_v1(epk_out, cut.number);
    } else {
        add_byte(epk_out, cut.type);
    }
}

/* ---- keys and prefixes ---- */

/* Two zero bits, the 64 bits of the token from the smallest on, and the last 62 bits of the V2 hash. */
static u128 hash_token(const pkey_definition *definition, const pkey *key) {
    int64_t token;
    u128 hash = hash_v2(key->values, key->n), low = ((u128)1 << 62) - 1;
    return token_of(definition, key, &token) ? (u128)((uint64_t)token ^ (uint64_t)1 << 63) << 62 | (hash & low) : hash;
}

void epk_of(const pkey_definition *definition, const pkey *key, epk *epk_out) {
    size_t n = key->n < definition->n ? key->n : definition->n;
    *epk_out = epk_min();
    if (definition->kind == PKEY_MULTI_HASH) {
        for (size_t i = 0; i < n; i++) {
            add_u128(epk_out, hash_v2(&key->values[i], 1));
        }
    } else if (n && definition->tokens) {
        add_u128(epk_out, hash_token(definition, key));
    } else if (n && definition->version == 2) {
        epk_hash_v2(key->values, n, epk_out);
    } else if (n) {
        epk_hash_v1(&key->values[0], epk_out);
    }
}

void epk_prefix_range(const pkey_definition *definition, const pkey *key, epk *min_out, epk *max_out) {
    epk_of(definition, key, min_out);
    *max_out = *min_out;
    add_byte(max_out, 0xFF);
}

/* Skips a V1 number: type byte, eight bits, groups of seven bits up to one whose low bit is 0. */
static size_t skip_number_v1(slice bytes, size_t at) {
    at += 2;
    while (at < bytes.n && bytes.p[at] & 1) {
        at++;
    }
    return at + 1;
}

/* The hash as a number, then a number, a type byte or a text. A text ends at its zero byte, or after V1_TEXT_BYTES + 1 bytes. */
static size_t length_v1(slice bytes) {
    size_t at = skip_number_v1(bytes, 0);
    if (at >= bytes.n || bytes.p[at] < PKEY_NUMBER) {
        return at + 1;
    }
    if (bytes.p[at] == PKEY_NUMBER) {
        return skip_number_v1(bytes, at);
    }
    size_t most = at + 1 + V1_TEXT_BYTES + 1;
    for (at++; at < most; at++) {
        if (at >= bytes.n || bytes.p[at] == 0) {
            return at + 1;
        }
    }
    return most;
}

size_t epk_length(const pkey_definition *definition, slice bytes) {
    if (definition->kind == PKEY_HASH && definition->version == 1) {
        return definition->n ? length_v1(bytes) : 0;
    }
    return definition->kind == PKEY_MULTI_HASH ? (size_t)definition->n * V2_BYTES : definition->n ? V2_BYTES : 0;
}

/* ---- text ---- */

void epk_write(buf *out, const epk *e) {
    buf_add_hex(out, epk_view(e));
}

bool epk_parse(slice text, epk *epk_out) {
    *epk_out = epk_min();
    if (text.n % 2 || text.n / 2 > EPK_BYTES_MAX) {
        return false;
    }
    for (size_t i = 0; i < text.n; i += 2) {
        int high = hex_digit(text.p[i]);
        int low = hex_digit(text.p[i + 1]);
        if (high < 0 || low < 0) {
            *epk_out = epk_min();
            return false;
        }
        add_byte(epk_out, (unsigned)(high << 4 | low));
    }
    return true;
}

/* ---- arithmetic on bounds ---- */

void epk_boundary(const pkey_definition *definition, uint32_t i, uint32_t n, epk *epk_out) {
    assert(n > 0 && i <= n);
    *epk_out = i == n ? epk_max() : epk_min();
    if (i == 0 || i == n) {
        return;
    }
    if (definition->kind == PKEY_HASH && definition->version == 1) {
        add_number_v1(epk_out, (double)(i * (v1_max / n)));
    } else {
        add_u128(epk_out, i * (v2_max / n));
    }
}

/* One level of a bound as a number: 0 if the level is missing, v2_max for the FF that ends a range. */
static u128 read_level(const epk *e, size_t level) {
    size_t from = level * V2_BYTES;
    if (from < e->n && e->bytes[from] > 0x3F) {
        return v2_max;
    }
    u128 v = 0;
    for (size_t i = from; i < from + V2_BYTES; i++) {
        v = v << 8 | (i < e->n ? e->bytes[i] : 0);
    }
    return v;
}

/* Divides at the first level where the bounds leave room. Bounds [20,40] and [21,10] leave none at the first level, so 20 stays and the
 * second level is divided from 40 up to its end. */
static void part_v2(size_t levels, const epk *min, const epk *max, uint32_t i, uint32_t n, epk *epk_out) {
    for (size_t level = 0; level < levels; level++) {
        u128 low = read_level(min, level);
        u128 high = read_level(max, level);
        if (low == high || low + 1 == high) {
            add_u128(epk_out, low);
            continue;
        }
        high = low > high ? v2_max : high;
        add_u128(epk_out, low + (high - low) / n * i);
        return;
    }
}

bool epk_part(const pkey_definition *definition, const epk *min, const epk *max, uint32_t i, uint32_t n, epk *epk_out) {
    assert(i > 0 && i < n);
    *epk_out = epk_min();
    if (definition->kind == PKEY_HASH && definition->version == 1) {
        uint64_t low = read_number_v1(min), high = read_number_v1(max);
        add_number_v1(epk_out, (double)(low > high ? low : low + (high - low) * i / n));
    } else {
        part_v2(definition->kind == PKEY_MULTI_HASH ? definition->n : 1, min, max, i, n, epk_out);
    }
    return epk_cmp(min, epk_out) < 0 && epk_cmp(epk_out, max) < 0;
}

double epk_position(const pkey_definition *definition, const epk *e) {
    bool v1 = definition->kind == PKEY_HASH && definition->version == 1;
    return v1 ? (double)read_number_v1(e) / (double)v1_max : (double)read_level(e, 0) / (double)v2_max;
}

/* The length of the number at the beginning of a V1 key, encoded by add_number_v1. */
static size_t number_length_v1(const epk *e) {
    size_t n = 2;
    while (n < e->n && e->bytes[n] & 1) {
        n++;
    }
    return n < e->n ? n + 1 : e->n;
}

/* The length up to the end of the first level that differs. */
static size_t differing_length(const epk *left, const epk *right) {
    size_t at = 0;
    while (at < left->n && at < right->n && left->bytes[at] == right->bytes[at]) {
        at++;
    }
    size_t n = (at / V2_BYTES + 1) * V2_BYTES;
    return n < right->n ? n : right->n;
}

void epk_cut(const pkey_definition *definition, const epk *left, const epk *right, epk *cut_out) {
    assert(epk_cmp(left, right) < 0);
    epk cut = *right;
    if (definition->kind == PKEY_MULTI_HASH) {
        cut.n = (uint8_t)differing_length(left, right);
    } else if (definition->version == 1) {
        cut.n = (uint8_t)number_length_v1(right);
    }
    bool between = epk_cmp(left, &cut) < 0;
    *cut_out = between ? cut : *right;
    memset(cut_out->bytes + cut_out->n, 0, (size_t)EPK_BYTES_MAX - cut_out->n);
}

/* ---- bytes ---- */

void epk_put(buf *out, const epk *e) {
    buf_add_byte(out, (char)e->n);
    buf_add_slice(out, epk_view(e));
}

bool epk_take(slice *rest, epk *epk_out) {
    uint64_t n;
    if (!slice_take_be(rest, 1, &n) || n > EPK_BYTES_MAX || rest->n < n) {
        return false;
    }
    *epk_out = (epk){.n = (uint8_t)n};
    memcpy(epk_out->bytes, rest->p, n);
    *rest = slice_skip(*rest, n);
    return true;
}
