/* kinds.c — the parts of a policy that are about shapes, texts and vectors. */
#include <math.h>

#include "index/policy_int.h"

enum { SPATIALS_MAX = 100, TEXTS_MAX = 100, VECTORS_MAX = 100, SHARD_PATHS_MAX = 1 };
enum { DIMENSIONS_MAX = 4096, DIMENSIONS_DEFAULT = 1536, FLAT_DIMENSIONS_MAX = 505, QUANTIZED_BYTES_MAX = 512 };
enum { SEARCH_LIST_MIN = 25, SEARCH_LIST_MAX = 500 };

/* Parses a path that names a property: no wildcards, no array elements. */
static bool read_property(op *o, slice text, doc_path *path_out) {
    index_read_path read;
    size_t unused;
    if (!index__read_path(text, &read, &unused) || read.end != ENDS_PLAIN || read.tuple.n || read.n == 0) {
        return false;
    }
    for (size_t i = 0; i < read.n; i++) {
        if (read.steps[i].element) {
            return false;
        }
    }
    return doc_path_parse(o->arena, arena_copy(o->arena, text), path_out) == OK;
}

static index_path hash_of(const doc_path *path) {
    index_path hash = INDEX_PATH_ROOT;
    for (size_t i = 0; i < path->steps_n; i++) {
        hash = index_path_member(hash, path->steps[i]);
    }
    return hash;
}

/* ---- shapes ---- */

static bool is_shape_type(slice name) {
    static const char *const names[] = {"Point", "LineString", "Polygon", "MultiPolygon"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (slice_eq_nocase(name, slice_str(names[i]))) {
            return true;
        }
    }
    return false;
}

static err check_types(op *o, slice entry) {
    slice list;
    doc_walk w;
    doc_element e;
    size_t n;
    TRY(index__list(o, entry, "types", SPATIALS_MAX, &list, &n));
    for (bool more = doc_walk_init(&w, list); more && doc_walk_next(&w, &e);) {
        slice name = e.type == BSON_TYPE_UTF8 ? doc_element_text(&e) : SLICE_EMPTY;
        if (!is_shape_type(name)) {
            return op_fail(o, E_BAD_REQUEST,
                           "The specified spatial type value '%.*s' is invalid. Please choose among 'Point', 'LineString', 'Polygon' and "
                           "'MultiPolygon'.",
                           slice_shown(name), name.p ? name.p : "");
        }
    }
    return OK;
}

static bool number_of(slice document, const char *key, double *number_out) {
    doc_element e;
    if (!document.n || !doc_find_member(document, slice_str(key), &e) || !doc_is_number(e.type)) {
        return false;
    }
    *number_out = e.type == BSON_TYPE_INT32   ? doc_load_i32(e.value.p)
                  : e.type == BSON_TYPE_INT64 ? (double)doc_load_i64(e.value.p)
                                              : doc_load_double(e.value.p);
    return true;
}

static slice document_of(slice document, const char *key) {
    doc_element e;
    return document.n && doc_find_member(document, slice_str(key), &e) && e.type == BSON_TYPE_DOCUMENT ? e.value : SLICE_EMPTY;
}

/* A bounding box is required for planar geometry and rejected on the earth. */
static err check_box(op *o, slice entry, slice path, bool plane) {
    slice box = document_of(entry, "boundingBox");
    double x0, y0, x1, y1;
    if (!plane) {
        return !index__has(entry, "boundingBox")
                   ? OK
                   : op_fail(
                         o, E_BAD_REQUEST,
                         "The spatial index on path '%.*s' has a boundingBox, which is not allowed since the container's geospatialConfig "
                         "is Geography.",
                         slice_shown(path), path.p);
    }
    if (!number_of(box, "xmin", &x0) || !number_of(box, "ymin", &y0) || !number_of(box, "xmax", &x1) || !number_of(box, "ymax", &y1) ||
        !(x0 < x1) || !(y0 < y1)) {
        return op_fail(o, E_BAD_REQUEST,
                       "The spatial index on path '%.*s' must have a boundingBox with xmin < xmax and ymin < ymax, since the container's "
                       "geospatialConfig is Geometry.",
                       slice_shown(path), path.p);
    }
    return OK;
}

static void add_spatial(op *o, const index_read_path *read, index_spatial *spatial) {
    index_step *steps = arena_array(o->arena, index_step, read->n + 1);
    for (size_t i = 0; i < read->n; i++) {
        steps[i] = (index_step){.name = arena_copy(o->arena, read->steps[i].name), .element = read->steps[i].element};
    }
    *spatial = (index_spatial){steps, read->n, read->end == ENDS_STAR};
}

static err read_spatial(op *o, slice entry, size_t number, bool plane, index_spatial *spatial) {
    index_read_path read;
    size_t position;
    slice path = index__text(entry, "path");
    if (path.n == 0) {
        return op_fail(o, E_BAD_REQUEST, "Missing path in spatial index specification at index (%zu)", number);
    }
    if (!index__read_path(path, &read, &position) || read.tuple.n) {
        return op_fail(
            o, E_BAD_REQUEST,
            "The indexing path '%.*s' could not be accepted, failed near position '%zu'. Please ensure that the path is a valid path.",
            slice_shown(path), path.p, position);
    }
    TRY(check_types(o, entry));
    TRY(check_box(o, entry, path, plane));
    add_spatial(o, &read, spatial);
    return OK;
}

/* Whether an included path of the old form has an index of kind Spatial. */
static bool wants_shapes(slice entry) {
    doc_element list;
    doc_walk w;
    slice each;
    bool has = doc_find_member(entry, SLICE_LIT("indexes"), &list) && list.type == BSON_TYPE_ARRAY && doc_walk_init(&w, list.value);
    while (has && index__next(&w, &each)) {
        if (slice_eq_nocase(index__text(each, "kind"), SLICE_LIT("Spatial"))) {
            return true;
        }
    }
    return false;
}

static size_t count_old_spatials(slice included) {
    doc_walk w;
    slice entry;
    size_t n = 0;
    for (bool more = doc_walk_init(&w, included); more && index__next(&w, &entry);) {
        n += entry.n && wants_shapes(entry);
    }
    return n;
}

static void read_old_spatials(op *o, slice included, index_policy *policy, index_spatial *list) {
    doc_walk w;
    slice entry;
    for (bool more = doc_walk_init(&w, included); more && index__next(&w, &entry);) {
        index_read_path read;
        size_t unused;
        if (entry.n && wants_shapes(entry) && index__read_path(index__text(entry, "path"), &read, &unused) && !read.tuple.n) {
            add_spatial(o, &read, &list[policy->spatials_n++]);
        }
    }
}

err index__read_spatials(op *o, slice document, index_policy *policy) {
    slice list, included, entry;
    doc_walk w;
    bool plane = slice_eq_nocase(index__text(document_of(document, "geospatialConfig"), "type"), SLICE_LIT("Geometry"));
    size_t n, old, included_n;
    TRY(index__list(o, document, "spatialIndexes", SPATIALS_MAX, &list, &n));
    TRY(index__list(o, document, "includedPaths", LIMIT_INDEX_PATHS, &included, &included_n));
    old = count_old_spatials(included);
    if (n + old == 0) {
        return OK;
    }
    index_spatial *made = arena_array(o->arena, index_spatial, n + old);
    policy->spatials = made;
    for (bool more = doc_walk_init(&w, list); more && index__next(&w, &entry); policy->spatials_n++) {
        TRY(read_spatial(o, entry, policy->spatials_n, plane, &made[policy->spatials_n]));
    }
    read_old_spatials(o, included, policy, made);
    return OK;
}

/* ---- texts ---- */

static err check_language(op *o, slice name, search_language *language_out) {
    if (name.n == 0 || search_language_of(name, language_out)) {
        return OK;
    }
    return op_fail(
        o, E_BAD_REQUEST,
        "The Full Text Policy contains an unsupported language %.*s. Supported languages are: en-US, de-DE, es-ES, fr-FR, it-IT, "
        "pt-PT, pt-BR.",
        slice_shown(name), name.p);
}

/* Reads the full-text policy: the list of all texts that may have an index. */
static err read_text_policy(op *o, slice policy, index_text **texts_out, size_t *n_out) {
    slice list, entry;
    doc_walk w;
    search_language language = SEARCH_ENGLISH;
    size_t n = 0;
    TRY(check_language(o, index__text(policy, "defaultLanguage"), &language));
    TRY(index__list(o, policy, "fullTextPaths", TEXTS_MAX, &list, n_out));
    index_text *texts = *texts_out = *n_out ? arena_array(o->arena, index_text, *n_out) : NULL;
    for (bool more = *n_out && doc_walk_init(&w, list); more && index__next(&w, &entry); n++) {
        slice path = index__text(entry, "path");
        index_text *text = &texts[n];
        text->language = language;
        if (!read_property(o, path, &text->path)) {
            return op_fail(o, E_BAD_REQUEST, "The Full Text Policy contains an invalid Path: %.*s", slice_shown(path),
                           path.p ? path.p : "");
        }
        TRY(check_language(o, index__text(entry, "language"), &text->language));
        text->hash = hash_of(&text->path);
        for (size_t i = 0; i < n; i++) {
            if (texts[i].hash == text->hash) {
                return op_fail(o, E_BAD_REQUEST, "Duplicate Path :%.*s found in Full Text Policy.", slice_shown(path), path.p);
            }
        }
    }
    return OK;
}

static err read_text_index(op *o, slice entry, size_t number, const index_text *texts, size_t n, index_text *text_out) {
    slice path = index__text(entry, "path");
    doc_path parsed;
    if (path.n == 0) {
        return op_fail(o, E_BAD_REQUEST, "Missing path in full-text index specification at index (%zu)", number);
    }
    if (!read_property(o, path, &parsed)) {
        return op_fail(o, E_BAD_REQUEST, "Full-text index specification at index (%zu) contains invalid path", number);
    }
    for (size_t i = 0; i < n; i++) {
        if (texts[i].hash == hash_of(&parsed)) {
            *text_out = texts[i];
            return OK;
        }
    }
    return op_fail(o, E_BAD_REQUEST, "The path of the Full Text Index %.*s does not match the path specified in the Full Text Policy",
                   slice_shown(path), path.p);
}

err index__read_texts(op *o, slice document, index_policy *policy) {
    slice list, entry;
    doc_walk w;
    index_text *texts;
    size_t n, made_n, number = 0;
    TRY(read_text_policy(o, document_of(document, "fullTextPolicy"), &texts, &n));
    TRY(index__list(o, document, "fullTextIndexes", TEXTS_MAX, &list, &made_n));
    index_text *made = made_n ? arena_array(o->arena, index_text, made_n) : NULL;
    policy->texts = made;
    for (bool more = made_n && doc_walk_init(&w, list); more && index__next(&w, &entry); number++) {
        index_text *text = &made[policy->texts_n];
        TRY(read_text_index(o, entry, number, texts, n, text));
        text->id = index_path_mixed(text->hash, INDEX_OF_WORDS + (uint64_t)text->language);
        bool again = false;
        for (size_t i = 0; i < policy->texts_n; i++) {
            again = again || made[i].hash == text->hash;
        }
        policy->texts_n += !again;
    }
    return OK;
}

/* ---- vectors ---- */

static err bad_input(op *o) {
    return op_fail(o, E_BAD_REQUEST, "One of the specified inputs is invalid");
}

/* Reads an integer, if the member is present. */
static err whole_of(op *o, slice document, const char *key, int64_t *number_out, bool *given_out) {
    double number;
    *given_out = index__has(document, key);
    if (!*given_out) {
        return OK;
    }
    if (!number_of(document, key, &number) || number != floor(number) || fabs(number) > 1e15) {
        return bad_input(o);
    }
    *number_out = (int64_t)number;
    return OK;
}

static bool is_one_of(slice name, const char *const *names, size_t n) {
    for (size_t i = 0; i < n; i++) {
        if (slice_eq_nocase(name, slice_str(names[i]))) {
            return true;
        }
    }
    return false;
}

static err read_dimensions(op *o, slice entry, index_embedding *e) {
    int64_t dimensions = DIMENSIONS_DEFAULT;
    bool given;
    TRY(whole_of(o, entry, "dimensions", &dimensions, &given));
    if (dimensions > DIMENSIONS_MAX) {
        return op_fail(o, E_BAD_REQUEST,
                       "The Vector Embedding Policy has Dimensions:%lld which is more than the maximum supported value of %d.",
                       (long long)dimensions, DIMENSIONS_MAX);
    }
    if (dimensions < 1) {
        return op_fail(o, E_BAD_REQUEST, "The Vector Embedding Policy has Dimensions:%lld, it should be a positive integer.",
                       (long long)dimensions);
    }
    e->dimensions = (uint32_t)dimensions;
    return OK;
}

static err read_embedding(op *o, slice entry, index_embedding *e) {
    static const char *const types[] = {"float32", "float16", "int8", "uint8"};
    slice path = index__text(entry, "path"), type = index__text(entry, "dataType"), distance = index__text(entry, "distanceFunction");
    if (!read_property(o, path, &e->path)) {
        return op_fail(o, E_BAD_REQUEST,
                       "The Vector Embedding Policy has an invalid Path:%.*s. Specify the correct path for vector properties of your "
                       "documents.",
                       slice_shown(path), path.p ? path.p : "");
    }
    if (index__has(entry, "dataType") && !is_one_of(type, types, sizeof types / sizeof *types)) {
        return op_fail(o, E_BAD_REQUEST,
                       "The Vector Embedding Policy has an invalid DataType:%.*s. Supported DataTypes are: float32, float16, int8, uint8.",
                       slice_shown(type), type.p ? type.p : "");
    }
    if (index__has(entry, "distanceFunction") && !search_distance_named(distance, &e->distance)) {
        return op_fail(o, E_BAD_REQUEST,
                       "The Vector Embedding Policy has an invalid DistanceFunction:%.*s. Supported DistanceFunctions are: cosine, "
                       "dotproduct, euclidean.",
                       slice_shown(distance), distance.p ? distance.p : "");
    }
    e->type = arena_copy(o->arena, type.n ? type : SLICE_LIT("float32"));
    e->hash = hash_of(&e->path);
    return read_dimensions(o, entry, e);
}

static err read_embeddings(op *o, slice document, index_policy *policy) {
    slice list, entry;
    doc_walk w;
    size_t n;
    TRY(index__list(o, document_of(document, "vectorEmbeddingPolicy"), "vectorEmbeddings", VECTORS_MAX, &list, &n));
    index_embedding *made = n ? arena_array(o->arena, index_embedding, n) : NULL;
    policy->embeddings = made;
    for (bool more = n && doc_walk_init(&w, list); more && index__next(&w, &entry); policy->embeddings_n++) {
        index_embedding *e = &made[policy->embeddings_n];
        TRY(read_embedding(o, entry, e));
        for (size_t i = 0; i < policy->embeddings_n; i++) {
            if (made[i].hash == e->hash) {
                return op_fail(o, E_BAD_REQUEST, "Duplicate Path :%.*s found in Vector Embedding Policy.", slice_shown(e->path.text),
                               e->path.text.p);
            }
        }
    }
    return OK;
}

const index_embedding *index_policy_embedding(const index_policy *policy, index_path hash) {
    for (size_t i = 0; i < policy->embeddings_n; i++) {
        if (policy->embeddings[i].hash == hash) {
            return &policy->embeddings[i];
        }
    }
    return NULL;
}

const index_vector *index_policy_vector(const index_policy *policy, index_path hash) {
    for (size_t i = 0; i < policy->vectors_n && !policy->off; i++) {
        if (policy->vectors[i].hash == hash) {
            return &policy->vectors[i];
        }
    }
    return NULL;
}

static err read_vector_kind(op *o, slice entry, index_vector *v) {
    static const char *const names[] = {[VECTOR_FLAT] = "flat", [VECTOR_QUANTIZED_FLAT] = "quantizedFlat", [VECTOR_DISK_ANN] = "diskANN"};
    slice type = index__text(entry, "type");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (slice_eq_nocase(type, slice_str(names[i]))) {
            v->kind = (index_vector_kind)i;
            return OK;
        }
    }
    return op_fail(o, E_BAD_REQUEST,
                   "The Vector Indexing Policy's Index Type::%.*s is invalid. Supported Index Types are: flat, quantizedFlat, diskANN.",
                   slice_shown(type), type.p ? type.p : "");
}

static err check_range(op *o, slice entry, const char *key, const char *shown, int64_t least, int64_t most, uint32_t *value_out) {
    int64_t value = 0;
    bool given;
    TRY(whole_of(o, entry, key, &value, &given));
    if (given && (value < least || value > most)) {
        return op_fail(o, E_BAD_REQUEST,
                       "The Vector Indexing Policy parameter %s value :: %lld is out of range. The allowed range is between %lld and %lld.",
                       shown, (long long)value, (long long)least, (long long)most);
    }
    *value_out = (uint32_t)value;
    return OK;
}

static err check_shards(op *o, slice entry) {
    doc_element list, e;
    doc_walk w;
    size_t n = 0;
    doc_path unused;
    if (!index__has(entry, "vectorIndexShardKey")) {
        return OK;
    }
    if (!doc_find_member(entry, SLICE_LIT("vectorIndexShardKey"), &list) || list.type != BSON_TYPE_ARRAY) {
        return bad_input(o);
    }
    for (bool more = doc_walk_init(&w, list.value); more && doc_walk_next(&w, &e); n++) {
        slice path = e.type == BSON_TYPE_UTF8 ? doc_element_text(&e) : SLICE_EMPTY;
        if (!read_property(o, path, &unused)) {
            return op_fail(o, E_BAD_REQUEST, "The Vector Indexing Policy has an invalid Shard Path: %.*s.", slice_shown(path),
                           path.p ? path.p : "");
        }
    }
    return n <= SHARD_PATHS_MAX
               ? OK
               : op_fail(o, E_BAD_REQUEST, "The number of shard paths defined in the Vector Indexing Policy: %zu exceeds the maximum: %d.",
                         n, SHARD_PATHS_MAX);
}

static err check_build(op *o, slice entry, index_vector *v, uint32_t dimensions) {
    static const char *const quantizers[] = {"product", "spherical"};
    slice quantizer = index__text(entry, "quantizerType");
    if (v->kind == VECTOR_FLAT && dimensions > FLAT_DIMENSIONS_MAX) {
        return op_fail(o, E_BAD_REQUEST,
                       "The Vector Indexing Policy's Index Type::flat does not support Dimensions:%u, which is more than the maximum "
                       "supported value of %d.",
                       dimensions, FLAT_DIMENSIONS_MAX);
    }
    if (index__has(entry, "quantizerType") && !is_one_of(quantizer, quantizers, 2)) {
        return op_fail(o, E_BAD_REQUEST, "The Vector Indexing Policy's Quantizer Type::%.*s is invalid.", slice_shown(quantizer),
                       quantizer.p ? quantizer.p : "");
    }
    int64_t bytes_max = dimensions < QUANTIZED_BYTES_MAX ? dimensions : QUANTIZED_BYTES_MAX;
    TRY(check_range(o, entry, "quantizationByteSize", "QuantizationByteSize", 1, bytes_max, &v->quantization_bytes));
    TRY(check_range(o, entry, "indexingSearchListSize", "IndexingSearchListSize", SEARCH_LIST_MIN, SEARCH_LIST_MAX, &v->search_list));
    return check_shards(o, entry);
}

static err read_vector(op *o, slice entry, const index_policy *policy, index_vector *v) {
    slice path = index__text(entry, "path");
    if (!read_property(o, path, &v->path)) {
        return op_fail(o, E_BAD_REQUEST, "The Vector Indexing Policy has an invalid Path:%.*s.", slice_shown(path), path.p ? path.p : "");
    }
    v->hash = hash_of(&v->path);
    for (size_t i = 0; i < policy->vectors_n; i++) {
        if (policy->vectors[i].hash == v->hash) {
            return op_fail(o, E_BAD_REQUEST, "Duplicate Path :%.*s found in Vector Indexing Policy.", slice_shown(path), path.p);
        }
    }
    const index_embedding *e = index_policy_embedding(policy, v->hash);
    if (!e) {
        return op_fail(o, E_BAD_REQUEST, "The Vector Indexing Policy's path::%.*s not matching in Embedding's path.", slice_shown(path),
                       path.p);
    }
    TRY(read_vector_kind(o, entry, v));
    return check_build(o, entry, v, e->dimensions);
}

err index__read_vectors(op *o, slice document, index_policy *policy) {
    slice list, entry;
    doc_walk w;
    size_t n;
    TRY(read_embeddings(o, document, policy));
    TRY(index__list(o, document, "vectorIndexes", VECTORS_MAX, &list, &n));
    index_vector *made = n ? arena_array(o->arena, index_vector, n) : NULL;
    policy->vectors = made;
    for (bool more = n && doc_walk_init(&w, list); more && index__next(&w, &entry); policy->vectors_n++) {
        TRY(read_vector(o, entry, policy, &made[policy->vectors_n]));
    }
    return OK;
}

/* ---- checking a replace ---- */

static bool keeps_embedding(const index_policy *after, const index_embedding *e) {
    const index_embedding *now = index_policy_embedding(after, e->hash);
    return now && now->dimensions == e->dimensions && now->distance == e->distance && slice_eq_nocase(now->type, e->type);
}

static bool keeps_vector(const index_policy *after, const index_vector *v) {
    for (size_t i = 0; i < after->vectors_n; i++) {
        const index_vector *now = &after->vectors[i];
        if (now->hash == v->hash) {
            return now->kind == v->kind && now->quantization_bytes == v->quantization_bytes && now->search_list == v->search_list;
        }
    }
    return false;
}

err index_policy_check_replace(op *o, const index_policy *before, const index_policy *after) {
    for (size_t i = 0; i < before->embeddings_n; i++) {
        if (!keeps_embedding(after, &before->embeddings[i])) {
            return op_fail(o, E_BAD_REQUEST, "Paths in existing embedding policy cannot be modified in Collection Replace");
        }
    }
    for (size_t i = 0; i < before->vectors_n; i++) {
        if (!keeps_vector(after, &before->vectors[i])) {
            return op_fail(o, E_BAD_REQUEST, "Paths in existing vector indexing policy cannot be modified in Collection Replace");
        }
    }
    return OK;
}
