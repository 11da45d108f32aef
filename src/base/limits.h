/* limits.h — all limits on external input. Those of the service are from its "concepts-limits" page. */
#pragma once

enum {
    /* HTTP */
    LIMIT_HEADER_BYTES = 64 * 1024, /* request line and fields together */
    LIMIT_HEADER_COUNT = 128,
    LIMIT_URL_BYTES = 16 * 1024,
    LIMIT_BODY_BYTES = 4 * 1024 * 1024,     /* larger bodies are discarded; most requests are refused above LIMIT_REQUEST_BYTES */
    LIMIT_REQUEST_BYTES = 2 * 1024 * 1024,  /* the service's "request size" */
    LIMIT_RESPONSE_BYTES = 4 * 1024 * 1024, /* a page ends before it exceeds this */

    LIMIT_SASL_BYTES = 1024,    /* one message of a SASL exchange */
    LIMIT_SAS_BYTES = 8 * 1024, /* all parameters of a shared access signature */

    /* items */
    LIMIT_ITEM_BYTES = 2 * 1024 * 1024, /* as UTF-8 JSON */
    LIMIT_JSON_DEPTH = 128,
    LIMIT_ID_BYTES = 1023,
    LIMIT_KEY_BYTES = 2048,       /* a partition key value */
    LIMIT_KEY_LEVELS = 3,         /* paths of a hierarchical key */
    LIMIT_KEY_COMPONENTS = 8,     /* components of a composite key, in other APIs */
    LIMIT_TYPED_KEY_BYTES = 4096, /* a typed key, encoded */
    LIMIT_ROW_BYTES = 2048,       /* a row key of typed values, encoded */
    LIMIT_ROW_PATHS = 16,
    LIMIT_NAME_BYTES = 255,        /* databases and containers */
    LIMIT_API_BYTES = 16,          /* the name of an API */
    LIMIT_MEMO_BYTES = 128 * 1024, /* data that a front end stores with a container */
    LIMIT_BATCH_OPERATIONS = 100,
    LIMIT_BATCH_RESULT_BYTES = 16 * 1024 * 1024, /* items of all operations, as stored */
    LIMIT_PATCH_OPERATIONS = 10,

    /* edits and conditions of writes (item/edit.h); a step takes about 10 ns */
    LIMIT_LISTED_BYTES = 64 * 1024,  /* up to this body size, the submitting thread lists the index terms; above it, a worker does */
    LIMIT_EDIT_STEPS = 5000,         /* max. steps of one write on the committer's thread; longer ones are prepared by a worker */
    LIMIT_EDIT_BYTES = 64 * 1024,    /* the same for the size of item and argument */
    LIMIT_EDIT_STEPS_MAX = 10000000, /* max. steps of one write, wherever it runs */
    LIMIT_EDIT_ATTEMPTS = 3,         /* attempts to prepare the writes of a request while others change the items */
    LIMIT_EDIT_CONDITIONS = 8,
    LIMIT_EDIT_ARGUMENT_BYTES = 4 * 1024 * 1024,
    LIMIT_EDIT_REPLY_BYTES = 64 * 1024,
    LIMIT_EDITED_BYTES = 32 * 1024 * 1024, /* a body produced by an edit; APIs have lower limits */

    /* transactions (item/transaction.h) */
    LIMIT_TRANSACTION_WRITES = 2000,           /* writes and guarded reads together */
    LIMIT_TRANSACTION_BYTES = 8 * 1024 * 1024, /* total size of the items written */
    LIMIT_TRANSACTION_CONTAINERS = 100,
    LIMIT_TRANSACTION_SECONDS = 60, /* max. idle time with a snapshot; less than the clock slack of the change feed and the sweep */

    LIMIT_UNIQUE_KEYS = 10,
    LIMIT_UNIQUE_SLOTS = 100, /* unique keys of a container, with those that were dropped */
    LIMIT_UNIQUE_PATHS = 16,
    LIMIT_VERSION_MINUTES = 30 * 24 * 60, /* max. retention of all versions by the change feed */
    LIMIT_FOLLOW_STRETCHES = 8192,        /* parts of the hash space that a follower of changes may track; each range has one or more */
    LIMIT_INDEX_KEYS = 64,                /* key indexes of a container */
    LIMIT_INDEX_PATHS = 1500,
    LIMIT_PATH_DEPTH = 32, /* steps of a property path */
    LIMIT_PAGE_ITEMS_DEFAULT = 1000,
    LIMIT_PAGE_ITEMS_MAX = 2500,

    /* scripts of a container */
    LIMIT_PROCEDURES = 100,
    LIMIT_FUNCTIONS = 50,
    LIMIT_TRIGGERS = 100, /* the service documents no limit */

    /* queries */
    LIMIT_QUERY_BYTES = 512 * 1024,
    LIMIT_QUERY_READS = 40 * 1000 * 1000, /* items read by all pages of a GROUP BY or DISTINCT without an index */

    /* finds: conditions as BSON (query/find.h) */
    LIMIT_FIND_BYTES = 2 * 1024 * 1024,
    LIMIT_FIND_DEPTH = 32,
    LIMIT_FIND_CONDITIONS = 10000,
    LIMIT_FIND_ORDER = 16,
    LIMIT_FIND_ROWS = 100000, /* max. rows of a page; the caller may ask for fewer */
    LIMIT_FIND_CONTINUATION_BYTES = 32 * 1024,
};
