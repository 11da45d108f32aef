/* json_int.h — what the two halves of the JSON writer share. For this folder. */
#pragma once

#include "doc/json.h"
#include "doc/walk.h"

/* Documents nested deeper than this are written as {}: nothing that came through json_to_bson is. */
enum { JSON_WRITE_DEPTH = 256 };

void json__add_document(buf *out, slice bson, bool is_array, unsigned depth);

/* Values of the types that JSON has not, in MongoDB's relaxed Extended JSON. */
void json__add_extended(buf *out, const doc_element *e, unsigned depth);
