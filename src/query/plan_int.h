/* plan_int.h — shared by plan.c and hybrid.c. Private to query/. */
#pragma once

#include "query/plan.h"

#define ORDER_FILTER "{documentdb-formattableorderbyquery-filter}"

/* Prints the row as one expression: the item, an object of the columns, or VALUE's expression. */
void query__payload(buf *out, const query_select *s);

/* ---- hybrid.c: ORDER BY RANK ---- */

unsigned query_hybrid_features(const query *q);

/* Writes the plan up to its ranges: {"partitionedQueryExecutionInfoVersion":2,"hybridSearchQueryInfo":{…}, */
void query_hybrid_write(const query *q, unsigned supported, buf *out);
