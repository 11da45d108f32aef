/* reindex.h — a container's index under another policy, while everything goes on.
 *
 * The new policy gets a generation of entries of its own, built beside the old one's: every write keeps both, a background job gives the
 * items of before their entries in small commits, queries use the old one. When all have theirs, one commit makes the new generation the
 * container's and deletes the old. What stands in the store (`'I'`) is enough to go on after a crash. */
#pragma once

#include "item/item.h"

/* At start: sets the space's index as the store knows it. `settings` of the container are the newest. */
MUST_CHECK err item_index_load(container *c, slice policy);
MUST_CHECK err item_index_progress(container *c); /* once it is known how many items there are */

void item_index_new(container *c, slice policy); /* of a container that is being made: generation 1 in all its homes */

/* ---- a change of settings: within a solo commit ---- */

typedef struct index_change {
    container_part *part;
    container_index *index, *building; /* what the part's become once the commit is written */
    bool any;
} index_change;

/* Before the container's record gets another policy: a home that does not hold the record writes down which one its index is of. */
MUST_CHECK err item_index_pin(commit_group *group, const container *c, const home *home);
bool item_index_follows(const container *c, container_part *part); /* it has, or is building, an index of the container's policy */

/* `policy` is the new one, as settings hold it. */
void item_index_change(commit_group *group, container *c, const home *home, slice policy, index_change *change_out);
void item_index_changed(container *c, index_change *change, err code); /* after the commit, on the committer's thread */

/* ---- building ---- */

typedef struct item_index_step item_index_step;
struct item_index_step {
    commit base;
    const items *items;
    home *home;           /* the part of the container that is there */
    container *container; /* the caller's reference is held until done */
    unsigned cost_max;    /* items, and one more for each 4 KB */
    bool switches;        /* this commit is the last one */
    index_change change;
    bool ended; /* nothing is left to build: submit once more with `switches` */
    void (*done)(item_index_step *step);
};
void item_index_step_submit(item_index_step *step);
