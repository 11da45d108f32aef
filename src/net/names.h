/* names.h — a hash table of the field names that a front end asks for, and of those that net reads itself. Private to this folder. Made
 * once, then read-only, for any thread. */
#pragma once

#include "base/slice.h"

typedef enum http_own_field {
    HTTP_OWN_NONE,
    HTTP_OWN_HOST,
    HTTP_OWN_ORIGIN,
    HTTP_OWN_EXPECT,
    HTTP_OWN_UPGRADE,
    HTTP_OWN_TRANSFER_ENCODING,
    HTTP_OWN_CONTENT_LENGTH,
    HTTP_OWN_CONNECTION,
    HTTP_OWN_PROXY_CONNECTION
} http_own_field;

typedef struct http_names http_names;
http_names *http_names_new(const char *const *fields, size_t fields_n);
void http_names_free(http_names *names);

/* The front end's number of a field, or -1 if it did not ask for it; own_out: which of the fields that net reads itself it is. The name
 * is not empty, and of the characters that HTTP allows in names. */
int http_names_find(const http_names *names, slice name, http_own_field *own_out);

/* ---- for the readers of heads, which look up each field ---- */

typedef struct http_name {
    slice name; /* lower case; p NULL: free slot */
    int8_t field;
    uint8_t own;
} http_name;

enum { HTTP_NAME_SLOTS = 256 };

struct http_names {
    http_name slots[HTTP_NAME_SLOTS];
};

/* Bit 5 makes letters lower case and leaves digits and '-' alone. */
static inline uint64_t http__eight_lower(const char *p) {
    uint64_t x;
    memcpy(&x, p, sizeof x);
    return x | 0x2020202020202020u;
}

/* The length and some characters are enough to distinguish the service's names; the rare collision costs one more comparison. */
static inline unsigned http__name_hash(const char *p, size_t n) {
    uint64_t h = n;
    if (n >= 8) {
        h += http__eight_lower(p + n - 8) ^ http__eight_lower(p + (n - 8) / 2) << 3;
    } else if (n >= 4) {
        uint32_t first, last;
        memcpy(&first, p, sizeof first);
        memcpy(&last, p + n - 4, sizeof last);
        h += (uint64_t)(first | 0x20202020u) << 8 ^ (last | 0x20202020u);
    } else {
        h += (uint64_t)(p[0] | 0x20) << 8 | (uint64_t)(p[n - 1] | 0x20) << 16;
    }
    return (unsigned)(h * 0x9E3779B97F4A7C15u >> 56);
}

/* Both are of the same length. `lower` has only a-z, 0-9 and '-' (asserted when the table is made), and p only what HTTP allows in names.
 * So setting bit 5 of each byte cannot make two different names equal. */
bool http__name_equals(slice lower, const char *p, size_t n);

/* NULL: an unknown name. */
static inline const http_name *http__name_find(const http_names *names, const char *p, size_t n) {
    for (unsigned i = http__name_hash(p, n); names->slots[i].name.p; i = (i + 1) % HTTP_NAME_SLOTS) {
        if (names->slots[i].name.n == n && http__name_equals(names->slots[i].name, p, n)) {
            return &names->slots[i];
        }
    }
    return NULL;
}
