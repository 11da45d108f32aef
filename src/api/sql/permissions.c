/* Permissions of a user. Every answer that shows a permission contains a fresh resource token. */
#include "access/token.h"
#include "account/scripts.h"
#include "api/sql/listing.h"
#include "item/foreign.h"
#include "throughput/charge.h"

enum { TOKEN_SECONDS = 3600, TOKEN_SECONDS_MAX = 24 * 3600 };

/* Key and lifetime for new tokens: taken from the key ring on the loop, used there or by a worker. */
typedef struct maker {
    sql_listing *listing;
    unsigned char key[ACCESS_TOKEN_KEY_BYTES];
    int64_t from_s, until_s;
} maker;

static err make_maker(sql_request *q, maker *m) {
    slice text = sql_get(q, FIELD_TOKEN_EXPIRY);
    uint64_t seconds = TOKEN_SECONDS, least = q->front->token_seconds_min;
    if (text.n && (!slice_to_u64(text, &seconds) || seconds < least || seconds > TOKEN_SECONDS_MAX)) {
        return op_fail(&q->op, E_BAD_REQUEST, "x-ms-documentdb-expiry-seconds must be a number of seconds from %lu to %d.",
                       (unsigned long)least, TOKEN_SECONDS_MAX);
    }
    *m = (maker){.from_s = q->op.now_s, .until_s = q->op.now_s + (int64_t)seconds};
    return access_token_key(access_keys_ring(q->front->keys), m->key) ? OK : E_INTERNAL;
}

static void write_permission(buf *out, const permission *p, const maker *m) {
    char etag[ITEM_ETAG_BYTES + 1];
    rid database = rid_database_of(&p->rid), of = rid_parent(&p->rid);
    access_token token = {.permission = p->rid, .version = p->version, .from_s = m->from_s, .until_s = m->until_s};
    item_etag(etag, p->version, (uint32_t)p->ts);
    buf_add_lit(out, "{\"id\":");
    json_add_string(out, p->id);
    buf_add_lit(out, ",\"permissionMode\":");
    json_add_string(out, p->grant.word);
    buf_add_lit(out, ",\"resource\":");
    json_add_string(out, p->grant.link);
    if (p->grant.key.n) {
        buf_add_lit(out, ",\"resourcePartitionKey\":");
        pkey_write(out, &p->grant.key);
    }
    buf_add_lit(out, ",\"_rid\":\"");
    rid_write(out, &p->rid);
    buf_add_lit(out, "\",\"_self\":\"dbs/");
    rid_write(out, &database);
    buf_add_lit(out, "/users/");
    rid_write(out, &of);
    buf_add_lit(out, "/permissions/");
    rid_write(out, &p->rid);
    buf_add_lit(out, "/\",\"_etag\":");
    json_add_string(out, slice_of(etag, ITEM_ETAG_BYTES));
    buf_addf(out, ",\"_ts\":%ld,\"_token\":\"", (long)p->ts);
    access_token_write(out, m->key, &token); /* base64 and plain ASCII: needs no JSON escaping */
    buf_add_lit(out, "\"}");
}

static void answer(sql_request *q, unsigned status, const permission *p) {
    maker m;
    err code = make_maker(q, &m);
    if (code != OK) {
        sql_fail(q, code);
        return;
    }
    sql_start(q, status);
    sql_add_etag(q, p->version, (uint32_t)p->ts);
    sql_add_account(q);
    write_permission(sql_start_body(q), p, &m);
    sql_end(q);
}

/* ---- what a permission is for ---- */

static slice text_in(slice body, const char *name) {
    bson_iter_t it;
    return doc_find_key(body, slice_str(name), &it) && BSON_ITER_HOLDS_UTF8(&it) ? doc_text(&it) : SLICE_EMPTY;
}

static err read_mode(sql_request *q, grant *g) {
    if (slice_eq_nocase(g->word, SLICE_LIT("Read"))) {
        g->mode = PERMISSION_READ;
    } else if (slice_eq_nocase(g->word, SLICE_LIT("All"))) {
        g->mode = PERMISSION_ALL;
    } else {
        return op_fail(&q->op, E_BAD_REQUEST, "The permissionMode '%.*s' is invalid: it must be Read or All.", slice_shown(g->word),
                       g->word.p);
    }
    return OK;
}

/* resourcePartitionKey: an array, as in the header, or a single string. */
static err read_key(sql_request *q, slice body, grant *g) {
    bson_iter_t it;
    buf text = buf_init(BUF_NO_LIMIT);
    uint32_t n;
    const uint8_t *p;
    if (!doc_find_key(body, SLICE_LIT("resourcePartitionKey"), &it) || BSON_ITER_HOLDS_NULL(&it)) {
        return OK;
    }
    if (BSON_ITER_HOLDS_ARRAY(&it)) {
        bson_iter_array(&it, &n, &p);
        json_from_bson_array(&text, slice_of(p, n));
    } else if (BSON_ITER_HOLDS_UTF8(&it)) {
        buf_add_byte(&text, '[');
        json_add_string(&text, doc_text(&it));
        buf_add_byte(&text, ']');
    }
    slice header = arena_copy(q->http->arena, buf_view(&text));
    buf_free(&text);
    err code = header.n ? pkey_parse(&q->op, header, &g->key) : E_BAD_REQUEST;
    return code != OK || g->key.n == 0 ? op_fail(&q->op, E_BAD_REQUEST, "resourcePartitionKey must be an array of partition key values.")
                                       : OK;
}

static err check_key(sql_request *q, const container *c, const grant *g) {
    size_t n = g->key.n;
    bool prefix = c->key.kind == PKEY_MULTI_HASH && n < c->key.n && g->kind == RID_CONTAINER;
    if (n && n != c->key.n && !prefix) {
        return op_fail(&q->op, E_BAD_REQUEST, "resourcePartitionKey has %zu components; the container's partition key has %u.", n,
                       c->key.n);
    }
    return pkey_check_size(&q->op, &g->key);
}

static err missing(sql_request *q) {
    return op_fail(&q->op, E_NOT_FOUND, "The resource that the permission is for does not exist.");
}

/* Finds the item's number: from its rid, or from its name if the partition key is known. */
static err find_item(sql_request *q, const container *c, grant *g, slice name, bool by_rid, const rid *item_rid) {
    const items *items = account_items(q->front->account);
    item_key key;
    slice id;
    if (g->key.n == 0 && c->key.n) {
        if (!by_rid && g->kind == RID_ATTACHMENT) {
            return op_fail(&q->op, E_BAD_REQUEST, "A permission for an attachment must have its item's resourcePartitionKey.");
        }
        g->number = by_rid ? rid_number(item_rid) : 0;
        g->child = by_rid ? g->child : name; /* the items of this id under all partition keys */
        return OK;
    }
    TRY(item_row_of_id(&q->op, c, name, &id));
    TRY(item_check_key(&q->op, c, g->key.n ? &g->key : NULL, id, &key));
    err code = E_NOT_FOUND;
    if (by_rid) {
        g->number = rid_number(item_rid);
        code = item_row_of_number(items, &q->op, c, &key, g->number, &id);
    }
    code = code == E_NOT_FOUND ? item_number_of(items, c, &key, &g->number) : code;
    return code == E_NOT_FOUND ? missing(q) : code;
}

static err find_script(sql_request *q, const container *c, grant *g, account_script_kind kind, const sql_route *r) {
    account_script *s;
    err code = account_find_script(q->front->account, c, kind, r->child, r->child_by_rid, &s);
    if (code != OK) {
        return missing(q);
    }
    g->number = s->number;
    account_script_give(s);
    return OK;
}

static err find_in_container(sql_request *q, const container *c, const sql_route *r, grant *g) {
    switch (r->kind) {
    case SQL_CONTAINER:
        g->kind = RID_CONTAINER;
        return OK;
    case SQL_ITEM:
        g->kind = RID_DOCUMENT;
        return find_item(q, c, g, r->child, r->child_by_rid, &r->child_rid);
    case SQL_ATTACHMENT:
        g->kind = RID_ATTACHMENT;
        g->child = r->child;
        return find_item(q, c, g, r->owner, r->owner_by_rid, &r->owner_rid);
    case SQL_SPROC:
        g->kind = RID_SPROC;
        return find_script(q, c, g, ACCOUNT_PROCEDURE, r);
    case SQL_TRIGGER:
        g->kind = RID_TRIGGER;
        return find_script(q, c, g, ACCOUNT_TRIGGER, r);
    case SQL_UDF:
        g->kind = RID_UDF;
        return find_script(q, c, g, ACCOUNT_FUNCTION, r);
    default:
        return op_fail(&q->op, E_BAD_REQUEST,
                       "The resource of a permission must be a container, an item, an attachment, a stored procedure, a trigger or a "
                       "user-defined function.");
    }
}

static err find_route(sql_request *q, const sql_route *r, grant *g) {
    container *c;
    if (!r->container.p) {
        return find_in_container(q, NULL, &(sql_route){.kind = SQL_DATABASE}, g);
    }
    if (account_container(q->front->account, r->database, r->database_by_rid, r->container, r->container_by_rid, &c) != OK) {
        return missing(q);
    }
    g->container = sql_container_rid(c);
    err code = find_in_container(q, c, r, g);
    code = code != OK ? code : check_key(q, c, g);
    container_give(c);
    return code;
}

/* Links contain names either literally (the JavaScript SDK) or percent-encoded (.NET): a link with a '%' is tried both ways. */
static err find_resource(sql_request *q, grant *g) {
    sql_route r;
    buf literal = buf_init(BUF_NO_LIMIT);
    for (size_t i = 0; i < g->link.n; i++) {
        g->link.p[i] == '%' ? (void)buf_add_lit(&literal, "%25") : (void)buf_add_byte(&literal, g->link.p[i]);
    }
    slice path = arena_copy(q->http->arena, buf_view(&literal));
    bool escaped = path.n != g->link.n;
    buf_free(&literal);
    err code = sql_route_parse(q->http->arena, path, &r);
    code = code != OK ? code : find_route(q, &r, g);
    if (code == E_NOT_FOUND && escaped && sql_route_parse(q->http->arena, g->link, &r) == OK) {
        q->op.detail_n = 0;
        code = find_route(q, &r, g);
    }
    return code == E_BAD_URL ? op_fail(&q->op, E_BAD_REQUEST, "The resource '%.*s' is no link.", slice_shown(g->link), g->link.p) : code;
}

/* A permission may be made before its resource is. */
static err find_or_await_resource(sql_request *q, grant *g) {
    err code = find_resource(q, g);
    if (code != E_NOT_FOUND) {
        return code;
    }
    q->op.detail_n = 0;
    *g = (grant){.mode = g->mode, .word = g->word, .kind = RID_NONE, .key = g->key, .link = g->link};
    return OK;
}

/* The user and the resource must be in the same database. */
static err check_database(sql_request *q, const grant *g) {
    database *d;
    err code = sql_find_database(q);
    if (code != OK) {
        return E_OWNER_NOT_FOUND;
    }
    d = q->database;
    rid in = rid_database_of(&g->container);
    return rid_equal(&in, &d->rid) ? OK
                                   : op_fail(&q->op, E_BAD_REQUEST, "The resource of a permission must be in the database of its user.");
}

/* ---- create, replace, delete ---- */

static account_name owner_name(const sql_request *q) {
    const sql_route *r = &q->route;
    bool feed = r->kind == SQL_PERMISSIONS;
    return feed ? sql_child_name(q) : (account_name){r->owner, r->owner_by_rid};
}

static err read_permission(sql_request *q, slice *id_out, grant *g) {
    slice body;
    maker m;
    TRY(make_maker(q, &m)); /* checked before anything is changed: the expiry may be invalid */
    TRY(sql_body(q, JSON_OBJECT, &body));
    slice id = text_in(body, "id");
    g->word = text_in(body, "permissionMode");
    g->link = text_in(body, "resource");
    if (!id.p || !g->word.p || !g->link.p) {
        return op_fail(&q->op, E_BAD_REQUEST, "The input content is invalid because the required properties - '%s%s%s' - are missing",
                       id.p ? "" : "id; ", g->word.p ? "" : "permissionMode; ", g->link.p ? "" : "resource; ");
    }
    *id_out = id;
    TRY(read_mode(q, g));
    TRY(read_key(q, body, g));
    TRY(find_or_await_resource(q, g));
    return g->kind == RID_NONE ? OK : check_database(q, g);
}

static void made(sql_request *q, permission *p, bool created) {
    op_charge(&q->op, CHARGE_METADATA_WRITE);
    sql_change_code(q) == OK ? answer(q, created ? 201 : 200, p) : sql_fail(q, sql_change_code(q));
    permission_give(p);
}

static void created(sql_request *q) {
    const permission_creation *create = (permission_creation *)q->change;
    made(q, create->permission_out, create->created);
}

void sql_permission_create(sql_request *q) {
    permission_creation *create = sql_new_change(q, permission_creation);
    create->database = sql_database_name(q);
    create->user = owner_name(q);
    create->upsert = sql_flag(q, FIELD_IS_UPSERT);
    err code = read_permission(q, &create->id, &create->grant);
    if (code != OK) {
        sql_fail(q, code);
        return;
    }
    sql_await_change(q, created);
    account_create_permission(create);
}

static void replaced(sql_request *q) {
    made(q, ((permission_replacement *)q->change)->permission_out, false);
}

void sql_permission_replace(sql_request *q) {
    permission_replacement *replace = sql_new_change(q, permission_replacement);
    replace->database = sql_database_name(q);
    replace->user = owner_name(q);
    replace->permission = sql_child_name(q);
    err code = read_permission(q, &replace->id, &replace->grant);
    if (code != OK) {
        sql_fail(q, code);
        return;
    }
    sql_await_change(q, replaced);
    account_replace_permission(replace);
}

void sql_permission_delete(sql_request *q) {
    permission_deletion *remove = sql_new_change(q, permission_deletion);
    remove->database = sql_database_name(q);
    remove->user = owner_name(q);
    remove->permission = sql_child_name(q);
    sql_await_change(q, sql_deleted);
    account_delete_permission(remove);
}

/* ---- read, list ---- */

static err find_user(sql_request *q, slice name, bool by_rid) {
    const sql_route *r = &q->route;
    err code = account_user(q->front->account, r->database, r->database_by_rid, name, by_rid, &q->user);
    return code == E_NOT_FOUND ? E_OWNER_NOT_FOUND : code;
}

void sql_permission_read(sql_request *q) {
    permission *p = NULL;
    op_charge(&q->op, CHARGE_METADATA_READ);
    err code = find_user(q, q->route.owner, q->route.owner_by_rid);
    code = code != OK ? code : account_permission(q->front->account, q->user, q->route.child, q->route.child_by_rid, &p);
    if (code != OK) {
        op_fail(&q->op, code, "Resource Not Found. Learn more: https://aka.ms/cosmosdb-tsg-not-found");
        sql_fail(q, code);
    } else if (item_etag_matches(sql_get(q, FIELD_IF_NONE_MATCH), p->version, (uint32_t)p->ts)) {
        sql_not_modified(q, p->version, (uint32_t)p->ts);
    } else {
        answer(q, 200, p);
    }
    permission_give(p);
}

static bool list_one(void *context, const permission *p) {
    const maker *m = context;
    buf *out = sql_listing_add(m->listing, p->number);
    if (out) {
        write_permission(out, p, m);
    }
    return out;
}

static void list_all(sql_listing *l) {
    maker *m = l->q->tokens;
    m->listing = l;
    account_each_permission(l->q->front->account, l->q->user, l->after, list_one, m);
}

void sql_permission_list(sql_request *q) {
    maker *m = arena_new(q->http->arena, maker);
    q->tokens = m;
    err code = make_maker(q, m);
    code = code != OK ? code : find_user(q, q->route.child, q->route.child_by_rid);
    if (code != OK) {
        sql_fail(q, code);
        return;
    }
    sql_listing_run(q, &q->user->rid, "Permissions", list_all);
}

/* ---- use ---- */

/* The resource must be in the database of the permission's user. */
void sql_permission_resolve(sql_request *q) {
    permission *p = q->reach.permission;
    grant g = {.mode = p->grant.mode, .word = p->grant.word, .key = p->grant.key, .link = p->grant.link};
    rid database = rid_database_of(&p->rid);
    bool found = p->grant.kind == RID_NONE && find_resource(q, &g) == OK;
    rid in = rid_database_of(&g.container);
    if (found && rid_equal(&in, &database)) {
        q->reach.permission = permission_resolved(p, &g);
        permission_give(p);
    }
    q->op.detail_n = 0;
}
