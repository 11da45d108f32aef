/* ready.h — the line on standard output that says the server is ready, and where each protocol listens. */
#pragma once

#include "net/server.h"

/* {"ready":true,"sql":"127.0.0.1:8081","pid":4711}: one member per listening port, named after its front end, in the order in which they
 * were opened. `host` is the value given to `tesela serve`. */
void tool_ready_line(buf *out, const char *host, const net_server *server, int pid);
