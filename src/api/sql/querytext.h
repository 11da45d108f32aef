/* querytext.h — the few query texts that SDKs themselves send, until the query language is there: to metadata feeds (by id, offers by
 * resource) and for read-many.
 *
 *   SELECT * FROM x [alias] [WHERE condition]
 *   condition: path = value, path IN (value, …), IS_DEFINED(path) = false, AND, OR, parentheses; values are literals or @parameters;
 *   paths x.a.b or x["a"]
 *
 * Anything else is refused with a sentence that says so. */
#pragma once

#include "api/sql/sql_int.h"

typedef struct query_node query_node;

typedef struct query_filter {
    const query_node *root; /* NULL: everything passes */
} query_filter;

/* Reads the request's body: {"query":…,"parameters":[…]}, or plain text with content type application/sql. */
MUST_CHECK err query_filter_read(sql_request *q, query_filter *filter_out);

/* Does a document (BSON) pass? */
bool query_filter_passes(const query_filter *filter, slice document);
bool query_filter_by_id(const query_filter *filter, slice id); /* of a resource that is asked for by id alone */

/* Read-many: the whole condition as alternatives that each name an id and a whole partition key. E_BAD_REQUEST if it is anything else. */
MUST_CHECK err query_filter_keys(sql_request *q, const query_filter *filter, item_key **keys_out, size_t *n_out);
