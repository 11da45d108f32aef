/* number.h — JSON numbers: text to an exact 64-bit integer or the nearest double, and a double to its shortest text.
 *
 * Independent of the locale and of the rounding of printf; no allocation. Reading follows Lemire ("Number parsing at a gigabyte per
 * second"), with strtod for the few texts that algorithm cannot decide; writing follows Giulietti ("The Schubfach way to render
 * doubles"). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct number_value {
    bool integer; /* true: the text has only digits and fits 64 bits; use `i`, else `d` */
    int64_t i;    /* never "-0", which is read as a double */
    double d;     /* finite */
} number_value;

enum { NUMBER_TEXT_MAX = 32 };

/* Reads the number that begins at `p`, by JSON's grammar, and returns the position after it. Returns NULL and the reason if there is no
 * number or it is too large for a double. Never reads at or beyond `end`. */
const char *number_read(const char *p, const char *end, number_value *value_out, const char **reason_out);

/* Writes a finite double as JavaScript's Number.prototype.toString does (so -0 is "0"); returns the number of bytes, at most
 * NUMBER_TEXT_MAX. No zero byte follows. */
size_t number_write_double(char *into, double value);

/* The same for an integer. */
size_t number_write_integer(char *into, int64_t value);
