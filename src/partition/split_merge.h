/* split_merge.h — decides when to split and merge ranges, and where to cut. Pure functions over a description of the ranges, so that the
 * server, the property tests and the simulation (tests/sim) all decide by the same code. Carrying out a step is done elsewhere.
 *
 * Split    for storage: a range whose bytes exceed the limit and that has more than one logical partition. It is split into parts of half
 *          to three quarters of the limit each: mostly two, more if it grew far beyond the limit or the limit was lowered.
 *          for throughput: while the container's total T exceeds the capacity of its n ranges (t each), ranges are split until
 *          n = ceil(T / t). Ranges with the most data are split first, then the widest empty ones. A range with a single logical
 *          partition comes last, since all but one of its parts would be empty.
 * Merge    neighbours are merged if they are far from any limit, both before and after: shares below 30 % of t, and together at most
 *          40 % of the storage limit. The lightest pair is merged first, with more neighbours up to the average size of the final
 *          ranges. So unless something changes, a merge is never followed by a split, nor a split by a merge of its parts.
 *
 * Splits for storage take precedence over splits for throughput, and these over merges. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct plan_range {
    uint64_t bytes;      /* data and index */
    uint64_t partitions; /* logical partitions (those with the same EPK, possible in V1, count as one); 0: empty */
    double width;        /* fraction of the hash space, 0 to 1 */
    uint32_t home;       /* the store that it is in: only ranges of the same store can be merged */
} plan_range;

typedef struct plan_limits {
    double throughput;    /* T; 0: it shares its database's throughput, so only storage counts */
    double range_most;    /* t: the most throughput of one range */
    uint64_t range_bytes; /* storage limit of a range; 0: none */
    uint32_t ranges_max;
    bool merges; /* merging is enabled */
    bool fixed;  /* a fixed container, which always has one range */
} plan_limits;

typedef enum plan_reason { PLAN_NOTHING, PLAN_THROUGHPUT, PLAN_STORAGE, PLAN_SCALE_DOWN, PLAN_COMMAND, PLAN_UNDO } plan_reason;

/* Ranges [first, first + n) become `parts` ranges: a split if n is 1, a merge if parts is 1. A range with at least two logical partitions
 * is cut between them (plan_cut_here), and `parts` is at most their number; a range with fewer is cut into equal widths. */
typedef struct plan_step {
    plan_reason reason;
    size_t first, n;
    uint32_t parts;
} plan_step;

/* The number of ranges that a throughput needs: ceil(T / t), at least 1 and at most `ranges_max`. */
uint32_t plan_ranges_for(double throughput, double range_most, uint32_t ranges_max);

/* The most urgent step, or reason PLAN_NOTHING. A split for throughput gives one range its part of the missing ranges, so that n = ceil(T /
 * t) after one step of each chosen range. O(n). */
plan_step plan_next(const plan_limits *limits, const plan_range *ranges, size_t n);

const char *plan_reason_text(plan_reason reason); /* "throughput", "storage", … for events and logs */

/* Decides where to cut logical partitions, given in EPK order, into `parts` pieces of about the same weight. It streams, so that a hundred
 * million partitions need no memory: set `total` and `parts`, then call plan_cut_here for each partition; true: a new piece starts with it.
 * Each piece gets at least one partition, and its weight differs from total / parts by about the heaviest partition at most. Two or more
 * partitions give at least two pieces. There are fewer than `parts` pieces if the last partitions are too few or too heavy; plan_next then
 * plans another step. */
typedef struct plan_cutter {
    uint64_t total; /* weight of all partitions together */
    uint32_t parts;
    uint32_t cuts;      /* cuts made so far */
    uint64_t sum;       /* weight of the partitions so far */
    bool in_piece;      /* the current piece has a partition */
    uint64_t base;      /* the weight after `base` is divided evenly: 0, or the end of the last partition heavier than a piece */
    uint32_t base_cuts; /* cuts made up to `base` */
} plan_cutter;

bool plan_cut_here(plan_cutter *c, uint64_t weight);
