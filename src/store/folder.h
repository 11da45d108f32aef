/* folder.h — a data folder: ours or not, which format, whose. Checked before a byte in it is touched. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

enum { STORE_FORMAT_VERSION = 4 };

typedef struct store_folder {
    char *dir;
    int lock_fd;    /* on DIR/FORMAT; the lock ends with the process, however it ends */
    bool read_only; /* the folder cannot be written: serve what is there */
} store_folder;

/* Makes an empty or missing folder ours; opens one that is; refuses everything else, with the reason and the way out in `why`. */
MUST_CHECK err store_folder_open(store_folder *folder_out, const char *dir, char *why, size_t why_n);
void store_folder_close(store_folder *folder);
