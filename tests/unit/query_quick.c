/* Quick pages, which run on loops: they use what is in memory. If a block must be read from the disk, they give up, charge nothing, and a
 * worker runs the page. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "item_harness.h"
#include "query/exec.h"
#include "query/schema.h"

#define SETTINGS "{\"id\":\"c\",\"partitionKey\":{\"paths\":[\"/pk\"],\"kind\":\"Hash\",\"version\":2}}"

enum { ITEMS = 2000 };

typedef struct world {
    harness h;
    char *folder;
    container *c;
} world;

/* The second open finds the items in tables, and none of their blocks in memory. */
static void world_open(world *w) {
    char body[1200];
    *w = (world){.folder = make_folder()};
    harness_open_homes(&w->h, open_rocks_tail(w->folder, 2000), NULL);
    container *c = harness_container(&w->h, SETTINGS, 400);
    for (unsigned i = 0; i < ITEMS; i++) {
        snprintf(body, sizeof body, "{\"id\":\"%u\",\"pk\":\"%u\",\"x\":%u,\"text\":\"%01000u\"}", i, i % 100, i, i);
        assert_int_equal(harness_write(&w->h, c, ITEM_CREATE, NULL, NULL, body), OK);
    }
    container_give(c);
    harness_close(&w->h);
    harness_open_homes(&w->h, open_rocks_tail(w->folder, 2000), NULL);
    w->c = harness_found(&w->h, "d", "c");
}

static void world_close(world *w) {
    container_give(w->c);
    harness_close(&w->h);
    remove_folder(w->folder);
    free(w->folder);
}

typedef struct result {
    err code;
    uint64_t rows;
    double ru;
} result;

static result run(world *w, const char *text, bool quick) {
    op *o = harness_op(&w->h);
    query_schema schema = query_schema_of(w->c->settings);
    epk min = epk_min(), max = epk_max();
    query asked;
    query_page p;
    item_cursor cursor;
    buf out = buf_init(BUF_NO_LIMIT);
    assert_int_equal(query_prepare(o, &w->h.arena, slice_str(text), NULL, 0, &schema, &asked), OK);
    item_cursor_init(&cursor, &min, &max);
    query_page_init(&p, harness_items(&w->h), o, w->c, &asked, &cursor, &out);
    p.ask.quick = quick;
    result r = {.code = query_run_page(&p)};
    r.rows = p.outcome.rows;
    r.ru = o->charge_ru;
    buf_free(&out);
    return r;
}

static void a_quick_page_does_not_read_the_disk(void **state) {
    static const char *const texts[] = {"SELECT VALUE c.id FROM c WHERE c.x = 77",
                                        "SELECT TOP 5 VALUE c.id FROM c WHERE c.x > 500 ORDER BY c.x"};
    world w;
    (void)state;
    world_open(&w);
    if (!drop_pages(w.folder)) {
        world_close(&w);
        skip(); /* the folder is in memory: there is no disk to wait for */
    }
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        result quick = run(&w, texts[i], true);
        assert_int_equal(quick.code, E_QUERY_TOO_LONG);
        assert_true(quick.ru == 0);
        result whole = run(&w, texts[i], false);
        assert_int_equal(whole.code, OK);
        assert_int_equal(whole.rows, i ? 5 : 1);
        quick = run(&w, texts[i], true); /* the blocks are in memory now */
        assert_int_equal(quick.code, OK);
        assert_int_equal(quick.rows, whole.rows);
        assert_true(quick.ru == whole.ru);
    }
    world_close(&w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_quick_page_does_not_read_the_disk),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
