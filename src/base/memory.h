/* memory.h — the one door to the allocator.
 *
 * What a request may ask for is bounded by limits before it gets here, so running out of memory means that the machine is out of it:
 * the process says so and stops, and the store's log brings everything acknowledged back. */
#pragma once

#include <stddef.h>

void *mem_alloc(size_t n) __attribute__((malloc, returns_nonnull, alloc_size(1)));
void *mem_zero(size_t n) __attribute__((malloc, returns_nonnull, alloc_size(1)));
void *mem_resize(void *p, size_t n) __attribute__((returns_nonnull, alloc_size(2)));
char *mem_text(const void *p, size_t n) __attribute__((malloc, returns_nonnull)); /* copy, zero-terminated */
