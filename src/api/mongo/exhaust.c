/* Streams of batches: a client that allows exhaust gets the batches of a cursor one after the other, without asking for each.
 *
 *   getMore, exhaustAllowed ──▶ batch, moreToCome ──▶ the client has taken it ──▶ the next batch, moreToCome ──▶ … ──▶ the last one
 *
 * Every batch is a request of its own, made of the client's message: so access, throughput, time limits and statistics are those of a
 * getMore. A batch answers the reply before it, by its id. The next one is read when the client has taken this one, so no output gathers.
 * An error ends the stream. If the client leaves, the cursor is closed: nobody else knows its id. */
#include "api/mongo/cursors.h"
#include "api/mongo/mongo_int.h"

enum { MESSAGE_BYTES_MAX = 64 * 1024 }; /* the message is copied for each batch; a longer one gets one batch */

void mongo_exhaust_offer(mongo_request *q, int64_t cursor) {
    bool streams = cursor && q->message.allows_exhaust && !q->message.more_to_come && q->command->handle == mongo_get_more &&
                   q->frame->frame.n <= MESSAGE_BYTES_MAX;
    if (streams) {
        q->streams = cursor;
        q->message.reply_id = (int32_t)((uint32_t)q->message.request_id + 1);
    }
}

static void taken(frames_request *frame) {
    mongo_request *q = frame->context;
    frames_request *next = frame->client.left ? NULL : frames_begin(frame->conn);
    if (next) {
        next->frame = wire_again(next->arena, frame->frame, q->message.reply_id);
        q->front->frames.handle(next);
    } else if (!frame->client.left && frames_is_stuck(frame->conn)) { /* other answers have filled the output */
        frames_flush(frame, taken);
        return;
    } else {
        mongo_cursors_kill(q->front->cursors, q->streams, q->conn->reach.serial);
    }
    frames_end(frame);
}

void mongo_exhaust_go_on(mongo_request *q) {
    q->frame->context = q;
    frames_flush(q->frame, taken);
}
