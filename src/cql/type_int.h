/* type_int.h — the table of native types, shared by the files of type.h. */
#pragma once

#include "cql/type.h"

typedef struct cql__native {
    cql_kind kind;
    const char *name;       /* in CQL */
    const char *class_name; /* in Java, without the package */
    int fixed_bytes;        /* -1: varies */
} cql__native;

/* NULL: the kind has inner types, or is a custom one. */
const cql__native *cql__native_of(cql_kind kind);
const cql__native *cql__native_by_class(slice class_name);

#define CQL_CLASS_PACKAGE "org.apache.cassandra.db.marshal."
