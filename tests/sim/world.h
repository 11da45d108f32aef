/* world.h — all logical partitions of the simulated container.
 *
 * Each has a key (a number), an EPK by the real hash, a rate by Zipf's law and a size by Pareto's law; some grow. Everything except the
 * order of EPKs is computed from the rank when needed, so that a partition costs four bytes. */
#pragma once

#include "partition/epk.h"

typedef struct world_options {
    uint64_t seed;
    uint32_t partitions;
    double rate;         /* average RU/s of all partitions together */
    double skew;         /* Zipf's exponent */
    double hottest;      /* average RU/s of the hottest partition, to which the law's head is flattened; 0: not flattened */
    double size_mean;    /* bytes at the beginning */
    double size_limit;   /* maximum size of a logical partition */
    double bytes_per_ru; /* growth of the data */
} world_options;

typedef struct world {
    world_options options;
    pkey_definition definition;
    double scale, flat; /* rank r asks for scale / (r + 1 + flat) ^ skew */
    uint32_t *order;    /* ranks (0 is the hottest) by EPK */
} world;

/* Sums over logical partitions that are adjacent in EPK order. */
typedef struct world_sums {
    uint64_t partitions;
    double rate;   /* RU/s at average load */
    double size;   /* bytes at the beginning */
    double growth; /* bytes added per second of average load */
} world_sums;

void world_build(world *w, const world_options *options);
void world_free(world *w);

void world_epk(const world *w, uint32_t rank, epk *epk_out);
double world_rate(const world *w, uint32_t rank);

/* The size after `age` seconds of average load, with and without the limit. */
double world_bytes(const world *w, uint32_t rank, double age);
double world_bytes_unlimited(const world *w, uint32_t rank, double age);

/* Sums over order[from … to). */
world_sums world_sum(const world *w, uint32_t from, uint32_t to);
void world_add(world_sums *sums, const world *w, uint32_t rank);

/* The index in `order` of the first partition whose EPK is not below `e`; the number of partitions if there is none. */
uint32_t world_seek(const world *w, const epk *e);

/* The first eight bytes of a V2 EPK as a number below 2^62; 2^62 for "FF". */
uint64_t world_head(const epk *e);
