/* direct.h — direct mode: the SQL API over rntbd, the TCP protocol that the .NET and Java SDKs speak unless told otherwise.
 *
 * A frame is a request of the SQL API in another dress: it is decoded into the same fields and handed to the same handlers as REST, and the
 * answer is turned back into a frame. Which port and which replicas there are, clients learn by REST (GET //addresses). */
#pragma once

#include "net/frames.h"
#include "net/http.h"

typedef struct direct_front direct_front;

direct_front *direct_open(const http_front *sql);             /* what sql_http gives; outlives the front */
const frames_front *direct_frames(const direct_front *front); /* what net_listen_frames takes */
void direct_close(direct_front *front);
