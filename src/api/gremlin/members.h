/* members.h — within api/gremlin: appending members of a BSON document to a buffer.
 *
 *     size_t at = member_open(out, BSON_TYPE_DOCUMENT, SLICE_EMPTY);    a document of its own has no key and no type byte
 *     member_text(out, SLICE_LIT("id"), id);
 *     member_close(out, at);
 *
 * Keys have no zero bytes (document_check_key). The buffer's limit bounds the size: check buf_ok at the end. */
#pragma once

#include "base/buf.h"
#include "doc/walk.h"
#include "gremlin/value.h"

size_t member_begin(buf *out);                                 /* a document of its own */
size_t member_open(buf *out, bson_type_t type, slice key);     /* an array or a document within another one */
size_t member_open_at(buf *out, bson_type_t type, unsigned i); /* the same as the i-th member of an array */
void member_close(buf *out, size_t at);

void member_text(buf *out, slice key, slice text);
void member_bool(buf *out, slice key, bool truth);
void member_null(buf *out, slice key);
/* The value as JSON can hold it: a string, a boolean or a number; texts of UUIDs and characters. False: it has no such form; nothing was
 * appended. */
bool member_value(buf *out, slice key, gremlin_value v);
void member_copy(buf *out, slice key, const doc_element *e); /* under another key */
bool member_fits(gremlin_value v);                           /* whether member_value has a form for it */
