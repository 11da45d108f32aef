/* portal.h — the web portal: pages that are built from portal/ and embedded in the binary, under /_explorer/.
 *
 * It serves files and knows no data: the pages ask the SQL API and the admin API, with the key that the user types. Like the admin API it
 * has no port of its own; an API's front end passes it requests for other paths (sql_options.extra_handler). From `/` it leads a browser to
 * /_explorer/.
 *
 * A page may use its own server only (Content-Security-Policy), and no other site may embed or request its files. From another machine they
 * are served over TLS only, because the user types a key there. */
#pragma once

#include "net/http.h"

typedef struct portal_options {
    /* Callback of the port's protocol: the value of a header field, by its lower-case name; p NULL if absent. */
    slice (*field)(const http_request *request, const char *name);
} portal_options;

/* True: the path belongs to the portal, and it answers. Any loop. */
bool portal_handle(const portal_options *options, http_request *request);
