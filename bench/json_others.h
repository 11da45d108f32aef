/* json_others.h — the libraries that json_compare measures beside ours, behind plain functions: their names and ours would clash, and
 * two of them want C++. Each aborts if its library refuses the text. */
#pragma once

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

void others_begin(const char *text, size_t n); /* the text that the rest works on from here; stays the caller's */
void others_end(void);

void others_read_jansson(void);
void others_read_yajl(void);
void others_read_rapidjson(void);
void others_read_simdjson(void);

void others_write_jansson(void);
void others_write_rapidjson(void);

#ifdef __cplusplus
}
#endif
