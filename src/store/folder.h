/* folder.h — recognises, marks and locks a data folder. All checks are made before anything in it is changed. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

enum { STORE_FORMAT_VERSION = 4 };

typedef struct store_folder {
    char *dir;
    int lock_fd;    /* locks DIR/FORMAT; the lock ends with the process */
    bool read_only; /* the folder is not writable: serve reads only */
} store_folder;

/* The parts of a folder that an open created. */
typedef struct store_folder_new {
    bool marked;   /* the folder did not have our mark before */
    size_t path_n; /* length of the shortest prefix of its path that did not exist; 0: all of it existed */
} store_folder_new;

/* Marks an empty or missing folder as ours, or opens one that has our mark. Refuses everything else, with the reason and what to do about
 * it in `why`. `made_out` may be NULL. */
MUST_CHECK err store_folder_open(store_folder *folder_out, const char *dir, store_folder_new *made_out, char *why, size_t why_n);
/* Opens a folder that is ours, to change nothing in it. Refuses a folder that a server uses. */
MUST_CHECK err store_folder_open_to_read(store_folder *folder_out, const char *dir, char *why, size_t why_n);
void store_folder_close(store_folder *folder);

/* Undoes what an open created, for a start that failed. Does nothing if the folder was ours before, or if another server uses it now. */
void store_folder_discard(const char *dir, const store_folder_new *made);

/* Deletes the data of a folder that is ours and not in use. Keeps its mark and its certificate. After a crash the next start finds either
 * all of the data or none of it. */
MUST_CHECK err store_folder_reset(const char *dir, char *why, size_t why_n);
