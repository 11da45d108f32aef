/* The state of resolvers as JSON: a version, a kind, and what that kind needs; in a file or an item. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/memory.h"
#include "client/json.h"
#include "client/resolver_int.h"
#include "doc/json.h"

enum { STATE_BYTES_MAX = 2 << 20, NESTING_MAX = 8 };

/* ---- text ---- */

tesela_status tesela_resolver_save(tesela_resolver *r, char **state_out, tesela_error *error) {
    buf out = buf_init(STATE_BYTES_MAX);
    *state_out = NULL;
    buf_add_lit(&out, "{\"version\":1,");
    if (r->kind && r->kind->save) {
        r->kind->save(r->context, &out);
    }
    buf_add_byte(&out, '}');
    if (!r->kind || !r->kind->save || !buf_ok(&out)) {
        buf_free(&out);
        return client__fail(error, TESELA_BAD_ARGUMENT, "The resolver, or one that it is made of, has no state that the library can save.");
    }
    *state_out = mem_text(out.p, out.n);
    buf_free(&out);
    return TESELA_OK;
}

static tesela_status load_kind(slice kind, slice state, const tesela_load_options *options, tesela_resolver **out, tesela_error *error) {
    if (slice_eq(kind, SLICE_LIT("hash"))) {
        return client__hash_load(state, options, out, error);
    } else if (slice_eq(kind, SLICE_LIT("range"))) {
        return client__range_load(state, out, error);
    } else if (slice_eq(kind, SLICE_LIT("lookup"))) {
        return client__lookup_load(state, out, error);
    } else if (slice_eq(kind, SLICE_LIT("managed"))) {
        return client__managed_load(state, options, out, error);
    } else if (slice_eq(kind, SLICE_LIT("spillover"))) {
        return client__spillover_load(state, options, out, error);
    } else if (slice_eq(kind, SLICE_LIT("chained"))) {
        return client__chained_load(state, options, out, error);
    }
    return client__fail(error, TESELA_BAD_ARGUMENT, "The state is of an unknown kind of resolver.");
}

tesela_status client__resolver_load(slice state, const tesela_load_options *options, tesela_resolver **out, tesela_error *error) {
    *out = NULL;
    if (json_number(json_member(state, "version"), 0) != 1) {
        return client__fail(error, TESELA_BAD_ARGUMENT, "The state is not of version 1, the only one that this library knows.");
    }
    char *kind = client__text_member(state, "kind");
    tesela_status status = load_kind(slice_str(kind ? kind : ""), state, options, out, error);
    free(kind);
    return status;
}

/* A chain's parts may be chains: the text's nesting bounds theirs. */
static bool is_shallow(slice text) {
    size_t depth = 0, most = 0;
    for (size_t i = 0; i < text.n; i++) {
        depth += text.p[i] == '{';
        depth -= text.p[i] == '}' && depth > 0;
        most = depth > most ? depth : most;
    }
    return most <= NESTING_MAX * 4;
}

tesela_status tesela_resolver_load(const char *state, const tesela_load_options *options, tesela_resolver **resolver_out,
                                   tesela_error *error) {
    buf bson = buf_init(STATE_BYTES_MAX * 2);
    json_root root;
    slice text = slice_str(state ? state : "");
    *resolver_out = NULL;
    bool good = text.n <= STATE_BYTES_MAX && is_shallow(text) && json_to_bson(text, NULL, &bson, &root, NULL) == OK && root == JSON_OBJECT;
    buf_free(&bson);
    return good ? client__resolver_load(text, options, resolver_out, error)
                : client__fail(error, TESELA_BAD_ARGUMENT, "The state is not a JSON object, or too large.");
}

/* ---- a file ---- */

static tesela_status file_error(tesela_error *error, const char *what, const char *path) {
    return client__fail(error, TESELA_UNAVAILABLE, "%s cannot be %s: %s.", path, what, strerror(errno));
}

static bool write_whole(int file, slice text) {
    while (text.n) {
        ssize_t n = write(file, text.p, text.n);
        if (n < 0 && errno != EINTR) {
            return false;
        }
        text = slice_skip(text, n > 0 ? (size_t)n : 0);
    }
    return fsync(file) == 0;
}

static tesela_status write_file(const char *path, slice text, tesela_error *error) {
    buf beside = buf_init(8192);
    buf_addf(&beside, "%s.XXXXXX", path);
    buf_add_byte(&beside, 0);
    int file = mkostemp(beside.p, O_CLOEXEC);
    tesela_status status = TESELA_OK;
    if (file < 0 || !write_whole(file, text)) {
        status = file_error(error, "written", path);
    } else if (rename(beside.p, path) != 0) {
        status = file_error(error, "replaced", path);
    }
    if (file >= 0) {
        close(file);
        if (status != TESELA_OK) {
            unlink(beside.p);
        }
    }
    buf_free(&beside);
    return status;
}

tesela_status tesela_resolver_save_file(tesela_resolver *r, const char *path, tesela_error *error) {
    char *state;
    tesela_status status = tesela_resolver_save(r, &state, error);
    if (status == TESELA_OK) {
        status = write_file(path, slice_str(state), error);
    }
    free(state);
    return status;
}

tesela_status tesela_resolver_load_file(const char *path, const tesela_load_options *options, tesela_resolver **resolver_out,
                                        tesela_error *error) {
    buf text = buf_init(STATE_BYTES_MAX + 2);
    char block[4096];
    size_t n;
    *resolver_out = NULL;
    FILE *file = fopen(path, "re");
    if (!file) {
        return file_error(error, "opened", path);
    }
    while ((n = fread(block, 1, sizeof block, file)) > 0) {
        buf_add(&text, block, n);
    }
    bool failed = ferror(file) != 0;
    fclose(file);
    buf_add_byte(&text, 0);
    tesela_status status = failed           ? file_error(error, "read", path)
                           : !buf_ok(&text) ? client__fail(error, TESELA_BAD_ARGUMENT, "%s is too large for a resolver's state.", path)
                                            : tesela_resolver_load(text.p, options, resolver_out, error);
    buf_free(&text);
    return status;
}

/* ---- an item ---- */

tesela_status tesela_resolver_save_item(tesela_resolver *r, tesela_container *k, const char *id, tesela_error *error) {
    char *state;
    tesela_key key = tesela_key_string(id);
    tesela_status status = tesela_resolver_save(r, &state, error);
    if (status == TESELA_OK) {
        buf item = buf_init(STATE_BYTES_MAX * 2);
        buf_add_lit(&item, "{\"id\":");
        json_add_string(&item, slice_str(id));
        buf_addf(&item, ",\"state\":");
        buf_add_slice(&item, slice_str(state));
        buf_add_byte(&item, '}');
        buf_add_byte(&item, 0);
        status = tesela_item_upsert(k, item.p, &key, NULL, NULL, error);
        buf_free(&item);
    }
    free(state);
    return status;
}

tesela_status tesela_resolver_load_item(tesela_container *k, const char *id, const tesela_load_options *options,
                                        tesela_resolver **resolver_out, tesela_error *error) {
    tesela_response *r;
    tesela_key key = tesela_key_string(id);
    *resolver_out = NULL;
    tesela_status status = tesela_item_read(k, id, &key, NULL, &r, error);
    if (status == TESELA_OK) {
        slice state = json_member(client__response_body(r), "state");
        char *text = mem_text(state.n ? state.p : "", state.n);
        status = tesela_resolver_load(text, options, resolver_out, error);
        free(text);
        tesela_response_free(r);
    }
    return status;
}
