/* duplicates.h — duplicate keys of an object: the last value wins, at the position of the first key. For this folder.
 *
 * Both functions take documents that json_to_bson has just written, so they are well-formed. Both run in time linear in the document's size
 * for any keys (the hash is seeded per process). They allocate a hash table with twelve bytes per slot and free it before they return. */
#pragma once

#include "base/buf.h"

/* Checks the object's own keys, not those of nested objects. */
bool doc__has_duplicates(slice object);

/* Appends a copy without duplicates, at any depth. */
void doc__drop_duplicates(slice document, bool is_array, buf *out);
