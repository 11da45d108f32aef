/* The change feed: decoding the request, pages made by a worker, and their answers. */
#include "api/sql/changes.h"

#include "base/date.h"

/* ---- start position ---- */

static bool read_lsn(slice text, uint64_t *lsn_out) {
    if (text.n > 2 && text.p[0] == '"' && text.p[text.n - 1] == '"') {
        text = slice_of(text.p + 1, text.n - 2);
    }
    return slice_to_u64(text, lsn_out) && *lsn_out < UINT64_MAX;
}

static err read_start(sql_changes *f) {
    sql_request *q = f->q;
    slice place = sql_get(q, FIELD_IF_NONE_MATCH), since = sql_get(q, FIELD_IF_MODIFIED_SINCE);
    f->call.what.from_now = slice_eq(place, SLICE_LIT("*"));
    if (place.n && !f->call.what.from_now && !read_lsn(place, &f->call.what.after)) {
        return op_fail(&q->op, E_BAD_REQUEST, "If-None-Match must be * or the etag of an earlier page of the change feed, not %.*s.",
                       slice_shown(place), place.p);
    }
    if (since.n && !date_parse_http(since, &f->call.what.since_s)) {
        return op_fail(&q->op, E_BAD_REQUEST, "If-Modified-Since must be a date in RFC 1123 form, not %.*s.", slice_shown(since), since.p);
    }
    f->from_beginning = !place.n && !since.n;
    return OK;
}

/* ---- scope ---- */

static err scope_key(sql_changes *f) {
    const container *c = f->q->container;
    const pkey *key = &f->q->partition;
    if (c->key.kind == PKEY_MULTI_HASH && key->n < c->key.n) {
        epk_prefix_range(&c->key, key, &f->call.what.min, &f->call.what.max);
        f->call.what.prefix = key;
        return OK;
    }
    TRY(item_check_key(&f->q->op, c, key, SLICE_EMPTY, &f->key));
    f->call.what.partition = &f->key;
    f->call.what.min = f->call.what.max = f->key.epk;
    return OK;
}

static err scope_epk(sql_changes *f) {
    sql_request *q = f->q;
    slice from = sql_get(q, FIELD_START_EPK), to = sql_get(q, FIELD_END_EPK);
    if (!epk_parse(from, &f->call.what.min) || !epk_parse(to, &f->call.what.max) || epk_cmp(&f->call.what.min, &f->call.what.max) >= 0) {
        return op_fail(&q->op, E_BAD_REQUEST, "x-ms-start-epk and x-ms-end-epk must be hexadecimal, the first below the second.");
    }
    return OK;
}

/* The requested part must lie within the named range, if the request names one. */
static err check_range(sql_changes *f) {
    sql_request *q = f->q;
    uint32_t id;
    range_info named;
    TRY(sql_range_id(q, &id));
    if (!range_info_by_id(q->container, id, &named)) {
        return E_RANGE_GONE;
    }
    const partition_range *range = &named.range;
    if (!q->key_given && !sql_has(q, FIELD_START_EPK)) {
        f->call.what.min = range->min;
        f->call.what.max = range->max;
    }
    bool below = f->call.what.partition ? epk_cmp(&f->call.what.max, &range->max) < 0 : epk_cmp(&f->call.what.max, &range->max) <= 0;
    return epk_cmp(&range->min, &f->call.what.min) <= 0 && below ? OK : E_RANGE_GONE;
}

static bool is_of_one_range(const sql_changes *f) {
    const item_changes *what = &f->call.what;
    return what->partition || !range_is_divided(f->q->container, &what->min, &what->max);
}

static err read_scope(sql_changes *f) {
    sql_request *q = f->q;
    bool by_epk = sql_has(q, FIELD_START_EPK) || sql_has(q, FIELD_END_EPK);
    f->call.what.min = epk_min();
    f->call.what.max = epk_max();
    if (q->key_given && by_epk) {
        return op_fail(&q->op, E_BAD_REQUEST, "A change feed is about a partition key or about x-ms-start-epk and x-ms-end-epk, not both.");
    }
    TRY(q->key_given ? scope_key(f) : by_epk ? scope_epk(f) : OK);
    if (sql_has(q, FIELD_RANGE_ID)) {
        TRY(check_range(f));
    } else if (!is_of_one_range(f) && !by_epk) {
        return op_fail(
            &q->op, E_BAD_REQUEST,
            "PartitionKey value must be supplied for this operation. A change feed reads one physical partition at a time: name a "
            "partition key, or a range by x-ms-documentdb-partitionkeyrangeid.");
    }
    return OK;
}

/* ---- a page, on a worker ---- */

bool sql_changes_fits(const sql_changes *f, uint64_t lsn, size_t bytes) {
    bool fits = f->count < f->max && (f->count == 0 || f->body.n + bytes <= LIMIT_RESPONSE_BYTES);
    return fits || (f->count && lsn == f->last);
}

static bool add_item(void *context, const item_found *found) {
    sql_changes *f = context;
    if (!sql_changes_fits(f, found->head.lsn, found->body.n)) {
        return false;
    }
    if (f->count++) {
        buf_add_byte(&f->body, ',');
    }
    sql_write_item(&f->body, f->q->container, found->body, &found->head);
    if (!buf_ok(&f->body)) {
        return false;
    }
    f->body.n--; /* drop the closing brace, written again after _lsn */
    buf_add_lit(&f->body, ",\"_lsn\":");
    buf_add_u64(&f->body, found->head.lsn);
    buf_add_byte(&f->body, '}');
    f->last = found->head.lsn;
    return true;
}

static err latest_begin(sql_changes *f) {
    f->call.item = add_item;
    return OK;
}

/* ---- answering ---- */

static void add_fields(sql_changes *f) {
    buf_addf(sql_fields(f->q), "etag: \"%lu\"\r\n", (unsigned long)f->call.what.after);
    sql_add_range(f->q, f->q->mark);
}

static void answer(call *c) {
    sql_changes *f = (sql_changes *)c;
    sql_request *q = f->q;
    err code = c->code == OK && !buf_ok(&f->body) ? budget_error(q->op.budget) : c->code;
    sql_call_done(q, c);
    if (code != OK) {
        buf_free(&f->body);
        sql_fail(q, code);
        return;
    }
    bool any = f->count || f->call.what.more;
    sql_start(q, any ? 200 : 304);
    add_fields(f);
    if (any) {
        buf_addf(sql_fields(q), "x-ms-item-count: %zu\r\n", f->count);
    }
    buf *out = sql_start_body(q);
    if (any) {
        rid in = sql_container_rid(q->container);
        sql_feed_open(out, &in, "Documents");
        buf_add_slice(out, buf_view(&f->body));
        sql_feed_close(out, f->count);
    }
    buf_free(&f->body);
    sql_end(q);
}

/* ---- entry point ---- */

/* Checks that the mode allows the start position, and sets the mode's item callback. */
static err begin_mode(sql_changes *f) {
    slice mode = sql_get(f->q, FIELD_A_IM);
    if (slice_eq_nocase(mode, SLICE_LIT("Incremental feed"))) {
        return latest_begin(f);
    }
    if (slice_eq_nocase(mode, SLICE_LIT("Full-Fidelity Feed"))) {
        return sql_versions_begin(f);
    }
    return op_fail(&f->q->op, E_BAD_REQUEST, "A-IM must be Incremental feed or Full-Fidelity Feed.");
}

static err prepare(sql_changes *f) {
    sql_request *q = f->q;
    TRY(sql_page_size(q, &f->max));
    TRY(sql_find_container(q));
    TRY(sql_partition_key(q));
    sql_call_prepare(q, call_changes_init, &f->call, answer);
    f->call.context = f;
    TRY(read_start(f));
    TRY(begin_mode(f));
    TRY(read_scope(f));
    return sql_seen(q, &f->call.call);
}

void sql_changes_list(sql_request *q) {
    sql_changes *f = arena_new(q->http->arena, sql_changes);
    f->q = q;
    f->body = buf_init_counted(BUF_NO_LIMIT, q->op.budget);
    err code = prepare(f);
    code == OK ? call_changes_submit(&f->call) : sql_fail(q, code);
}
