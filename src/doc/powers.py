#!/usr/bin/env python3
"""Writes powers.h, the table of 10^k that number.c multiplies by; the build runs it.

Each line is the 128 highest bits of 10^k, for every k that reading or writing a double needs. Positive powers are truncated and negative
ones rounded up, as exact reading requires (Lemire, "Number parsing at a gigabyte per second"). Writing requires positive powers rounded
up too: number.c adds 1 to them.
"""

LOWEST, HIGHEST = -342, 324


def top_bits(k):
    if k >= 0:
        power = 10**k
        shift = power.bit_length() - 128
        return power >> shift if shift > 0 else power << -shift
    divisor = 10**-k
    shift = 127 + divisor.bit_length()
    quotient = (1 << shift) // divisor
    if quotient >> 128:
        quotient = (1 << shift - 1) // divisor
    return quotient + 1


def check_logarithms():
    """Checks that the multiplications that number.c uses as logarithms are right over the whole range of doubles."""
    for e in range(-1074, 972):
        numerator, denominator = (2**e, 1) if e >= 0 else (1, 2**-e)
        for logarithm, n, d in (((e * 661971961083) >> 41, numerator, denominator),
                                ((e * 661971961083 - 274743187321) >> 41, 3 * numerator, 4 * denominator)):
            scale = 10**abs(logarithm)
            low, high = (d * scale, n) if logarithm >= 0 else (d, n * scale)
            assert low <= high < 10 * low, e
    for k in range(LOWEST, HIGHEST + 1):
        floor = (10**k).bit_length() - 1 if k >= 0 else -((10**-k).bit_length())
        assert (k * 913124641741) >> 38 == floor, k
        assert (k * 217706) >> 16 == floor, k


check_logarithms()
print("/* Made by powers.py: the 128 highest bits of 10^k. */")
print("#pragma once")
print()
print("#include <stdint.h>")
print()
print("enum { POWER_LOWEST = %d, POWER_HIGHEST = %d };" % (LOWEST, HIGHEST))
print()
print("typedef struct power {")
print("    uint64_t high;")
print("    uint64_t low;")
print("} power;")
print()
print("static const power powers[] = {")
print("    /* clang-format off */")
for k in range(LOWEST, HIGHEST + 1):
    bits = top_bits(k)
    print("    {0x%016X, 0x%016X}, /* %d */" % (bits >> 64, bits & (1 << 64) - 1, k))
print("    /* clang-format on */")
print("};")
