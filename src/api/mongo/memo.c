#include "api/mongo/memo.h"

#include "api/mongo/codes.h"
#include "api/mongo/mongo_int.h"

const char mongo_rows_json[] = "{\"typed\":true,\"key\":[{\"path\":\"/_id\"}],\"lean\":true}";

/* ---- reading and writing ---- */

/* [{"v": 2, "key": {"_id": 1}, "name": "_id_"}] */
static const char id_index_array[] = "\x36\0\0\0\x03"
                                     "0\0\x2E\0\0\0"
                                     "\x10v\0\2\0\0\0"
                                     "\x03key\0\x0E\0\0\0\x10_id\0\1\0\0\0\0"
                                     "\x02name\0\5\0\0\0_id_\0\0";

static slice id_indexes(void) {
    return slice_of(id_index_array, (size_t)doc_load_i32(id_index_array));
}

static slice bytes_of(slice document, const char *name, bson_type_t type) {
    mql_value v = mongo_member(document, name);
    return v.type == type ? v.bytes : SLICE_EMPTY;
}

mongo_memo mongo_memo_of(const container *c) {
    mql_value log = mongo_member(c->memo, "log"), round = mongo_member(c->memo, "round");
    slice uuid = bytes_of(c->memo, "uuid", BSON_TYPE_BINARY), indexes = bytes_of(c->memo, "indexes", BSON_TYPE_ARRAY);
    return (mongo_memo){
        .uuid = uuid.n == 21 ? slice_skip(uuid, 5) : SLICE_EMPTY,
        .shard_key = bytes_of(c->memo, "shardKey", BSON_TYPE_DOCUMENT),
        .indexes = indexes.n ? indexes : id_indexes(),
        .slots = bytes_of(c->memo, "slots", BSON_TYPE_ARRAY),
        .options = bytes_of(c->memo, "options", BSON_TYPE_DOCUMENT),
        .round = round.type == BSON_TYPE_INT32 ? doc_load_i32(round.bytes.p) : 0,
        .marks_arrays = mql_truth(mongo_member(c->memo, "arrays")),
        .log_minutes = log.type == BSON_TYPE_INT32 ? doc_load_i32(log.bytes.p) : 0,
    };
}

slice mongo_memo_options(const container *c) {
    return bytes_of(c->memo, "options", BSON_TYPE_DOCUMENT);
}

mql_value mongo_memo_option(const container *c, const char *name) {
    return mongo_member(mongo_memo_options(c), name);
}

bool mongo_memo_has_text(const container *c) {
    static const char mark[] = "_fts";
    return c->memo.n && memmem(c->memo.p, c->memo.n, mark, sizeof mark - 1) != NULL;
}

slice mongo_memo_write(arena *a, const mongo_memo *memo) {
    buf out = buf_init(BUF_NO_LIMIT);
    mql_builder b = mql_build(&out);
    mongo_add_binary(&b, "uuid", 4, memo->uuid);
    if (memo->shard_key.n) {
        mongo_add_document(&b, "shardKey", memo->shard_key);
    }
    mongo_add_array(&b, "indexes", memo->indexes.n ? memo->indexes : id_indexes());
    mongo_add_array(&b, "slots", mongo_memo_slots(a, memo));
    if (memo->options.n) {
        mongo_add_document(&b, "options", memo->options);
    }
    if (memo->round) {
        mongo_add_int(&b, "round", memo->round);
    }
    if (memo->marks_arrays) {
        mongo_add_bool(&b, "arrays", true);
    }
    if (memo->log_minutes) {
        mongo_add_int(&b, "log", memo->log_minutes);
    }
    return mongo_built_copy(a, &b, &out);
}

/* ---- indexes ---- */

bool mongo_index_read(slice spec, mongo_index *x) {
    mql_value name = mongo_member(spec, "name"), expire = mongo_member(spec, "expireAfterSeconds");
    *x = (mongo_index){
        .spec = spec,
        .key = bytes_of(spec, "key", BSON_TYPE_DOCUMENT),
        .name = mql_is_text(name) ? mql_as_text(name) : SLICE_EMPTY,
        .unique = mql_truth(mongo_member(spec, "unique")),
        .sparse = mql_truth(mongo_member(spec, "sparse")),
        .hidden = mql_truth(mongo_member(spec, "hidden")),
        .expires = mql_is_number(expire),
        .partial = bytes_of(spec, "partialFilterExpression", BSON_TYPE_DOCUMENT),
    };
    if (x->expires) {
        x->expire_s = (int64_t)mql_as_double(expire);
    }
    return x->key.n && x->name.n;
}

bool mongo_index_is_text(const mongo_index *x) {
    mql_value kind = mongo_member(x->key, "_fts");
    return mql_is_text(kind) && slice_eq(mql_as_text(kind), SLICE_LIT("text"));
}

slice mongo_key_spec(arena *a, const mongo_index *x) {
    static const char *const members[] = {"sparse",  "partialFilterExpression", "collation",
                                          "weights", "default_language",        "language_override"};
    if (!mql_is_missing(mongo_member(x->key, "_ts"))) {
        return SLICE_EMPTY;
    }
    buf out = buf_init(BUF_NO_LIMIT);
    mql_builder b = mql_build(&out);
    mongo_add_document(&b, "key", x->key);
    for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
        mql_add(&b, slice_str(members[i]), mongo_member(x->spec, members[i]));
    }
    mongo_add_text(&b, "name", x->name);
    return mongo_built_copy(a, &b, &out);
}

/* ---- settings ---- */

/* A step in quotes, since names may have any character. */
static void add_step(buf *out, slice name) {
    buf_add_lit(out, "/\"");
    for (size_t i = 0; i < name.n; i++) {
        if (name.p[i] == '"' || name.p[i] == '\\') {
            buf_add_byte(out, '\\');
        }
        buf_add_byte(out, name.p[i]);
    }
    buf_add_byte(out, '"');
}

static slice next_step(slice *rest) {
    const char *dot = rest->n ? memchr(rest->p, '.', rest->n) : NULL;
    slice step = slice_of(rest->p, dot ? (size_t)(dot - rest->p) : rest->n);
    *rest = slice_skip(*rest, step.n + (dot ? 1 : 0));
    return step;
}

slice mongo_path_text(arena *a, slice dotted) {
    buf out = buf_init(BUF_NO_LIMIT);
    while (dotted.n) {
        add_step(&out, next_step(&dotted));
    }
    slice text = arena_copy(a, buf_view(&out));
    buf_free(&out);
    return text;
}

typedef void (*index_visit)(mql_builder *b, const mongo_index *x);

static void each_index(mql_builder *b, const mongo_memo *memo, index_visit visit) {
    doc_walk list;
    doc_element each;
    mongo_index x;
    for (doc_walk_init(&list, memo->indexes); doc_walk_next(&list, &each);) {
        if (each.type == BSON_TYPE_DOCUMENT && mongo_index_read(each.value, &x)) {
            visit(b, &x);
        }
    }
}

static void include_key(mql_builder *b, const mongo_index *x) {
    arena scratch = arena_init();
    slice spec = mongo_key_spec(&scratch, x);
    if (spec.n) {
        mql_add_next(b, mql_document(spec));
    }
    arena_free(&scratch);
}

/* ---- slots of unique indexes ---- */

static bool unique_named(const mongo_memo *memo, slice name, mongo_index *x) {
    doc_walk list;
    doc_element each;
    for (doc_walk_init(&list, memo->indexes); name.n && doc_walk_next(&list, &each);) {
        if (each.type == BSON_TYPE_DOCUMENT && mongo_index_read(each.value, x) && x->unique && slice_eq(x->name, name)) {
            return true;
        }
    }
    return false;
}

static bool has_slot(const mongo_memo *memo, slice name) {
    doc_walk list;
    doc_element each;
    for (doc_walk_init(&list, memo->slots); memo->slots.n && doc_walk_next(&list, &each);) {
        if (each.type == BSON_TYPE_UTF8 && slice_eq(doc_element_text(&each), name)) {
            return true;
        }
    }
    return false;
}

slice mongo_memo_slots(arena *a, const mongo_memo *memo) {
    buf out = buf_init(BUF_NO_LIMIT);
    mql_builder b = mql_build(&out);
    doc_walk list;
    doc_element each;
    mongo_index x;
    for (doc_walk_init(&list, memo->slots); memo->slots.n && doc_walk_next(&list, &each);) {
        slice name = each.type == BSON_TYPE_UTF8 ? doc_element_text(&each) : SLICE_EMPTY;
        mql_add_next(&b, mql_text(a, unique_named(memo, name, &x) ? name : SLICE_EMPTY));
    }
    for (doc_walk_init(&list, memo->indexes); memo->indexes.n && doc_walk_next(&list, &each);) {
        bool unique = each.type == BSON_TYPE_DOCUMENT && mongo_index_read(each.value, &x) && x.unique;
        if (unique && !slice_eq(x.name, SLICE_LIT("_id_")) && !has_slot(memo, x.name)) {
            mql_add_next(&b, mql_text(a, x.name));
        }
    }
    return mongo_built_copy(a, &b, &out);
}

static void include_unique(mql_builder *b, const mongo_index *x) {
    doc_walk keys;
    doc_element key;
    buf text = buf_init(BUF_NO_LIMIT);
    mql_open_next(b, BSON_TYPE_DOCUMENT);
    mongo_open_array(b, "paths");
    for (doc_walk_init(&keys, x->key); doc_walk_next(&keys, &key);) {
        slice rest = key.key;
        char head[4];
        buf_clear(&text);
        while (rest.n) {
            add_step(&text, next_step(&rest));
        }
        doc_store_i32(head, (int32_t)text.n + 1);
        buf value = buf_init(BUF_NO_LIMIT);
        buf_add(&value, head, 4);
        buf_add_slice(&value, buf_view(&text));
        buf_add_byte(&value, 0);
        mql_add_next(b, (mql_value){BSON_TYPE_UTF8, buf_view(&value)});
        buf_free(&value);
    }
    mql_close(b);
    if (x->sparse || x->partial.n) {
        arena scratch = arena_init();
        mongo_add_document(b, "index", mongo_key_spec(&scratch, x));
        arena_free(&scratch);
    }
    mql_close(b);
    buf_free(&text);
}

/* The policy wants paths of a dropped key too. */
static void include_dropped(mql_builder *b) {
    char path[] = "\4\0\0\0/_d";
    mql_open_next(b, BSON_TYPE_DOCUMENT);
    mongo_open_array(b, "paths");
    mql_add_next(b, (mql_value){BSON_TYPE_UTF8, slice_of(path, sizeof path)});
    mql_close(b);
    mongo_add_bool(b, "dropped", true);
    mql_close(b);
}

static void add_unique_keys(arena *a, mql_builder *b, const mongo_memo *memo) {
    doc_walk list;
    doc_element each;
    mongo_index x;
    for (doc_walk_init(&list, mongo_memo_slots(a, memo)); doc_walk_next(&list, &each);) {
        unique_named(memo, doc_element_text(&each), &x) ? include_unique(b, &x) : include_dropped(b);
    }
}

static void add_ttl(mql_builder *b, const mongo_index *x) {
    if (x->expires && mql_length(mql_document(x->key)) == 1 && mongo_member(x->key, "_ts").type != BSON_TYPE_EOD) {
        mongo_add_int(b, "defaultTtl", x->expire_s < 1 ? 1 : x->expire_s > INT32_MAX ? INT32_MAX : (int32_t)x->expire_s);
    }
}

/* A TTL index on another date than that of the last change. */
static void add_expiry(mql_builder *b, const mongo_index *x) {
    arena scratch = arena_init();
    slice spec = x->expires ? mongo_key_spec(&scratch, x) : SLICE_EMPTY;
    if (spec.n) {
        mql_open_next(b, BSON_TYPE_DOCUMENT);
        mongo_add_document(b, "index", spec);
        mongo_add_long(b, "seconds", x->expire_s);
        mql_close(b);
    }
    arena_free(&scratch);
}

static void add_policy(mql_builder *b, const mongo_memo *memo) {
    mongo_open_document(b, "indexingPolicy");
    mongo_add_text(b, "indexingMode", SLICE_LIT("consistent"));
    mongo_add_bool(b, "automatic", true);
    mongo_open_array(b, "includedPaths");
    mql_close(b);
    mongo_open_array(b, "excludedPaths");
    mql_open_next(b, BSON_TYPE_DOCUMENT);
    mongo_add_text(b, "path", SLICE_LIT("/*"));
    mql_close(b);
    mql_close(b);
    mongo_open_array(b, "keyIndexes");
    each_index(b, memo, include_key);
    mql_close(b);
    if (memo->round) {
        mongo_add_int(b, "round", memo->round);
    }
    mql_close(b);
}

static void add_partition_key(arena *a, mql_builder *b, slice shard_key) {
    doc_walk w;
    doc_element e;
    if (!doc_walk_init(&w, shard_key) || !doc_walk_next(&w, &e)) {
        return;
    }
    mongo_open_document(b, "partitionKey");
    mongo_open_array(b, "paths");
    mql_add_next(b, mql_text(a, mongo_path_text(a, e.key)));
    mql_close(b);
    mongo_add_text(b, "kind", SLICE_LIT("Hash"));
    mongo_add_int(b, "version", 2);
    mql_close(b);
}

err mongo_settings_of(op *o, slice name, const mongo_memo *memo, slice *settings_out) {
    buf out = buf_init(LIMIT_MEMO_BYTES * 4);
    mql_builder b = mql_build(&out);
    mongo_add_text(&b, "id", name);
    add_partition_key(o->arena, &b, memo->shard_key);
    add_policy(&b, memo);
    each_index(&b, memo, add_ttl);
    mongo_open_array(&b, "expiries");
    each_index(&b, memo, add_expiry);
    mql_close(&b);
    if (memo->log_minutes) {
        mongo_open_document(&b, "changeFeedPolicy");
        mongo_add_int(&b, "retentionDuration", memo->log_minutes);
        mql_close(&b);
    }
    mongo_open_document(&b, "uniqueKeyPolicy");
    mongo_open_array(&b, "uniqueKeys");
    add_unique_keys(o->arena, &b, memo);
    mql_close(&b);
    mql_close(&b);
    *settings_out = mongo_built_copy(o->arena, &b, &out);
    return settings_out->n ? OK : op_fail_as(o, E_BAD_REQUEST, CODE_CANNOT_CREATE_INDEX, "The indexes of the collection are too many.");
}
