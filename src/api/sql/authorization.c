#include "api/sql/authorization.h"

#include <assert.h>

#include "account/scripts.h"
#include "api/sql/auth.h"
#include "item/foreign.h"

/* ---- the table ---- */

/* What a permission must cover for an operation. */
typedef enum reach {
    REACH_ANY_TOKEN,            /* any token whose resource still exists */
    REACH_CONTAINER_PROPERTIES, /* the container or anything in it; for its properties and ranges */
    REACH_CONTAINER,            /* the whole container */
    REACH_ITEMS,                /* the container, or the partition key that the request names */
    REACH_PLAN,                 /* the container or any partition key of it; the answer reveals no item */
    REACH_ITEM,                 /* as REACH_ITEMS, or the item that the path names (as the target or above an attachment) */
    REACH_SCRIPT,               /* the whole container, or the script that the path names */
    REACH_RUN,                  /* the container, the partition key that the request names, or the stored procedure that the path names */
} reach;

typedef struct rule {
    sql_kind kind;
    http_method method;
    reach reach;
    bool queries_only; /* a POST on this feed must be a query */
} rule;

/* Operations without a row are closed to tokens. */
static const rule rules[] = {
    {SQL_ACCOUNT, VERB_GET, REACH_ANY_TOKEN, false},
    {SQL_ADDRESSES, VERB_GET, REACH_CONTAINER_PROPERTIES, false},
    {SQL_CONTAINER, VERB_GET, REACH_CONTAINER_PROPERTIES, false},
    {SQL_CONTAINER, VERB_HEAD, REACH_CONTAINER_PROPERTIES, false},
    {SQL_PKRANGES, VERB_GET, REACH_CONTAINER_PROPERTIES, false},
    {SQL_PKRANGE, VERB_GET, REACH_CONTAINER_PROPERTIES, false},
    {SQL_ITEMS, VERB_GET, REACH_ITEMS, false},
    {SQL_ITEMS, VERB_POST, REACH_ITEMS, false},
    {SQL_ITEM, VERB_GET, REACH_ITEM, false},
    {SQL_ITEM, VERB_PUT, REACH_ITEM, false},
    {SQL_ITEM, VERB_PATCH, REACH_ITEM, false},
    {SQL_ITEM, VERB_DELETE, REACH_ITEM, false},
    {SQL_ATTACHMENTS, VERB_GET, REACH_ITEM, false},
    {SQL_ATTACHMENTS, VERB_POST, REACH_ITEM, false},
    {SQL_ATTACHMENT, VERB_GET, REACH_ITEM, false},
    {SQL_ATTACHMENT, VERB_PUT, REACH_ITEM, false},
    {SQL_ATTACHMENT, VERB_DELETE, REACH_ITEM, false},
    {SQL_CONFLICTS, VERB_GET, REACH_CONTAINER, false},
    {SQL_CONFLICTS, VERB_POST, REACH_CONTAINER, true},
    {SQL_CONFLICT, VERB_GET, REACH_CONTAINER, false},
    {SQL_CONFLICT, VERB_DELETE, REACH_CONTAINER, false},
    {SQL_SPROCS, VERB_GET, REACH_CONTAINER, false},
    {SQL_SPROCS, VERB_POST, REACH_CONTAINER, true},
    {SQL_SPROC, VERB_GET, REACH_SCRIPT, false},
    {SQL_SPROC, VERB_POST, REACH_RUN, false},
    {SQL_TRIGGERS, VERB_GET, REACH_CONTAINER, false},
    {SQL_TRIGGERS, VERB_POST, REACH_CONTAINER, true},
    {SQL_TRIGGER, VERB_GET, REACH_SCRIPT, false},
    {SQL_UDFS, VERB_GET, REACH_CONTAINER, false},
    {SQL_UDFS, VERB_POST, REACH_CONTAINER, true},
    {SQL_UDF, VERB_GET, REACH_SCRIPT, false},
    {SQL_PARTITION_KEY_DELETE, VERB_POST, REACH_ITEMS, false},
};

static const rule *find_rule(const sql_request *q) {
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        if (rules[i].kind == q->route.kind && rules[i].method == q->http->method) {
            return &rules[i];
        }
    }
    return NULL;
}

/* Only POSTs on feeds count: executing or replacing a named resource is not a query, whatever its headers say. */
bool sql_access_is_query(const sql_request *q) {
    switch (q->route.kind) {
    case SQL_DATABASES:
    case SQL_CONTAINERS:
    case SQL_ITEMS:
    case SQL_OFFERS:
    case SQL_SPROCS:
    case SQL_TRIGGERS:
    case SQL_UDFS:
    case SQL_USERS:
    case SQL_PERMISSIONS:
    case SQL_CLIENT_ENCRYPTION_KEYS:
    case SQL_CONFLICTS:
    case SQL_ATTACHMENTS:
        return sql_is_query(q);
    default:
        return false;
    }
}

/* ---- authentication ---- */

err sql_access_authenticate(sql_request *q) {
    const access_ring *ring = access_keys_ring(q->front->keys);
    sql_auth_request request = {q->http->verb, &q->route, sql_get(q, FIELD_X_MS_DATE), sql_get(q, FIELD_DATE)};
    sql_authorization authorization;
    access_key key;
    TRY(sql_auth_read(&q->op, sql_get(q, FIELD_AUTHORIZATION), &authorization));
    if (authorization.is_jwt) {
        return access_reach_of_jwt(&q->op, q->front->aad, authorization.signature, &q->reach);
    }
    if (authorization.is_token) {
        TRY(access_reach_of_token(&q->op, ring, q->front->account, authorization.signature, &q->reach));
        sql_permission_resolve(q);
        return OK;
    }
    TRY(sql_auth_verify(&q->op, ring, &request, authorization.signature, &key));
    access_reach_of_key(&q->reach, ring, key);
    return OK;
}

/* ---- what the token covers ---- */

/* Whether the request's key is the granted one, or has it as a prefix. */
static bool names_key(sql_request *q, const pkey *granted) {
    pkey key;
    slice header = sql_get(q, FIELD_PARTITION_KEY);
    return header.p && pkey_parse(&q->op, header, &key) == OK && access_key_is_below(&key, granted);
}

/* Finds the number of the item that the path names. If the path gives a rid, it is replaced by the item's id, so that the handler cannot
 * take the rid for the name of another item. */
static bool find_item(sql_request *q, const container *c, slice *name, bool *by_rid, const rid *item_rid, uint64_t *number_out) {
    const items *items = account_items(q->front->account);
    item_key key;
    pkey header;
    bool given = sql_has(q, FIELD_PARTITION_KEY);
    slice id, row = SLICE_EMPTY;
    if ((!*by_rid && item_row_of_id(&q->op, c, *name, &row) != OK) ||
        (given && pkey_parse(&q->op, sql_get(q, FIELD_PARTITION_KEY), &header) != OK) ||
        item_check_key(&q->op, c, given ? &header : NULL, row, &key) != OK) {
        return false;
    }
    if (!*by_rid) {
        return item_number_of(items, c, &key, number_out) == OK;
    }
    *number_out = rid_number(item_rid);
    if (item_row_of_number(items, &q->op, c, &key, *number_out, &id) != OK) {
        return false;
    }
    q->row_known = name == &q->route.child;
    *name = id;
    *by_rid = false;
    return true;
}

static bool is_item(sql_request *q, const container *c, const grant *g) {
    sql_route *r = &q->route;
    uint64_t number;
    bool below = r->kind == SQL_ATTACHMENT;
    bool found = below ? find_item(q, c, &r->owner, &r->owner_by_rid, &r->owner_rid, &number)
                       : find_item(q, c, &r->child, &r->child_by_rid, &r->child_rid, &number);
    if (g->number == 0 && g->kind == RID_DOCUMENT) { /* by its id, under any partition key */
        return found && slice_eq(below ? r->owner : r->child, g->child);
    }
    return found && number == g->number;
}

static bool is_script(sql_request *q, container *c, const grant *g) {
    static const struct {
        sql_kind kind;
        rid_kind rid;
        account_script_kind script;
    } kinds[] = {
        {SQL_SPROC, RID_SPROC, ACCOUNT_PROCEDURE}, {SQL_TRIGGER, RID_TRIGGER, ACCOUNT_TRIGGER}, {SQL_UDF, RID_UDF, ACCOUNT_FUNCTION}};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        account_script *s;
        if (kinds[i].kind != q->route.kind || kinds[i].rid != g->kind ||
            account_find_script(q->front->account, c, kinds[i].script, q->route.child, q->route.child_by_rid, &s) != OK) {
            continue;
        }
        bool same = s->number == g->number;
        account_script_give(s);
        return same;
    }
    return false;
}

/* Whether the granted item still exists; needed where the request itself does not look it up. True if the grant has no partition key to
 * look it up by. */
static bool item_is_there(sql_request *q, const container *c, const grant *g) {
    item_key key;
    slice id;
    if (g->key.n == 0 && c->key.n) {
        return true;
    }
    return item_check_key(&q->op, c, g->key.n ? &g->key : NULL, SLICE_EMPTY, &key) == OK &&
           item_row_of_number(account_items(q->front->account), &q->op, c, &key, g->number, &id) == OK;
}

static bool script_is_there(sql_request *q, const container *c, const grant *g) {
    account_script_kind kind = g->kind == RID_SPROC ? ACCOUNT_PROCEDURE : g->kind == RID_TRIGGER ? ACCOUNT_TRIGGER : ACCOUNT_FUNCTION;
    char room[RID_TEXT_MAX];
    buf text = {.p = room, .cap = sizeof room, .max = sizeof room};
    rid r = rid_child(g->container, g->kind, g->number);
    account_script *s;
    rid_write(&text, &r);
    if (account_find_script(q->front->account, c, kind, buf_view(&text), true, &s) != OK) {
        return false;
    }
    bool same = s->number == g->number;
    account_script_give(s);
    return same;
}

static bool is_there(sql_request *q, const container *c, const grant *g) {
    return g->kind == RID_CONTAINER                               ? true
           : g->kind == RID_DOCUMENT || g->kind == RID_ATTACHMENT ? item_is_there(q, c, g)
                                                                  : script_is_there(q, c, g);
}

/* Whether a permission for a container, or for one partition key of it, covers the operation. */
static bool container_reaches(sql_request *q, const grant *g, reach wanted) {
    bool bulk = sql_flag(q, FIELD_IS_BATCH) && !sql_flag(q, FIELD_BATCH_ATOMIC); /* each operation has its own partition key */
    if (g->key.n == 0 || wanted == REACH_CONTAINER_PROPERTIES || wanted == REACH_PLAN) {
        return true;
    }
    bool of_key = wanted == REACH_ITEMS || wanted == REACH_ITEM || wanted == REACH_RUN;
    return of_key && !bulk && names_key(q, &g->key);
}

static bool reaches(sql_request *q, container *c, const grant *g, reach wanted) {
    if (g->kind == RID_CONTAINER) {
        return container_reaches(q, g, wanted);
    }
    if (wanted == REACH_CONTAINER_PROPERTIES) {
        return is_there(q, c, g);
    }
    if (wanted == REACH_SCRIPT) {
        return is_script(q, c, g);
    }
    if (g->key.n && !names_key(q, &g->key)) {
        return false;
    }
    switch (g->kind) {
    case RID_DOCUMENT:
        return wanted == REACH_ITEM && is_item(q, c, g);
    case RID_ATTACHMENT:
        return q->route.kind == SQL_ATTACHMENT && slice_eq(q->route.child, g->child) && is_item(q, c, g);
    case RID_SPROC:
        return wanted == REACH_RUN && is_script(q, c, g);
    default:
        return false;
    }
}

/* The container that the path names; the account's path names none, so the grant's container is used. */
static err find_container(sql_request *q, const rule *r, container **container_out) {
    const sql_route *route = &q->route;
    char room[2 * RID_TEXT_MAX];
    buf text = {.p = room, .cap = sizeof room, .max = sizeof room};
    if (r->reach != REACH_ANY_TOKEN) {
        return account_container(q->front->account, route->database, route->database_by_rid, route->container, route->container_by_rid,
                                 container_out);
    }
    const rid *container = &q->reach.permission->grant.container;
    rid database = rid_database_of(container);
    rid_write(&text, &database);
    size_t cut = text.n;
    rid_write(&text, container);
    slice all = buf_view(&text);
    return account_container(q->front->account, slice_of(all.p, cut), true, slice_skip(all, cut), true, container_out);
}

static bool token_allows(sql_request *q, const rule *r) {
    const grant *g = &q->reach.permission->grant;
    if (g->kind == RID_NONE) {
        return false;
    }
    bool plan = q->route.kind == SQL_ITEMS && sql_access_is_query(q) && sql_flag(q, FIELD_IS_QUERY_PLAN);
    reach wanted = plan ? REACH_PLAN : r->reach == REACH_ANY_TOKEN ? REACH_CONTAINER_PROPERTIES : r->reach;
    container *c;
    if (find_container(q, r, &c) != OK) {
        return false;
    }
    bool allowed = access_is_for(q->reach.permission, c) && reaches(q, c, g, wanted);
    container_give(c);
    return allowed;
}

static err check_token(sql_request *q, bool reads) {
    const rule *r = find_rule(q);
    bool allowed = r && (reads || q->reach.permission->grant.mode == PERMISSION_ALL) && !(r->queries_only && !reads) && token_allows(q, r);
    q->op.detail_n = 0; /* do not tell the bearer what is wrong with a partition key */
    return allowed ? OK : access_refuse(&q->op);
}

/* ---- Entra ID tokens: the actions of the service's data roles ---- */

typedef enum place { PLACE_ANY, PLACE_ACCOUNT, PLACE_DATABASE, PLACE_CONTAINER } place;

typedef struct role_rule {
    sql_kind kind;
    http_method method;
    place place;       /* the scope in which a role is needed; PLACE_ANY: wherever */
    bool queries_only; /* a POST on this feed must be a query */
    bool contributor;  /* reading takes a contributor, too */
} role_rule;

/* A reader may do what only reads, a contributor all of these. Operations without a row manage the account, and are closed to such tokens
 * whatever the role. */
static const role_rule role_rules[] = {
    {SQL_ACCOUNT, VERB_GET, PLACE_ANY, false, false},
    {SQL_DATABASES, VERB_GET, PLACE_ACCOUNT, false, false},
    {SQL_DATABASES, VERB_POST, PLACE_ACCOUNT, true, false},
    {SQL_DATABASE, VERB_GET, PLACE_DATABASE, false, false},
    {SQL_CONTAINERS, VERB_GET, PLACE_DATABASE, false, false},
    {SQL_CONTAINERS, VERB_POST, PLACE_DATABASE, true, false},
    {SQL_CONTAINER, VERB_GET, PLACE_CONTAINER, false, false},
    {SQL_PKRANGES, VERB_GET, PLACE_CONTAINER, false, false},
    {SQL_PKRANGE, VERB_GET, PLACE_CONTAINER, false, false},
    {SQL_ITEMS, VERB_GET, PLACE_CONTAINER, false, false},
    {SQL_ITEMS, VERB_POST, PLACE_CONTAINER, false, false},
    {SQL_ITEM, VERB_GET, PLACE_CONTAINER, false, false},
    {SQL_ITEM, VERB_PUT, PLACE_CONTAINER, false, false},
    {SQL_ITEM, VERB_PATCH, PLACE_CONTAINER, false, false},
    {SQL_ITEM, VERB_DELETE, PLACE_CONTAINER, false, false},
    {SQL_ATTACHMENTS, VERB_GET, PLACE_CONTAINER, false, false},
    {SQL_ATTACHMENTS, VERB_POST, PLACE_CONTAINER, false, false},
    {SQL_ATTACHMENT, VERB_GET, PLACE_CONTAINER, false, false},
    {SQL_ATTACHMENT, VERB_PUT, PLACE_CONTAINER, false, false},
    {SQL_ATTACHMENT, VERB_DELETE, PLACE_CONTAINER, false, false},
    {SQL_CONFLICTS, VERB_GET, PLACE_CONTAINER, false, true},
    {SQL_CONFLICTS, VERB_POST, PLACE_CONTAINER, true, true},
    {SQL_CONFLICT, VERB_GET, PLACE_CONTAINER, false, true},
    {SQL_CONFLICT, VERB_DELETE, PLACE_CONTAINER, false, true},
    {SQL_SPROC, VERB_POST, PLACE_CONTAINER, false, true},
    {SQL_PARTITION_KEY_DELETE, VERB_POST, PLACE_CONTAINER, false, true},
};

static const role_rule *find_role_rule(const sql_request *q, bool reads) {
    for (size_t i = 0; i < sizeof role_rules / sizeof *role_rules; i++) {
        const role_rule *r = &role_rules[i];
        if (r->kind == q->route.kind && r->method == q->http->method && (reads || !r->queries_only)) {
            return r;
        }
    }
    return NULL;
}

/* The names of what the path names by rids. If it is not there, the texts are names. */
static void find_names(sql_request *q, place where, slice *database_out, slice *container_out) {
    const sql_route *route = &q->route;
    database *d;
    container *c;
    *database_out = where >= PLACE_DATABASE ? route->database : SLICE_EMPTY;
    *container_out = where >= PLACE_CONTAINER ? route->container : SLICE_EMPTY;
    if (where >= PLACE_DATABASE && route->database_by_rid && account_database(q->front->account, route->database, true, &d) == OK) {
        *database_out = arena_copy(q->op.arena, slice_str(d->id));
        database_give(d);
    }
    if (where >= PLACE_CONTAINER && route->container_by_rid &&
        account_container(q->front->account, route->database, route->database_by_rid, route->container, true, &c) == OK) {
        *container_out = arena_copy(q->op.arena, c->id);
        container_give(c);
    }
}

static err check_role(sql_request *q, bool reads) {
    const role_rule *r = find_role_rule(q, reads);
    slice database, container;
    if (!r) {
        return op_fail(&q->op, E_NOT_BY_ROLE, "The given request [%.*s %.*s] cannot be authorized by AAD token in data plane.",
                       (int)q->http->verb.n, q->http->verb.p, slice_shown(q->http->path), q->http->path.p);
    }
    find_names(q, r->place, &database, &container);
    access_role least = reads && !r->contributor ? ACCESS_READER : ACCESS_CONTRIBUTOR;
    bool allowed = r->place == PLACE_ANY ? access_roles_any(q->reach.roles) : access_roles_in(q->reach.roles, database, container) >= least;
    return allowed ? OK
                   : op_fail(&q->op, E_NO_ROLE,
                             "Request is blocked because principal [%.*s] does not have required RBAC permissions to perform [%.*s %.*s]. "
                             "Learn more: https://aka.ms/cosmos-native-rbac.",
                             slice_shown(q->reach.principal), q->reach.principal.p ? q->reach.principal.p : "", (int)q->http->verb.n,
                             q->http->verb.p, slice_shown(q->http->path), q->http->path.p);
}

/* ---- entry points ---- */

err sql_access_check(sql_request *q, bool reads) {
    assert(q->reach.proof != ACCESS_NOBODY);
    reads = reads || sql_access_is_query(q);
    if (q->reach.proof == ACCESS_BY_ROLE) {
        return check_role(q, reads);
    }
    if (q->reach.permission) {
        return check_token(q, reads);
    }
    bool gives_tokens = q->route.kind == SQL_PERMISSIONS || q->route.kind == SQL_PERMISSION;
    if (access_key_is_read_only(q->reach.key) && (!reads || gives_tokens)) {
        return op_fail(&q->op, E_FORBIDDEN,
                       "The operation %.*s%s is not permitted with a read-only key: use the primary or the secondary key.",
                       (int)q->http->verb.n, q->http->verb.p, gives_tokens ? " of permissions" : "");
    }
    return OK;
}

bool sql_access_covers_container(const sql_request *q) {
    return !q->reach.permission || (q->reach.permission->grant.kind == RID_CONTAINER && q->reach.permission->grant.key.n == 0);
}

err sql_access_check_container(sql_request *q) {
    return !q->reach.permission || access_is_for(q->reach.permission, q->container) ? OK : access_refuse(&q->op);
}
