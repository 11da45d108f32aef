#include "tool/ready.h"

void tool_ready_line(buf *out, const char *host, const net_server *server, int pid) {
    host = strcmp(host, "localhost") == 0 ? "127.0.0.1" : host;
    bool v6 = strchr(host, ':') != NULL;
    buf_add_lit(out, "{\"ready\":true");
    for (unsigned i = 0; i < net_server_ports(server); i++) {
        net_port port = net_server_port(server, i);
        buf_addf(out, ",\"%s\":\"%s%s%s:%u\"", port.name, v6 ? "[" : "", host, v6 ? "]" : "", port.port);
    }
    buf_addf(out, ",\"pid\":%d}\n", pid);
}
