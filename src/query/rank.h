/* rank.h — ORDER BY RANK: scores of rows by BM25 (FullTextScore), by how alike vectors are (VectorDistance), or by the places that several
 * such scores give (RRF).
 *
 * BM25 needs to know all texts of the path first: every item, whether WHERE takes it or not, is counted; then rows have scores. Greater is
 * better; undefined (no text, no vector) is worst. */
#pragma once

#include "query/eval.h"

typedef struct query_rank query_rank;

/* The calls that an ORDER BY RANK is made of, and their weights: the one, or those of RRF. Without weights all are 1. */
typedef struct query_rank_part {
    const query_expr *call;
    double weight; /* below 0: the worst is best */
    bool text;     /* FullTextScore */
} query_rank_part;
size_t query_rank_parts(const query_select *s, query_rank_part parts_out[QUERY_SCORES_MAX], bool *weighted_out);

/* Of a query with ORDER BY RANK. Everything is kept in `keep`. */
query_rank *query_rank_new(arena *keep, const query_select *s);

bool query_rank_counts(const query_rank *k);           /* items are to be counted before there are scores */
void query_rank_count(query_rank *k, query_runner *r); /* the item that the slots are set to */

size_t query_rank_scores_n(const query_rank *k);
void query_rank_scores(query_rank *k, query_runner *r, query_value *scores_out); /* of the row that the slots are set to */

/* From the scores of all rows (rows[i] are those of row i) to one each, which takes the place of the first. */
void query_rank_fuse(const query_rank *k, arena *scratch, query_value *const *rows, size_t n);
