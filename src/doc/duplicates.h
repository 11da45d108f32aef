/* duplicates.h — keys that an object says twice: of them the last value counts, at the first one's place. For this folder.
 *
 * Both take documents that json_to_bson has just written, so well-formed, and are linear in their size whatever the keys are (the
 * hash is seeded per process). They need a table of twelve bytes for each slot, freed before they return. */
#pragma once

#include "base/buf.h"

/* Looks at the object's own keys only. */
bool doc__has_duplicates(slice object);

/* Appends a copy without duplicates, at any depth. */
void doc__drop_duplicates(slice document, bool is_array, buf *out);
