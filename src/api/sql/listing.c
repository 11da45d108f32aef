#include "api/sql/listing.h"

#include "throughput/charge.h"

err sql_listing_open(sql_request *q, sql_listing *l) {
    *l = (sql_listing){.body = buf_init(BUF_NO_LIMIT)};
    TRY(sql_page_size(q, &l->max));
    TRY(sql_continuation_number(q, &l->after));
    return q->http->method == VERB_POST ? query_filter_read(q, &l->filter) : OK;
}

bool sql_listing_room(sql_listing *l, uint32_t number) {
    if (l->count == l->max || l->body.n > LIMIT_RESPONSE_BYTES) {
        l->more = true;
        return false;
    }
    l->last = number;
    return true;
}

void sql_listing_add(sql_listing *l) {
    if (l->count++) {
        buf_add_byte(&l->body, ',');
    }
}

void sql_listing_answer(sql_request *q, sql_listing *l, const rid *parent, const char *name) {
    op_charge(&q->op, CHARGE_METADATA_READ);
    sql_start(q, 200);
    sql_add_account(q);
    buf_addf(sql_fields(q), "x-ms-item-count: %zu\r\n", l->count);
    if (l->more) {
        sql_add_continuation_number(q, l->last);
    }
    buf *out = sql_start_body(q);
    sql_feed_open(out, parent, name);
    buf_add_slice(out, buf_view(&l->body));
    sql_feed_close(out, l->count);
    buf_free(&l->body);
    sql_end(q);
}
