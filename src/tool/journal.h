/* journal.h — how far a transfer of items is, in a small file beside it, so that it can go on after a stop or a crash.
 *
 * Everything before the position is done; what comes after it is done again. The file is replaced as a whole, and synced. */
#pragma once

#include "base/buf.h"

enum { JOURNAL_TEXT_BYTES = 4 << 20 }; /* a position for each range */

typedef struct journal {
    char *path;            /* NULL: none is kept */
    char *source, *target; /* what is transferred; another one is not continued */
    uint64_t offset, line; /* of a file: where the next row begins */
    buf continuation;      /* of a container */
    uint64_t items, failed, bytes;
    bool found; /* there was one of the same transfer */
    int held;   /* its file's descriptor plus one, locked: one command at a time uses a journal */
} journal;

/* Reads the journal if there is one. False: it is of another transfer, unreadable, or in use; prints what to do. `path` NULL: no journal.
 */
bool journal_open(journal *j, const char *path, const char *source, const char *target, bool restart);
bool journal_save(journal *j);   /* false: prints why */
void journal_remove(journal *j); /* the transfer is complete */
void journal_close(journal *j);
