/* regex.h — within query/: regular expressions of query functions, compiled once per query if they stay the same. */
#pragma once

#include "query/function.h"
#include "text/regex.h"

/* The compiled pattern: cached from an earlier row if it is the same, else compiled. NULL: the pattern or its modifiers are invalid. */
const text_regex *query_regex_get(query_context *c, slice pattern, slice modifiers);
