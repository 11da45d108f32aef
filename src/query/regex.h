/* regex.h — within query/: regular expressions (PCRE2), in bounded time and memory.
 *
 * Modifiers: i ignores case, m lets ^ and $ match at lines, s lets . match line ends, x ignores blanks in the pattern. Patterns and texts
 * are UTF-8; \w, \d and \s are ASCII's. PCRE2's verbs, (*…), are rejected.
 *
 * PCRE2 limits backtracking from each start position, but not how many positions it tries, nor how far it looks from each. So it is given a
 * few start positions at a time, and the time that they took is paid for in steps. */
#pragma once

#include "query/function.h"

typedef struct query_regex query_regex;

enum { REGEX_GROUPS_MAX = 64 };

/* The compiled pattern: cached from an earlier row if it is the same, else compiled. NULL: the pattern or its modifiers are invalid. */
query_regex *query_regex_get(query_context *c, slice pattern, slice modifiers);

typedef enum regex_answer { REGEX_NO, REGEX_YES, REGEX_TOO_LONG } regex_answer;

/* Finds the first match at `from` or later; the text must be valid UTF-8. On REGEX_YES groups[0] is the whole match and groups[i] that of
 * group i; p NULL: the group took no part. `groups` may be NULL. */
regex_answer query_regex_find(query_context *c, query_regex *r, slice text, size_t from, slice groups[REGEX_GROUPS_MAX]);

unsigned query_regex_groups(const query_regex *r); /* highest group number */
