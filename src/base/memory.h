/* memory.h — allocation that never fails. All of our memory comes from here.
 *
 * Limits are checked before a request's memory is allocated here, so a failed allocation means that the machine is out of memory: the
 * process logs that and aborts. The store's log restores all acknowledged writes. */
#pragma once

#include <stddef.h>

void *mem_alloc(size_t n) __attribute__((malloc, returns_nonnull, alloc_size(1)));
void *mem_zero(size_t n) __attribute__((malloc, returns_nonnull, alloc_size(1)));
void *mem_resize(void *p, size_t n) __attribute__((returns_nonnull, alloc_size(2)));
char *mem_text(const void *p, size_t n) __attribute__((malloc, returns_nonnull)); /* zero-terminated copy */

/* For the server, at its start: large blocks go back to the system when they are freed. Otherwise glibc keeps blocks of up to 32 MB, and
 * memory grows with the largest of them. */
void mem_return_large_blocks(void);
