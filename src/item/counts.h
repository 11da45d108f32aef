/* counts.h — what ranges count, on disk: exact after every group, and cheap.
 *
 * A group writes one entry with the counts of all ranges it touched, into one of a few hundred slots in turn. Before a slot comes round
 * again, each range touched meanwhile gets an entry of its own, in one batch with a note that all groups before are in them. So a range's
 * counts are those of the last group since that note that has it, or else its own. The committer's thread, and loading. */
#pragma once

#include "item/container.h"

struct counts_log {
    commit_hook hook;          /* linked before the ranges' own, so that it runs after them */
    uint64_t gathered;         /* groups before this one are in the ranges' own entries */
    uint64_t next;             /* number of the next group entry */
    bool gathers;              /* this group does */
    buf pending;               /* this group's entry */
    container_range **touched; /* since they were gathered; references */
    size_t touched_n, touched_cap;
};

void counts_log_open(counts_log *log);
void counts_log_close(counts_log *log);

/* The range's counts go into this group's entry: called by the range's own hook. */
void counts_log_add(counts_log *log, const container_range *range);

/* Within apply: the group changes this range's counts. */
void counts_log_link(commit_group *group, container_range *range);

/* At start, for each group since the note, in order: calls `find` for the ranges in it and restores what it gives (NULL: gone, passed
 * over). */
MUST_CHECK err counts_log_load(counts_log *log, store *s, container_range *(*find)(void *, uint32_t container, uint32_t range),
                               void *context);
