/* websocket.h — WebSockets (RFC 6455), upgraded from HTTP.
 *
 * An HTTP front end that sets http_front.websockets also gets upgrade requests; websocket_wanted recognises them. It answers as usual, or
 * accepts. From then on a frames_front (frames.h) serves the connection: each message is a frames_request with its payload as the frame,
 * and each answer is one message. `header_bytes` and `length` are not used; `frame_bytes` is the largest message. The rules in frames.h on
 * bounds, memory, slow clients and lifetimes apply. A trusted connection stays trusted.
 *
 * Net handles masks, fragments, the check that text is UTF-8, pings (an idle trusted connection is sent one, and closed if nothing comes
 * back), and the closing handshake. A message of more than `frame_bytes` ends the connection with 1009, malformed bytes with 1002, text
 * that is not UTF-8 with 1007, a stop of the server with 1001, messages that come too slowly with 1008. Once the client has sent its close
 * frame, requests in flight are marked (client.left), and their answers are discarded. No extensions. */
#pragma once

#include "net/frames.h"

bool websocket_wanted(const http_request *r);

/* Whether the client offers this subprotocol. The comparison is case-sensitive. */
bool websocket_offers(const http_request *r, slice subprotocol);

/* Accepts the upgrade and frees `r`. `subprotocol` must be one that the client offered, or NULL for none. `state` is the initial value of
 * frames_state, state_bytes long; NULL: zeros. An invalid handshake is answered with 400 or 426, and the connection stays with HTTP. */
void websocket_accept(http_request *r, const frames_front *front, const char *subprotocol, const void *state);

/* Closes the connection with a status code (RFC 6455, 7.4) and at most 123 bytes of reason, once requests in flight are answered. */
void websocket_close(frames_conn *conn, uint16_t code, slice reason);
