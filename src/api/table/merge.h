/* merge.h — within api/table: the writes of entities that depend on what is there: merging, and the etag of an update. */
#pragma once

#include "item/edit.h"

/* Registers ITEM_EDIT_MERGE and ITEM_CONDITION_STAMP; at start. */
void merge_register(void);

/* An edit that adds the entity's properties to the stored ones. `must_exist`: E_NOT_FOUND if there is none, otherwise it is inserted.
 * Errors of the result: E_TOO_LARGE, and E_EDIT_TOO_LONG's kind; more properties than allowed are E_BAD_REQUEST. */
item_edit merge_edit(arena *a, slice body, bool must_exist, bool large);

/* A condition that the stored entity has this etag. */
item_condition merge_condition(arena *a, slice etag);
