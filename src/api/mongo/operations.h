/* operations.h — within api/mongo: the commands in progress: listed by currentOp, ended by killOp and maxTimeMS, and their times for top.
 *
 * A command is listed from its dispatch to its end, among those of its loop. It is killed on its own loop: its work is cancelled as if the
 * client had left, and it is answered with 11601 (Interrupted) or 50 (MaxTimeMSExpired). A write that the committer has already is carried
 * out. Times are kept for each collection and loop, for the OPERATIONS_TIMED_MAX that were used last. */
#pragma once

#include <stdatomic.h>

#include "mql/value.h"
#include "net/delay.h"

typedef struct mongo_operations mongo_operations;
typedef struct mongo_operation mongo_operation;
struct mongo_request;
struct mongo_front;

/* Part of a request. */
struct mongo_operation {
    mongo_operation *next, *prev; /* of the same loop; NULL: it is not listed */
    uint32_t id;
    atomic_int killed_by; /* the code of the error that it will be answered with; 0: it goes on */
    net_delay limit;
    int64_t limit_ms; /* maxTimeMS; 0: none */
    bool by_key;      /* it has read a document by its key */
    uint32_t timed;   /* the number of the collection that its time counts for, plus 1, if that is not q->container's; 0: none */
};

enum { OPERATIONS_COMMAND_BYTES = 1024, OPERATIONS_TIMED_MAX = 4096 };

mongo_operations *mongo_operations_new(void);
void mongo_operations_free(mongo_operations *t);

/* On the request's loop. */
void mongo_operation_begin(struct mongo_request *q);
MUST_CHECK err mongo_operation_read_limit(struct mongo_request *q); /* maxTimeMS */
void mongo_operation_limit(struct mongo_request *q, int64_t ms);
void mongo_operation_end(struct mongo_request *q, int64_t us);

/* Any thread. An id that is not in use is ignored. */
void mongo_operations_kill(struct mongo_front *front, uint32_t id);

/* Appends the documents of currentOp. Any thread. */
void mongo_operations_list(struct mongo_front *front, int64_t now_us, buf *out);

/* How often a collection was used since the server was started, and for how long. */
typedef enum mongo_use { USE_QUERIES, USE_GETMORE, USE_INSERT, USE_UPDATE, USE_REMOVE, USE_COMMANDS, USES } mongo_use;
typedef struct mongo_times {
    uint64_t count[USES], us[USES];
    uint64_t by_key; /* documents read by their key: uses of the index of _id */
} mongo_times;
void mongo_operations_times(mongo_operations *t, uint32_t container, mongo_times *times_out);
