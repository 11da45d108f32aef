/* change_wide.h — within api/mongo: change streams of a database and of the deployment.
 *
 * A wide stream follows each collection in its scope with a position of its own; collections take turns. The first stream of a scope notes
 * that in the memo of its database (that of the deployment: of the database `admin`), and turns on the log of each collection; collections
 * that are made later get theirs at once. So nothing is lost: a collection that is not among a stream's positions was made after them, and
 * is followed from its beginning. A getMore looks every MONGO_WIDE_LOOK_MS for ranges that have changed, without a thread.
 *
 * A position, which is the resume token's content:
 *
 *     'W' · u32 database (0: the deployment) · members × (u32 container · u32 bytes · the follower's position)     numbers big-endian
 *
 * It has some hundred bytes for each collection, so a stream has MONGO_WIDE_MEMBERS_MAX collections at most. */
#pragma once

#include "api/mongo/change_stream_int.h"

typedef struct mongo_wide mongo_wide;

enum { MONGO_WIDE_MEMBERS_MAX = 200, MONGO_WIDE_LOOK_MS = 50 };

/* Opens the stream of q->database, or of the deployment. Takes the options and the start from `o`. */
MUST_CHECK err mongo_wide_open(mongo_request *q, mongo_opening *o, bool deployment);
void mongo_wide_continue(mongo_request *q); /* the getMore; q->streaming is ready */
void mongo_wide_free(mongo_wide *w);

/* For take_change: the options with the names of the collection whose changes are read; the stream's position after one of them. */
const mongo_watch *mongo_wide_watch(const mongo_wide *w);
void mongo_wide_position(const mongo_wide *w, slice member_position, buf *out);

/* How long the log of a new collection in this database is kept; 0: it has none. */
int32_t mongo_wide_log_minutes(const mongo_front *front, slice database);
