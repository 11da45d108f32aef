/* accumulator.h — accumulators of $group, $bucket and $setWindowFields: {$sum: "$x"}, {$push: …}, {$top: …}.
 *
 * An accumulator is parsed once. A tally is one accumulator at work, for one group: documents are added to it, and it tells its value at
 * any time. Accumulators are rows of one table, which also says what Azure's service offers. */
#pragma once

#include "mql/expression.h"
#include "mql/sort.h"

typedef struct mql_accumulator mql_accumulator; /* parsed; constant */
typedef struct mql_tally mql_tally;             /* running; one thread at a time */

/* Parses {$sum: e}, a document with exactly one member. Fails with 15952 for an unknown accumulator, with MongoDB's text. */
MUST_CHECK err mql_accumulator_parse(mql_scope *s, mql_value text, const mql_accumulator **accumulator_out);
/* Visits the paths of the document that it reads; an empty path is the whole document. */
void mql_accumulator_paths(const mql_accumulator *a, void (*visit)(void *context, slice path), void *context);

/* Lives in the arena; what it keeps of documents is counted by the arena's budget. Free it before the arena. */
mql_tally *mql_tally_begin(arena *memory, const mql_accumulator *a);
void mql_tally_free(mql_tally *t);
/* Optional, before documents are added: sets the group's _id. The `n` of $firstN, $lastN, $minN, … may refer to its fields. */
MUST_CHECK err mql_tally_for_group(mql_run *r, mql_tally *t, mql_value group_id);
/* Evaluates the accumulator's argument for the document in `r->root`, and adds it. */
MUST_CHECK err mql_tally_add(mql_run *r, mql_tally *t);
/* The same as often as the document occurs. */
MUST_CHECK err mql_tally_add_times(mql_run *r, mql_tally *t, uint64_t times);
/* Merges another tally of the same accumulator into `t`, for groups computed in parts. The documents of `from` come after those of `t`. */
MUST_CHECK err mql_tally_merge(mql_run *r, mql_tally *t, const mql_tally *from);
/* The value lives in the run's arena, or in the tally until that is changed. */
MUST_CHECK err mql_tally_value(mql_run *r, const mql_tally *t, mql_value *value_out);

/* The state as a document in the run's arena, and a new tally's state from such a document: a group computed elsewhere is loaded and then
 * merged. Any document is safe to load. */
MUST_CHECK err mql_tally_save(mql_run *r, const mql_tally *t, mql_value *state_out);
MUST_CHECK err mql_tally_load(mql_run *r, mql_tally *t, mql_value state);
