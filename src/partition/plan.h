/* plan.h — when to split and merge: the decisions, apart from the doing. Pure functions over a description of the ranges, so that the
 * server, the property tests and the simulation (tests/sim) all decide by the same code.
 *
 * Split    for storage: a range whose bytes pass the limit, if it holds more than one logical partition. It becomes as many as it takes
 *          to have each at half to three quarters of the limit: two, unless it grew or the limit was lowered by more than that.
 *          for throughput: while the container's total T exceeds what its n ranges can give, t each, some range must become several,
 *          until n = ceil(T / t). The ones with the most data go first; then the widest of those without any; one that holds a single
 *          logical partition only if no other is left, since all but one of its parts would be empty.
 * Merge    neighbours become one when, both before and after, they are far from any limit: shares below 30 % of t, bytes together at
 *          most 40 % of the storage limit. The lightest pair starts, and takes in more neighbours up to an average range of the end. So
 *          a merge is never followed by a split unless something changes, nor a split by a merge of what it made.
 *
 * Storage goes before throughput, throughput before merging. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct plan_range {
    uint64_t bytes;      /* data and index */
    uint64_t partitions; /* logical partitions (those that share an EPK, which V1 allows, count as one); 0: empty */
    double width;        /* part of the hash space, 0 to 1 */
    uint32_t home;       /* the store it is in: only ranges of one store are merged */
} plan_range;

typedef struct plan_limits {
    double throughput;    /* T; 0: none provisioned of its own (it shares its database's): only storage counts */
    double range_most;    /* t */
    uint64_t range_bytes; /* storage limit of a range; 0: none */
    uint32_t ranges_max;
    bool merges; /* wanted at all */
    bool fixed;  /* a fixed container has one range, always */
} plan_limits;

typedef enum plan_reason { PLAN_NOTHING, PLAN_THROUGHPUT, PLAN_STORAGE, PLAN_SCALE_DOWN, PLAN_COMMAND, PLAN_UNDO } plan_reason;

/* Ranges [first, first + n) become `parts` ranges: n 1 and parts 2 or more is a split, n 2 or more and parts 1 a merge. A range with at
 * least two logical partitions is cut between them (plan_cut_here), and `parts` is then no more than they are; one with fewer is cut
 * into equal widths. */
typedef struct plan_step {
    plan_reason reason;
    size_t first, n;
    uint32_t parts;
} plan_step;

/* N = ceil(T / t): how many ranges it takes to give this throughput; 1 at least, `ranges_max` at most. */
uint32_t plan_ranges_for(double throughput, double range_most, uint32_t ranges_max);

/* The most pressing thing to do, or reason PLAN_NOTHING. Throughput asks for as many parts of one range as it takes (its part of the
 * ranges missing, so that after one step of each chosen range n = ceil(T / t)). O(n). */
plan_step plan_next(const plan_limits *limits, const plan_range *ranges, size_t n);

const char *plan_reason_text(plan_reason reason); /* "throughput", "storage", … for events and logs */

/* Where to cut logical partitions, met in EPK order, into `parts` pieces of about the same weight. Streaming, so that a hundred million of
 * them need no memory: set total and parts, then ask for each partition whether a new piece starts with it. Each piece gets at least one
 * partition and weighs, give or take the heaviest partition, total / parts. There are at least two pieces of two partitions, but fewer
 * than asked for when the partitions at the end are too few or too heavy; plan_next will then ask for more. */
typedef struct plan_cutter {
    uint64_t total; /* weight of all partitions together */
    uint32_t parts;
    uint32_t cuts;      /* made so far */
    uint64_t sum;       /* weight of the partitions met so far */
    bool in_piece;      /* the piece being filled has a partition already */
    uint64_t base;      /* from here on, and after this many cuts, the rest is divided evenly: 0, or the end of the last partition that */
    uint32_t base_cuts; /* was heavier than a piece */
} plan_cutter;

bool plan_cut_here(plan_cutter *c, uint64_t weight);
