/* rows_int.h — what the files of rows.h share. */
#pragma once

#include "tool/rows.h"

int rows__byte(rows_reader *r);
void rows__unread(rows_reader *r, int c);
rows_result rows__fail(rows_reader *r, rows_result result, const char *why);

bool rows__csv_head(rows_reader *r);
rows_result rows__csv_next(rows_reader *r);

/* Whether an unquoted field of this text is something else than a string. */
bool rows__looks_typed(slice text);
