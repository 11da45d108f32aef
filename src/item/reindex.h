/* reindex.h — rebuilding a container's index for another policy, while reads and writes continue.
 *
 * The new policy gets its own generation of entries, built beside the old one. Every write maintains both; a background job adds the
 * entries of existing items in small commits; queries use the old generation. When all entries are there, one commit makes the new
 * generation current and deletes the old one. The state in the store (`'I'`) is sufficient to continue after a crash. */
#pragma once

#include "item/item.h"

/* At start: sets the indexes of the space from the store. `policy` is that of the container's newest settings. */
MUST_CHECK err item_index_load(container *c, slice policy);
MUST_CHECK err item_index_progress(container *c); /* call once the item counts are loaded */

void item_index_new(container *c, slice policy); /* for a container being created: generation 1 in all its homes */

/* ---- a change of settings: within a solo commit ---- */

typedef struct index_change {
    container_part *part;
    container_index *index, *building; /* the part's indexes after the commit */
    bool any;
} index_change;

/* Before the container's record gets another policy: a home that does not hold the record stores the policy of its own index. */
MUST_CHECK err item_index_pin(commit_group *group, const container *c, const home *home);
bool item_index_matches_policy(const container *c,
                               container_part *part); /* the part has, or is building, an index of the container's policy */

/* `policy` is the new one, in the form that settings store. */
void item_index_change(commit_group *group, container *c, const home *home, slice policy, index_change *change_out);
void item_index_changed(container *c, index_change *change, err code); /* after the commit, on the committer's thread */

/* ---- building ---- */

typedef struct item_index_step item_index_step;
struct item_index_step {
    commit base;
    const items *items;
    home *home;           /* the home whose part of the container is built */
    container *container; /* the caller keeps its reference until `done` */
    unsigned cost_max;    /* an item costs 1, plus 1 for each 4 KB */
    bool switches;        /* the final commit, which makes the new index current */
    index_change change;
    bool ended; /* output: nothing is left to build; submit once more with `switches` */
    void (*done)(item_index_step *step);
};
void item_index_step_submit(item_index_step *step);
