#include "api/direct/carry.h"

#include "account/rid.h"
#include "base/limits.h"

/* The protocol leaves method and content type out: they follow from the operation. */
typedef struct operation {
    uint16_t code;
    http_method method;
    slice verb;
    bool feed;      /* its path ends with the resource type, not with a name */
    sql_field flag; /* a field that tells the operation from others with the same verb */
    slice type;     /* content type of the operation's body */
    bool reads;     /* an etag is one that the client has */
} operation;

#define JSON SLICE_LIT("application/json")
#define QUERY SLICE_LIT("application/query+json")
#define NO_FLAG FIELD_COUNT

static const operation operations[] = {
    {0x01, VERB_POST, SLICE_LIT("POST"), true, NO_FLAG, JSON, false},              /* Create */
    {0x02, VERB_PATCH, SLICE_LIT("PATCH"), false, NO_FLAG, JSON, false},           /* Patch */
    {0x03, VERB_GET, SLICE_LIT("GET"), false, NO_FLAG, JSON, true},                /* Read */
    {0x04, VERB_GET, SLICE_LIT("GET"), true, NO_FLAG, JSON, true},                 /* ReadFeed */
    {0x05, VERB_DELETE, SLICE_LIT("DELETE"), false, NO_FLAG, JSON, false},         /* Delete */
    {0x06, VERB_PUT, SLICE_LIT("PUT"), false, NO_FLAG, JSON, false},               /* Replace */
    {0x08, VERB_POST, SLICE_LIT("POST"), false, NO_FLAG, JSON, false},             /* ExecuteJavaScript */
    {0x09, VERB_POST, SLICE_LIT("POST"), true, FIELD_IS_QUERY, QUERY, false},      /* SqlQuery */
    {0x0F, VERB_POST, SLICE_LIT("POST"), true, FIELD_IS_QUERY, QUERY, false},      /* Query */
    {0x11, VERB_HEAD, SLICE_LIT("HEAD"), false, NO_FLAG, JSON, true},              /* Head */
    {0x12, VERB_HEAD, SLICE_LIT("HEAD"), true, NO_FLAG, JSON, true},               /* HeadFeed */
    {0x13, VERB_POST, SLICE_LIT("POST"), true, FIELD_IS_UPSERT, JSON, false},      /* Upsert */
    {0x25, VERB_POST, SLICE_LIT("POST"), true, FIELD_IS_BATCH, JSON, false},       /* Batch */
    {0x42, VERB_POST, SLICE_LIT("POST"), true, FIELD_IS_QUERY_PLAN, QUERY, false}, /* QueryPlan */
};

typedef struct resource {
    uint16_t code, parent; /* parent 0: the account */
    slice word;
    direct_name name;
} resource;

enum { DATABASE = 0x01, CONTAINER = 0x02, ITEM = 0x03, USER = 0x05 };

static const resource resources[] = {
    {DATABASE, 0, SLICE_LIT("dbs"), DIRECT_DATABASE},
    {CONTAINER, DATABASE, SLICE_LIT("colls"), DIRECT_CONTAINER},
    {ITEM, CONTAINER, SLICE_LIT("docs"), DIRECT_ITEM},
    {0x04, ITEM, SLICE_LIT("attachments"), DIRECT_ATTACHMENT},
    {USER, DATABASE, SLICE_LIT("users"), DIRECT_USER},
    {0x06, USER, SLICE_LIT("permissions"), DIRECT_PERMISSION},
    {0x07, CONTAINER, SLICE_LIT("sprocs"), DIRECT_PROCEDURE},
    {0x08, CONTAINER, SLICE_LIT("conflicts"), DIRECT_CONFLICT},
    {0x09, CONTAINER, SLICE_LIT("triggers"), DIRECT_TRIGGER},
    {0x0A, CONTAINER, SLICE_LIT("udfs"), DIRECT_FUNCTION},
    {0x0F, 0, SLICE_LIT("offers"), DIRECT_NAMES},
    {0x16, CONTAINER, SLICE_LIT("pkranges"), DIRECT_RANGE},
    {0x23, DATABASE, SLICE_LIT("clientencryptionkeys"), DIRECT_ENCRYPTION_KEY},
};

static const operation *find_operation(uint16_t code) {
    for (size_t i = 0; i < sizeof operations / sizeof *operations; i++) {
        if (operations[i].code == code) {
            return &operations[i];
        }
    }
    return NULL;
}

static const resource *find_resource(uint16_t code) {
    for (size_t i = 0; i < sizeof resources / sizeof *resources; i++) {
        if (resources[i].code == code) {
            return &resources[i];
        }
    }
    return NULL;
}

/* ---- the path ---- */

typedef struct path {
    const direct_request *q;
    buf text;
} path;

static bool is_plain(unsigned char c) {
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '-' || c == '_' || c == '.';
}

static void add_encoded(buf *out, slice name) {
    for (size_t i = 0; i < name.n; i++) {
        if (is_plain((unsigned char)name.p[i])) {
            buf_add_byte(out, name.p[i]);
        } else {
            buf_add_byte(out, '%');
            buf_add_hex(out, slice_of(&name.p[i], 1));
        }
    }
}

static void add_word(path *p, const resource *r) {
    buf_add_byte(&p->text, '/');
    buf_add_slice(&p->text, r->word);
}

/* "/dbs/d/colls/c", the parents first. False: a name is missing. */
static bool add_named(path *p, const resource *r) {
    slice name = r && r->name < DIRECT_NAMES ? p->q->name[r->name] : SLICE_EMPTY;
    if (!r) {
        return true;
    }
    if (!name.n || !add_named(p, find_resource(r->parent))) {
        return false;
    }
    add_word(p, r);
    buf_add_byte(&p->text, '/');
    add_encoded(&p->text, name);
    return true;
}

/* The same by id: "/dbs/DJB7AA==/colls/DJB7AI1lZHo=". */
static bool add_by_rid(path *p, const resource *r, const rid *id) {
    if (!r) {
        return true;
    }
    rid above = rid_parent(id);
    if (!id->n || !add_by_rid(p, find_resource(r->parent), &above)) {
        return false;
    }
    add_word(p, r);
    buf_add_byte(&p->text, '/');
    rid_write(&p->text, id);
    return true;
}

static bool read_rid(slice bytes, rid *id_out) {
    *id_out = (rid){0};
    if (bytes.n > RID_BYTES_MAX) {
        return false;
    }
    id_out->n = (uint8_t)bytes.n;
    if (bytes.n) {
        memcpy(id_out->bytes, bytes.p, bytes.n);
    }
    return !bytes.n || rid_kind_of(id_out) != RID_NONE;
}

/* Names come first: a frame that has them has the container's resource id beside them. */
static bool add_path(path *p, const resource *r, bool feed) {
    const resource *named = feed ? find_resource(r->parent) : r;
    rid id;
    bool good = p->q->name[DIRECT_DATABASE].p ? add_named(p, named) : read_rid(p->q->rid, &id) && add_by_rid(p, named, &id);
    if (feed) {
        add_word(p, r);
    }
    return good && buf_ok(&p->text);
}

static err make_path(const direct_request *q, const resource *r, bool feed, arena *a, slice *path_out) {
    path p = {.q = q, .text = buf_init(LIMIT_URL_BYTES)};
    bool good = add_path(&p, r, feed);
    *path_out = good ? arena_copy(a, buf_view(&p.text)) : SLICE_EMPTY;
    buf_free(&p.text);
    return good ? OK : E_BAD_REQUEST;
}

/* ---- fields ---- */

enum { FEED_KEY_EPK = 2, FEED_KEY_EPK_RANGE = 3 };

static slice hex_of(arena *a, slice bytes) {
    buf text = buf_init(BUF_NO_LIMIT);
    buf_add_hex(&text, bytes);
    slice copy = arena_copy(a, buf_view(&text));
    buf_free(&text);
    return copy;
}

/* A range of hashes has its bounds as hex text, or as bytes. A bound that is the end of the hash space is not sent. */
static void carry_epk(const direct_request *q, http_request *http) {
    bool text = q->feed_key == FEED_KEY_EPK_RANGE;
    if ((!text && q->feed_key != FEED_KEY_EPK) || (!q->start_epk.p && !q->end_epk.p)) {
        return;
    }
    slice from = q->start_epk.p ? q->start_epk : SLICE_LIT(""), to = q->end_epk.n ? q->end_epk : SLICE_EMPTY;
    http->field[FIELD_START_EPK] = text || !from.n ? from : hex_of(http->arena, from);
    http->field[FIELD_END_EPK] = !to.n ? SLICE_LIT("FF") : text ? to : hex_of(http->arena, to);
}

/* The container id (rid) that the client expects behind the name: from its own token, or from the rid sent beside the names. */
static slice cached_rid(const direct_request *q, arena *a) {
    rid id;
    if (q->field[FIELD_CACHED_RID].p || !q->name[DIRECT_CONTAINER].p || !read_rid(q->rid, &id)) {
        return q->field[FIELD_CACHED_RID];
    }
    id = rid_container_of(&id);
    if (!id.n) {
        return SLICE_EMPTY;
    }
    buf text = buf_init(BUF_NO_LIMIT);
    rid_write(&text, &id);
    slice copy = arena_copy(a, buf_view(&text));
    buf_free(&text);
    return copy;
}

/* Other resources are always read with strong consistency. Their requests say so, also where the account's level is weaker. */
static bool is_in_container(const resource *r) {
    return r->parent == CONTAINER || r->parent == ITEM;
}

static void carry_fields(const direct_request *q, const operation *o, const resource *r, http_request *http) {
    memcpy(http->field, q->field, sizeof q->field);
    char *activity = arena_alloc_aligned(http->arena, DIRECT_GUID_TEXT, 1);
    direct_guid_text(q->activity, activity);
    http->field[FIELD_ACTIVITY_ID] = slice_of(activity, DIRECT_GUID_TEXT);
    http->field[FIELD_CONTENT_TYPE] = o->type;
    http->field[o->reads ? FIELD_IF_NONE_MATCH : FIELD_IF_MATCH] = q->match;
    http->field[FIELD_CACHED_RID] = cached_rid(q, http->arena);
    if (!q->field[FIELD_VERSION].n) {
        http->field[FIELD_VERSION] = SLICE_LIT("2020-07-15");
    }
    if (!is_in_container(r)) {
        http->field[FIELD_CONSISTENCY] = SLICE_EMPTY;
    }
    if (o->flag != NO_FLAG) {
        http->field[o->flag] = SLICE_LIT("true");
    }
    carry_epk(q, http);
}

err direct_carry(const direct_request *q, http_request *http) {
    const operation *o = find_operation(q->operation);
    const resource *r = find_resource(q->resource);
    if (!o || !r) {
        return E_METHOD;
    }
    http->method = o->method;
    http->verb = o->verb;
    http->body = q->payload;
    carry_fields(q, o, r, http);
    return make_path(q, r, o->feed, http->arena, &http->path);
}
