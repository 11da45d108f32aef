/* Single items. */
#include <tesela/item.h>

#include "client/json.h"
#include "client/routing.h"

/* Adds the partition key: the given one, or the item's own. */
static tesela_status add_key(exchange *x, tesela_container *k, const tesela_key *key, slice item, tesela_error *error) {
    buf header = buf_init(64 * 1024);
    tesela_status status = TESELA_OK;
    if (key) {
        if (!client__key_write(key, &header)) {
            status =
                client__fail(error, TESELA_BAD_ARGUMENT, "The partition key has a text that is not UTF-8, or a number that is not finite.");
        }
    } else {
        routing *r;
        arena memory = arena_init();
        pkey found;
        status = client__routing_take(k, &r, error);
        if (status == TESELA_OK) {
            status = client__key_extract(r, item, &memory, &found, error);
            if (status == TESELA_OK && found.n) {
                pkey_write(&header, &found);
            }
            client__routing_give(r);
        }
        arena_free(&memory);
    }
    if (status == TESELA_OK && header.n > 2) {
        client__exchange_field(x, "x-ms-documentdb-partitionkey", buf_view(&header));
    }
    buf_free(&header);
    return status;
}

static void add_options(exchange *x, const tesela_item_options *o) {
    const char *consistency = o && o->consistency ? o->consistency : x->read ? x->client->consistency : NULL;
    client__exchange_text(x, "x-ms-consistency-level", consistency);
    if (!o) {
        return;
    }
    client__exchange_text(x, "If-Match", o->if_match);
    client__exchange_text(x, "If-None-Match", o->if_none_match);
    client__exchange_text(x, "x-ms-documentdb-pre-trigger-include", o->pre_trigger);
    client__exchange_text(x, "x-ms-documentdb-post-trigger-include", o->post_trigger);
    client__exchange_text(x, "x-ms-indexing-directive", o->indexing);
    client__exchange_text(x, "Prefer", o->no_body ? "return=minimal" : NULL);
    if (o->session_token) {
        client__exchange_text(x, "x-ms-session-token", o->session_token);
        x->own_session = true;
    }
}

static tesela_status bad_argument(tesela_error *error) {
    return client__fail(error, TESELA_BAD_ARGUMENT, "The id or the item is missing, or the id is empty.");
}

static tesela_status run(exchange *x, tesela_container *k, const tesela_key *key, slice item, const tesela_item_options *options,
                         tesela_response **response_out, tesela_error *error) {
    if (response_out) {
        *response_out = NULL;
    }
    add_options(x, options);
    x->plain_write = !x->read;
    tesela_status status = add_key(x, k, key, item, error);
    if (status != TESELA_OK) {
        client__exchange_free(x);
        return status;
    }
    if (item.n) {
        x->has_body = true;
        x->body_view = item;
        client__exchange_text(x, "Content-Type", "application/json");
    }
    return client__exchange_finish(x, response_out, error);
}

static exchange *on_item(tesela_container *k, const char *verb, const char *id) {
    exchange *x = client__container_exchange(k, verb, "docs", strcmp(verb, "GET") == 0);
    client__exchange_segment(x, SLICE_LIT("docs"));
    client__exchange_segment(x, slice_str(id));
    return x;
}

static exchange *on_feed(tesela_container *k) {
    exchange *x = client__container_exchange(k, "POST", "docs", false);
    buf_add_lit(&x->path, "/docs");
    return x;
}

tesela_status tesela_item_create(tesela_container *k, const char *item, const tesela_key *key, const tesela_item_options *options,
                                 tesela_response **response_out, tesela_error *error) {
    return item ? run(on_feed(k), k, key, slice_str(item), options, response_out, error) : bad_argument(error);
}

tesela_status tesela_item_upsert(tesela_container *k, const char *item, const tesela_key *key, const tesela_item_options *options,
                                 tesela_response **response_out, tesela_error *error) {
    if (!item) {
        return bad_argument(error);
    }
    exchange *x = on_feed(k);
    client__exchange_text(x, "x-ms-documentdb-is-upsert", "True");
    return run(x, k, key, slice_str(item), options, response_out, error);
}

/* No key given where there is no item to find it in: a container without a partition key. */
static const tesela_key no_key = {0};

tesela_status tesela_item_read(tesela_container *k, const char *id, const tesela_key *key, const tesela_item_options *options,
                               tesela_response **response_out, tesela_error *error) {
    return id && *id ? run(on_item(k, "GET", id), k, key ? key : &no_key, SLICE_EMPTY, options, response_out, error) : bad_argument(error);
}

tesela_status tesela_item_replace(tesela_container *k, const char *id, const char *item, const tesela_key *key,
                                  const tesela_item_options *options, tesela_response **response_out, tesela_error *error) {
    return id && *id && item ? run(on_item(k, "PUT", id), k, key, slice_str(item), options, response_out, error) : bad_argument(error);
}

tesela_status tesela_item_patch(tesela_container *k, const char *id, const tesela_key *key, const char *patch,
                                const tesela_item_options *options, tesela_response **response_out, tesela_error *error) {
    return id && *id && patch ? run(on_item(k, "PATCH", id), k, key ? key : &no_key, slice_str(patch), options, response_out, error)
                              : bad_argument(error);
}

tesela_status tesela_item_delete(tesela_container *k, const char *id, const tesela_key *key, const tesela_item_options *options,
                                 tesela_response **response_out, tesela_error *error) {
    return id && *id ? run(on_item(k, "DELETE", id), k, key ? key : &no_key, SLICE_EMPTY, options, response_out, error)
                     : bad_argument(error);
}
