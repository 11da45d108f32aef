/* json.h — finds members and elements in JSON text without decoding it, so that items reach the application as the server wrote them.
 *
 * Any bytes are safe: what is not well-formed ends the walk. Values are slices of the text, without blanks around them. */
#pragma once

#include "base/buf.h"

typedef struct json_walk {
    const char *at, *end;
    bool object, begun;
    bool broken; /* the text ended or had another byte than it must */
} json_walk;

/* Enters an object or array. False: it is neither. */
bool json_enter(slice value, json_walk *w);

/* The next member or element. `name_out`, which may be NULL, gets the name with its quotes. False: no more. */
bool json_next(json_walk *w, slice *name_out, slice *value_out);

/* The value of a top-level member, whose name has no escapes; empty if there is none. */
slice json_member(slice object, const char *name);

/* Decodes a string; false if the value is no string, or longer than `out` allows. Appends nothing then. */
bool json_text(slice value, buf *out);

/* A number; `otherwise` if the value is none, or too large for a double. */
double json_number(slice value, double otherwise);

/* A number without its fraction; `otherwise` if the value is none, or not in [least, most]. These are within ±2^53. */
int64_t json_whole(slice value, int64_t least, int64_t most, int64_t otherwise);

bool json_true(slice value);

/* Whether the text is one well-formed JSON value (nesting and strings are checked; numbers and literals roughly). */
bool json_is_value(slice text);
