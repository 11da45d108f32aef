/* advise_int.h — what the files of advise/ share. */
#pragma once

#include "advise/advise.h"
#include "advise/distinct.h"
#include "advise/heavy.h"
#include "base/arena.h"
#include "base/random.h"
#include "doc/path.h"
#include "partition/partition_key.h"

enum { ADVISE_SLOTS = 1024, ADVISE_COMPONENTS = 8, ADVISE_TRIPLE_COMPONENTS = 5, ADVISE_CANDIDATES = 192, ADVISE_TERMS = 16 };

/* ---- paths ---- */

typedef struct advise_path {
    doc_path path;
    double items;      /* of the head that have a scalar there */
    double fractions;  /* numbers that are no integers */
    double text_bytes; /* of strings */
    double spaced;     /* strings with blanks */
    double dates;      /* texts or numbers that are times */
    bool has_arrays;   /* some item has an array there, which a key may not be */
    distinct *values;
    double values_n;
    double asked; /* part of the reads that name it by an equality */
} advise_path;

typedef struct advise_paths {
    size_t n, left_out;
    double items;
    advise_path list[ADVISE_PATHS];
} advise_paths;

void advise__paths_note(advise_paths *p, arena *a, slice item);
size_t advise__paths_find(const advise_paths *p, slice text); /* SIZE_MAX: none */
pkey_value advise__value_at(const advise_path *p, slice item, bool *is_array);
bool advise__time_of(const pkey_value *v, double *seconds_out);
size_t advise__time_path(const advise_paths *p, slice wanted); /* SIZE_MAX: none */
void advise__add_path_name(buf *out, slice name);              /* quoted if it needs to be */

/* ---- candidates ---- */

typedef struct advise_candidate {
    advise_kind kind;
    size_t n;
    size_t paths[3];
    distinct values;
    heavy bytes, reads;
    double first_parts[ADVISE_SLOTS]; /* bytes by place in the hash space, of a hierarchical key by its first level */
    double read_parts[ADVISE_SLOTS];
    double missing;                                         /* items without a value at one of its paths */
    double too_long;                                        /* items whose value exceeds LIMIT_KEY_BYTES */
    double asked_one, asked_known, asked_prefix, asked_all; /* weights of reads */
    double excess;                                          /* load that is on one key at one moment, beyond what its size explains */
    double novelty;                                         /* part of new items that go to new keys */
} advise_candidate;

/* A key formed for a candidate: who it is, where it lies. */
typedef struct advise_formed {
    uint64_t id;
    double position; /* 0 to 1 */
    bool missing, too_long;
    slice text; /* in the arena */
} advise_formed;

advise_formed advise__form(arena *a, const advise_candidate *c, const pkey_value *values, uint32_t random);
size_t advise__choose(const advise_paths *p, advise_candidate **list, size_t max);
uint32_t advise__suffix(slice text); /* 1 to ADVISE_SUFFIXES: FNV-1a, as in the code that is shown */

/* ---- operations ---- */

typedef struct advise_term {
    slice path;
    size_t index; /* among the paths; SIZE_MAX: none */
    pkey_value value;
    bool several; /* IN with several values */
} advise_term;

typedef struct advise_operation {
    bool write;
    bool point;                 /* a read by key and id */
    double charge, count, time; /* 0: not known; count 1 unless given */
    size_t terms_n;
    advise_term terms[ADVISE_TERMS];
} advise_operation;

/* Texts live in `a`. False: not an operation, with the reason. */
bool advise__operation_read(arena *a, slice bson, advise_operation *o, const char **why);

/* ---- all ---- */

typedef struct advise_sampled {
    double time;
    uint64_t ids[ADVISE_CANDIDATES];
} advise_sampled;

typedef struct advise_kept { /* an operation of the sample */
    char *bson;
    size_t n;
} advise_kept;

struct advise {
    advise_options options;
    arena arena, scratch;
    random_source random;

    double operations, long_operations, write_ru, read_ru, first_time, last_time;
    size_t kept_n;
    advise_kept kept[ADVISE_SAMPLE];

    bool streaming; /* the candidates are chosen */
    buf head;       /* items until then: u32 JSON bytes, BSON */
    size_t head_items;
    advise_paths paths;
    size_t time_path;
    double items, bytes, from, to; /* times, seconds */
    size_t candidates_n;
    advise_candidate *candidates[ADVISE_CANDIDATES];
    size_t sample_n;
    double sampled_from; /* items that the sample was drawn from */
    advise_sampled *sample;
    advise_report report;
};

void advise__count_reads(advise *a);  /* the sampled operations, for each candidate */
void advise__look_at_time(advise *a); /* excess and novelty */
void advise__score(advise *a);        /* the report's keys */
void advise__add_reasons(advise *a, advise_key *k, const advise_candidate *c, const advise_key *of_best);
uint64_t advise__mixed(uint64_t x);
