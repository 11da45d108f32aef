/* value_int.h — within query/: shared by value.c and value_make.c. */
#pragma once

#include "account/rid.h"
#include "item/item.h"
#include "query/value.h"

enum {
    VALUE_RID_BYTES = 24,
    VALUE_SELF_BYTES = 4 + 8 + 7 + 12 + 6 + VALUE_RID_BYTES + 1, /* dbs/…/colls/…/docs/…/ */
    VALUE_SYSTEM_PROPERTIES = 5,
};

void value__rid(char text[VALUE_RID_BYTES], const query_item *item);
void value__self(char text[VALUE_SELF_BYTES], const query_item *item);

/* A system property of items. The table is in the order in which they are written. */
typedef struct value__property {
    slice name;
    query_value (*make)(arena *a, const query_item *item);
} value__property;
extern const value__property value__system[VALUE_SYSTEM_PROPERTIES];

/* The BSON key for a name: keys end at a zero byte, so a NUL inside is written as C0 80 (doc/json.h). */
slice value__key(arena *a, slice name);
