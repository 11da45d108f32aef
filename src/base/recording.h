/* recording.h — a file of requests, one line of JSON each, for `tesela advise` (docs/advise.md). Bounded: when the file reaches half of its
 * limit it becomes FILE.1, in place of the one before, and a new one begins.
 *
 * A front end looks at recording_is_on when it answers, and then asks recording_choose. Any thread may write; a line is dropped if another
 * thread is writing at that moment. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"

enum { RECORDING_PER_SECOND = 1000, RECORDING_LINE_BYTES = 4096 };

/* At start-up, before there are requests. One of `one_of` requests is recorded, and RECORDING_PER_SECOND at most. False: the file cannot be
 * made; errno says why. */
bool recording_open(const char *path, uint64_t bytes_max, unsigned one_of);
void recording_close(void);

extern bool recording_is_on;
bool recording_choose(int64_t now_s); /* whether to record this request */

/* For how many requests a line stands: those that were not chosen since the last one. */
uint64_t recording_count(void);

void recording_write(slice line); /* with its line break */
