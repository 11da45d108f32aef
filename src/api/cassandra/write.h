/* write.h — within api/cassandra: from a statement of INSERT, UPDATE or DELETE to mutations of rows. */
#pragma once

#include "api/cassandra/execute.h"

/* One row to change, or a range of rows to delete, which must be read first. */
typedef struct cass_target {
    cass_mutation mutation;
    container *container;
    bool ranged; /* all rows of the partition within `range`; with `whole`, the static row too */
    bool whole;
    cql_range range;
} cass_target;

typedef struct cass_targets {
    cass_target *list;
    uint32_t n, room;
} cass_targets;

enum { CASS_TARGETS_MAX = 65535 };

/* Adds the targets of a statement. `us`: the timestamp if the statement names none. */
typedef struct cass_write_input {
    const cass_statement *statement;
    container *container;
    const cql_run *run;
    int64_t us, now_s;
    bool in_batch;
    bool us_is_given; /* the batch names the timestamp */
} cass_write_input;

MUST_CHECK err cass_targets_add(op *o, const cass_write_input *in, cass_targets *targets);
