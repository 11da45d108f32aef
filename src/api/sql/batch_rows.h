/* batch_rows.h — batches as HybridRow records. The .NET SDK sends transactional batches and bulk in this form, and reads only this form.
 *
 * All numbers are little-endian. A body is a segment and then one record for each operation or result:
 *
 *   segment   81  F0 D8 FF 7F  presence bits  length i32  [sparse fields]      its length in bytes
 *   record    81  F1 D8 FF 7F  length i32  crc32 u32  row                      length and checksum of the row
 *   row       81  schema i32   presence bits  fixed fields  variable fields  sparse fields
 *
 * A variable field that is present is its length (seven bits a byte, the lowest first) and its bytes. A sparse field is a type, the
 * number of its name in the schema (from 1) and its value. The schemas are named Microsoft.Azure.Cosmos.BatchApi. */
#pragma once

#include "doc/json.h"

static inline bool sql_rows_has(slice body) { /* no JSON, text or binary, begins with that byte */
    return body.n && (unsigned char)body.p[0] == 0x81;
}

/* Appends the operations to `out` as the BSON array that the same batch in JSON would give. E_BAD_JSON: a row or an item in it is
 * malformed. */
MUST_CHECK err sql_rows_read(slice body, buf *out, json_error *why);

typedef struct sql_row_result {
    unsigned status, substatus;
    double charge_ru;
    bool throttled;
    unsigned retry_after_ms; /* if throttled */
    slice etag, body;        /* empty: none */
} sql_row_result;

void sql_rows_start(buf *out);
void sql_rows_add(buf *out, const sql_row_result *result);
