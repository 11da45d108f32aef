/* request_int.h — shared by request.c and request_table.c. */
#pragma once

#include <string.h>

#include "request.h"

static inline char *request__add(char *p, const char *text, size_t n) {
    memcpy(p, text, n);
    return p + n;
}

static inline char *request__add_text(char *p, const char *text) {
    return request__add(p, text, strlen(text));
}

size_t request__make_table(request_maker *m, request_kind kind, uint64_t number, char *out);
