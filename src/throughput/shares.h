/* shares.h — divides a container's throughput among its ranges.
 *
 * The service's rule is equal shares: T / n each, at most the limit of a physical partition. The other rule, an option of ours, lets shares
 * follow the load: a range that needs more gets what others leave unused, within the same total. Pure functions. */
#pragma once

#include <stddef.h>

typedef struct share_rule {
    double total;      /* RU/s of the container */
    double most;       /* the limit of one range, t */
    double least_part; /* fraction of its equal share that an idle range keeps: 0.1; not 0, since a bucket of rate 0 has no limit */
} share_rule;

void shares_equal(const share_rule *rule, double *shares, size_t n);

/* `demand`: each range's recent demand in RU/s, rejected requests included. The shares add up to min(total, n × most); none is below its
 * least part or above `most`. If the total covers all demands, each range gets its demand, and the rest is spread evenly on top. Otherwise
 * shares are filled up evenly (water-filling). O(n log n). */
void shares_follow(const share_rule *rule, const double *demand, double *shares, size_t n);
