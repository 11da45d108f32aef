/* text.h — strings for the string functions of queries.
 *
 * Strings are UTF-8. Positions and lengths count UTF-16 code units, as the service's SDKs and its hash of partition keys do: a character
 * beyond U+FFFF counts as two. If a function cuts such a character in half, the half becomes U+FFFD, as lone surrogates do everywhere.
 * Bytes that are not valid UTF-8 (only other APIs could have stored them) are copied as they are and count as one each. */
#pragma once

#include "base/arena.h"

enum { TEXT_INVALID = 0xFFFFFFFF };

/* Decodes the character at p (p < end); returns its length in bytes. For an invalid byte: 1, and TEXT_INVALID. */
unsigned text_decode(const char *p, const char *end, uint32_t *character_out);
unsigned text_encode(char *p, uint32_t character); /* up to 4 bytes */

bool text_is_ascii(slice s);
bool text_is_valid(slice s); /* UTF-8 */
size_t text_units(slice s);

/* Units [start, start + n) of a string, or fewer at its end. Points into `s` unless a character is cut in half. */
slice text_part(arena *a, slice s, size_t start, size_t n);

/* Convert a byte offset to a unit offset and back; a unit inside a character maps to the character's first byte. */
size_t text_unit_at(slice s, size_t byte);
size_t text_byte_at(slice s, size_t unit);

/* Simple case mapping, character by character, independent of language. text_fold is for comparing without case. */
slice text_lower(arena *a, slice s);
slice text_upper(arena *a, slice s);
slice text_fold(arena *a, slice s);
bool text_equal_nocase(slice a, slice b);

slice text_reverse(arena *a, slice s); /* by characters */

/* Removes the characters of a set (white space if `set` is NULL) at the ends. */
typedef enum text_side { TEXT_LEFT = 1, TEXT_RIGHT = 2, TEXT_BOTH = 3 } text_side;
slice text_trim(arena *a, slice s, const slice *set, text_side side);

/* The byte offset of the first and the last occurrence of `needle`; SIZE_MAX if none. Linear time. An empty needle is found at the very
 * start or end. */
size_t text_find(slice s, slice needle);
size_t text_find_last(arena *a, slice s, slice needle);
