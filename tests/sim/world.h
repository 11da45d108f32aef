/* world.h — the logical partitions of the simulated container, every one of them.
 *
 * Each has a key (a number), the EPK that the real hash gives it, a rate by Zipf's law, a size by Pareto's, and perhaps it grows. All but
 * the order of their EPKs is computed from the rank when needed, so that one costs four bytes. */
#pragma once

#include "partition/epk.h"

typedef struct world_options {
    uint64_t seed;
    uint32_t partitions;
    double rate;         /* RU/s of all together, on average */
    double skew;         /* Zipf's exponent */
    double hottest;      /* RU/s of the hottest, on average; the head of the law is flattened to this. 0: it is not */
    double size_mean;    /* bytes at the beginning */
    double size_limit;   /* of a logical partition: it takes no more then */
    double bytes_per_ru; /* that stay: growth */
} world_options;

typedef struct world {
    world_options options;
    pkey_definition definition;
    double scale, flat; /* rank r asks for scale / (r + 1 + flat) ^ skew */
    uint32_t *order;    /* ranks (0 is the hottest) by EPK */
} world;

/* What a run of logical partitions, neighbours in EPK order, amounts to. */
typedef struct world_sums {
    uint64_t partitions;
    double rate;   /* RU/s when the load is average */
    double size;   /* bytes at the beginning */
    double growth; /* bytes more per second of average load */
} world_sums;

void world_build(world *w, const world_options *options);
void world_free(world *w);

void world_epk(const world *w, uint32_t rank, epk *epk_out);
double world_rate(const world *w, uint32_t rank);

/* After `age` seconds of average load, up to the limit; or what it would be without. */
double world_bytes(const world *w, uint32_t rank, double age);
double world_bytes_unlimited(const world *w, uint32_t rank, double age);

/* Of order[from … to). */
world_sums world_sum(const world *w, uint32_t from, uint32_t to);
void world_add(world_sums *sums, const world *w, uint32_t rank);

/* The first in order whose EPK is not below `e`; the number of partitions if there is none. */
uint32_t world_seek(const world *w, const epk *e);

/* The first eight bytes of an EPK of a V2 container as a number below 2^62; of "FF": 2^62. */
uint64_t world_head(const epk *e);
