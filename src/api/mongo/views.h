/* views.h — within api/mongo: views.
 *
 * A view is a container without documents. Its memo's options have `viewOn`, the collection or view that it shows, and `pipeline`. Reading
 * a view is an aggregation of the collection at the end of that chain: the stages of all views on the way, then those of the command.
 * Commands without MONGO_VIEW refuse views. */
#pragma once

#include "api/mongo/find.h"
#include "api/mongo/mongo_int.h"
#include "mql/expression.h"

enum { MONGO_VIEW_DEPTH_MAX = 20, MONGO_VIEWS_USED_MAX = 100 };

bool mongo_is_view(const container *c);
err mongo_refuse_view(mongo_request *q); /* 166 (CommandNotSupportedOnView) */

/* What a request reads instead of a view. */
typedef struct mongo_view {
    slice stages;    /* an array */
    slice collation; /* of the view; empty: the simple one */
} mongo_view;

/* If q->container is a view, fills in q->view, and makes q->container the collection that it shows, or NULL if there is none. */
MUST_CHECK err mongo_view_enter(mongo_request *q);

/* For parsing the pipelines of a request: the views of its database. 165 (ViewDepthLimitExceeded) also if it uses too many of them. */
mql_views *mongo_views_of(mongo_request *q);

/* Two arrays as one; a find as stages. Arrays in the arena of the request. */
MUST_CHECK err mongo_join_stages(op *o, slice first, slice second, slice *both_out);
MUST_CHECK err mongo_find_stages(mongo_request *q, const mongo_find *f, slice *stages_out);

/* `viewOn` and `pipeline` of create and collMod: checks them, for a view of this name. */
MUST_CHECK err mongo_view_check(mongo_request *q, slice name);
