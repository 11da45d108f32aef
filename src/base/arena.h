/* arena.h — memory that is freed all at once, at the end of a request.
 *
 * The owner may lend a first block, on its stack for example, by setting `at` and `end`; and a reset keeps one block. So small requests do
 * not call the allocator. One thread at a time. Allocated bytes live until arena_reset or arena_free. */
#pragma once

#include <stdarg.h>

#include "base/budget.h"
#include "base/slice.h"

typedef struct arena_block arena_block;

typedef struct arena {
    char *at;
    char *end;
    arena_block *blocks;
    size_t block_bytes; /* 0: the default, 16 KB */
    size_t held;        /* total size of all blocks, for callers that limit their memory */
    budget *budget;     /* counts the blocks; NULL: none */
} arena;

static inline arena arena_init(void) {
    return (arena){0};
}

/* An arena whose blocks are counted against a budget. Call arena_fits before allocations that may be large. */
static inline arena arena_init_counted(budget *b) {
    return (arena){.budget = b};
}

/* For small long-lived objects, such as a container's settings. */
static inline arena arena_init_small(void) {
    return (arena){.block_bytes = 1024};
}

enum { ARENA_UNASKED_BYTES = 16 * 1024 }; /* allocations up to this size need no arena_fits */

void arena_reset(arena *a); /* frees everything, but keeps one block for the next request */
void arena_free(arena *a);

/* A position in an arena: arena_release frees what was allocated after it. */
typedef struct arena_mark {
    char *at, *end;
    arena_block *blocks;
} arena_mark;

static inline arena_mark arena_marked(const arena *a) {
    return (arena_mark){a->at, a->end, a->blocks};
}

void arena_free_newer(arena *a, const arena_mark *mark); /* frees the blocks allocated since; called by arena_release */

/* Frees everything allocated since the mark. Release marks in the reverse of the order in which they were taken. */
static inline void arena_release(arena *a, arena_mark mark) {
    if (a->blocks != mark.blocks) {
        arena_free_newer(a, &mark);
    }
    a->at = mark.at;
    a->end = mark.end;
}

void *arena_more(arena *a, size_t n, size_t align) __attribute__((returns_nonnull));

static inline void *arena_alloc_aligned(arena *a, size_t n, size_t align) {
    uintptr_t at = ((uintptr_t)a->at + align - 1) & ~(uintptr_t)(align - 1);
    if (a->at == NULL || at > (uintptr_t)a->end || n > (uintptr_t)a->end - at) {
        return arena_more(a, n, align);
    }
    char *p = a->at + (at - (uintptr_t)a->at);
    a->at = p + n;
    return p;
}

static inline void *arena_alloc(arena *a, size_t n) {
    return arena_alloc_aligned(a, n, 16);
}

/* Call before an allocation whose size depends on what a client sent or stored. False: the budget has no room for it, and `exceeded` is
 * set. */
static inline bool arena_fits(arena *a, size_t n) {
    if (!a->budget || n <= ARENA_UNASKED_BYTES) {
        return true;
    }
    if (!budget_take(a->budget, n)) {
        return false;
    }
    budget_give(a->budget, n); /* arena_more takes it again for the allocation */
    return true;
}

void *arena_zero(arena *a, size_t n) __attribute__((returns_nonnull));
slice arena_copy(arena *a, slice s);
char *arena_text(arena *a, slice s); /* zero-terminated copy */
slice arena_printf(arena *a, const char *format, ...) __attribute__((format(printf, 2, 3)));

#define arena_new(a, type) ((type *)arena_zero((a), sizeof(type)))
#define arena_array(a, type, n) ((type *)arena_zero((a), sizeof(type) * (n)))
