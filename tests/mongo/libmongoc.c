/* libmongoc.c — libmongoc, MongoDB's driver for C, against a server: authentication, document sequences, cursors, bulk operations,
 * compression, a transaction, a change stream.   libmongoc URI */
#include <mongoc/mongoc.h>
#include <stdio.h>
#include <stdlib.h>

#define CHECK(what)                                                                                                                        \
    do {                                                                                                                                   \
        if (!(what)) {                                                                                                                     \
            fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #what, error.message);                                                  \
            exit(1);                                                                                                                       \
        }                                                                                                                                  \
    } while (0)

static bson_error_t error;

static int32_t number_of(const bson_t *document, const char *name) {
    bson_iter_t it;
    return bson_iter_init_find(&it, document, name) ? (int32_t)bson_iter_as_int64(&it) : -1;
}

static void documents(mongoc_collection_t *c) {
    enum { N = 500 };
    mongoc_bulk_operation_t *bulk = mongoc_collection_create_bulk_operation_with_opts(c, NULL);
    bson_t reply;
    for (int i = 0; i < N; i++) {
        bson_t *one = BCON_NEW("_id", BCON_INT32(i), "a", BCON_INT32(i % 10), "list", "[", BCON_INT32(i), BCON_DOUBLE(1.5), "]");
        CHECK(mongoc_bulk_operation_insert_with_opts(bulk, one, NULL, &error));
        bson_destroy(one);
    }
    CHECK(mongoc_bulk_operation_execute(bulk, &reply, &error));
    CHECK(number_of(&reply, "nInserted") == N);
    bson_destroy(&reply);
    mongoc_bulk_operation_destroy(bulk);

    bson_t *filter = BCON_NEW("a", BCON_INT32(3)), *options = BCON_NEW("batchSize", BCON_INT32(7), "sort", "{", "_id", BCON_INT32(-1), "}");
    mongoc_cursor_t *cursor = mongoc_collection_find_with_opts(c, filter, options, NULL);
    const bson_t *found;
    int n = 0, last = N;
    while (mongoc_cursor_next(cursor, &found)) {
        CHECK(number_of(found, "_id") < last);
        last = number_of(found, "_id");
        n++;
    }
    CHECK(!mongoc_cursor_error(cursor, &error) && n == N / 10);
    mongoc_cursor_destroy(cursor);

    bson_t *update = BCON_NEW("$inc", "{", "a", BCON_INT32(100), "}");
    CHECK(mongoc_collection_update_many(c, filter, update, NULL, &reply, &error) && number_of(&reply, "modifiedCount") == N / 10);
    bson_destroy(&reply);
    CHECK(mongoc_collection_count_documents(c, filter, NULL, NULL, NULL, &error) == 0);
    bson_destroy(update);
    bson_destroy(options);
    bson_destroy(filter);
}

static void duplicates(mongoc_collection_t *c) {
    bson_t *one = BCON_NEW("_id", BCON_INT32(1));
    CHECK(!mongoc_collection_insert_one(c, one, NULL, NULL, &error) && error.code == MONGOC_ERROR_DUPLICATE_KEY);
    bson_destroy(one);
}

static void pipeline(mongoc_collection_t *c) {
    bson_t *stages = BCON_NEW("pipeline", "[", "{", "$group", "{", "_id", "$a", "n", "{", "$sum", BCON_INT32(1), "}", "}", "}", "{",
                              "$sort", "{", "_id", BCON_INT32(1), "}", "}", "]");
    mongoc_cursor_t *cursor = mongoc_collection_aggregate(c, MONGOC_QUERY_NONE, stages, NULL, NULL);
    const bson_t *found;
    int groups = 0;
    for (; mongoc_cursor_next(cursor, &found); groups++) {
        CHECK(number_of(found, "n") == 50);
    }
    CHECK(!mongoc_cursor_error(cursor, &error) && groups == 10);
    mongoc_cursor_destroy(cursor);
    bson_destroy(stages);
}

static void transaction(mongoc_client_t *client, mongoc_collection_t *c) {
    mongoc_client_session_t *session = mongoc_client_start_session(client, NULL, &error);
    bson_t options = BSON_INITIALIZER, *one = BCON_NEW("_id", "in"), *all = bson_new();
    int64_t before = mongoc_collection_count_documents(c, all, NULL, NULL, NULL, &error);
    CHECK(session && mongoc_client_session_append(session, &options, &error));
    CHECK(mongoc_client_session_start_transaction(session, NULL, &error));
    CHECK(mongoc_collection_insert_one(c, one, &options, NULL, &error));
    CHECK(mongoc_collection_count_documents(c, all, NULL, NULL, NULL, &error) == before);
    CHECK(mongoc_client_session_commit_transaction(session, NULL, &error));
    CHECK(mongoc_collection_count_documents(c, all, NULL, NULL, NULL, &error) == before + 1);
    mongoc_client_session_destroy(session);
    bson_destroy(&options);
    bson_destroy(one);
    bson_destroy(all);
}

static void changes(mongoc_collection_t *c) {
    bson_t *none = bson_new(), *options = BCON_NEW("maxAwaitTimeMS", BCON_INT64(200)), *one = BCON_NEW("_id", "watched");
    mongoc_change_stream_t *stream = mongoc_collection_watch(c, none, options);
    const bson_t *event, *why;
    bson_iter_t it;
    bool seen = false;
    mongoc_change_stream_next(stream, &event);
    CHECK(!mongoc_change_stream_error_document(stream, &error, &why));
    CHECK(mongoc_collection_insert_one(c, one, NULL, NULL, &error));
    for (int i = 0; i < 50 && !seen; i++) {
        seen = mongoc_change_stream_next(stream, &event);
    }
    CHECK(seen && bson_iter_init_find(&it, event, "operationType") && !strcmp(bson_iter_utf8(&it, NULL), "insert"));
    mongoc_change_stream_destroy(stream);
    bson_destroy(one);
    bson_destroy(options);
    bson_destroy(none);
}

int main(int n, char **arguments) {
    mongoc_init();
    mongoc_client_t *client = n == 2 ? mongoc_client_new(arguments[1]) : NULL;
    if (!client) {
        fprintf(stderr, "libmongoc URI\n");
        return 2;
    }
    mongoc_collection_t *c = mongoc_client_get_collection(client, "libmongoc", "c");
    mongoc_collection_drop(c, NULL);
    documents(c);
    duplicates(c);
    transaction(client, c);
    changes(c);
    bson_t *extra = BCON_NEW("_id", "{", "$type", "string", "}");
    CHECK(mongoc_collection_delete_many(c, extra, NULL, NULL, &error));
    bson_destroy(extra);
    pipeline(c);
    CHECK(mongoc_collection_drop(c, &error));
    mongoc_collection_destroy(c);
    mongoc_client_destroy(client);
    mongoc_cleanup();
    puts("libmongoc: ok");
    return 0;
}
