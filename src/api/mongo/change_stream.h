/* change_stream.h — within api/mongo: change streams, an aggregate whose first stage is $changeStream. Those of a database and of the
 * deployment are in change_wide.h.
 *
 * A stream follows all versions of a collection's documents (item/follow.h). The first stream of a collection turns their log on, for
 * MONGO_LOG_MINUTES; a resume token is valid that long. A getMore waits for the next event, up to its maxTimeMS, without a thread. Stages
 * after $changeStream see one event at a time. */
#pragma once

#include "api/mongo/batch.h"
#include "api/mongo/change_event.h"

enum { MONGO_LOG_MINUTES = 24 * 60, MONGO_STREAM_WAIT_MS = 1000 };

/* What a stream's cursor keeps, in the cursor's arena; its position is the cursor's. */
typedef struct mongo_stream {
    mongo_watch watch;
    slice stages;            /* all of them */
    struct mongo_wide *wide; /* change_wide.h; NULL: the stream of a collection */
    uint32_t since_s;        /* startAtOperationTime: earlier events are left out; 0: none are */
} mongo_stream;

bool mongo_is_stream(slice stages);                               /* whether the first stage is $changeStream */
MUST_CHECK err mongo_stream_open(mongo_request *q, slice stages); /* the aggregate */
MUST_CHECK err mongo_stream_tokens(mongo_request *q);             /* the custom action GetChangeStreamTokens (change_tokens.c) */
void mongo_stream_continue(mongo_request *q);                     /* the getMore; q->batch is set */
