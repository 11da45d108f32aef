/* failures.h — the file of what was refused: JSON lines with the line, the reason and the item. Made with the first failure. */
#pragma once

#include <stdio.h>

#include "base/buf.h"

typedef struct failures {
    char *path;
    FILE *file;  /* NULL: none yet, or it cannot be made */
    bool wanted; /* there was a failure */
} failures;

/* `line` 0: begins anew. Otherwise keeps what is before this line: the rest is tried again. False: prints why. */
bool failures_open(failures *f, const char *path, uint64_t line);
void failures_add(failures *f, uint64_t line, int status, int substatus, const char *reason, slice item);
bool failures_sync(failures *f); /* false: prints why */
void failures_close(failures *f);
