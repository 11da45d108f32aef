#include "find/demand.h"

slice find_prefix_end(arena *a, slice s) {
    char *p = arena_alloc(a, s.n + 1);
    memcpy(p, s.p, s.n);
    while (s.n && (unsigned char)p[s.n - 1] == 0xFF) {
        s.n--;
    }
    if (s.n) {
        p[s.n - 1]++;
    }
    return slice_of(p, s.n);
}

size_t find_cluster_bytes(slice spelled) {
    index_value v;
    return index_value_read(spelled, &v) ? v.plain_n : spelled.n;
}

const index_composite *find_composite_for(const find_order *order, const index_policy *policy, bool *backward_out) {
    for (size_t i = 0; i < policy->composites_n; i++) {
        const index_composite *c = &policy->composites[i];
        size_t same = 0, turned = 0;
        for (size_t j = 0; j < c->n && c->n == order->n; j++) {
            const find_order_part *part = &order->parts[j];
            const find_path *p = &part->path;
            bool here = part->known && p->single && !policy->off && index_path_of(p->steps, p->n) == c->parts[j].hash;
            same += here && part->descending == c->parts[j].descending;
            turned += here && part->descending != c->parts[j].descending;
        }
        if (same == order->n || turned == order->n) {
            *backward_out = turned > 0;
            return c;
        }
    }
    return NULL;
}
