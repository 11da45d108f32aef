/* counts.h — the counts of ranges on disk: exact after every group, and cheap to write.
 *
 * Each group writes one log entry with the counts of all ranges it touched, cycling through a few hundred slots. Before a slot is reused,
 * every range touched since gets an entry of its own, in one batch with a checkpoint note that says which groups these entries cover. So
 * the counts of a range are those in the last log entry after the checkpoint that contains the range, or else those in its own entry. Used
 * on the committer's thread, and while loading. */
#pragma once

#include "item/container.h"

struct counts_log {
    commit_hook hook;          /* linked before the ranges' hooks, so that it runs after them */
    uint64_t gathered;         /* checkpoint: groups before this number are covered by the ranges' own entries */
    uint64_t next;             /* number of the next group entry */
    bool gathers;              /* this group writes a checkpoint */
    buf pending;               /* this group's entry */
    container_range **touched; /* references to the ranges written since the last checkpoint */
    size_t touched_n, touched_cap;
};

void counts_log_open(counts_log *log);
void counts_log_close(counts_log *log);

/* Adds the range's counts to this group's entry. Called by the range's hook. */
void counts_log_add(counts_log *log, const container_range *range);

/* Within apply: the group changes this range's counts. */
void counts_log_link(commit_group *group, container_range *range);

/* At start: replays the entries since the checkpoint in order. Calls `find` for each range in them and restores its counts; `find` returns
 * NULL for ranges that no longer exist. */
MUST_CHECK err counts_log_load(counts_log *log, store *s, container_range *(*find)(void *, uint32_t container, uint32_t range),
                               void *context);
