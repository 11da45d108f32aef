/* index_uses.h — within api/mongo: how often each index was used since the server was started, for $indexStats.
 *
 * A command counts once for each find of its own. Any thread. The counts of INDEX_USES_MAX indexes are kept: if there are more, all begin
 * again. */
#pragma once

#include "base/slice.h"

typedef struct mongo_index_uses mongo_index_uses;

enum { INDEX_USES_MAX = 65536 };

mongo_index_uses *mongo_index_uses_new(void);
void mongo_index_uses_free(mongo_index_uses *u);

/* An empty name is ignored. `container` is its number (container_space). */
void mongo_index_uses_add(mongo_index_uses *u, uint32_t container, slice name);
uint64_t mongo_index_uses_of(mongo_index_uses *u, uint32_t container, slice name);
