/* collections.h — within api/mongo: making databases and collections. */
#pragma once

#include "api/mongo/memo.h"
#include "api/mongo/mongo_int.h"

/* A collection to be made in q->database. */
struct mongo_creation {
    slice collection;
    mongo_memo memo; /* the UUID is filled in here */
    throughput_setting throughput;
    uint64_t replaces;  /* the version of an empty collection with this name, which it replaces in the same change; 0: none */
    bool may_exist;     /* true: an existing collection is used as it is; false: it is an error, 48 (NamespaceExists) */
    bool made;          /* out: a new collection was made */
    mongo_handler then; /* called when q->container is the collection */
};

/* Makes the database too if it does not exist. Answers errors itself. */
void mongo_create_collection(mongo_request *q, mongo_creation *c);
void mongo_with_database(mongo_request *q, throughput_setting throughput, mongo_handler then);

/* Replaces the memo and the settings of q->container, then q->container by its new version. E_PRECONDITION: another client changed it. */
void mongo_change_collection(mongo_request *q, const mongo_memo *memo, mongo_handler then);

/* Replaces all indexes but that of _id by the command's `indexes`, and calls `then` when they can be used. */
MUST_CHECK err mongo_replace_indexes(mongo_request *q, mongo_handler then);

/* collMod's `index`: changes expireAfterSeconds or hidden of an index in the memo, and the collection. */
MUST_CHECK err mongo_modify_index(mongo_request *q, mongo_memo *memo);

/* The shard key of {path: "hashed"} or {path: 1}: one member. */
MUST_CHECK err mongo_check_shard_key(op *o, slice key);

slice mongo_json(arena *a, const char *json); /* constant JSON as BSON */
