/* function_int.h — the table of native functions, and what its files share. */
#pragma once

#include "cql/function.h"

typedef enum cql__function_kind {
    CQL__TOKEN,
    CQL__NOW,
    CQL__UUID,
    CQL__CURRENT_TIMESTAMP,
    CQL__CURRENT_DATE,
    CQL__CURRENT_TIME,
    CQL__MIN_TIMEUUID,
    CQL__MAX_TIMEUUID,
    CQL__TO_DATE,
    CQL__TO_TIMESTAMP,
    CQL__TO_UNIX_TIMESTAMP,
    CQL__TO_JSON,
    CQL__FROM_JSON,
    CQL__BLOB_AS, /* blobAsInt and so on */
    CQL__AS_BLOB,
} cql__function_kind;

enum { CQL__ARGUMENT_TYPES = 4 };

struct cql_function {
    const char *name; /* in Cassandra's capitals */
    cql__function_kind kind;
    uint32_t n;                             /* arguments; of token any number from 1 on */
    cql_kind argument[CQL__ARGUMENT_TYPES]; /* what the one argument may be; CQL_CUSTOM (0) ends the list. None: anything */
    cql_kind returns;                       /* CQL_CUSTOM: the receiver's */
};

/* Whether a value of a type can stand where another type is expected: the same, or Cassandra's value-compatible types. */
bool cql__assignable(const cql_type *to, const cql_type *from);

void cql__timeuuid_of(int64_t since_1970_100ns, uint64_t rest, uint8_t uuid_out[16]);

/* An error of evaluation: code FUNCTION_FAILURE (0x1400) of the protocol. */
#define CQL__FUNCTION_FAILURE 0x1400
