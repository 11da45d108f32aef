/* limits.h — every bound that outside bytes meet, in one place. The service's own are from its "concepts-limits" page. */
#pragma once

enum {
    /* HTTP */
    LIMIT_HEADER_BYTES = 64 * 1024, /* request line and fields together */
    LIMIT_HEADER_COUNT = 128,
    LIMIT_URL_BYTES = 16 * 1024,
    LIMIT_BODY_BYTES = 4 * 1024 * 1024,     /* what is read at all; most requests are refused past LIMIT_REQUEST_BYTES */
    LIMIT_REQUEST_BYTES = 2 * 1024 * 1024,  /* the service's "request size" */
    LIMIT_RESPONSE_BYTES = 4 * 1024 * 1024, /* a page stops before it */

    LIMIT_SASL_BYTES = 1024,    /* one message of a SASL exchange */
    LIMIT_SAS_BYTES = 8 * 1024, /* parameters of a shared access signature together */

    /* items */
    LIMIT_ITEM_BYTES = 2 * 1024 * 1024, /* as UTF-8 JSON */
    LIMIT_JSON_DEPTH = 128,
    LIMIT_ID_BYTES = 1023,
    LIMIT_KEY_BYTES = 2048,       /* a partition key value */
    LIMIT_KEY_LEVELS = 3,         /* paths of a hierarchical key */
    LIMIT_KEY_COMPONENTS = 8,     /* of a composite key, which other APIs have */
    LIMIT_TYPED_KEY_BYTES = 4096, /* of a typed key, as encoded */
    LIMIT_ROW_BYTES = 2048,       /* of a row key that is not an id, as spelled */
    LIMIT_ROW_PATHS = 16,
    LIMIT_NAME_BYTES = 255,        /* databases and containers */
    LIMIT_API_BYTES = 16,          /* the name of an API */
    LIMIT_MEMO_BYTES = 128 * 1024, /* what a front end keeps with a container */
    LIMIT_BATCH_OPERATIONS = 100,
    LIMIT_BATCH_RESULT_BYTES = 16 * 1024 * 1024, /* of all operations' items, as stored */
    LIMIT_PATCH_OPERATIONS = 10,

    /* edits and conditions of writes (item/edit.h); a step is about 10 ns */
    LIMIT_LISTED_BYTES = 64 * 1024,  /* of bodies whose index terms are listed where a write is submitted; of more, by a worker */
    LIMIT_EDIT_STEPS = 5000,         /* what one write may take on the committer's thread; longer ones are prepared outside */
    LIMIT_EDIT_BYTES = 64 * 1024,    /* of item and argument, likewise */
    LIMIT_EDIT_STEPS_MAX = 10000000, /* what it may take at all */
    LIMIT_EDIT_ATTEMPTS = 3,         /* to prepare the writes of a request outside, while others change the items */
    LIMIT_EDIT_CONDITIONS = 8,
    LIMIT_EDIT_ARGUMENT_BYTES = 4 * 1024 * 1024,
    LIMIT_EDIT_REPLY_BYTES = 64 * 1024,
    LIMIT_EDITED_BYTES = 32 * 1024 * 1024, /* a body that an edit makes; APIs have lower limits */

    LIMIT_UNIQUE_KEYS = 10,
    LIMIT_UNIQUE_PATHS = 16,
    LIMIT_VERSION_MINUTES = 30 * 24 * 60, /* that the change feed keeps every version */
    LIMIT_FOLLOW_STRETCHES = 8192,        /* of the hash space that a follower of changes stands in: a range has one or more */
    LIMIT_INDEX_PATHS = 1500,
    LIMIT_PATH_DEPTH = 32, /* steps of a property path */
    LIMIT_PAGE_ITEMS_DEFAULT = 1000,
    LIMIT_PAGE_ITEMS_MAX = 2500,

    /* scripts of a container */
    LIMIT_PROCEDURES = 100,
    LIMIT_FUNCTIONS = 50,
    LIMIT_TRIGGERS = 100, /* the service names no number */

    /* queries */
    LIMIT_QUERY_BYTES = 512 * 1024,
    LIMIT_QUERY_READS = 40 * 1000 * 1000, /* items that all pages of a GROUP BY or DISTINCT without an index may read together */

    /* finds: conditions as BSON (query/find.h) */
    LIMIT_FIND_BYTES = 2 * 1024 * 1024,
    LIMIT_FIND_DEPTH = 32,
    LIMIT_FIND_CONDITIONS = 10000,
    LIMIT_FIND_ORDER = 16,
    LIMIT_FIND_ROWS = 100000, /* of a page, unless the caller wants fewer */
    LIMIT_FIND_CONTINUATION_BYTES = 32 * 1024,
};
