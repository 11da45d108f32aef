#include "api/mongo/sorter.h"

#include <stdlib.h>

#include "api/mongo/codes.h"
#include "base/memory.h"

typedef struct entry {
    uint64_t number; /* order of arrival */
    uint32_t key_n, document_n;
    char bytes[]; /* key, document */
} entry;

struct mongo_sorter {
    const mql_sort *sort;
    const mql_collation *collation;
    uint64_t keep, arrived;
    budget *memory;
    size_t bytes;
    entry **list;
    size_t n, room;
};

mongo_sorter *mongo_sorter_new(const mql_sort *sort, const mql_collation *collation, uint64_t keep, budget *memory) {
    mongo_sorter *s = mem_zero(sizeof *s);
    *s = (mongo_sorter){.sort = sort, .collation = collation, .keep = keep, .memory = memory};
    return s;
}

static size_t size_of(const entry *e) {
    return sizeof *e + sizeof(entry *) * 2 + e->key_n + e->document_n;
}

static void drop(mongo_sorter *s, entry *e) {
    size_t n = size_of(e);
    s->bytes -= n;
    if (s->memory) {
        budget_give(s->memory, n);
    }
    free(e);
}

void mongo_sorter_free(mongo_sorter *s) {
    if (s) {
        for (size_t i = 0; i < s->n; i++) {
            drop(s, s->list[i]);
        }
        free(s->list);
        free(s);
    }
}

static int by_key(const void *a, const void *b, void *context) {
    const mongo_sorter *s = context;
    const entry *x = *(entry *const *)a, *y = *(entry *const *)b;
    int c = mql_sort_compare(s->sort, s->collation, slice_of(x->bytes, x->key_n), slice_of(y->bytes, y->key_n));
    return c ? c : (x->number > y->number) - (x->number < y->number);
}

static void sort_all(mongo_sorter *s) {
    if (s->n) {
        qsort_r(s->list, s->n, sizeof *s->list, by_key, s);
    }
}

/* With a limit: whenever the list is twice as long as needed, drops the documents that cannot be among the first ones. */
static void prune(mongo_sorter *s) {
    enum { AT_LEAST = 64 };
    bool many = s->n >= AT_LEAST || s->bytes > MONGO_SORT_BYTES / 4;
    if (many && s->keep < UINT64_MAX / 2 && s->n >= s->keep * 2) {
        sort_all(s);
        while (s->n > s->keep) {
            drop(s, s->list[--s->n]);
        }
    }
}

static void append(mongo_sorter *s, entry *e) {
    if (s->n == s->room) {
        s->room = s->room ? s->room * 2 : 64;
        s->list = mem_resize(s->list, s->room * sizeof *s->list);
    }
    s->list[s->n++] = e;
}

err mongo_sorter_add(mongo_sorter *s, op *o, slice key, slice document) {
    size_t n = sizeof(entry) + sizeof(entry *) * 2 + key.n + document.n;
    if (s->bytes + n > MONGO_SORT_BYTES) {
        return op_fail_as(
            o, E_MEMORY, CODE_SORT_MEMORY,
            "Sort exceeded memory limit of %zu bytes, but did not opt in to external sorting. Add a limit or a narrower filter.",
            MONGO_SORT_BYTES);
    }
    if (s->memory && !budget_take(s->memory, n)) {
        return budget_error(s->memory);
    }
    entry *e = mem_alloc(sizeof *e + key.n + document.n);
    *e = (entry){.number = s->arrived++, .key_n = (uint32_t)key.n, .document_n = (uint32_t)document.n};
    memcpy(e->bytes, key.p, key.n);
    memcpy(e->bytes + key.n, document.p, document.n);
    s->bytes += n;
    append(s, e);
    prune(s);
    return OK;
}

void mongo_sorter_end(mongo_sorter *s, bool (*visit)(void *context, slice document), void *context) {
    sort_all(s);
    for (size_t i = 0; i < s->n && i < s->keep; i++) {
        const entry *e = s->list[i];
        if (!visit(context, slice_of(e->bytes + e->key_n, e->document_n))) {
            return;
        }
    }
}
