/* regex.h — regular expressions (PCRE2), in bounded time and memory.
 *
 * Modifiers: i ignores case, m lets ^ and $ match at lines, s lets . match line ends, x ignores blanks in the pattern. Patterns and texts
 * are UTF-8; \w, \d and \s are ASCII's. PCRE2's verbs, (*…), are rejected.
 *
 * PCRE2 limits backtracking from each start position, but not how many positions it tries, nor how far it looks from each. So it is given a
 * few start positions at a time, and the time that they took is paid for in steps.
 *
 * A compiled expression is constant and may be used by several threads. Each thread has working memory of its own, at most some 4 MB. */
#pragma once

#include "base/arena.h"

typedef struct text_regex text_regex;

enum { TEXT_REGEX_GROUPS_MAX = 64 };

/* In the arena. False: the pattern or its modifiers are invalid; `*reason_out`, static or in the arena, says why. */
bool text_regex_compile(arena *a, slice pattern, slice modifiers, const text_regex **regex_out, slice *reason_out);

unsigned text_regex_groups(const text_regex *r); /* highest group number */

typedef enum text_regex_answer { REGEX_NO, REGEX_YES, REGEX_TOO_LONG } text_regex_answer;

/* Finds the first match at `from` or later; the text must be valid UTF-8. On REGEX_YES groups[0] is the whole match and groups[i] that of
 * group i; p NULL: the group took no part. `groups` may be NULL. `steps`, of about 10 ns, are counted down; NULL: unlimited. */
text_regex_answer text_regex_find(const text_regex *r, slice text, size_t from, slice groups[TEXT_REGEX_GROUPS_MAX], uint64_t *steps);
