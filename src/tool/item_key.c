#include "tool/item_key.h"

#include "doc/json.h"
#include "tool/endpoint.h"

slice item_text_in(arena *a, slice text) {
    char *p = arena_alloc(a, text.n + 1);
    if (text.n) {
        memcpy(p, text.p, text.n);
    }
    p[text.n] = '\0';
    return slice_of(p, text.n);
}

bool item_key_paths_in(slice definition, arena *a, key_paths *paths) {
    bson_iter_t it, key, each;
    bool good = true;
    paths->n = 0;
    if (doc_find_key(definition, SLICE_LIT("partitionKey"), &it) && bson_iter_recurse(&it, &key) && bson_iter_find(&key, "paths") &&
        bson_iter_recurse(&key, &each)) {
        while (good && bson_iter_next(&each) && paths->n < ITEM_KEY_PATHS && BSON_ITER_HOLDS_UTF8(&each)) {
            good = doc_path_parse(a, item_text_in(a, doc_text(&each)), &paths->list[paths->n++]) == OK;
        }
    }
    return good;
}

bool item_key_paths(const char *command, tesela_container *container, arena *a, key_paths *paths) {
    tesela_response *response;
    tesela_error error;
    if (tesela_container_read(container, &response, &error) != TESELA_OK) {
        endpoint_tell(command, &error);
        return false;
    }
    size_t n;
    const char *body = tesela_response_body(response, &n);
    buf bson = buf_init(BUF_NO_LIMIT);
    json_root root;
    bool good = json_to_bson(slice_of(body, n), NULL, &bson, &root, NULL) == OK && item_key_paths_in(buf_view(&bson), a, paths);
    buf_free(&bson);
    tesela_response_free(response);
    return good;
}

tesela_key item_key_of(arena *a, const key_paths *paths, slice item) {
    tesela_key key = {.count = paths->n};
    for (size_t i = 0; i < paths->n; i++) {
        tesela_key_value *v = &key.values[i];
        bson_iter_t it;
        if (!doc_find(item, &paths->list[i], &it)) {
            continue; /* TESELA_KEY_NONE */
        }
        if (BSON_ITER_HOLDS_UTF8(&it)) {
            *v = (tesela_key_value){.kind = TESELA_KEY_STRING, .text = item_text_in(a, doc_text(&it)).p};
        } else if (BSON_ITER_HOLDS_NUMBER(&it)) {
            *v = (tesela_key_value){.kind = TESELA_KEY_NUMBER, .number = bson_iter_as_double(&it)};
        } else if (BSON_ITER_HOLDS_BOOL(&it)) {
            *v = (tesela_key_value){.kind = TESELA_KEY_BOOL, .truth = bson_iter_bool(&it)};
        } else if (BSON_ITER_HOLDS_NULL(&it)) {
            v->kind = TESELA_KEY_NULL;
        }
    }
    return key;
}

bool item_key_same(const tesela_key *a, const tesela_key *b) {
    for (size_t i = 0; i < a->count && i < b->count; i++) {
        const tesela_key_value *x = &a->values[i], *y = &b->values[i];
        bool same = x->kind == y->kind && (x->kind != TESELA_KEY_STRING || strcmp(x->text, y->text) == 0) &&
                    (x->kind != TESELA_KEY_NUMBER || x->number == y->number) && (x->kind != TESELA_KEY_BOOL || x->truth == y->truth);
        if (!same) {
            return false;
        }
    }
    return a->count == b->count;
}
