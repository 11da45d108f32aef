/* change_stream_int.h — what the change streams of a collection and the wide ones (change_wide.h) share. */
#pragma once

#include "api/mongo/change_stream.h"
#include "mql/pipeline.h"

/* An aggregate that opens a stream. */
typedef struct mongo_opening {
    slice stages, position;
    bool ended; /* the position is the end of a stream (mongo_position_ended) */
    mongo_watch watch;
    uint32_t since_s; /* 0: from the position, or from now */
} mongo_opening;

enum { MONGO_SINCE_EVER = 1 }; /* the first second: from the beginning of the log */

/* A getMore: events on their way into the batch. */
typedef struct mongo_streaming {
    mql_flow *flow; /* runs the stages after $changeStream; NULL: there are none */
    mongo_scope scope;
    budget memory;
    buf position, event;
    buf token; /* of a wide stream */
    buf last;  /* the position after the last event that was taken */
    bool full; /* the batch has no room for the next event */
    err failed;
} mongo_streaming;

void mongo_streaming_free(mongo_request *q);

/* A cursor with the stream's options, for q->database and q->collection. */
mongo_cursor *mongo_stream_cursor(mongo_request *q, const mongo_opening *o);

/* Maps errors of followers to MongoDB's. */
err mongo_stream_error(mongo_request *q, err code);

/* Calls `then` when the collection's log is on. The first stream turns it on, which needs a read-write key. */
MUST_CHECK err mongo_stream_log(mongo_request *q, mongo_handler then);

/* Begins at a position, and follows what it follows: a collection, or with a token of GetChangeStreamTokens one physical partition. */
void mongo_stream_from(call_follow *f, slice position);

bool mongo_stream_take(void *context, const follow_change *change); /* the sink of a follower; on a worker */
bool mongo_stream_has_room(const mongo_request *q, size_t bytes);
MUST_CHECK err mongo_stream_emit(mongo_request *q, slice event); /* passes an event through the stages, into the batch */
