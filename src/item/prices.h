/* prices.h — what an item would cost in a container, by its size and the container's indexing policy. Nothing is read or written. Any
 * thread. */
#pragma once

#include "item/container.h"

typedef struct item_prices {
    size_t terms;         /* index terms that the item is charged for */
    size_t terms_changed; /* those that a replace of `before` removes or adds */
    double per_term;
    double read, create, replace, remove; /* RU; replace: 0 without `before` */
} item_prices;

/* `item` and `before` are BSON as they are stored; `before` may be empty. */
item_prices item_prices_of(arena *scratch, const container *c, slice item, slice before);
