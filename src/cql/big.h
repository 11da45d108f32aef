/* big.h — numbers of any size, by GMP: varint, and decimal as an unscaled number with a scale.
 *
 * Of the library's own. A number is at most CQL_DIGITS_MAX digits where it comes from text or arithmetic; one that came as bytes is as long
 * as the value was. GMP allocates outside the budget, so callers check lengths first. */
#pragma once

#include <gmp.h>

#include "cql/value.h"

typedef struct cql__decimal { /* unscaled × 10^-scale */
    mpz_t unscaled;
    int64_t scale;
} cql__decimal;

enum { CQL__BIG_BYTES_MAX = 16 * 1024 }; /* of a varint, or of a decimal with its scale; enough for CQL_DIGITS_MAX digits */

void cql__mpz_of_bytes(mpz_t number, slice bytes);      /* two's complement, as Java's BigInteger has it; initialised by the caller */
cql_value cql__mpz_value(arena *a, const mpz_t number); /* a varint */
size_t cql__mpz_bytes(const mpz_t number, char *into);  /* writes at most mpz_sizeinbase(number, 256) + 1 bytes */

bool cql__mpz_of_text(mpz_t number, slice text);             /* digits with a sign; false: not a number, or too long */
bool cql__decimal_of_text(cql__decimal *number, slice text); /* as Java's BigDecimal reads: 1.5, -1E+3, .5 */

bool cql__decimal_of_value(cql__decimal *number, cql_value v); /* false: shorter than 5 bytes, or too long */
cql_value cql__decimal_value(arena *a, const cql__decimal *number);

void cql__mpz_write(buf *out, const mpz_t number);
void cql__decimal_write(buf *out, const cql__decimal *number); /* as BigDecimal.toString: 123, 1.5, 1E+3, 1E-10 */

int cql__decimal_compare(const cql__decimal *x, const cql__decimal *y);
