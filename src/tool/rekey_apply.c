/* Changes of the source, applied to the target.
 *
 * The target has at most one copy of an item once a page is applied. Where it is cannot be told from an event, since a replace does not
 * have the item before: so the copies are looked up by what names the item in the source, its id and its old key. Those at another new key
 * than the item's are deleted, then the item is put.
 *
 * Two items of the source may get the same id and key in the target. Which one was there first depends on the order of ranges, so it is
 * noted (REKEY_TAKEN), and tried again before the switch: by then the other one may be gone. */
#include <stdlib.h>

#include "base/memory.h"
#include "doc/json.h"
#include "tool/rekey_int.h"

enum { LOOKED_UP = 40 }; /* items of one query */

/* ---- a page ---- */

void rekey_page_begin(rekey *r) {
    arena_reset(&r->page);
    r->fatal = (tesela_error){0};
    r->changes = arena_array(&r->page, rekey_change, REKEY_PAGE);
    r->n = 0;
}

/* Texts with their lengths, so that no two items have the same. */
static slice identity_of(arena *a, const char *id, const tesela_key *key) {
    buf text = buf_init(BUF_NO_LIMIT);
    buf_addf(&text, "%zu %s", strlen(id), id);
    for (size_t i = 0; i < key->count; i++) {
        const tesela_key_value *v = &key->values[i];
        const char *of_text = v->kind == TESELA_KEY_STRING ? v->text : "";
        buf_addf(&text, " %d %d %.17g %zu ", (int)v->kind, v->truth, v->number, strlen(of_text));
        buf_add_slice(&text, slice_str(of_text));
    }
    slice made = arena_copy(a, buf_view(&text));
    buf_free(&text);
    return made;
}

/* The item without what the server adds to it. */
static const char *bare_body(arena *a, slice item) {
    bson_t all, bare = BSON_INITIALIZER;
    buf text = buf_init(BUF_NO_LIMIT);
    if (bson_init_static(&all, (const uint8_t *)item.p, item.n)) {
        bson_copy_to_excluding_noinit(&all, &bare, "_rid", "_self", "_etag", "_attachments", "_ts", "_lsn", NULL);
    }
    json_from_bson(&text, slice_of(bson_get_data(&bare), bare.len));
    const char *made = item_text_in(a, buf_view(&text)).p;
    bson_destroy(&bare);
    buf_free(&text);
    return made;
}

static bool read_item(rekey *r, slice item, rekey_change *c) {
    bson_iter_t it;
    if (!doc_find_key(item, SLICE_LIT("id"), &it) || !BSON_ITER_HOLDS_UTF8(&it)) {
        return false;
    }
    *c = (rekey_change){.id = item_text_in(&r->page, doc_text(&it)).p,
                        .from_key = item_key_of(&r->page, &r->from_key, item),
                        .to_key = item_key_of(&r->page, &r->to_key, item)};
    c->identity = identity_of(&r->page, c->id, &c->from_key);
    return true;
}

void rekey_add_item(rekey *r, slice json) {
    buf bson = buf_init(BUF_NO_LIMIT);
    json_root root;
    if (r->n < REKEY_PAGE && json_to_bson(json, NULL, &bson, &root, NULL) == OK && read_item(r, buf_view(&bson), &r->changes[r->n])) {
        r->changes[r->n++].body = bare_body(&r->page, buf_view(&bson));
    }
    buf_free(&bson);
}

/* The last event of an item decides. */
static rekey_change *place_of(rekey *r, slice identity) {
    for (size_t i = 0; i < r->n; i++) {
        if (slice_eq(r->changes[i].identity, identity)) {
            return &r->changes[i];
        }
    }
    return &r->changes[r->n++];
}

static slice document_in(slice event, const char *name) {
    bson_iter_t it;
    uint32_t n = 0;
    const uint8_t *p = NULL;
    if (doc_find_key(event, slice_str(name), &it) && BSON_ITER_HOLDS_DOCUMENT(&it)) {
        bson_iter_document(&it, &n, &p);
    }
    return slice_of(p, n);
}

bool rekey_add_event(rekey *r, slice json) {
    buf bson = buf_init(BUF_NO_LIMIT);
    json_root root;
    bson_iter_t it;
    rekey_change change;
    bool good = r->n < REKEY_PAGE && json_to_bson(json, NULL, &bson, &root, NULL) == OK;
    slice metadata = good ? document_in(buf_view(&bson), "metadata") : SLICE_EMPTY;
    good = metadata.n && doc_find_key(metadata, SLICE_LIT("operationType"), &it) && BSON_ITER_HOLDS_UTF8(&it);
    bool removes = good && slice_eq(doc_text(&it), SLICE_LIT("delete"));
    slice item = good ? document_in(buf_view(&bson), removes ? "previous" : "current") : SLICE_EMPTY;
    good = item.n && read_item(r, item, &change);
    if (good) {
        change.body = removes ? NULL : bare_body(&r->page, item);
        *place_of(r, change.identity) = change;
    }
    buf_free(&bson);
    return good;
}

/* ---- looking up copies ---- */

static void add_property(buf *out, const doc_path *path) {
    buf_add_byte(out, 'c');
    for (size_t i = 0; i < path->steps_n; i++) {
        buf_add_byte(out, '[');
        json_add_string(out, path->steps[i]);
        buf_add_byte(out, ']');
    }
}

/* A value that is no key, such as an object, is not compared: the rows are compared again here. */
static void add_value(buf *out, const doc_path *path, const tesela_key_value *v) {
    if (v->kind == TESELA_KEY_NONE) {
        return;
    }
    buf_add_lit(out, " AND ");
    add_property(out, path);
    buf_add_lit(out, " = ");
    switch (v->kind) {
    case TESELA_KEY_STRING:
        json_add_string(out, slice_str(v->text));
        break;
    case TESELA_KEY_NUMBER:
        json_add_double(out, v->number);
        break;
    case TESELA_KEY_BOOL:
        buf_addf(out, "%s", v->truth ? "true" : "false");
        break;
    default:
        buf_add_lit(out, "null");
    }
}

static void add_condition(buf *out, const rekey *r, const rekey_change *c) {
    buf_add_lit(out, "(c.id = ");
    json_add_string(out, slice_str(c->id));
    for (size_t i = 0; i < r->from_key.n; i++) {
        add_value(out, &r->from_key.list[i], &c->from_key.values[i]);
    }
    buf_add_byte(out, ')');
}

static bool delete_copy(rekey *r, const rekey_change *copy, slice item) {
    bson_iter_t it;
    const char *etag = doc_find_key(item, SLICE_LIT("_etag"), &it) ? item_text_in(&r->page, doc_text(&it)).p : NULL;
    tesela_bulk_operation o = {.kind = TESELA_BULK_DELETE, .id = copy->id, .key = &copy->to_key, .if_match = etag};
    return tesela_bulk_add(r->bulk, &o, &r->fatal) == TESELA_OK;
}

/* A copy at the item's new key will be replaced, any other is deleted. */
static bool take_copy(rekey *r, slice item, rekey_change *changes, size_t n) {
    rekey_change copy;
    if (!read_item(r, item, &copy)) {
        return true;
    }
    for (size_t i = 0; i < n; i++) {
        rekey_change *c = &changes[i];
        if (!slice_eq(c->identity, copy.identity)) {
            continue;
        }
        if (!c->body || !item_key_same(&c->to_key, &copy.to_key)) {
            return delete_copy(r, &copy, item);
        }
        c->as = TESELA_BULK_UPSERT;
    }
    return true;
}

/* False: none of these is open. */
static bool write_query(const rekey *r, rekey_change *changes, size_t n, buf *out) {
    bool any = false;
    buf_add_lit(out, "SELECT * FROM c WHERE ");
    for (size_t i = 0; i < n; i++) {
        if (changes[i].state == REKEY_OPEN) {
            changes[i].as = TESELA_BULK_CREATE;
            buf_add(out, " OR ", any ? 4 : 0);
            add_condition(out, r, &changes[i]);
            any = true;
        }
    }
    buf_add_byte(out, '\0');
    return any;
}

static tesela_status take_rows(rekey *r, tesela_cursor *cursor, rekey_change *changes, size_t n) {
    const char *row;
    size_t row_n;
    buf bson = buf_init(BUF_NO_LIMIT);
    tesela_status status;
    while ((status = tesela_cursor_next(cursor, &row, &row_n, &r->fatal)) == TESELA_OK) {
        json_root root;
        buf_clear(&bson);
        if (json_to_bson(slice_of(row, row_n), NULL, &bson, &root, NULL) == OK && !take_copy(r, buf_view(&bson), changes, n)) {
            status = r->fatal.status;
            break;
        }
    }
    buf_free(&bson);
    return status;
}

static bool look_up(rekey *r, rekey_change *changes, size_t n) {
    buf text = buf_init(BUF_NO_LIMIT);
    tesela_cursor *cursor = NULL;
    tesela_status status = TESELA_DONE;
    if (write_query(r, changes, n, &text)) {
        tesela_query_options o = {.parallelism = -1, .page_items = REKEY_PAGE};
        status = tesela_query(r->to, text.p, NULL, &o, &cursor, &r->fatal);
        status = status == TESELA_OK ? take_rows(r, cursor, changes, n) : status;
    }
    r->charge += cursor ? tesela_cursor_charge(cursor) : 0;
    tesela_cursor_close(cursor);
    buf_free(&text);
    r->fatal.status = status == TESELA_DONE ? TESELA_OK : status;
    return status == TESELA_DONE;
}

/* ---- writing ---- */

static void on_deleted(rekey *r, const tesela_bulk_result *result) {
    if (result->status == TESELA_OK) {
        r->removed++;
    } else if (result->status == TESELA_PRECONDITION_FAILED || (result->status != TESELA_NOT_FOUND && endpoint_passing(result->status))) {
        r->again = true;
    } else if (result->status != TESELA_NOT_FOUND) {
        r->fatal = (tesela_error){.status = result->status, .http_status = result->http_status};
        snprintf(r->fatal.message, sizeof r->fatal.message, "the new container refused to delete an item");
    }
}

/* `tag`: the change; of deletes there is none. What fails for a passing reason stays open. */
void rekey_on_done(void *context, const tesela_bulk_result *result) {
    rekey *r = context;
    rekey_change *c = result->tag;
    if (!c) {
        on_deleted(r, result);
    } else if (result->status == TESELA_OK) {
        c->state = REKEY_DONE;
    } else if (result->status == TESELA_CONFLICT) {
        c->state = REKEY_TAKEN;
    } else if (!endpoint_passing(result->status)) {
        c->state = REKEY_REFUSED;
        c->status = result->http_status;
        c->substatus = result->http_substatus;
    }
}

/* A key that is malformed is found before anything is sent. */
static bool put(rekey *r, rekey_change *c) {
    tesela_bulk_operation o = {.kind = c->as, .body = c->body, .key = &c->to_key, .tag = c};
    tesela_error error = {0};
    tesela_status status = tesela_bulk_add(r->bulk, &o, &error);
    if (status == TESELA_BAD_ARGUMENT) {
        c->state = REKEY_REFUSED;
        c->status = 400;
    } else if (status != TESELA_OK) {
        r->fatal = error;
    }
    return status == TESELA_OK || status == TESELA_BAD_ARGUMENT;
}

static bool put_all(rekey *r) {
    bool good = true;
    for (size_t i = 0; i < r->n && good; i++) {
        rekey_change *c = &r->changes[i];
        good = c->state != REKEY_OPEN || !c->body || put(r, c);
    }
    tesela_error seen; /* rekey_on_done has each result */
    (void)tesela_bulk_finish(r->bulk, &seen);
    return good && r->fatal.status == TESELA_OK;
}

/* Puts what was read for the first time, of which nothing is there. What is there after all is looked up. */
static bool put_fresh(rekey *r) {
    for (size_t i = 0; i < r->n; i++) {
        r->changes[i].as = TESELA_BULK_CREATE;
    }
    bool good = put_all(r);
    for (size_t i = 0; i < r->n; i++) {
        r->changes[i].state = r->changes[i].state == REKEY_TAKEN ? REKEY_OPEN : r->changes[i].state;
    }
    return good;
}

static size_t count_open(const rekey *r) {
    size_t n = 0;
    for (size_t i = 0; i < r->n; i++) {
        n += r->changes[i].state == REKEY_OPEN;
    }
    return n;
}

/* Deletes first: what they free may be put. */
static bool settle_once(rekey *r) {
    bool good = true;
    for (size_t first = 0; first < r->n && good; first += LOOKED_UP) {
        good = look_up(r, r->changes + first, r->n - first < LOOKED_UP ? r->n - first : LOOKED_UP);
    }
    tesela_error seen;
    (void)tesela_bulk_finish(r->bulk, &seen);
    return good && r->fatal.status == TESELA_OK && put_all(r);
}

/* What was deleted, or is to be looked at again since a delete failed. */
static void close_deleted(rekey *r) {
    for (size_t i = 0; i < r->n; i++) {
        rekey_change *c = &r->changes[i];
        c->state = r->again && c->state == REKEY_DONE                ? REKEY_OPEN
                   : !r->again && c->state == REKEY_OPEN && !c->body ? REKEY_DONE
                                                                     : c->state;
    }
}

static bool settle(rekey *r) {
    for (unsigned tries = 0; count_open(r); tries++) {
        r->fatal = (tesela_error){0};
        r->again = false;
        bool good = settle_once(r);
        if (!good && (!endpoint_passing(r->fatal.status) || tries == REKEY_TRIES)) {
            return false;
        }
        r->again = r->again || !good;
        close_deleted(r);
        if (count_open(r)) {
            rekey_sleep_ms(REKEY_TRY_MS);
        }
        if (tries >= REKEY_TRIES) {
            r->fatal.status = TESELA_UNAVAILABLE;
            snprintf(r->fatal.message, sizeof r->fatal.message, "the server does not answer");
            return false;
        }
    }
    r->fatal = (tesela_error){0};
    return true;
}

/* ---- what is refused ---- */

static void copy_key(tesela_key *to, const tesela_key *from) {
    *to = *from;
    for (size_t i = 0; i < from->count; i++) {
        to->values[i].text = from->values[i].text ? strdup(from->values[i].text) : NULL;
    }
}

static const char *reason_of(const rekey_change *c) {
    if (c->state == REKEY_TAKEN) {
        return "another item has the same id and new key, or the same unique key";
    }
    return c->status == 400                           ? "the new key is too long, or the item is not valid there"
           : c->status == 403 && c->substatus == 1014 ? "the logical partition of the new key is full"
                                                      : "the new container refused it";
}

static void note_refusal(rekey *r, const rekey_change *c) {
    r->refused = mem_resize(r->refused, (r->refused_n + 1) * sizeof *r->refused);
    rekey_refusal *f = &r->refused[r->refused_n++];
    *f = (rekey_refusal){
        .id = strdup(c->id), .why = strdup(reason_of(c)), .status = c->state == REKEY_TAKEN ? 409 : c->status, .substatus = c->substatus};
    copy_key(&f->key, &c->from_key);
}

static void free_refused(rekey_refusal *list, size_t n) {
    for (size_t i = 0; i < n; i++) {
        free(list[i].id);
        free(list[i].why);
        for (size_t k = 0; k < list[i].key.count; k++) {
            free((char *)(uintptr_t)list[i].key.values[k].text);
        }
    }
    free(list);
}

void rekey_drop_refused(rekey *r) {
    free_refused(r->refused, r->refused_n);
    r->refused = NULL;
    r->refused_n = 0;
}

static bool note_all(rekey *r) {
    for (size_t i = 0; i < r->n; i++) {
        const rekey_change *c = &r->changes[i];
        if (c->state == REKEY_TAKEN || c->state == REKEY_REFUSED) {
            note_refusal(r, c);
        }
    }
    if (r->refused_n > REKEY_REFUSED_MAX) {
        r->fatal.status = TESELA_CONFLICT;
        snprintf(r->fatal.message, sizeof r->fatal.message, "more than %d items cannot have the new key", REKEY_REFUSED_MAX);
        return false;
    }
    return true;
}

bool rekey_apply(rekey *r, bool fresh) {
    return (!fresh || put_fresh(r) || endpoint_passing(r->fatal.status)) && settle(r) && note_all(r);
}

static bool add_refused(rekey *r, const rekey_refusal *f) {
    tesela_response *response;
    tesela_status status = tesela_item_read(r->from, f->id, &f->key, NULL, &response, &r->fatal);
    if (status == TESELA_OK) {
        size_t n;
        const char *body = tesela_response_body(response, &n);
        rekey_add_item(r, slice_of(body, n));
        tesela_response_free(response);
    }
    r->fatal.status = status == TESELA_NOT_FOUND ? TESELA_OK : status;
    return r->fatal.status == TESELA_OK;
}

/* What is gone from the source needs no place. */
bool rekey_retry_refused(rekey *r) {
    size_t n = r->refused_n;
    rekey_refusal *list = r->refused;
    bool good = true;
    r->refused = NULL;
    r->refused_n = 0;
    for (size_t at = 0; good && at < n;) {
        rekey_page_begin(r);
        for (size_t i = 0; good && i < REKEY_PAGE && at < n; i++) {
            good = add_refused(r, &list[at++]);
        }
        good = good && rekey_apply(r, false);
    }
    free_refused(list, n);
    return good;
}
