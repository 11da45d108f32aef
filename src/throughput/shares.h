/* shares.h — how a container's throughput is divided among its ranges.
 *
 * The service's rule is equal shares: T / n each, at most what a physical partition gives. The other rule, an option of ours, lets shares
 * follow the load: a range that needs more takes what others leave idle, within the same total. Pure functions. */
#pragma once

#include <stddef.h>

typedef struct share_rule {
    double total;      /* RU/s of the container */
    double most;       /* of one range: the physical limit, t */
    double least_part; /* every range keeps this part of its equal share, however idle: 0.1; not 0, since a bucket of 0 has no limit */
} share_rule;

void shares_equal(const share_rule *rule, double *shares, size_t n);

/* `demand`: RU/s that each range was asked for lately, refused requests included. The shares add up to min(total, n × most), none is below
 * its least part or above `most`; a range gets what it asks for unless all that ask cannot be served, then they are filled up evenly
 * (water-filling), and what nobody asks for is spread evenly on top. O(n log n). */
void shares_follow(const share_rule *rule, const double *demand, double *shares, size_t n);
