/* rank.h — ORDER BY RANK: scores rows by BM25 (FullTextScore), by vector similarity (VectorDistance), or by fusing the ranks of several
 * such scores (RRF).
 *
 * BM25 needs statistics of all texts of the path: first every item is counted, whether or not it passes WHERE; then rows are scored.
 * Greater is better; undefined (no text, no vector) is worst. */
#pragma once

#include "query/eval.h"

typedef struct query_rank query_rank;

/* One score of ORDER BY RANK: the only one, or an argument of RRF. Weights are 1 unless given. */
typedef struct query_rank_part {
    const query_expr *call;
    double weight; /* negative: reverses the order of the score */
    bool text;     /* FullTextScore, otherwise VectorDistance */
} query_rank_part;
size_t query_rank_parts(const query_select *s, query_rank_part parts_out[QUERY_SCORES_MAX], bool *weighted_out);

/* For a query with ORDER BY RANK. Everything is allocated in `keep`. */
query_rank *query_rank_new(arena *keep, const query_select *s);

bool query_rank_counts(const query_rank *k);           /* whether items must be counted before they are scored */
void query_rank_count(query_rank *k, query_runner *r); /* counts the item in the runner's slots */

size_t query_rank_scores_n(const query_rank *k);
void query_rank_scores(query_rank *k, query_runner *r, query_value *scores_out); /* scores the row in the runner's slots */

/* Combines the scores of each row into one, which replaces the first; rows[i] are the scores of row i. */
void query_rank_fuse(const query_rank *k, arena *scratch, query_value *const *rows, size_t n);
