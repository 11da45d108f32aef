/* head.h — reads the head of an ordinary request without http-parser. Private to this folder.
 *
 * http-parser looks at each byte; this looks at sixteen. It accepts what clients send nearly always: a whole head, HTTP/1.1, a common
 * method, a path, one Host, and no field that needs a decision. For such a head the result is what http-parser and the checks of framing.c
 * give; all other heads, good or bad, are left to them. tests/unit/net_framing.c and tests/fuzz/http.c compare the two. */
#pragma once

#include "net/framing.h"

typedef struct http_head {
    uint8_t method; /* http-parser's number */
    bool closes;    /* Connection: close */
    bool has_length;
    uint32_t n; /* bytes of the head */
    uint32_t length;
} http_head;

/* Reads the head at f->base, within the next n bytes. Records its URL and fields in f. False: not an ordinary head, and f must be reset. */
bool http__head_read(http_framing *f, size_t n, http_head *head_out);

/* ---- shared by both readers of heads ---- */

void http__record_own(http_framing *f, http_own_field own); /* in framing.c */

/* Records f->value, which is trimmed, as the value of a known field. Other reasons to refuse the request are left in f->refusal. False:
 * there are too many fields. */
static inline bool http__record(http_framing *f, const http_name *known) {
    if (known->field >= 0) {
        if (f->found_n == HTTP_FOUND_MAX) {
            return false;
        }
        f->found[f->found_n++] = (http_found){f->value, (uint8_t)known->field};
    }
    if (known->own) {
        http__record_own(f, (http_own_field)known->own);
    }
    return true;
}
