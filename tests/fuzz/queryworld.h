/* queryworld.h — for fuzz targets that run queries: a container with items of every shape, which inputs do not change, and pages of a query
 * over it, with continuations as clients get them. */
#pragma once

#include "api/sql/continuation.h"
#include "api/sql/query_position.h"
#include "world.h"

enum { QUERY_WORLD_PAGE_US = 200000 };

static const char *const query_world_items[] = {
    "{'id':'a','pk':'p','n':1,'s':'one','t':['x','y'],'o':{'a':1,'b':[1,2,{'c':null}]}}",
    "{'id':'b','pk':'p','n':2.5,'s':'Two','t':[],'o':{}}",
    "{'id':'c','pk':'p','n':-9223372036854775808,'s':'','t':[[1],[2,[3]],{'c':true}]}",
    "{'id':'d','pk':'q','n':null,'s':'ñandú 😀','t':[null,true,1e308,'z'],'b':true}",
    "{'id':'e','pk':'q','n':'7','d':'2024-02-29T12:34:56.7890123Z','b':false,'v':[1,0,0]}",
    "{'id':'f','pk':'q','g':{'type':'Point','coordinates':[31.9,-4.8]},'v':[0.5,0.5,0]}",
    "{'id':'g','pk':'r','g':{'type':'Polygon','coordinates':[[[31,-5],[32,-5],[32,-4],[31,-4],[31,-5]]]},'n':1}",
    "{'id':'h','pk':'r','':1,'a b':2,'\\u0000':3,'n':1,'s':'one'}",
    "{'id':'i','pk':'s','w':'the quick brown fox jumped over the lazy dogs'}",
};

#define QUERY_WORLD_CONTAINER                                                                                                              \
    "{" WORLD_KEY ",\"indexingPolicy\":{\"compositeIndexes\":[[{\"path\":\"/s\"},{\"path\":\"/n\",\"order\":\"descending\"}]]}}"

/* Writes an item; single quotes stand for double quotes. */
static inline void write_item(world *w, const char *item) {
    char *json = arena_text(&w->h.arena, slice_str(item));
    for (char *p = json; *p; p++) {
        *p = *p == '\'' ? '"' : *p;
    }
    assert_int_equal(harness_write(&w->h, w->c, ITEM_CREATE, NULL, NULL, json), OK);
}

static inline int64_t real_us(const clock_source *c) {
    (void)c;
    return clock_monotonic_us(&clock_system);
}

/* The wall clock stands still, so that a query has only one answer; the monotonic clock runs. */
static inline const items *query_world_open(world **world_out) {
    static world w;
    static items with_time;
    static clock_manual clock;
    if (!w.c) {
        log_set_level(LOG_ERROR);
        harness_open(&w.h);
        w.c = harness_container(&w.h, QUERY_WORLD_CONTAINER, 400);
        for (size_t i = 0; i < sizeof query_world_items / sizeof *query_world_items; i++) {
            write_item(&w, query_world_items[i]);
        }
        container_give(w.c);
        w.c = harness_found(&w.h, "d", "c");
        clock = w.h.clock;
        clock.source.monotonic_us = real_us;
        with_time = *harness_items(&w.h);
        with_time.clock = &clock.source;
    }
    *world_out = &w;
    return &with_time;
}

static inline sql_scope query_world_scope(const world *w) {
    rid container = {.n = 8};
    memcpy(container.bytes, w->c->rid, 8);
    return (sql_scope){.container = container, .min = epk_min(), .end = epk_max(), .plain = true};
}

/* Runs one page from the continuation in *text, in the operation's arena. *text is then the next continuation, or empty at the end. */
static inline err query_world_page(const items *s, world *w, op *o, const query *q, size_t rows_max, buf *text, query_page *page_out,
                                   buf *out) {
    sql_scope scope = query_world_scope(w);
    item_cursor cursor = {0};
    slice rest;
    query_page *p = page_out;
    query_page_init(p, s, o, w->c, q, &cursor, out);
    p->ask.rows_max = rows_max;
    p->ask.until_us = clock_monotonic_us(&clock_system) + QUERY_WORLD_PAGE_US;
    TRY(sql_position_read(o->arena, arena_copy(o->arena, buf_view(text)), q, &p->position, &rest));
    TRY(query_position_restore(p));
    TRY(sql_continuation_read(rest, &scope, &cursor));
    TRY(query_run_page(p));
    text->n = 0;
    if (p->outcome.more) {
        sql_position_write(text, o->arena, q, &p->position);
        sql_continuation_write(text, &scope, &cursor, p->outcome.rows);
    }
    return OK;
}
