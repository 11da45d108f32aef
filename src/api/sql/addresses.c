/* GET //addresses: where direct mode finds the replicas of a physical partition.
 *
 * One process serves them all, so the replicas are names for one port, and a frame may name any of them. There are as many as the account
 * document says, since SDKs read from two at strong consistency; one is the primary, which writes go to. */
#include "api/sql/sql_int.h"
#include "base/percent.h"

enum { REPLICAS = 4, RANGES_MAX = 1000 /* ranges that one request may name */ };

/* ---- the query ---- */

/* One parameter's value, decoded. Empty: it is not there. */
static err parameter(sql_request *q, slice name, slice *value_out) {
    slice rest = q->http->query;
    *value_out = SLICE_EMPTY;
    while (rest.n) {
        const char *end = memchr(rest.p, '&', rest.n);
        slice pair = slice_of(rest.p, end ? (size_t)(end - rest.p) : rest.n);
        rest = slice_skip(rest, pair.n + 1);
        char *text = arena_alloc_aligned(q->http->arena, pair.n + 1, 1);
        size_t n = 0;
        if (!percent_decode(pair, text, &n)) {
            return op_fail(&q->op, E_BAD_REQUEST, "The query of the URL is not percent-encoded text.");
        }
        if (n > name.n && slice_eq_nocase(slice_of(text, name.n), name) && text[name.n] == '=') {
            *value_out = slice_of(text + name.n + 1, n - name.n - 1);
            return OK;
        }
    }
    return OK;
}

static bool contains(slice text, slice word) {
    for (size_t i = 0; i + word.n <= text.n; i++) {
        if (slice_eq_nocase(slice_of(text.p + i, word.n), word)) {
            return true;
        }
    }
    return false;
}

/* What the addresses are for is a path, "dbs" or "dbs/{d}/colls/{c}/docs", and is signed like one. */
err sql_address_route(sql_request *q) {
    slice path, filter;
    TRY(parameter(q, SLICE_LIT("$resolveFor"), &path));
    TRY(parameter(q, SLICE_LIT("$filter"), &filter));
    if (filter.n && !contains(filter, SLICE_LIT("rntbd"))) {
        return op_fail(&q->op, E_BAD_REQUEST, "Addresses are there for one protocol: $filter must be 'protocol eq rntbd'.");
    }
    TRY(path.n ? sql_route_parse(q->http->arena, path, &q->route) : OK);
    if (!path.n || (q->route.kind != SQL_DATABASES && q->route.kind != SQL_ITEMS)) {
        return op_fail(&q->op, E_BAD_REQUEST, "$resolveFor must be 'dbs' or 'dbs/{database}/colls/{container}/docs'.");
    }
    q->route.kind = SQL_ADDRESSES;
    return OK;
}

/* ---- the answer ---- */

typedef struct list {
    sql_request *q;
    buf body;
    rid of;     /* the container; empty: the account */
    slice host; /* the server's name as the client knows it, without the port */
    size_t n;
} list;

static slice host_of(const sql_request *q) {
    slice host = q->http->host;
    size_t n = host.n;
    bool v6 = n && host.p[0] == '[';
    while (n && (v6 ? host.p[n - 1] != ']' : host.p[n - 1] != ':')) {
        n--;
    }
    n = !n ? host.n : v6 ? n : n - 1;
    return n ? slice_of(host.p, n) : SLICE_LIT("localhost");
}

static slice uri_of(list *l, slice range, unsigned replica) {
    char room[RID_TEXT_MAX + 1];
    buf text = {.p = room, .cap = sizeof room, .max = sizeof room};
    rid_write(&text, &l->of);
    return arena_printf(l->q->http->arena, "rntbd://%.*s:%u/apps/tesela/services/%.*s/partitions/%.*s/replicas/%u%c/", (int)l->host.n,
                        l->host.p, l->q->front->direct_port, l->of.n ? (int)text.n : 6, l->of.n ? text.p : "master", (int)range.n, range.p,
                        replica, replica == 1 ? 'p' : 's');
}

static void add_replica(list *l, slice range, unsigned replica) {
    buf *out = &l->body;
    buf_addf(out, "%s{\"id\":\"%.*s-%u\",\"_rid\":\"", l->n++ ? "," : "", (int)range.n, range.p, replica);
    rid_write(out, &l->of);
    buf_addf(out, "\",\"_self\":\"\",\"_etag\":\"\\\"1\\\"\",\"_ts\":1,\"isPrimary\":%s,\"protocol\":\"rntbd\",\"logicalUri\":\"\",",
             replica == 1 ? "true" : "false");
    buf_add_lit(out, "\"physcialUri\":");
    json_add_string(out, uri_of(l, range, replica));
    buf_addf(out, ",\"partitionIndex\":\"%.*s\",\"partitionKeyRangeId\":\"%.*s\"}", (int)range.n, range.p, (int)range.n, range.p);
}

static void add_partition(list *l, slice range) {
    for (unsigned replica = 1; replica <= REPLICAS; replica++) {
        add_replica(l, range, replica);
    }
}

static void add_range(list *l, uint32_t id) {
    add_partition(l, arena_printf(l->q->http->arena, "%u", id));
}

static void add_all(list *l) {
    range_info info;
    for (size_t i = 0; range_info_at(l->q->container, i, &info); i++) {
        add_range(l, info.range.id);
    }
}

/* "0,1,2". Those that are not there are left out, which tells an SDK to read the ranges again. */
static err add_listed(list *l, slice ids) {
    range_info info;
    for (unsigned n = 0; ids.n; n++) {
        const char *comma = memchr(ids.p, ',', ids.n);
        slice one = slice_of(ids.p, comma ? (size_t)(comma - ids.p) : ids.n);
        uint64_t id;
        ids = slice_skip(ids, one.n + 1);
        if (n == RANGES_MAX || !slice_to_u64(one, &id)) {
            return op_fail(&l->q->op, E_BAD_REQUEST, "$partitionKeyRangeIds must be ids of ranges, %d at most, with commas between.",
                           RANGES_MAX);
        }
        if (id <= UINT32_MAX && range_info_by_id(l->q->container, (uint32_t)id, &info)) {
            add_range(l, (uint32_t)id);
        }
    }
    return OK;
}

static err fill(list *l) {
    sql_request *q = l->q;
    slice ids;
    if (!q->front->direct_port) {
        return op_fail(&q->op, E_BAD_REQUEST,
                       "This server has no port for direct mode: use gateway mode in the SDK (.NET: ConnectionMode.Gateway; Java: "
                       "gatewayMode()), or start the server with --direct-port.");
    }
    if (!q->route.container.p) {
        add_partition(l, SLICE_LIT("M"));
        return OK;
    }
    TRY(sql_find_container(q));
    l->of = sql_container_rid(q->container);
    TRY(parameter(q, SLICE_LIT("$partitionKeyRangeIds"), &ids));
    if (!ids.n) {
        add_all(l);
        return OK;
    }
    return add_listed(l, ids);
}

void sql_address_list(sql_request *q) {
    list l = {.q = q, .body = buf_init_counted(BUF_NO_LIMIT, q->op.budget), .host = host_of(q)};
    err code = fill(&l);
    code = code == OK && !buf_ok(&l.body) ? budget_error(q->op.budget) : code;
    if (code != OK) {
        buf_free(&l.body);
        sql_fail(q, code);
        return;
    }
    sql_start(q, 200);
    sql_add_account(q);
    buf *out = sql_start_body(q);
    sql_feed_open(out, &l.of, "Addresss");
    buf_add_slice(out, buf_view(&l.body));
    sql_feed_close(out, l.n);
    buf_free(&l.body);
    sql_end(q);
}
