/* adopt.h — within api/mongo: documents through other APIs (item/foreign.h).
 *
 * Other APIs know an item by a text, its `id`. That of a document is made from its `_id`:
 *
 *   string            itself
 *   ObjectId          its 24 hexadecimal digits, in lower case
 *   anything else     canonical Extended JSON: { "$numberInt" : "5" }
 *
 * A string that looks like one of the others is shown, but cannot be addressed by its id. A document with a member `id` of its own is shown
 * with that one. An item that another API writes without an `_id` gets it from its `id`, which is then not stored. */
#pragma once

void mongo_adopt_register(void);
