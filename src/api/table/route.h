/* route.h — within api/table: what a URL names, and its query parameters.
 *
 * The account is the first segment if the path has two (path style, as with the emulator); otherwise it is in the host's name or, for
 * localhost, nowhere (host style):
 *
 *   /Tables                                      /devstoreaccount1/Tables
 *   /people(PartitionKey='p',RowKey='r')         /devstoreaccount1/people(PartitionKey='p',RowKey='r')
 *
 * Pure functions; decoded texts live in the arena. */
#pragma once

#include "api/table/errors.h"

typedef enum table_kind { TABLE_SERVICE, TABLE_TABLES, TABLE_TABLE, TABLE_ENTITIES, TABLE_ENTITY, TABLE_BATCH } table_kind;

typedef struct table_route {
    table_kind kind;
    slice account; /* the account in the path; p NULL: none */
    slice table;
    slice partition, row; /* the keys of an entity; not NULL if the path names one */
} table_route;

/* `service`: the query asks for the service itself, so that a path of one segment is the account. */
table_error table_route_parse(arena *a, slice path, bool service, table_route *route_out);

/* From an absolute URL or a path, as in a batch: the path without the query. */
slice table_path_of_url(slice url);

/* A parameter of the query, decoded; p NULL: it is not there. "+" is a blank. */
table_error table_parameter(arena *a, slice query, const char *name, slice *value_out);

bool table_name_is_good(slice name); /* letters and digits, a letter first, 3 to 63 of them */
