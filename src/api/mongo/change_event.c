#include "api/mongo/change_event.h"

#include "api/mongo/codes.h"
#include "base/hex.h"
#include "base/op.h"

enum { TOKEN_BYTES_MAX = 512 * 1024 }; /* a position has some 20 bytes for each range */

/* ---- notes ---- */

slice mongo_change_note(arena *a, slice description, slice before) {
    buf out = buf_init_counted(BUF_NO_LIMIT, a->budget);
    mql_builder b = mql_build(&out);
    slice note = SLICE_EMPTY;
    mql_add(&b, SLICE_LIT("d"), description.n ? mql_document(description) : mql_missing());
    mql_add(&b, SLICE_LIT("b"), before.n ? mql_document(before) : mql_missing());
    if (description.n || before.n) {
        mql_keep(a, &b, &note);
    }
    buf_free(&out);
    return note;
}

static mql_value note_member(const follow_change *change, slice name) {
    return change->note.n ? mql_member(mql_document(change->note), name) : mql_missing();
}

/* ---- resume tokens ---- */

void mongo_token_add(mql_builder *b, slice key, slice position) {
    int32_t n = (int32_t)(2 * position.n + 1);
    char length[4];
    mql_open(b, key, BSON_TYPE_DOCUMENT);
    buf_add_byte(b->out, BSON_TYPE_UTF8);
    buf_add_lit(b->out, "_data\0");
    doc_store_i32(length, n);
    buf_add(b->out, length, sizeof length);
    buf_add_hex(b->out, position);
    buf_add_byte(b->out, 0);
    mql_close(b);
}

bool mongo_token_read(arena *a, mql_value token, slice *position_out) {
    mql_value data = mql_member(token, SLICE_LIT("_data"));
    *position_out = SLICE_EMPTY;
    if (!mql_is_text(data)) {
        return false;
    }
    slice text = mql_as_text(data);
    if (text.n == 0 || text.n % 2 || text.n > 2 * TOKEN_BYTES_MAX || !arena_fits(a, text.n / 2)) {
        return false;
    }
    char *bytes = arena_alloc(a, text.n / 2);
    for (size_t i = 0; i < text.n / 2; i++) {
        int high = hex_digit(text.p[2 * i]), low = hex_digit(text.p[2 * i + 1]);
        if (high < 0 || low < 0) {
            return false;
        }
        bytes[i] = (char)(high << 4 | low);
    }
    *position_out = slice_of(bytes, text.n / 2);
    return true;
}

/* Positions begin with other bytes (item/follow.h, change_wide.c). */
static const char end_mark = 'I';

slice mongo_position_ended(arena *a, slice position) {
    char *bytes = arena_alloc(a, 1 + position.n);
    bytes[0] = end_mark;
    memcpy(bytes + 1, position.n ? position.p : "", position.n);
    return slice_of(bytes, 1 + position.n);
}

bool mongo_position_was_ended(slice *position) {
    bool ended = position->n && position->p[0] == end_mark;
    *position = ended ? slice_skip(*position, 1) : *position;
    return ended;
}

/* ---- events ---- */

static const char *operation_of(const follow_change *change) {
    switch (change->kind) {
    case FOLLOW_CREATED:
        return "insert";
    case FOLLOW_DELETED:
        return "delete";
    default:
        return mql_is_missing(note_member(change, SLICE_LIT("d"))) ? "replace" : "update";
    }
}

/* The value at a dotted path, through documents only: a shard key is never within an array. */
static mql_value value_at(slice document, slice path) {
    mql_value v = mql_document(document);
    while (path.n) {
        const char *dot = memchr(path.p, '.', path.n);
        slice name = slice_of(path.p, dot ? (size_t)(dot - path.p) : path.n);
        v = v.type == BSON_TYPE_DOCUMENT ? mql_member(v, name) : mql_missing();
        path = dot ? slice_skip(path, name.n + 1) : SLICE_EMPTY;
    }
    return v;
}

/* The shard key first, as in MongoDB. */
static void add_document_key(mql_builder *b, const mongo_watch *w, slice body) {
    mql_open(b, SLICE_LIT("documentKey"), BSON_TYPE_DOCUMENT);
    if (w->shard_key.n && !slice_eq(w->shard_key, SLICE_LIT("_id"))) {
        mql_add(b, w->shard_key, value_at(body, w->shard_key));
    }
    mql_add(b, SLICE_LIT("_id"), mql_member(mql_document(body), SLICE_LIT("_id")));
    mql_close(b);
}

static void add_namespace(mql_builder *b, arena *a, const mongo_watch *w) {
    mql_open(b, SLICE_LIT("ns"), BSON_TYPE_DOCUMENT);
    mql_add(b, SLICE_LIT("db"), mql_text(a, w->database));
    mql_add(b, SLICE_LIT("coll"), mql_text(a, w->collection));
    mql_close(b);
}

/* The increment distinguishes changes of the same second. */
static void add_times(mql_builder *b, arena *a, const follow_change *change) {
    mql_add(b, SLICE_LIT("clusterTime"), mql_timestamp(a, change->ts, (uint32_t)change->lsn));
    mql_add(b, SLICE_LIT("wallTime"), mql_date(a, (int64_t)change->ts * 1000));
}

static bool shows_document(const mongo_watch *w, const follow_change *change, bool updates) {
    return change->kind != FOLLOW_DELETED && (!updates || w->full_document);
}

static err add_before(op *o, mql_builder *b, const mongo_watch *w, const follow_change *change) {
    if (w->before == MONGO_IMAGE_OFF || change->kind == FOLLOW_CREATED) {
        return OK;
    }
    mql_value before = change->kind == FOLLOW_DELETED ? mql_document(change->body) : note_member(change, SLICE_LIT("b"));
    if (mql_is_missing(before) && w->before == MONGO_IMAGE_REQUIRED) {
        return op_fail_as(
            o, E_BAD_REQUEST, CODE_NO_MATCHING_DOCUMENT,
            "Change stream was configured to require a pre-image for all update, delete and replace events, but the pre-image "
            "was not found for an event: enable changeStreamPreAndPostImages for the collection");
    }
    mql_add(b, SLICE_LIT("fullDocumentBeforeChange"), mql_is_missing(before) ? mql_null() : before);
    return OK;
}

err mongo_change_event(op *o, const mongo_watch *w, const follow_change *change, slice position, buf *out) {
    mql_builder b = mql_build(out);
    mql_value description = note_member(change, SLICE_LIT("d"));
    const char *operation = operation_of(change);
    bool updates = strcmp(operation, "update") == 0;
    mongo_token_add(&b, SLICE_LIT("_id"), position);
    mql_add(&b, SLICE_LIT("operationType"), mql_text(o->arena, slice_str(operation)));
    add_times(&b, o->arena, change);
    if (shows_document(w, change, updates)) {
        mql_add(&b, SLICE_LIT("fullDocument"), mql_document(change->body));
    }
    TRY(add_before(o, &b, w, change));
    add_namespace(&b, o->arena, w);
    add_document_key(&b, w, change->body);
    if (updates) {
        mql_add(&b, SLICE_LIT("updateDescription"), description);
    }
    mql_built(&b);
    return OK;
}
