#include "net/carried.h"

#include <string.h>

#include "net/frames_int.h"
#include "net/http_int.h"

http_exchange *http__carried_new(arena *a, net_client *client, const net_peer *peer, const http_front *front, const http_carrier *carrier,
                                 void *context) {
    http_exchange *x = arena_new(a, http_exchange);
    x->request.arena = a;
    x->request.client = client;
    x->request.context = front->context;
    x->front = front;
    x->peer = *peer;
    x->carrier = carrier;
    x->carrier_context = context;
    return x;
}

http_request *http_carry(frames_request *frame, const http_front *front, const http_carrier *carrier, void *context) {
    http_exchange *x = http__carried_new(frame->arena, &frame->client, &frame->conn->peer, front, carrier, context);
    x->request.tls = frames_is_tls(frame->conn);
    return &x->request;
}
