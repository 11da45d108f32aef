#include "answer.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

static bool is_field(const char *line, const char *name, size_t n) {
    return strncasecmp(line, name, n) == 0;
}

static void read_continuation(const char *value, const char *end, answer *a) {
    while (*value == ' ') {
        value++;
    }
    const char *line_end = memchr(value, '\r', (size_t)(end - value + 1));
    a->continuation = value;
    a->continuation_bytes = line_end ? (size_t)(line_end - value) : 0;
}

static void read_field(const char *line, const char *end, answer *a) {
    char c = (char)(*line | 0x20);
    if (c == 'c' && is_field(line, "content-length:", 15)) {
        a->body_bytes = strtoul(line + 15, NULL, 10);
    } else if (c == 'c' && is_field(line, "connection: close", 17)) {
        a->close = true;
    } else if (c == 't' && is_field(line, "transfer-encoding: chunked", 26)) {
        a->chunked = true;
    } else if (c == 'x' && is_field(line, "x-ms-item-count:", 16)) {
        a->rows = strtoull(line + 16, NULL, 10);
    } else if (c == 'x' && is_field(line, "x-ms-continuation:", 18)) {
        read_continuation(line + 18, end, a);
    }
}

bool answer_head(const char *in, size_t n, answer *a) {
    const char *end = memmem(in, n, "\r\n\r\n", 4);
    if (end == NULL || n < 16) {
        return false;
    }
    *a = (answer){.status = (unsigned)atoi(in + 9), .body_at = (size_t)(end - in) + 4, .body_bytes = SIZE_MAX};
    if (a->status >= ANSWER_STATUS_MAX) {
        a->status = 0;
    }
    for (const char *line = memchr(in, '\n', n); line < end; line = memchr(line, '\n', (size_t)(end + 4 - line))) {
        line++;
        read_field(line, end, a);
    }
    if (a->status == 204 || a->status == 304) {
        a->body_bytes = 0;
    }
    return true;
}

size_t answer_bytes(const char *in, size_t n, answer *a) {
    if (!answer_head(in, n, a)) {
        return 0;
    }
    if (!a->chunked) {
        size_t whole = a->body_at + a->body_bytes;
        return a->body_bytes != SIZE_MAX && n >= whole ? whole : 0; /* SIZE_MAX: it ends with the connection */
    }
    for (size_t at = a->body_at;;) {
        const char *line_end = memmem(in + at, n - at, "\r\n", 2);
        if (line_end == NULL) {
            return 0;
        }
        size_t chunk = strtoul(in + at, NULL, 16);
        at = (size_t)(line_end - in) + 2 + chunk + 2;
        if (at > n) {
            return 0;
        }
        if (chunk == 0) {
            return at;
        }
    }
}
