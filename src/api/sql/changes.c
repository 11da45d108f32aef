/* The change feed: what a request asks for, pages made by a worker, and how they are answered. */
#include "api/sql/changes.h"

#include "base/date.h"

enum { PAGE_US = 5000000 };

/* ---- where to begin ---- */

static bool read_lsn(slice text, uint64_t *lsn_out) {
    if (text.n > 2 && text.p[0] == '"' && text.p[text.n - 1] == '"') {
        text = slice_of(text.p + 1, text.n - 2);
    }
    return slice_to_u64(text, lsn_out) && *lsn_out < UINT64_MAX;
}

static err read_start(sql_changes *f) {
    sql_request *q = f->q;
    slice place = sql_get(q, FIELD_IF_NONE_MATCH), since = sql_get(q, FIELD_IF_MODIFIED_SINCE);
    f->what.from_now = slice_eq(place, SLICE_LIT("*"));
    if (place.n && !f->what.from_now && !read_lsn(place, &f->what.after)) {
        return op_fail(&q->op, E_BAD_REQUEST, "If-None-Match must be * or the etag of an earlier page of the change feed, not %.*s.",
                       slice_shown(place), place.p);
    }
    if (since.n && !date_parse_http(since, &f->what.since_s)) {
        return op_fail(&q->op, E_BAD_REQUEST, "If-Modified-Since must be a date in RFC 1123 form, not %.*s.", slice_shown(since), since.p);
    }
    f->from_beginning = !place.n && !since.n;
    return OK;
}

/* ---- what it is about ---- */

static err scope_key(sql_changes *f) {
    const container *c = f->q->container;
    const pkey *key = &f->q->partition;
    if (c->key.kind == PKEY_MULTI_HASH && key->n < c->key.n) {
        epk_prefix_range(&c->key, key, &f->what.min, &f->what.max);
        f->what.prefix = key;
        return OK;
    }
    TRY(item_check_key(&f->q->op, c, key, SLICE_EMPTY, &f->key));
    f->what.partition = &f->key;
    f->what.min = f->what.max = f->key.epk;
    return OK;
}

static err scope_epk(sql_changes *f) {
    sql_request *q = f->q;
    slice from = sql_get(q, FIELD_START_EPK), to = sql_get(q, FIELD_END_EPK);
    if (!epk_parse(from, &f->what.min) || !epk_parse(to, &f->what.max) || epk_cmp(&f->what.min, &f->what.max) >= 0) {
        return op_fail(&q->op, E_BAD_REQUEST, "x-ms-start-epk and x-ms-end-epk must be hexadecimal, the first below the second.");
    }
    return OK;
}

/* What is asked for must lie in the range that is named, if one is. */
static err check_range(sql_changes *f) {
    sql_request *q = f->q;
    uint32_t id;
    TRY(sql_range_id(q, &id));
    const partition_range *range = partition_map_by_id(q->container->tiles->map, id);
    if (!range) {
        return E_RANGE_GONE;
    }
    if (!q->key_given && !sql_has(q, FIELD_START_EPK)) {
        f->what.min = range->min;
        f->what.max = range->max;
    }
    bool below = f->what.partition ? epk_cmp(&f->what.max, &range->max) < 0 : epk_cmp(&f->what.max, &range->max) <= 0;
    return epk_cmp(&range->min, &f->what.min) <= 0 && below ? OK : E_RANGE_GONE;
}

static bool is_of_one_range(const sql_changes *f) {
    const partition_range *first;
    return f->what.partition || partition_map_overlap(f->q->container->tiles->map, &f->what.min, &f->what.max, &first) <= 1;
}

static err read_scope(sql_changes *f) {
    sql_request *q = f->q;
    bool by_epk = sql_has(q, FIELD_START_EPK) || sql_has(q, FIELD_END_EPK);
    f->what.min = epk_min();
    f->what.max = epk_max();
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
    q->range = container_route(q->container->tiles, &f->what.min);
    return sql_check_session(q, &f->what.min, &f->what.max);
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
    f->body.n--; /* its end comes after _lsn */
    buf_add_lit(&f->body, ",\"_lsn\":");
    buf_add_u64(&f->body, found->head.lsn);
    buf_add_byte(&f->body, '}');
    f->last = found->head.lsn;
    return true;
}

static void latest_page(sql_changes *f) {
    sql_request *q = f->q;
    f->code = item_changes_read(account_items(q->front->account), &q->op, q->container, &f->what, add_item, f, &f->mark);
}

static void make_page(sql_changes *f) {
    f->what.until_us = clock_monotonic_us(account_items(f->q->front->account)->clock) + PAGE_US;
    f->mode->make(f);
    if (f->code == OK && !buf_ok(&f->body)) {
        f->code = budget_error(f->q->op.budget);
    }
}

/* ---- answering ---- */

static void add_fields(sql_changes *f) {
    buf_addf(sql_fields(f->q), "etag: \"%lu\"\r\n", (unsigned long)f->what.after);
    sql_add_range(f->q, f->mark);
}

static void answer(sql_changes *f) {
    sql_request *q = f->q;
    if (f->code != OK) {
        buf_free(&f->body);
        sql_fail(q, f->code);
        return;
    }
    bool any = f->count || f->what.more;
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

static void work(net_work *work) {
    make_page((sql_changes *)work);
}

static void worked(net_work *work) {
    sql_changes *f = (sql_changes *)work;
    f->code = net_work_code(work) != OK ? net_work_code(work) : f->code;
    answer(f);
}

/* ---- all of it ---- */

static err from_anywhere(sql_changes *f) {
    (void)f;
    return OK;
}

static const sql_changes_mode modes[] = {
    {SLICE_LIT("Incremental feed"), from_anywhere, latest_page},
    {SLICE_LIT("Full-Fidelity Feed"), sql_versions_check, sql_versions_page},
};

static const sql_changes_mode *find_mode(const sql_request *q) {
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        if (slice_eq_nocase(sql_get(q, FIELD_A_IM), modes[i].name)) {
            return &modes[i];
        }
    }
    return NULL;
}

static err prepare(sql_changes *f) {
    sql_request *q = f->q;
    TRY(sql_page_size(q, &f->max));
    TRY(sql_find_container(q));
    TRY(sql_partition_key(q));
    TRY(read_start(f));
    TRY(f->mode->check(f));
    return read_scope(f);
}

/* Readers who have seen all ask again and again: that is answered on the loop. What is written meanwhile is little. */
static bool has_nothing_new(const sql_changes *f) {
    return f->what.from_now || f->what.after >= item_mark_of(f->q->range).lsn;
}

void sql_changes_list(sql_request *q) {
    sql_changes *f = arena_new(q->http->arena, sql_changes);
    f->q = q;
    f->mode = find_mode(q);
    f->body = buf_init_counted(BUF_NO_LIMIT, q->op.budget);
    err code = f->mode ? prepare(f) : op_fail(&q->op, E_BAD_REQUEST, "A-IM must be Incremental feed or Full-Fidelity Feed.");
    if (code != OK) {
        sql_fail(q, code);
    } else if (has_nothing_new(f)) {
        make_page(f);
        answer(f);
    } else {
        sql_work(q, NET_PAGES, &f->work, work, worked);
    }
}
