/* Feeds: lists of databases, containers and items, page after page by the server's continuation. */
#include <stdlib.h>

#include "base/memory.h"
#include "client/cursor_int.h"
#include "client/routing.h"
#include <tesela/item.h>

typedef struct feed {
    tesela_client *client;
    tesela_container *container; /* NULL: a feed of the account */
    char *database;              /* NULL: of the databases */
    const char *type, *member;
    int page_items;
    buf continuation;
    bool last; /* the page before was the last one */
} feed;

static exchange *page_exchange(const feed *f) {
    exchange *x;
    if (f->container) {
        x = client__container_exchange(f->container, "GET", f->type, true);
    } else {
        x = client__exchange_new(f->client, "GET", f->type, true);
        if (f->database) {
            client__exchange_segment(x, SLICE_LIT("dbs"));
            client__exchange_segment(x, slice_str(f->database));
        }
    }
    buf_addf(&x->path, "/%s", f->type);
    if (f->page_items) {
        client__exchange_number(x, "x-ms-max-item-count", f->page_items);
    }
    client__exchange_field(x, "x-ms-continuation", buf_view(&f->continuation));
    return x;
}

static tesela_status fill_feed(tesela_cursor *cursor, tesela_error *error) {
    feed *f = cursor->state;
    if (f->last) {
        return TESELA_DONE;
    }
    exchange *x = page_exchange(f);
    tesela_status status = client__exchange_run(x, error);
    client__cursor_count(cursor, x);
    if (status == TESELA_OK) {
        if (client__cursor_add_all(cursor, client__response_body(x->response), f->member) < 0) {
            status = client__fail(error, TESELA_BAD_RESPONSE, "The answer has no list of %s.", f->member);
        } else {
            buf_clear(&f->continuation);
            buf_add_slice(&f->continuation, client__response_field(x->response, "x-ms-continuation"));
            f->last = f->continuation.n == 0;
        }
    }
    client__exchange_free(x);
    return status;
}

static void continue_feed(tesela_cursor *cursor, buf *out) {
    feed *f = cursor->state;
    buf_add_slice(out, buf_view(&f->continuation));
}

static void free_feed(void *state) {
    feed *f = state;
    buf_free(&f->continuation);
    free(f->database);
    free(f);
}

static const cursor_source feed_source = {fill_feed, continue_feed, free_feed};

static feed *feed_new(tesela_client *c, const char *type, const char *member) {
    feed *f = mem_zero(sizeof *f);
    f->client = c;
    f->type = type;
    f->member = member;
    f->continuation = buf_init(64 * 1024);
    return f;
}

tesela_status tesela_databases(tesela_client *c, tesela_cursor **cursor_out, tesela_error *error) {
    (void)error;
    *cursor_out = client__cursor_new(&feed_source, feed_new(c, "dbs", "Databases"), c->response_bytes * 2);
    return TESELA_OK;
}

tesela_status tesela_containers(tesela_client *c, const char *database, tesela_cursor **cursor_out, tesela_error *error) {
    *cursor_out = NULL;
    if (!database || !*database) {
        return client__fail(error, TESELA_BAD_ARGUMENT, "The database needs a name.");
    }
    feed *f = feed_new(c, "colls", "DocumentCollections");
    f->database = mem_text(database, strlen(database));
    *cursor_out = client__cursor_new(&feed_source, f, c->response_bytes * 2);
    return TESELA_OK;
}

tesela_status tesela_scripts(tesela_container *k, tesela_script_kind kind, tesela_cursor **cursor_out, tesela_error *error) {
    static const char *const members[] = {"StoredProcedures", "Triggers", "UserDefinedFunctions"};
    *cursor_out = NULL;
    if ((unsigned)kind > TESELA_FUNCTION) {
        return client__fail(error, TESELA_BAD_ARGUMENT, "There is no such kind of script.");
    }
    feed *f = feed_new(k->client, client__script_types[kind], members[kind]);
    f->container = k;
    *cursor_out = client__cursor_new(&feed_source, f, k->client->response_bytes * 2);
    return TESELA_OK;
}

tesela_status tesela_items(tesela_container *k, int page_items, const char *continuation, tesela_cursor **cursor_out, tesela_error *error) {
    (void)error;
    feed *f = feed_new(k->client, "docs", "Documents");
    f->container = k;
    f->page_items = page_items;
    if (continuation) {
        buf_add_slice(&f->continuation, slice_str(continuation));
    }
    *cursor_out = client__cursor_new(&feed_source, f, k->client->response_bytes * 2);
    return TESELA_OK;
}
