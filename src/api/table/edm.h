/* edm.h — within api/table: values of the types that properties can have, as OData writes them and as items store them.
 *
 *   type           in JSON                                  in an item
 *   Edm.String     "text"                                   string
 *   Edm.Int32      5                                        int32
 *   Edm.Int64      "5"                                      int64
 *   Edm.Double     5.5, 5.0, "NaN", "Infinity"              double
 *   Edm.Boolean    true                                     bool
 *   Edm.DateTime   "2024-01-02T03:04:05.6789012Z"           date, in milliseconds; the rest in the member "<name>@ticks", if there is one
 *   Edm.Guid       "c9da6455-213d-42c9-9a79-3e9149a57833"   binary of subtype 4, in the order of the text
 *   Edm.Binary     base64                                   binary of subtype 0
 *
 * So a SQL query sees plain values, and the index orders them. Pure functions, any thread. */
#pragma once

#include "base/buf.h"
#include "doc/walk.h"

typedef enum edm_type {
    EDM_STRING,
    EDM_INT32,
    EDM_INT64,
    EDM_DOUBLE,
    EDM_BOOLEAN,
    EDM_DATE_TIME,
    EDM_GUID,
    EDM_BINARY,
    EDM_TYPES
} edm_type;

typedef struct edm_value {
    edm_type type;
    slice text;     /* string, the 16 bytes of a guid, the bytes of a binary */
    int64_t number; /* int32, int64, boolean; for a time its ticks */
    double real;
} edm_value;

extern const char *const edm_names[EDM_TYPES];
bool edm_type_parse(slice name, edm_type *type_out); /* "Edm.Int64" */

/* Ticks are steps of 100 ns since 1970. Times are from 1601 to 9999; seven fractional digits; "Z", an offset, or neither. */
enum { EDM_TICKS_PER_MS = 10000, EDM_TIME_BYTES = 28, EDM_GUID_BYTES = 16, EDM_GUID_TEXT = 36 };
bool edm_time_parse(slice text, int64_t *ticks_out);
void edm_time_write(buf *out, int64_t ticks);
bool edm_time_in_range(int64_t ticks);
int64_t edm_ms_of(int64_t ticks, unsigned *rest_out); /* whole milliseconds, rounded down, and the ticks beyond them */

bool edm_guid_parse(slice text, char bytes[static EDM_GUID_BYTES]);
void edm_guid_write(buf *out, slice bytes);
bool edm_double_parse(slice text, double *value_out);
void edm_double_write(buf *out, double value); /* as JSON text; not finite: a quoted word */

/* Reads a property of a stored entity. `body` is the entity, for the ticks of a time. False: null, or a type that tables do not have. */
bool edm_of_element(slice body, const doc_element *e, edm_value *value_out);
bool edm_is_ticks(slice name);      /* the member belongs to another one: the time */
slice edm_ticks_owner(slice ticks); /* the name of that one */

/* The order of two values: < 0, 0, > 0. False: their types are not comparable, or one is NaN. Numbers of all types compare by value. */
bool edm_compare(const edm_value *a, const edm_value *b, int *order_out);
