/* tesela/item.h — single items, transactional batches, and many items at a time.
 *
 *   tesela_item_create(orders, "{\"id\":\"1\",\"customer\":\"ana\"}", NULL, NULL, NULL, &error);
 *   tesela_key ana = tesela_key_string("ana");
 *   tesela_item_read(orders, "1", &ana, NULL, &response, &error);
 */
#ifndef TESELA_ITEM_H
#define TESELA_ITEM_H

#include <tesela/container.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Zero or NULL means the default; the whole may be NULL. */
typedef struct tesela_item_options {
    const char *if_match;      /* write only if the item has this etag, else TESELA_PRECONDITION_FAILED */
    const char *if_none_match; /* read only if the item has another etag, else TESELA_NOT_MODIFIED */
    const char *consistency;   /* weaker than the account's, for this read */
    const char *session_token; /* of another client; default: the client's own */
    const char *pre_trigger;   /* names of triggers, with commas between */
    const char *post_trigger;
    const char *indexing; /* "Include" or "Exclude" */
    bool no_body;         /* a write's response need not have the item */
} tesela_item_options;

/* Creates an item. `key` NULL: it is found in the item, which needs the container's partition key (read once per handle). TESELA_CONFLICT:
 * an item of this id is in the logical partition. */
TESELA_API tesela_status tesela_item_create(tesela_container *container, const char *item, const tesela_key *key,
                                            const tesela_item_options *options, tesela_response **response_out, tesela_error *error);

/* Creates an item or replaces the one of its id. */
TESELA_API tesela_status tesela_item_upsert(tesela_container *container, const char *item, const tesela_key *key,
                                            const tesela_item_options *options, tesela_response **response_out, tesela_error *error);

/* Reads an item by its id and key. */
TESELA_API tesela_status tesela_item_read(tesela_container *container, const char *id, const tesela_key *key,
                                          const tesela_item_options *options, tesela_response **response_out, tesela_error *error);

/* Replaces an item. `key` NULL: it is found in the new item. */
TESELA_API tesela_status tesela_item_replace(tesela_container *container, const char *id, const char *item, const tesela_key *key,
                                             const tesela_item_options *options, tesela_response **response_out, tesela_error *error);

/* Changes parts of an item: `patch` is {"condition":"from c where …","operations":[{"op":"set","path":"/a","value":1},…]}. */
TESELA_API tesela_status tesela_item_patch(tesela_container *container, const char *id, const tesela_key *key, const char *patch,
                                           const tesela_item_options *options, tesela_response **response_out, tesela_error *error);

/* Deletes an item. */
TESELA_API tesela_status tesela_item_delete(tesela_container *container, const char *id, const tesela_key *key,
                                            const tesela_item_options *options, tesela_response **response_out, tesela_error *error);

/* All items of the container, one range after the other. `page_items` 0: the server's default; `continuation` may be NULL. */
TESELA_API TESELA_CHECKED tesela_status tesela_items(tesela_container *container, int page_items, const char *continuation,
                                                     tesela_cursor **cursor_out, tesela_error *error);

/* ---- transactional batch ---- */

/* Up to 100 operations on one logical partition, all of them or none. */
typedef struct tesela_batch tesela_batch;
typedef struct tesela_batch_result tesela_batch_result;

/* Begins a batch. The container must outlive it. */
TESELA_API TESELA_CHECKED tesela_status tesela_batch_open(tesela_container *container, const tesela_key *key, tesela_batch **batch_out,
                                                          tesela_error *error);

/* Frees a batch, whether it ran or not. NULL is allowed. */
TESELA_API void tesela_batch_close(tesela_batch *batch);

/* Add an operation. `if_match` may be NULL. Texts are copied. */
TESELA_API void tesela_batch_create(tesela_batch *batch, const char *item);
TESELA_API void tesela_batch_upsert(tesela_batch *batch, const char *item, const char *if_match);
TESELA_API void tesela_batch_read(tesela_batch *batch, const char *id);
TESELA_API void tesela_batch_replace(tesela_batch *batch, const char *id, const char *item, const char *if_match);
TESELA_API void tesela_batch_patch(tesela_batch *batch, const char *id, const char *patch, const char *if_match);
TESELA_API void tesela_batch_delete(tesela_batch *batch, const char *id, const char *if_match);

/* Runs it. If one operation fails, nothing is written: the status is that operation's, and with `result_out` the others say
 * TESELA_FAILED_DEPENDENCY. `result_out` may be NULL; free it with tesela_batch_result_free. */
TESELA_API tesela_status tesela_batch_run(tesela_batch *batch, tesela_batch_result **result_out, tesela_error *error);

/* The result of operation `index`, counted from 0. Its texts live as long as the result. */
TESELA_API size_t tesela_batch_result_count(const tesela_batch_result *result);
TESELA_API int tesela_batch_result_http_status(const tesela_batch_result *result, size_t index);
TESELA_API const char *tesela_batch_result_body(const tesela_batch_result *result, size_t index, size_t *length_out); /* "": none */
TESELA_API const char *tesela_batch_result_etag(const tesela_batch_result *result, size_t index);                     /* "": none */

/* The charge of the whole batch. */
TESELA_API double tesela_batch_result_charge(const tesela_batch_result *result);

/* Frees a result. NULL is allowed. */
TESELA_API void tesela_batch_result_free(tesela_batch_result *result);

/* ---- bulk ---- */

/* Many operations, grouped by range into requests of up to 100, many requests in flight. Each operation succeeds or fails for itself.
 * Throttled ones are sent again after the time that the server tells; those of a range that was split go to its successors. */
typedef struct tesela_bulk tesela_bulk;

typedef enum tesela_bulk_kind {
    TESELA_BULK_CREATE,
    TESELA_BULK_UPSERT,
    TESELA_BULK_READ,
    TESELA_BULK_REPLACE,
    TESELA_BULK_PATCH,
    TESELA_BULK_DELETE
} tesela_bulk_kind;

typedef struct tesela_bulk_operation {
    tesela_bulk_kind kind;
    const char *id;        /* read, replace, patch, delete */
    const char *body;      /* create, upsert, replace: the item; patch: the patch */
    const tesela_key *key; /* NULL: found in the item, for create, upsert and replace */
    const char *if_match;  /* may be NULL */
    void *tag;             /* given back with the result */
} tesela_bulk_operation;

typedef struct tesela_bulk_result {
    tesela_status status;
    int http_status;
    int http_substatus;
    double charge;
    const char *id;   /* as in the operation; NULL if there was none */
    const char *body; /* the item, or "" */
    size_t length;    /* of the body */
    const char *etag; /* or "" */
    const char *sent; /* the operation's body; NULL if there was none */
    void *tag;
} tesela_bulk_result;

/* Called for each operation when its fate is known, by the thread that called tesela_bulk_add or tesela_bulk_finish. It must not use the
 * same bulk. Texts live until it returns. */
typedef void (*tesela_bulk_done)(void *context, const tesela_bulk_result *result);

/* Zero or NULL means the default; the whole may be NULL. */
typedef struct tesela_bulk_options {
    unsigned requests;         /* 16: most requests in flight */
    unsigned operations;       /* 100: most operations of a request */
    size_t request_bytes;      /* 220,201: most bytes of a request's body */
    unsigned queued;           /* 10,000: most operations waiting; beyond it tesela_bulk_add waits for answers */
    uint32_t throttle_wait_ms; /* 300,000: how long one operation may be throttled before it fails */
    bool no_body;              /* results need not have the items */
    tesela_bulk_done done;     /* NULL: results are only counted */
    void *context;
} tesela_bulk_options;

/* Opens a bulk. The container must outlive it. */
TESELA_API TESELA_CHECKED tesela_status tesela_bulk_open(tesela_container *container, const tesela_bulk_options *options,
                                                         tesela_bulk **bulk_out, tesela_error *error);

/* Adds an operation; texts are copied. Sends what is full, handles what has been answered, and waits if too much is queued. Fails only if
 * the operation cannot be routed (malformed JSON, no key) or the container cannot be read; then it was not added. */
TESELA_API tesela_status tesela_bulk_add(tesela_bulk *bulk, const tesela_bulk_operation *operation, tesela_error *error);

/* Sends what is left and waits for all answers. Returns TESELA_OK if every operation since tesela_bulk_open succeeded, else the first
 * failure. The bulk can be used again. */
TESELA_API tesela_status tesela_bulk_finish(tesela_bulk *bulk, tesela_error *error);

typedef struct tesela_bulk_counts {
    uint64_t succeeded, failed, throttled; /* throttled: answers, each of which was sent again */
    double charge;
} tesela_bulk_counts;

/* What has been answered so far. */
TESELA_API tesela_bulk_counts tesela_bulk_counted(const tesela_bulk *bulk);

/* Frees a bulk; operations without an answer are dropped (call tesela_bulk_finish first). NULL is allowed. */
TESELA_API void tesela_bulk_close(tesela_bulk *bulk);

typedef struct tesela_item_name {
    const char *id;
    tesela_key key;
} tesela_item_name;

/* Reads many items at a time, in whatever order answers come: `found` is called for each, with its index in `names`; result->status is
 * TESELA_NOT_FOUND if there is no such item. */
TESELA_API tesela_status tesela_items_read(tesela_container *container, const tesela_item_name *names, size_t count,
                                           void (*found)(void *context, size_t index, const tesela_bulk_result *result), void *context,
                                           tesela_error *error);

#ifdef __cplusplus
}
#endif
#endif
