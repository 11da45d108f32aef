/* value.h — JSON values as BSON: the order of ORDER BY, and a text that equal values share.
 *
 * Types are ordered as on the service: undefined < null < boolean < number < string < array < object. Numbers compare as doubles, strings
 * by bytes, arrays element by element, objects by their properties in byte order of names. */
#pragma once

#include "base/buf.h"
#include "doc/walk.h"

/* NULL stands for undefined. */
int client__value_compare(const doc_element *a, const doc_element *b);

/* Appends bytes that are the same for equal values only: 1 and 1.0 are equal, and objects with their properties in another order. */
void client__value_canonical(buf *out, const doc_element *e);

/* Reads one JSON value into a document with one element, which it finds. False: not JSON, or too large. */
bool client__value_read(slice json, buf *bson, doc_element *element_out);
