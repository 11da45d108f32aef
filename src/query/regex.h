/* regex.h — within query/: regular expressions (PCRE2), in bounded time and memory.
 *
 * Modifiers: i ignores case, m lets ^ and $ match at lines, s lets . match line ends, x ignores blanks in the pattern. Patterns and texts
 * are UTF-8; \w, \d and \s are ASCII's. PCRE2's verbs, (*…), are not taken.
 *
 * PCRE2 bounds backtracking at each place where a match may begin, but not how many such places it tries, nor how far it looks from each.
 * So it is given a few places at a time, and what they took is paid for in steps, by the clock. */
#pragma once

#include "query/function.h"

typedef struct query_regex query_regex;

enum { REGEX_GROUPS_MAX = 64 };

/* The compiled pattern: that of the last call, if it is the same, else a new one. NULL: the pattern or its modifiers are not valid. */
query_regex *query_regex_get(query_context *c, slice pattern, slice modifiers);

typedef enum regex_answer { REGEX_NO, REGEX_YES, REGEX_TOO_LONG } regex_answer;

/* Looks for the first match at `from` or later in a text that is valid UTF-8. On REGEX_YES groups[i] is what group i matched, groups[0] the
 * whole; p NULL: it took no part. `groups` may be NULL. */
regex_answer query_regex_find(query_context *c, query_regex *r, slice text, size_t from, slice groups[REGEX_GROUPS_MAX]);

unsigned query_regex_groups(const query_regex *r); /* numbers 0 to this */
