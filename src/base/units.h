/* units.h — formats sizes for people. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* "20 GB", "1.5 MB", "512 KB", "17 bytes": the largest unit with a value of at least 1, with at most one decimal. */
void bytes_text(char *text, size_t text_n, uint64_t bytes);
