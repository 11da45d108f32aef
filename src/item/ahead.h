/* ahead.h — within item/: reads ahead what the committer will look up, on a thread that may wait for the disk.
 *
 * The committer looks up everything in memory only, the first time. If something is missing it puts the commit aside (item_commit_missed),
 * a worker reads it here, and the commit is submitted again; meanwhile the committer goes on with others. What is still missing then,
 * because other data has taken its place in memory, the committer waits for. */
#pragma once

#include "item/item.h"

/* For the operations of a commit, and of its chain, that are not decided yet. */
void item__fetch_ahead(item_commit *first);
