/* edit_int.h — within item/: running edits and conditions. */
#pragma once

#include "item/item.h"

extern const item_edit_kind item__edit_patch;

/* Estimates whether conditions and edit of a write are too long for the committer. Overwrites in->argument and in->ready. */
bool item__edit_is_long(const item_op *op, item_edit_input *in);

/* The result of running conditions and edit outside the committer, and the version of the item they ran on. */
typedef struct item_prepared {
    item_expected of;
    err code;
    item_edit_result result;
    int32_t ttl;
} item_prepared;

/* Whether a write has conditions or an edit. */
static inline bool item__has_condition_or_edit(const item_op *op) {
    return op->conditions_n > 0 || op->kind == ITEM_EDIT;
}

/* Looked up in the tiles that the request arrived with. */
static inline container_range *item__first_range(item_commit *c) {
    c->first = c->first ? c->first : container_route(c->container->tiles, &c->ops[0].key.epk);
    return c->first;
}

MUST_CHECK err item__commit_apply(commit *base, commit_group *group); /* committer's thread */

/* Whether an earlier operation of the commit, still undecided like this one, writes the same item. */
bool item__written_before(const item_commit *c, size_t i);

/* The current item of a key; an expired item counts as absent. E_NOT_FOUND. On OK release it with item_give. Neither admitted nor
 * charged. */
MUST_CHECK err item__read_now(const container *c, const item_key *key, int64_t now_s, item_found *found_out);
