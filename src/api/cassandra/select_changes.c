/* SELECT … WHERE COSMOS_CHANGEFEED_START_TIME() = '…': the rows that were written since then, as they are now, from the core's change feed
 * (item/follow.h). Every page offers another, which begins where it ended. Deletions do not show. The static columns of a partition are
 * rows of their own, without clustering columns. */
#include "api/cassandra/select.h"

enum { PAGE_ROWS = 1000 }; /* if the client asks for no pages */

/* A page ends between commits, not in the middle of one, so it may have a few rows more than were asked for. */
static bool take(void *context, const follow_change *change) {
    return cass_selecting_take_change(context, change->body);
}

/* A page that is refused for its charge is empty: the client asks again. */
static void followed(call *c) {
    cass_selecting *g = ((cass_request *)c)->state;
    slice position = g->q->call.follow.position;
    if (c->code != OK && c->code != E_THROTTLED && g->code == OK) {
        g->code = c->code;
    } else if (c->code == E_THROTTLED) {
        g->q->op.detail_n = 0;
    }
    g->page.place = position.n ? position : g->page.place;
    g->full = g->code == OK;
    cass_selecting_go_on(g);
}

static err read_start(cass_selecting *g, follow_start *start) {
    op *o = &g->q->op;
    cql_receiver receiver = {.name = SLICE_LIT("cosmos_changefeed_start_time()"), .type = cql_type_of(CQL_TIMESTAMP)};
    cql_value v;
    int64_t ms;
    start->min = g->min;
    start->max = g->max;
    if (g->keys_n) {
        item_key *key = arena_new(o->arena, item_key);
        TRY(cass_key_of(o, g->s->table, g->q->container, g->keys, NULL, key));
        start->partition = key;
    }
    TRY(cql_term_value(o, &g->q->run, g->s->where.change_feed->value, &receiver, &v));
    if (!cql_as_bigint(v, &ms)) {
        return cass_invalid(g->q, "Invalid null value for COSMOS_CHANGEFEED_START_TIME()");
    }
    start->position = g->page.place;
    start->since_s = g->page.place.n || ms < 0 ? 0 : ms / 1000;
    return OK;
}

err cass_select_changes(cass_selecting *g) {
    cass_request *q = g->q;
    call_follow *f = &q->call.follow;
    if (g->groups || g->s->sorts || g->s->backward || g->s->tree->select.distinct || g->keys_n > 1) {
        return cass_invalid(q,
                            "COSMOS_CHANGEFEED_START_TIME() cannot be combined with aggregates, GROUP BY, ORDER BY, DISTINCT, or IN on the "
                            "partition key.");
    }
    call_follow_init(f, &q->front->core, &q->frame->client, &q->op, q->container, followed);
    TRY(read_start(g, &f->start));
    f->items_max = g->page_rows ? (size_t)g->page_rows : PAGE_ROWS;
    f->bytes_max = LIMIT_RESPONSE_BYTES;
    f->sink = take;
    f->context = g;
    g->page_rows = 0;
    call_follow_submit(f);
    return OK;
}
