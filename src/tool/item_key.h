/* item_key.h — the partition keys of items that a command reads, by the paths of their container. */
#pragma once

#include <tesela/tesela.h>

#include "doc/path.h"

enum { ITEM_KEY_PATHS = 3 };

typedef struct key_paths {
    size_t n; /* 0: a container without a partition key */
    doc_path list[ITEM_KEY_PATHS];
} key_paths;

/* Of a container's definition, as BSON. The paths live in the arena. */
bool item_key_paths_in(slice definition, arena *a, key_paths *paths_out);
/* The same of a container; false: prints why, as "tesela COMMAND: …". */
bool item_key_paths(const char *command, tesela_container *container, arena *a, key_paths *paths_out);

/* The key of an item, as libtesela takes it; its texts live in the arena. */
tesela_key item_key_of(arena *a, const key_paths *paths, slice item);
bool item_key_same(const tesela_key *a, const tesela_key *b);

/* A copy that ends with a zero byte. */
slice item_text_in(arena *a, slice text);
