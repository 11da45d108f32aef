#include "item/prices.h"

#include "index/terms.h"
#include "throughput/charge.h"

item_prices item_prices_of(arena *scratch, const container *c, slice item, slice before) {
    size_t terms = index_terms(&c->index, item);
    item_prices prices = {
        .terms = terms,
        .per_term = CHARGE_TERM,
        .read = charge_read(item.n),
        .create = charge_create(item.n, terms),
        .remove = charge_delete(item.n, terms),
    };
    if (before.n) {
        prices.terms_changed = index_terms_changed(scratch, &c->index, before, item);
        prices.replace = charge_replace(item.n, prices.terms_changed);
    }
    return prices;
}
