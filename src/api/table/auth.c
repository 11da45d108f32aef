/* Who asks, and what they may do: SharedKey, SharedKeyLite and shared access signatures.
 *
 *   Authorization: SharedKeyLite account:signature       of  date \n resource
 *   Authorization: SharedKey account:signature           of  verb \n MD5 \n content type \n date \n resource
 *
 * The resource is "/account" and the path as it was sent, and "?comp=…" if there is such a parameter. The server has one account, so any
 * name of it is accepted, if the path has the same. */
#include "access/sas.h"
#include "api/table/table_int.h"
#include "base/date.h"

enum { SKEW_SECONDS = 15 * 60 };

/* ---- signatures ---- */

typedef struct credentials {
    bool lite;
    slice account, signature;
} credentials;

static bool read_credentials(slice field, credentials *c) {
    slice lite = SLICE_LIT("SharedKeyLite "), whole = SLICE_LIT("SharedKey ");
    *c = (credentials){.lite = field.n >= lite.n && slice_eq_nocase(slice_of(field.p, lite.n), lite)};
    bool known = c->lite || (field.n >= whole.n && slice_eq_nocase(slice_of(field.p, whole.n), whole));
    field = known ? slice_trim(slice_skip(field, c->lite ? lite.n : whole.n)) : SLICE_EMPTY;
    const char *colon = field.n ? memchr(field.p, ':', field.n) : NULL;
    if (!colon) {
        return false;
    }
    c->account = slice_of(field.p, (size_t)(colon - field.p));
    c->signature = slice_skip(field, c->account.n + 1);
    return c->account.n > 0;
}

static slice date_of(const table_request *q) {
    slice date = table_get(q, TABLE_FIELD_X_MS_DATE);
    return date.n ? date : table_get(q, TABLE_FIELD_DATE);
}

static err check_date(table_request *q) {
    int64_t then;
    slice date = date_of(q);
    if (!date_parse_http(date, &then)) {
        return op_fail(&q->op, E_BAD_AUTHORIZATION, "The request needs x-ms-date or Date, as in 'Mon, 01 Jan 2024 00:00:00 GMT'.");
    }
    int64_t off = then - q->op.now_s;
    if (off > SKEW_SECONDS || off < -SKEW_SECONDS) {
        return op_fail(&q->op, E_UNAUTHORIZED,
                       "Request date header too old or too new: '%.*s'. The clocks of client and server may differ by 15 minutes.",
                       slice_shown(date), date.p);
    }
    return OK;
}

static err add_line(buf *text, slice value) {
    buf_add_slice(text, value);
    buf_add_byte(text, '\n');
    return OK;
}

/* "/account-secondary/account/…": the Python SDK signs the path of the first region and then puts the second one before it. */
static slice signed_path(const table_request *q) {
    slice path = q->http->path, account = q->route.account, second = SLICE_LIT("-secondary/");
    slice rest = account.n && slice_starts(slice_skip(path, 1), account) ? slice_skip(path, 1 + account.n) : SLICE_EMPTY;
    bool twice = slice_starts(rest, second) && slice_starts(slice_skip(rest, second.n), account);
    return twice ? slice_skip(rest, second.n - 1) : path;
}

static err write_signed(table_request *q, const credentials *c, buf *text) {
    slice comp;
    TRY(table_query_text(q, "comp", &comp));
    if (!c->lite) {
        add_line(text, q->http->verb);
        add_line(text, table_get(q, TABLE_FIELD_CONTENT_MD5));
        add_line(text, table_get(q, TABLE_FIELD_CONTENT_TYPE));
    }
    add_line(text, date_of(q));
    buf_add_byte(text, '/');
    buf_add_slice(text, c->account);
    buf_add_slice(text, signed_path(q));
    if (comp.p) {
        buf_add_lit(text, "?comp=");
        buf_add_slice(text, comp);
    }
    return OK;
}

static err check_shared_key(table_request *q, slice field) {
    credentials c;
    if (!read_credentials(field, &c)) {
        return op_fail(&q->op, E_BAD_AUTHORIZATION,
                       "The Authorization field must be 'SharedKey' or 'SharedKeyLite', and account:signature.");
    }
    TRY(check_date(q));
    if (q->route.account.p && !slice_eq(q->route.account, c.account)) {
        return op_fail(&q->op, E_UNAUTHORIZED, "The account in the path is not the one that signed the request.");
    }
    buf text = buf_init_counted(BUF_NO_LIMIT, q->op.budget);
    err code = write_signed(q, &c, &text);
    code = code != OK ? code : access_reach_of_signature(access_keys_ring(q->front->keys), buf_view(&text), c.signature, &q->reach);
    buf_free(&text);
    q->route.account = q->route.account.p ? q->route.account : c.account;
    return code;
}

/* ---- shared access signatures ---- */

/* In host style "account.table.host" names the account. An address does not, so the emulator's name is taken; on localhost the emulators
 * of Cosmos DB and of Storage have different ones. */
static slice account_of_host(slice host) {
    const char *dot = host.n ? memchr(host.p, '.', host.n) : NULL;
    const char *end = host.n ? memchr(host.p, ':', host.n) : NULL;
    bool number = host.n && ((host.p[0] >= '0' && host.p[0] <= '9') || host.p[0] == '[');
    slice name = slice_of(host.p, dot ? (size_t)(dot - host.p) : end ? (size_t)(end - host.p) : host.n);
    return number || !name.n ? SLICE_LIT("devstoreaccount1") : name;
}

static err check_sas_of(table_request *q, slice account) {
    uint8_t address[16];
    http_peer_address(q->http, address);
    access_sas_request request = {
        .query = q->http->query,
        .account = account,
        .address = address,
        .secure = q->http->tls,
        .find_policy = table_find_policy,
        .context = q->front,
    };
    q->op.detail_n = 0;
    return access_sas_check(&q->op, access_keys_ring(q->front->keys), &request, &q->reach);
}

static err check_sas(table_request *q) {
    bool in_path = q->route.account.p != NULL;
    slice account = in_path ? q->route.account : account_of_host(q->http->host), other = SLICE_LIT("devstoreaccount1");
    err code = check_sas_of(q, account);
    if (code == E_UNAUTHORIZED && !in_path && !slice_eq(account, other)) {
        account = other;
        code = check_sas_of(q, account);
    }
    q->route.account = account;
    return code;
}

err table_authenticate(table_request *q) {
    slice field = table_get(q, TABLE_FIELD_AUTHORIZATION);
    if (field.n) {
        return check_shared_key(q, field);
    }
    return access_sas_is_there(q->http->query) ? check_sas(q) : E_NO_AUTHORIZATION;
}

/* ---- what they may do ---- */

const access_sas *table_bounds(const table_request *q) {
    return q->reach.proof == ACCESS_BY_SAS && access_sas_is_bounded(q->reach.sas) ? q->reach.sas : NULL;
}

err table_allow(table_request *q, unsigned verbs, slice table) {
    bool has = (q->reach.verbs & verbs) == verbs;
    bool covers = q->reach.proof != ACCESS_BY_SAS || access_sas_is_for(q->reach.sas, table);
    return has && covers ? OK : op_fail(&q->op, E_FORBIDDEN, "%s", table_refusal_of_core(E_FORBIDDEN).sentence);
}

err table_allow_entity(table_request *q, unsigned verbs, slice table, slice partition, slice row) {
    const access_sas *bounds = table_bounds(q);
    TRY(table_allow(q, verbs, table));
    bool covers = !bounds || access_sas_covers(bounds, partition, row);
    return covers ? OK : op_fail(&q->op, E_FORBIDDEN, "The shared access signature does not cover this entity.");
}
