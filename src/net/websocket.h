/* websocket.h — WebSockets (RFC 6455), to which HTTP is upgraded.
 *
 * A front end of HTTP that sets http_front.websockets is handed requests that ask for one like any other; websocket_wanted tells them. It
 * answers as usual, or accepts. From then on the connection is a frames_front's (frames.h): each message is a frames_request, its payload
 * the frame, and each answer is one message. `header_bytes` and `length` are not used; `frame_bytes` is the largest message. All that
 * frames.h says of bounds, memory, slow clients and lifetimes holds. Whether the connection is trusted stays as it was.
 *
 * Net's own: masks, fragments, the check that text is UTF-8, pings (a trusted connection that is idle is sent one, and closed if nothing
 * comes back), and the closing handshake. A message of more than `frame_bytes` ends the connection with 1009, malformed bytes with 1002,
 * text that is not UTF-8 with 1007, the server's end with 1001, messages that come too slowly with 1008. Once the client has sent its
 * close, requests in flight are told that it has left, and their answers are thrown away. No extensions. */
#pragma once

#include "net/frames.h"

bool websocket_wanted(const http_request *r);

/* The client offers this subprotocol. Comparing is case-sensitive. */
bool websocket_offers(const http_request *r, slice subprotocol);

/* Accepts: `r` is gone. `subprotocol` is one that the client offered, or NULL: none is named. `state`: what frames_state begins as, of
 * state_bytes; NULL: zeros. A request that is no proper handshake is answered with 400 or 426, and the connection stays HTTP's. */
void websocket_accept(http_request *r, const frames_front *front, const char *subprotocol, const void *state);

/* Ends the connection with a status code (RFC 6455, 7.4) and at most 123 bytes of reason, once what is in flight has been answered. */
void websocket_close(frames_conn *conn, uint16_t code, slice reason);
