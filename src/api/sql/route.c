#include "api/sql/route.h"

#include <bson/bson.h>

#include "base/percent.h"

/* The grammar of paths. A row is a word that may follow a resource of kind `below`; the word alone names the feed, with a name after it the
 * resource. */
typedef struct rule {
    slice word;
    sql_kind below;
    sql_kind feed;
    sql_kind resource;
    rid_kind rid;
} rule;

static const rule rules[] = {
    {SLICE_LIT("dbs"), SQL_ACCOUNT, SQL_DATABASES, SQL_DATABASE, RID_DATABASE},
    {SLICE_LIT("offers"), SQL_ACCOUNT, SQL_OFFERS, SQL_OFFER, RID_OFFER},
    {SLICE_LIT("colls"), SQL_DATABASE, SQL_CONTAINERS, SQL_CONTAINER, RID_CONTAINER},
    {SLICE_LIT("users"), SQL_DATABASE, SQL_USERS, SQL_USER, RID_USER},
    {SLICE_LIT("clientencryptionkeys"), SQL_DATABASE, SQL_CLIENT_ENCRYPTION_KEYS, SQL_CLIENT_ENCRYPTION_KEY, RID_CLIENT_ENCRYPTION_KEY},
    {SLICE_LIT("permissions"), SQL_USER, SQL_PERMISSIONS, SQL_PERMISSION, RID_PERMISSION},
    {SLICE_LIT("docs"), SQL_CONTAINER, SQL_ITEMS, SQL_ITEM, RID_DOCUMENT},
    {SLICE_LIT("pkranges"), SQL_CONTAINER, SQL_PKRANGES, SQL_PKRANGE, RID_PKRANGE},
    {SLICE_LIT("sprocs"), SQL_CONTAINER, SQL_SPROCS, SQL_SPROC, RID_SPROC},
    {SLICE_LIT("triggers"), SQL_CONTAINER, SQL_TRIGGERS, SQL_TRIGGER, RID_TRIGGER},
    {SLICE_LIT("udfs"), SQL_CONTAINER, SQL_UDFS, SQL_UDF, RID_UDF},
    {SLICE_LIT("conflicts"), SQL_CONTAINER, SQL_CONFLICTS, SQL_CONFLICT, RID_CONFLICT},
    {SLICE_LIT("attachments"), SQL_ITEM, SQL_ATTACHMENTS, SQL_ATTACHMENT, RID_ATTACHMENT},
};

static const slice operations = SLICE_LIT("operations");
static const slice partition_key_delete = SLICE_LIT("partitionkeydelete");
static const slice colls = SLICE_LIT("colls");

static const rule *find_rule(sql_kind below, slice word) {
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
        if (rules[i].below == below && slice_eq_nocase(rules[i].word, word)) {
            return &rules[i];
        }
    }
    return NULL;
}

/* The next non-empty segment; an empty slice at the end. */
static slice next_segment(slice *path) {
    while (path->n && path->p[0] == '/') {
        *path = slice_skip(*path, 1);
    }
    const char *end = path->n ? memchr(path->p, '/', path->n) : NULL;
    slice segment = slice_of(path->p, end ? (size_t)(end - path->p) : path->n);
    *path = slice_skip(*path, segment.n);
    return segment;
}

static bool is_utf8(slice s) {
    unsigned char any = 0;
    for (size_t i = 0; i < s.n; i++) {
        any |= (unsigned char)s.p[i];
    }
    return any < 0x80 || bson_utf8_validate(s.p, s.n, true);
}

static bool rid_under(slice name, rid_kind kind, bool parent_by_rid, const rid *parent, rid *rid_out) {
    if (parent_by_rid && rid_parse(name, rid_out) == kind) {
        rid above = rid_parent(rid_out);
        if (rid_equal(&above, parent)) {
            return true;
        }
    }
    *rid_out = (rid){0};
    return false;
}

/* Stores a name in the route member of its kind. Parses it as an id if the level above was one. */
static void place_name(sql_route *r, const rule *row, slice name) {
    static const rid none = {0};
    bool in_container = r->container.p != NULL;
    const rid *above = in_container ? &r->container_rid : &r->database_rid;
    bool above_by_rid = in_container ? r->container_by_rid : r->database_by_rid;
    switch (row->resource) {
    case SQL_DATABASE:
        r->database = name;
        r->database_by_rid = rid_under(name, RID_DATABASE, true, &none, &r->database_rid);
        return;
    case SQL_CONTAINER:
        r->container = name;
        r->container_by_rid = rid_under(name, RID_CONTAINER, above_by_rid, above, &r->container_rid);
        return;
    case SQL_OFFER:
        above = &none;
        above_by_rid = true;
        break;
    case SQL_PERMISSION:
    case SQL_ATTACHMENT:
        r->owner = r->child;
        r->owner_rid = r->child_rid;
        r->owner_by_rid = r->child_by_rid;
        above = &r->owner_rid;
        above_by_rid = r->owner_by_rid;
        break;
    default:
        break;
    }
    r->child = name;
    r->child_by_rid = rid_under(name, row->rid, above_by_rid, above, &r->child_rid);
}

/* Walks the path and writes its words and decoded names into one text, which becomes the link. */
typedef struct walk {
    slice left; /* rest of the path */
    char *text;
    size_t n;
    slice last; /* the last name */
} walk;

static void add_text(walk *w, slice s) {
    memcpy(w->text + w->n, s.p, s.n);
    w->n += s.n;
}

static bool take_name(walk *w, const rule *row, slice raw, sql_route *r) {
    size_t n = 0;
    if (w->n) {
        add_text(w, SLICE_LIT("/"));
    }
    add_text(w, row->word);
    add_text(w, SLICE_LIT("/"));
    if (!percent_decode(raw, w->text + w->n, &n)) {
        return false;
    }
    w->last = slice_of(w->text + w->n, n);
    w->n += n;
    place_name(r, row, w->last);
    return is_utf8(w->last);
}

static err walk_path(walk *w, sql_route *r) {
    for (slice word = next_segment(&w->left); word.n; word = next_segment(&w->left)) {
        slice name = next_segment(&w->left);
        if (r->kind == SQL_CONTAINER && slice_eq_nocase(word, operations) && slice_eq_nocase(name, partition_key_delete)) {
            r->kind = SQL_PARTITION_KEY_DELETE;
            r->type = colls;
            return next_segment(&w->left).n ? E_BAD_URL : OK;
        }
        const rule *row = find_rule(r->kind, word);
        if (!row) {
            return E_BAD_URL;
        }
        r->type = row->word;
        r->kind = name.n ? row->resource : row->feed;
        if (name.n && !take_name(w, row, name, r)) {
            return E_BAD_URL;
        }
        if (!name.n) {
            return OK;
        }
    }
    return OK;
}

static slice lower_case(arena *a, slice s) {
    char *text = arena_alloc_aligned(a, s.n + 1, 1);
    for (size_t i = 0; i < s.n; i++) {
        text[i] = s.p[i] >= 'A' && s.p[i] <= 'Z' ? (char)(s.p[i] | 0x20) : s.p[i];
    }
    return slice_of(text, s.n);
}

err sql_route_parse(arena *a, slice path, sql_route *route_out) {
    *route_out = (sql_route){.kind = SQL_ACCOUNT, .type = SLICE_LIT("")};
    /* decoding never lengthens a name, and words and slashes keep their length */
    walk w = {.left = path, .text = arena_alloc_aligned(a, path.n + 1, 1)};
    TRY(walk_path(&w, route_out));
    route_out->link = slice_of(w.text, w.n);
    if (route_out->database_by_rid || route_out->kind == SQL_OFFER) {
        route_out->link_rid = lower_case(a, w.last);
    }
    return OK;
}
