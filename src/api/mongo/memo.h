/* memo.h — what a collection's container stores for this API (its memo): its indexes as MongoDB lists them, its options, its shard key, its
 * UUID; and the container's settings that follow from these.
 *
 *   {"uuid": BinData, "shardKey": {"a.b": "hashed"}, "indexes": [{"v": 2, "key": {"_id": 1}, "name": "_id_"}, …],
 *    "slots": ["email_1", ""], "options": {…}, "round": 1, "arrays": true, "log": 1440} */
#pragma once

#include "base/op.h"
#include "item/container.h"
#include "mql/value.h"

typedef struct mongo_memo {
    slice uuid;          /* 16 bytes; empty: another API made the container */
    slice shard_key;     /* a document with one member; empty: the collection is not sharded */
    slice indexes;       /* an array of index specifications; the first is that of _id */
    slice slots;         /* an array: names of the unique indexes by their numbers in the container, "" for dropped ones; empty: see
                            mongo_memo_slots */
    slice options;       /* as listCollections shows them; empty: none */
    int32_t round;       /* how often reIndex has built the indexes anew */
    bool marks_arrays;   /* every document was written by a version that marks arrays in indexes (index/policy.h) */
    int32_t log_minutes; /* how long versions are kept for change streams; 0: not at all */
} mongo_memo;

/* Reads the memo. Slices point into the container's memo, or are constant. */
mongo_memo mongo_memo_of(const container *c);
slice mongo_memo_options(const container *c);                      /* empty: none */
mql_value mongo_memo_option(const container *c, const char *name); /* one of its options; missing: there is none */
bool mongo_memo_has_text(const container *c);                      /* false: certainly no text index */
slice mongo_memo_write(arena *a, const mongo_memo *memo);
/* The slots that its indexes need: those that it has, and then new unique indexes in their order. Before indexes are removed from a memo,
 * they must be noted in its `slots`. */
slice mongo_memo_slots(arena *a, const mongo_memo *memo);

/* The path of the shard key as the core spells paths: "/\"a\"/\"b\""; empty if there is none. */
slice mongo_path_text(arena *a, slice dotted);

/* The container's properties: indexing policy, unique keys, time to live, and the partition key. E_BAD_REQUEST with MongoDB's code 67 if an
 * index cannot be served. */
MUST_CHECK err mongo_settings_of(op *o, slice name, const mongo_memo *memo, slice *settings_out);
extern const char mongo_rows_json[]; /* the container's `rows` (account/account.h) */

/* ---- indexes ---- */

typedef struct mongo_index {
    slice spec; /* as listIndexes shows it */
    slice key;  /* a document: path to 1, -1, "2dsphere", … */
    slice name;
    bool unique, sparse, hidden;
    bool expires;
    int64_t expire_s;
    slice partial; /* partialFilterExpression; empty: none */
} mongo_index;

bool mongo_index_is_text(const mongo_index *x);
bool mongo_index_read(slice spec, mongo_index *index_out); /* false: it has no key or name */

/* The key index (index/policy.h) that serves it, as the container's settings have it; empty if it has none: that of the
 * time of the last change. In the arena. */
slice mongo_key_spec(arena *a, const mongo_index *x);
