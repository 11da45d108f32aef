/* ready.h — the line on standard output that says the server is ready, and where each protocol listens. */
#pragma once

#include "net/server.h"

/* {"ready":true,"sql":"127.0.0.1:8081","pid":4711}: a member for each port that listens, named as its front end is, in the order in which
 * they were opened. `host` is as given to `tesela serve`. */
void tool_ready_line(buf *out, const char *host, const net_server *server, int pid);
