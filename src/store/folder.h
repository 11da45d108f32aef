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

/* What an open made. */
typedef struct store_folder_new {
    bool marked;   /* the folder was not ours before */
    size_t path_n; /* the length of the shortest part of its path that was not there; 0: all of it was */
} store_folder_new;

/* Makes an empty or missing folder ours; opens one that is; refuses everything else, with the reason and the way out in `why`. `made_out`
 * may be NULL. */
MUST_CHECK err store_folder_open(store_folder *folder_out, const char *dir, store_folder_new *made_out, char *why, size_t why_n);
void store_folder_close(store_folder *folder);

/* Takes back what an open made, for a start that failed. Does nothing if the folder was ours before, or if another server has it now. */
void store_folder_discard(const char *dir, const store_folder_new *made);

/* Deletes the data of a folder that is ours and not in use, and keeps its mark and its certificate. A crash leaves all of the data, or
 * none of it for the next start. */
MUST_CHECK err store_folder_reset(const char *dir, char *why, size_t why_n);
