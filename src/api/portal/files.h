/* files.h — the portal's files. tools/embed-portal writes the list, from what Vite builds. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

typedef struct portal_file {
    const char *path; /* below /_explorer/; "" is the page itself */
    const char *type; /* Content-Type */
    const char *etag; /* with its quotes */
    const unsigned char *gzip;
    size_t gzip_n, plain_n;
    bool lasting; /* its name has a hash of its contents, so it never changes */
} portal_file;

/* Empty in a build without the portal (meson option `portal`). */
extern const portal_file portal_files[];
extern const size_t portal_files_n;
