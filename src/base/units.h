/* units.h — sizes as people write them. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* "20 GB", "1.5 MB", "512 KB", "17 bytes": the largest unit that leaves at least 1, one decimal at most. */
void bytes_text(char *text, size_t text_n, uint64_t bytes);
