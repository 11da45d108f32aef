#include "base/buf.h"

#include <endian.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"

enum { BUF_MIN = 256 };

static void uncount(buf *b) {
    if (b->budget) {
        budget_give(b->budget, b->cap);
    }
}

void buf_free(buf *b) {
    if (b->p) {
        free(b->p);
        uncount(b);
    }
    *b = buf_init_counted(b->max, b->budget);
}

bool buf_grow(buf *b, size_t more) {
    if (b->overflow || more > b->max || b->n > b->max - more) {
        b->overflow = true;
        return false;
    }
    size_t need = b->n + more;
    if (need <= b->cap) {
        return true;
    }
    size_t cap = b->cap ? b->cap : BUF_MIN;
    while (cap < need) {
        cap = cap > SIZE_MAX / 2 ? need : cap * 2;
    }
    cap = cap > b->max ? b->max : cap;
    if (b->budget && !budget_take(b->budget, cap - b->cap)) {
        b->overflow = true;
        return false;
    }
    b->cap = cap;
    b->p = mem_resize(b->p, b->cap);
    return true;
}

char *buf_take(buf *b, size_t *n_out) {
    char *p = b->p;
    *n_out = b->n;
    uncount(b);
    *b = buf_init_counted(b->max, b->budget);
    return p;
}

#define TENS(d) d "0" d "1" d "2" d "3" d "4" d "5" d "6" d "7" d "8" d "9"

/* "00" to "99": a number is written two digits at a time. */
static const char pairs[] = TENS("0") TENS("1") TENS("2") TENS("3") TENS("4") TENS("5") TENS("6") TENS("7") TENS("8") TENS("9");

void buf_add_u64(buf *b, uint64_t value) {
    char digits[20];
    size_t i = sizeof digits;
    for (; value >= 100; value /= 100) {
        i -= 2;
        memcpy(digits + i, pairs + value % 100 * 2, 2);
    }
    if (value >= 10) {
        i -= 2;
        memcpy(digits + i, pairs + value * 2, 2);
    } else {
        digits[--i] = (char)('0' + value);
    }
    buf_add(b, digits + i, sizeof digits - i);
}

void buf_add_i64(buf *b, int64_t value) {
    if (value < 0) {
        buf_add_byte(b, '-');
        buf_add_u64(b, ~(uint64_t)value + 1);
    } else {
        buf_add_u64(b, (uint64_t)value);
    }
}

void buf_add_hex(buf *b, slice bytes) {
    static const char digits[] = "0123456789ABCDEF";
    if (!buf_reserve(b, bytes.n * 2)) {
        return;
    }
    for (size_t i = 0; i < bytes.n; i++) {
        unsigned char c = (unsigned char)bytes.p[i];
        b->p[b->n++] = digits[c >> 4];
        b->p[b->n++] = digits[c & 15];
    }
}

void buf_addv(buf *b, const char *format, va_list args) {
    va_list again;
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, format, args);
    if (n > 0 && buf_reserve(b, (size_t)n + 1)) {
        vsnprintf(b->p + b->n, (size_t)n + 1, format, again);
        b->n += (size_t)n;
    }
    va_end(again);
}

void buf_addf(buf *b, const char *format, ...) {
    va_list args;
    va_start(args, format);
    buf_addv(b, format, args);
    va_end(args);
}

void buf_add_be32(buf *b, uint32_t value) {
    value = htobe32(value);
    buf_add(b, &value, sizeof value);
}

void buf_add_be64(buf *b, uint64_t value) {
    value = htobe64(value);
    buf_add(b, &value, sizeof value);
}
