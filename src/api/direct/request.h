/* request.h — a request frame, decoded: header fields as REST has them, and the names, or the resource id, that its path is made of.
 *
 * Pure: bytes in, values out. Every byte is hostile. What the values mean is checked by the SQL API's handlers, as that of REST is. */
#pragma once

#include "api/direct/tokens.h"
#include "api/sql/fields.h"
#include "base/arena.h"
#include "base/err.h"

enum { DIRECT_HEAD_BYTES_MAX = 128 * 1024 }; /* header and tokens */

/* Names that a frame may have, in tokens of their own. */
typedef enum direct_name {
    DIRECT_DATABASE,
    DIRECT_CONTAINER,
    DIRECT_ITEM,
    DIRECT_ATTACHMENT,
    DIRECT_USER,
    DIRECT_PERMISSION,
    DIRECT_PROCEDURE,
    DIRECT_FUNCTION,
    DIRECT_TRIGGER,
    DIRECT_CONFLICT,
    DIRECT_RANGE,
    DIRECT_ENCRYPTION_KEY,
    DIRECT_NAMES
} direct_name;

/* Parts of a frame that are neither a field nor a name by themselves. */
typedef struct direct_request {
    uint16_t resource, operation;
    uint8_t activity[DIRECT_ACTIVITY_BYTES];
    bool identified; /* it has a TransportRequestID, by which the client matches answers to requests */
    uint32_t id;
    slice field[FIELD_COUNT]; /* p NULL: absent */
    slice name[DIRECT_NAMES]; /* likewise */
    slice rid;                /* bytes of a resource id */
    slice match;              /* an etag: If-Match or If-None-Match, by the operation */
    slice start_epk, end_epk; /* bounds of a feed, in the form that feed_key says */
    uint8_t feed_key;         /* ReadFeedKeyType; 0: none */
    slice payload;
} direct_request;

/* Decodes a whole frame; what is made lives in `a`. E_BAD_REQUEST: malformed; then at least `id` and `activity` are there as far as they
 * were readable. */
MUST_CHECK err direct_request_read(arena *a, slice frame, direct_request *request_out);

/* How long the frame is by the bytes that have come: see frames_front.extend. False: its tokens are malformed. */
bool direct_request_extend(slice begun, uint64_t *bytes_out);

/* Without a whole frame: the TransportRequestID among the tokens that are readable. False: there is none. */
bool direct_request_find_id(slice begun, uint32_t *id_out);
