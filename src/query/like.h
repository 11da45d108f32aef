/* like.h — LIKE patterns: % any characters, _ one character, [abc] [a-z] one of a set, [^…] one that is not in the set. The escape
 * character, if given, makes the character after it literal. Case-sensitive. A '[' that is never closed is literal.
 *
 * A pattern is compiled once and matched often. Segments of plain text between two % are searched in linear time; segments with _ or sets
 * may take time proportional to the product of both lengths, which is paid for in steps. */
#pragma once

#include "base/arena.h"

typedef struct query_like_pattern query_like_pattern;

/* NULL: the escape is not one character. An empty `escape` means none. The result lives in the arena, and does not point into the pattern's
 * text. */
query_like_pattern *query_like_compile(arena *a, slice pattern, slice escape);

/* `steps` is counted down and may be NULL; if it reaches 0 the result is false and meaningless. */
bool query_like_match(const query_like_pattern *p, slice text, uint64_t *steps);

/* The text that every match begins with, for an index lookup; `whole_out`: the pattern is just this text. */
slice query_like_prefix(const query_like_pattern *p, bool *whole_out);

/* Compiles and matches in bounded time; for patterns that are used once. */
bool query_like(slice text, slice pattern, slice escape);
