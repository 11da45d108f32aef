/* change_event.h — one event of a change stream, from one change of a container (item/follow.h, mode FOLLOW_VERSIONS).
 *
 * The log of versions has what was written. The other members of MongoDB's events come from the note that an update adds to the version:
 *
 *   {"d": what the update changed (mql/update_description.h), "b": the document before}
 *
 * Both members are optional. Without "d" the write replaced the whole document; "b" is there if the collection keeps images.
 *
 * A resume token is {"_data": text}: the follower's position after the event, in hexadecimal digits. */
#pragma once

#include "item/follow.h"
#include "mql/value.h"

typedef enum mongo_image { MONGO_IMAGE_OFF, MONGO_IMAGE_WHEN_AVAILABLE, MONGO_IMAGE_REQUIRED } mongo_image;

/* The options of a change stream. */
typedef struct mongo_watch {
    slice database, collection;
    slice shard_key;    /* dotted path; empty: none */
    bool full_document; /* also of updates */
    mongo_image before; /* fullDocumentBeforeChange */
} mongo_watch;

/* Makes the note for a write, in the arena; empty if neither member is given. */
slice mongo_change_note(arena *a, slice description, slice before);

/* Appends an event. E_BAD_REQUEST with MongoDB's code 47 (NoMatchingDocument): the image before the change is required and was not kept. */
MUST_CHECK err mongo_change_event(op *o, const mongo_watch *watch, const follow_change *change, slice position, buf *out);

/* ---- resume tokens ---- */

void mongo_token_add(mql_builder *b, slice key, slice position);
/* The position of `invalidate`, at which a stream ends: another one can start after it, but not resume at it. Tokens of no other event have
 * such a position. mongo_position_was_ended makes it the plain position again; false: it is one. */
slice mongo_position_ended(arena *a, slice position);
bool mongo_position_was_ended(slice *position);

/* The position in a resume token, in the arena. False: this server did not make the token. */
bool mongo_token_read(arena *a, mql_value token, slice *position_out);
