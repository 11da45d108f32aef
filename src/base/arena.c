#include "base/arena.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"

enum { BLOCK_BYTES = 16 * 1024 };

struct arena_block {
    arena_block *next;
    size_t bytes; /* usable bytes after this header */
};

static char *block_bytes(arena_block *block) {
    return (char *)(block + 1);
}

static size_t usual_bytes(const arena *a) {
    return a->block_bytes ? a->block_bytes : BLOCK_BYTES;
}

void arena_free(arena *a) {
    for (arena_block *block = a->blocks, *next; block; block = next) {
        next = block->next;
        free(block);
    }
    if (a->budget) {
        budget_give(a->budget, a->held);
    }
    *a = (arena){.block_bytes = a->block_bytes, .budget = a->budget};
}

void arena_reset(arena *a) {
    arena_block *keep = NULL;
    for (arena_block *block = a->blocks, *next; block; block = next) {
        next = block->next;
        if (!keep && block->bytes == usual_bytes(a)) {
            keep = block;
            keep->next = NULL;
        } else {
            free(block);
        }
    }
    a->blocks = keep;
    size_t kept = keep ? keep->bytes : 0;
    if (a->budget) {
        budget_give(a->budget, a->held - kept);
    }
    a->held = kept;
    a->at = keep ? block_bytes(keep) : NULL;
    a->end = keep ? a->at + keep->bytes : NULL;
}

void arena_free_newer(arena *a, const arena_mark *mark) {
    size_t before = a->held;
    while (a->blocks != mark->blocks) {
        arena_block *block = a->blocks;
        a->blocks = block->next;
        a->held -= block->bytes;
        free(block);
    }
    if (a->budget) {
        budget_give(a->budget, before - a->held);
    }
}

void *arena_more(arena *a, size_t n, size_t align) {
    size_t need = n + align;
    size_t usual = usual_bytes(a);
    size_t bytes = need > usual / 4 ? need : usual;
    if (a->budget) {
        budget_force(a->budget, bytes);
    }
    arena_block *block = mem_alloc(sizeof *block + bytes);
    block->bytes = bytes;
    block->next = a->blocks;
    a->blocks = block;
    a->held += bytes;
    char *p = block_bytes(block);
    p += -(uintptr_t)p & (align - 1);
    if (bytes == usual) { /* a large block serves one allocation; the current block stays in use */
        a->at = p + n;
        a->end = block_bytes(block) + bytes;
    }
    return p;
}

void *arena_zero(arena *a, size_t n) {
    return memset(arena_alloc(a, n), 0, n);
}

slice arena_copy(arena *a, slice s) {
    char *p = arena_alloc_aligned(a, s.n ? s.n : 1, 1);
    if (s.n) {
        memcpy(p, s.p, s.n);
    }
    return (slice){p, s.n};
}

char *arena_text(arena *a, slice s) {
    char *p = arena_alloc_aligned(a, s.n + 1, 1);
    if (s.n) {
        memcpy(p, s.p, s.n);
    }
    p[s.n] = 0;
    return p;
}

slice arena_printf(arena *a, const char *format, ...) {
    va_list args;
    va_start(args, format);
    int n = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (n <= 0) {
        return SLICE_EMPTY;
    }
    char *p = arena_alloc_aligned(a, (size_t)n + 1, 1);
    va_start(args, format);
    vsnprintf(p, (size_t)n + 1, format, args);
    va_end(args);
    return (slice){p, (size_t)n};
}
