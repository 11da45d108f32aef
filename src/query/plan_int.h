/* plan_int.h — what the parts of plans share. For this folder. */
#pragma once

#include "query/plan.h"

#define ORDER_FILTER "{documentdb-formattableorderbyquery-filter}"

/* What SELECT shows, as one expression: the item, an object of the columns, or VALUE's. */
void query__payload(buf *out, const query_select *s);

/* ---- hybrid.c: ORDER BY RANK ---- */

unsigned query_hybrid_features(const query *q);

/* The plan up to its ranges: {"partitionedQueryExecutionInfoVersion":2,"hybridSearchQueryInfo":{…}, */
void query_hybrid_write(const query *q, unsigned supported, buf *out);
