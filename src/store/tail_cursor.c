/* The cursor of tail.h. Sources stay sorted by their current key, so a step costs about one comparison while consecutive keys come from the
 * same source. */
#include <stdlib.h>

#include "base/memory.h"
#include "store/tail.h"

void store_cursor_open(store_cursor *cursor, const store_version *version) {
    *cursor = (store_cursor){.version = version, .sources = mem_alloc(version->n * sizeof *cursor->sources)};
}

void store_cursor_close(store_cursor *cursor) {
    free(cursor->sources);
}

static bool comes_first(const store_cursor *cursor, const store_cursor_source *a, const store_cursor_source *b) {
    int c = slice_cmp(a->key, b->key);
    return c ? (c < 0) != cursor->backward : a->age > b->age;
}

/* Inserts a source into the first n, which are sorted. */
static void place(store_cursor *cursor, size_t n, store_cursor_source source) {
    while (n > 0 && comes_first(cursor, &source, &cursor->sources[n - 1])) {
        cursor->sources[n] = cursor->sources[n - 1];
        n--;
    }
    cursor->sources[n] = source;
}

/* Whether a range in a newer run than the source's deletes its key. */
static bool is_hidden(const store_cursor *cursor, const store_cursor_source *source) {
    for (size_t i = source->age + 1; i < cursor->version->ranged; i++) {
        if (store_run_covers(cursor->version->runs[i], source->key)) {
            return true;
        }
    }
    return false;
}

/* Advances the first source, and restores the order. */
static void step_first(store_cursor *cursor) {
    store_cursor_source source = cursor->sources[0];
    bool ended = cursor->backward ? source.at == 0 : source.at + 1 >= source.run->n;
    source.at += cursor->backward ? (size_t)-1 : 1;
    size_t i = 0;
    if (!ended) {
        source.key = store_run_key(source.run, source.at);
    }
    for (; i + 1 < cursor->n && (ended || !comes_first(cursor, &source, &cursor->sources[i + 1])); i++) {
        cursor->sources[i] = cursor->sources[i + 1];
    }
    cursor->sources[i] = source;
    cursor->n -= ended;
}

/* Positions the cursor on the newest change of the next key, skipping keys that a newer range deletes. */
static void move_to_visible(store_cursor *cursor) {
    for (;;) {
        cursor->live = cursor->n > 0;
        if (!cursor->live) {
            return;
        }
        const store_cursor_source *first = &cursor->sources[0];
        for (cursor->same = 1; cursor->same < cursor->n && slice_eq(cursor->sources[cursor->same].key, first->key); cursor->same++) {
        }
        if (!is_hidden(cursor, first)) {
            cursor->change = store_run_get(first->run, first->at);
            return;
        }
        for (size_t i = 0; i < cursor->same; i++) {
            step_first(cursor);
        }
    }
}

void store_cursor_seek(store_cursor *cursor, const slice *key, bool backward) {
    cursor->backward = backward;
    cursor->n = 0;
    for (size_t i = 0; i < cursor->version->n; i++) {
        const store_run *run = cursor->version->runs[i];
        size_t at = key ? store_run_find(run, *key) : backward ? run->n : 0;
        if (backward ? at > 0 : at < run->n) {
            at -= backward;
            place(cursor, cursor->n, (store_cursor_source){run, i, at, store_run_key(run, at)});
            cursor->n++;
        }
    }
    move_to_visible(cursor);
}

void store_cursor_next(store_cursor *cursor) {
    for (size_t i = 0; i < cursor->same; i++) {
        step_first(cursor);
    }
    move_to_visible(cursor);
}
