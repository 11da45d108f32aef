/* schema_int.h — within mql/: a parsed $jsonSchema. It is JSON Schema draft 4 as MongoDB has it: bsonType beside type, no references. */
#pragma once

#include "mql/match_int.h"
#include "text/regex.h"

typedef struct mql__schema mql__schema;

typedef struct mql__schemas {
    const mql__schema **all;
    size_t n;
} mql__schemas;

typedef struct mql__names {
    slice *all;
    size_t n;
} mql__names;

/* A row of `properties`, `patternProperties` or `dependencies`. */
typedef struct mql__property {
    slice name;
    const text_regex *pattern;
    const mql__schema *schema;
    mql__names names; /* dependencies: fields that must be there too */
} mql__property;

typedef struct mql__properties {
    mql__property *all; /* `properties` are sorted by name */
    size_t n;
} mql__properties;

struct mql__schema {
    /* any value */
    bool typed;
    mql__types types;
    mql_value enumeration; /* an array; missing: none */
    mql__schemas all_of, any_of, one_of;
    const mql__schema *negated;

    /* numbers; missing: no bound */
    mql_value minimum, maximum, multiple_of;
    bool above_minimum, below_maximum; /* exclusive bounds */
    bool needs_minimum, needs_maximum;

    /* strings */
    int64_t min_length, max_length;
    const text_regex *pattern;

    /* arrays */
    int64_t min_items, max_items;
    bool unique_items, no_additional_items;
    const mql__schema *items;
    mql__schemas items_at; /* one schema for each of the first elements */
    const mql__schema *additional_items;

    /* objects */
    mql__names required;
    int64_t min_properties, max_properties;
    mql__properties properties, pattern_properties, dependencies;
    bool no_additional_properties;
    const mql__schema *additional_properties;
};

MUST_CHECK err mql__parse_schema(mql__filter_parser *p, slice document, mql__schema **schema_out);
void mql__sort_properties(mql__properties *properties);
