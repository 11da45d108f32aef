/* advise.h — which partition key suits some data and its requests.
 *
 * Operations of a log, if there is one, are added first, then items, in any number; then a report scores every candidate: each path with
 * scalar values, pairs and triples of paths as hierarchical keys, and synthetic keys. Pure: no sockets, no files. One thread.
 *
 * Memory is bounded, about 30 MB whatever the input. The paths come from the first ADVISE_HEAD_ITEMS items (or ADVISE_HEAD_BYTES). For each
 * candidate all items are counted: values by HyperLogLog, the largest by a table of 1,024 (heavy.h), storage in 1,024 parts of the hash
 * space, placed by the service's own hash. Time is looked at in a uniform sample of ADVISE_SAMPLE items, operations in one of as many. */
#pragma once

#include "base/buf.h"

enum {
    ADVISE_HEAD_ITEMS = 4000,
    ADVISE_HEAD_BYTES = 16 * 1024 * 1024,
    ADVISE_SAMPLE = 4096,
    ADVISE_OPERATION_BYTES = 4096, /* longer lines of a log are counted as queries of all partitions */
    ADVISE_PATHS = 64,
    ADVISE_PATH_BYTES = 200,
    ADVISE_DEPTH = 4,      /* properties below the top level: /a/b/c/d */
    ADVISE_SUFFIXES = 400, /* suffixes of synthetic keys, from 1 */
    ADVISE_PARTITIONS_MAX = 1024,
};

typedef struct advise_options {
    slice time_path;     /* the property that says when an item was written; empty: looked for */
    double throughput;   /* provisioned RU/s */
    double load;         /* RU/s that would be used if each query stayed in one partition; 0: 80 % of the throughput */
    double write_share;  /* part of the load that writes; negative: as in the log, else all without and half with a log of queries */
    uint32_t partitions; /* physical; 0: as many as throughput and storage need */
    double total_bytes;  /* size of all data today if the items are a part of it; 0: they are all */
    double growth;       /* factor by which the data will grow; 0: from the items' times */
    double horizon_days; /* how far ahead to project with the items' times */
    double logical_max_bytes, physical_max_bytes;
    uint64_t seed;
} advise_options;

extern const advise_options advise_defaults;

typedef struct advise advise;

advise *advise_new(const advise_options *options);
void advise_free(advise *a);

/* A line of a log (docs/advise.md), as BSON. False: it is none, with the reason in *why. */
bool advise_add_operation(advise *a, slice bson, const char **why);
void advise_add_long_operation(advise *a); /* one of more than ADVISE_OPERATION_BYTES */

void advise_add_item(advise *a, slice bson, size_t json_bytes);

typedef enum advise_kind {
    ADVISE_PATH,
    ADVISE_HIERARCHICAL, /* [a, b] or [a, b, c] */
    ADVISE_CONCATENATED, /* a-b */
    ADVISE_RANDOM,       /* a.N, N at random */
    ADVISE_PRECOMPUTED,  /* a.N, N a hash of b */
} advise_kind;

enum { ADVISE_REASONS_MAX = 10 };

typedef struct advise_key {
    advise_kind kind;
    size_t n; /* paths */
    slice paths[3];
    slice name;           /* /a, /b · /a-/b · /a.random · /a.hash(/b) */
    double values;        /* different keys */
    double largest_share; /* of the bytes, in the largest logical partition */
    double top_share;     /* of the bytes, in the largest 1 % of the logical partitions; a lower bound if there are more than 100,000 */
    double largest_bytes, projected_bytes;
    slice largest;        /* its key, as text, cut */
    bool outgrows;        /* projected_bytes exceeds what a logical partition may hold */
    double hottest;       /* share of the load that the busiest key has at any one moment */
    double one_partition; /* part of the reads that go to one logical partition */
    double known_keys;    /* part of the reads whose keys the client can list, up to ADVISE_SUFFIXES of them */
    double ru_per_second; /* what the load costs with this key */
    double refused;       /* part of it that gets 429 */
    double score;         /* 0 to 100 */
    size_t reasons_n;
    slice reasons[ADVISE_REASONS_MAX];
    double *load_parts; /* of each physical partition, in the order of the hash space: RU/s asked of it at the busiest moment */
    double *byte_parts; /* bytes now */
} advise_key;

typedef struct advise_report {
    double items, bytes, projected_bytes;
    double operations, reads, write_share, load;
    double growth, days; /* days that the items' times span; 0: no times */
    slice time_path;     /* empty: none */
    uint32_t partitions;
    double throughput;
    size_t paths_left_out; /* beyond ADVISE_PATHS */
    size_t n;
    advise_key **keys; /* the best first */
} advise_report;

/* Ends the counting. NULL: there was no item, or no path with scalar values. The report lives as long as `a`. */
const advise_report *advise_finish(advise *a);

/* The report as text: the table with `rows` candidates, pictures of the best and the worst, reasons, code. As JSON: all candidates. */
void advise_show(buf *out, const advise_report *r, size_t rows);
void advise_write_json(buf *out, const advise_report *r);
void advise_add_code(buf *out, const advise_key *k); /* of a synthetic key: JavaScript, Python and C */
