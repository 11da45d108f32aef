/* json_int.h — what the two halves of the JSON writer share. For this folder. */
#pragma once

#include "doc/json.h"
#include "doc/walk.h"

/* Documents nested deeper than this are written as {}. json_to_bson rejects such depths, so they only come from other BSON. */
enum { JSON_WRITE_DEPTH = 256 };

void json__add_document(buf *out, slice bson, bool is_array, unsigned depth);

/* Appends a value of a type that JSON lacks, as MongoDB's relaxed Extended JSON. */
void json__add_extended(buf *out, const doc_element *e, unsigned depth);
