/* answer.h — HTTP answers as they come in: where they end, and the few fields of them that a load generator reads. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { ANSWER_STATUS_MAX = 600 };

typedef struct answer {
    unsigned status; /* 0: none that HTTP has */
    bool close, chunked;
    size_t body_at, body_bytes; /* body_bytes SIZE_MAX: chunked, or until the connection closes */
    uint64_t rows;              /* x-ms-item-count */
    const char *continuation;   /* within the input; NULL: none */
    size_t continuation_bytes;
} answer;

/* Reads a complete head; false while its end has not come. */
bool answer_head(const char *in, size_t n, answer *a);

/* Bytes of a whole answer, or 0 while some are missing. */
size_t answer_bytes(const char *in, size_t n, answer *a);
