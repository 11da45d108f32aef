/* like.h — LIKE patterns: % any characters, _ one, [abc] [a-z] one of a set, [^…] one not of it; the escape character, if there is one,
 * takes the meaning from what follows it. Case counts. A '[' that is never closed stands for itself.
 *
 * A pattern is compiled once and matched often. Runs of plain characters between two % are searched in linear time; runs with _ or sets in
 * them may take time with the product of both lengths, which is paid for in steps. */
#pragma once

#include "base/arena.h"

typedef struct query_like_pattern query_like_pattern;

/* NULL: the escape is not one character. `escape` empty: there is none. Lives in the arena; does not point into the pattern's text. */
query_like_pattern *query_like_compile(arena *a, slice pattern, slice escape);

/* `steps` is counted down and may be NULL; at 0 the answer is false and means nothing. */
bool query_like_match(const query_like_pattern *p, slice text, uint64_t *steps);

/* What every match begins with, for finding them in an index; `whole_out`: the pattern is just this text. */
slice query_like_prefix(const query_like_pattern *p, bool *whole_out);

/* Both at once, in bounded time; for patterns that are not known beforehand. */
bool query_like(slice text, slice pattern, slice escape);
