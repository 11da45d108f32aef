/* plan.h — when to split and merge: the decisions, apart from the doing. Pure functions over a description of the ranges, so that the
 * server, the property tests and the simulation (tests/sim) all decide by the same code.
 *
 * Split    for throughput: while the container's total T exceeds what its n ranges can give, t each, some range must become two, until
 *          n = ceil(T / t). The ones with the most data go first, then the widest; one that holds a single logical partition only if no
 *          other is left, since one of its halves would be empty.
 *          for storage: a range whose bytes pass the limit, if it holds more than one logical partition.
 * Merge    two neighbours become one when, both before and after, they are far from any limit: each share below 30 % of t, their bytes
 *          together at most 40 % of the storage limit. So a merge is never followed by a split unless something changes. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct plan_range {
    uint64_t bytes;      /* data and index */
    uint64_t partitions; /* logical partitions; 0: empty */
    double width;        /* part of the hash space, 0 to 1 */
    bool busy;           /* already being changed: leave it alone */
} plan_range;

typedef struct plan_limits {
    double throughput;    /* T; 0: none provisioned of its own (it shares its database's): only storage counts */
    double range_most;    /* t */
    uint64_t range_bytes; /* storage limit of a range */
    uint32_t ranges_max;
    bool merges; /* wanted at all */
    bool fixed;  /* a fixed container has one range, always */
} plan_limits;

typedef enum plan_reason { PLAN_NOTHING, PLAN_THROUGHPUT, PLAN_STORAGE, PLAN_SCALE_DOWN, PLAN_COMMAND } plan_reason;

/* Ranges [first, first + n) become `parts` ranges: n 1 and parts 2 or more is a split, n 2 or more and parts 1 a merge. */
typedef struct plan_step {
    plan_reason reason;
    size_t first, n;
    uint32_t parts;
} plan_step;

/* The most pressing thing to do, or reason PLAN_NOTHING. Throughput asks for as many parts of one range as it takes (its part of the
 * ranges missing, so that after one step of each chosen range n = ceil(T / t)). O(n). */
plan_step plan_next(const plan_limits *limits, const plan_range *ranges, size_t n);

const char *plan_reason_text(plan_reason reason); /* "throughput", "storage", … for events and logs */

/* Where to cut logical partitions, met in EPK order, into `parts` pieces of about the same weight. Streaming, so that a hundred million of
 * them need no memory: set total and parts, then ask for each partition whether a new piece starts with it. Each piece gets at least one
 * partition; there are fewer pieces than asked for when there are fewer partitions or one outweighs the others. */
typedef struct plan_cutter {
    uint64_t total; /* weight of all partitions together */
    uint32_t parts;
    uint32_t cuts; /* made so far */
    uint64_t sum;  /* weight of the partitions met so far */
    bool in_piece; /* the piece being filled has a partition already */
} plan_cutter;

bool plan_cut_here(plan_cutter *c, uint64_t weight);
