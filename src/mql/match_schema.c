/* match_schema.c — $jsonSchema: parsing schemas; schema_test.c tests values. */
#include "mql/schema_int.h"

typedef err (*parse_keyword)(mql__filter_parser *p, const doc_element *e, mql__schema *s);

static err not_of_type(mql__filter_parser *p, const doc_element *e, const char *expected) {
    return mql_fail(mql__op(p), 14, "$jsonSchema keyword '%.*s' must be %s", slice_shown(e->key), e->key.p, expected);
}

/* ---- lists ---- */

/* An array with one row per member of a container; NULL: no room. */
#define NEW_ROWS(p, type, e) mql__new_array((p), type, mql_length(mql_of(e)) + 1)

static err parse_subschema(mql__filter_parser *p, const doc_element *e, slice keyword, const mql__schema **schema_out) {
    mql__schema *s = NULL;
    if (e->type != BSON_TYPE_DOCUMENT) {
        return mql_fail(mql__op(p), 14, "$jsonSchema keyword '%.*s' must be an object, but found an element of type %s",
                        slice_shown(keyword), keyword.p, mql_type_name(e->type));
    }
    TRY(mql__parse_schema(p, e->value, &s));
    *schema_out = s;
    return OK;
}

static err parse_subschemas(mql__filter_parser *p, const doc_element *e, mql__schemas *list) {
    doc_walk w;
    doc_element each;
    if (e->type != BSON_TYPE_ARRAY) {
        return not_of_type(p, e, "an array");
    }
    list->all = NEW_ROWS(p, const mql__schema *, e);
    if (!list->all) {
        return mql__room(p);
    }
    for (doc_walk_init(&w, e->value); doc_walk_next(&w, &each); list->n++) {
        TRY(parse_subschema(p, &each, e->key, &list->all[list->n]));
    }
    return list->n ? OK : mql_fail(mql__op(p), 2, "$jsonSchema keyword '%.*s' must be a non-empty array", slice_shown(e->key), e->key.p);
}

static err parse_names(mql__filter_parser *p, const doc_element *e, mql__names *names) {
    doc_walk w;
    doc_element each;
    if (e->type != BSON_TYPE_ARRAY) {
        return mql_fail(mql__op(p), 14, "$jsonSchema keyword 'required' must be an array, but found an element of type %s",
                        mql_type_name(e->type));
    }
    names->all = NEW_ROWS(p, slice, e);
    if (!names->all) {
        return mql__room(p);
    }
    for (doc_walk_init(&w, e->value); doc_walk_next(&w, &each);) {
        if (each.type != BSON_TYPE_UTF8) {
            return mql_fail(mql__op(p), 14,
                            "$jsonSchema keyword 'required' must be an array of strings, but found an element of type: '%s'",
                            mql_type_name(each.type));
        }
        names->all[names->n++] = doc_element_text(&each);
    }
    return names->n ? OK : mql_fail(mql__op(p), 9, "$jsonSchema keyword 'required' cannot be an empty array");
}

/* ---- any value ---- */

static err parse_bson_type(mql__filter_parser *p, const doc_element *e, mql__schema *s) {
    if (s->typed) {
        return mql_fail(mql__op(p), 9, "Cannot specify both $jsonSchema keywords 'type' and 'bsonType'");
    }
    s->typed = true;
    return mql__parse_types(p, e, &s->types);
}

/* JSON's names of types; "integer" is not among them, as MongoDB has it. */
static err add_json_type(mql__filter_parser *p, const doc_element *e, mql__types *types) {
    static const char *const names[][2] = {{"object", "object"}, {"array", "array"},   {"number", "number"},
                                           {"boolean", "bool"},  {"string", "string"}, {"null", "null"}};
    if (e->type != BSON_TYPE_UTF8) {
        return mql_fail(mql__op(p), 14, "$jsonSchema keyword 'type' must be either a string or an array of strings");
    }
    slice name = doc_element_text(e);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (slice_eq(name, slice_str(names[i][0]))) {
            mql__types_add(types, slice_str(names[i][1]));
            return OK;
        }
    }
    return slice_eq(name, SLICE_LIT("integer")) ? mql_fail(mql__op(p), 9, "$jsonSchema type 'integer' is not currently supported.")
                                                : mql_fail(mql__op(p), 2, "Unknown type name alias: %.*s", slice_shown(name), name.p);
}

static err parse_json_type(mql__filter_parser *p, const doc_element *e, mql__schema *s) {
    doc_walk w;
    doc_element each;
    if (s->typed) {
        return mql_fail(mql__op(p), 9, "Cannot specify both $jsonSchema keywords 'type' and 'bsonType'");
    }
    s->typed = true;
    if (e->type != BSON_TYPE_ARRAY) {
        return add_json_type(p, e, &s->types);
    }
    for (doc_walk_init(&w, e->value); doc_walk_next(&w, &each);) {
        TRY(add_json_type(p, &each, &s->types));
    }
    return OK;
}

static err parse_enum(mql__filter_parser *p, const doc_element *e, mql__schema *s) {
    if (e->type != BSON_TYPE_ARRAY) {
        return not_of_type(p, e, "an array");
    }
    s->enumeration = mql_of(e);
    return mql_length(s->enumeration) ? OK : mql_fail(mql__op(p), 9, "$jsonSchema keyword 'enum' cannot be an empty array");
}

static err parse_all_of(mql__filter_parser *p, const doc_element *e, mql__schema *s) {
    return parse_subschemas(p, e, &s->all_of);
}

static err parse_any_of(mql__filter_parser *p, const doc_element *e, mql__schema *s) {
    return parse_subschemas(p, e, &s->any_of);
}

static err parse_one_of(mql__filter_parser *p, const doc_element *e, mql__schema *s) {
    return parse_subschemas(p, e, &s->one_of);
}

static err parse_not(mql__filter_parser *p, const doc_element *e, mql__schema *s) {
    return parse_subschema(p, e, e->key, &s->negated);
}

static err parse_text(mql__filter_parser *p, const doc_element *e, mql__schema *s) {
    (void)s;
    return e->type == BSON_TYPE_UTF8 ? OK : not_of_type(p, e, "of type string");
}

/* ---- numbers and strings ---- */

static err parse_number(mql__filter_parser *p, const doc_element *e, mql_value *number) {
    *number = mql_of(e);
    return mql_is_number(*number) ? OK : not_of_type(p, e, "a number");
}

static err parse_minimum(mql__filter_parser *p, const doc_element *e, mql__schema *s) {
    return parse_number(p, e, &s->minimum);
}

static err parse_maximum(mql__filter_parser *p, const doc_element *e, mql__schema *s) {
    return parse_number(p, e, &s->maximum);
}

static err parse_bool(mql__filter_parser *p, const doc_element *e, bool *truth) {
    if (e->type != BSON_TYPE_BOOL) {
        return not_of_type(p, e, "a boolean");
    }
    *truth = mql_as_bool(mql_of(e));
    return OK;
}

static err parse_exclusive_minimum(mql__filter_parser *p, const doc_element *e, mql__schema *s) {
    s->needs_minimum = true;
    return parse_bool(p, e, &s->above_minimum);
}

static err parse_exclusive_maximum(mql__filter_parser *p, const doc_element *e, mql__schema *s) {
    s->needs_maximum = true;
    return parse_bool(p, e, &s->below_maximum);
}

static err parse_multiple_of(mql__filter_parser *p, const doc_element *e, mql__schema *s) {
    TRY(parse_number(p, e, &s->multiple_of));
    return mql_as_double(s->multiple_of) > 0 ? OK : mql_fail(mql__op(p), 9, "$jsonSchema keyword 'multipleOf' must have a positive value");
}

static err parse_count(mql__filter_parser *p, const doc_element *e, int64_t *count) {
    TRY(mql__parse_integer(p, e, count));
    slice shown = mql__shown(p, e);
    return *count >= 0 ? OK : mql_fail(mql__op(p), 9, "Expected a non-negative number in: %.*s", (int)shown.n, shown.p);
}

static err parse_min_length(mql__filter_parser *p, const doc_element *e, mql__schema *s) {
    return parse_count(p, e, &s->min_length);
}

static err parse_max_length(mql__filter_parser *p, const doc_element *e, mql__schema *s) {
    return parse_count(p, e, &s->max_length);
}

static err parse_pattern_text(mql__filter_parser *p, slice pattern, const text_regex **regex_out) {
    slice reason;
    return text_regex_compile(mql__arena(p), pattern, SLICE_EMPTY, regex_out, &reason)
               ? OK
               : mql_fail(mql__op(p), 51091, "Regular expression is invalid: %.*s", (int)reason.n, reason.p);
}

static err parse_pattern(mql__filter_parser *p, const doc_element *e, mql__schema *s) {
    return e->type == BSON_TYPE_UTF8 ? parse_pattern_text(p, doc_element_text(e), &s->pattern) : not_of_type(p, e, "a string");
}

/* ---- arrays ---- */

static err parse_min_items(mql__filter_parser *p, const doc_element *e, mql__schema *s) {
    return parse_count(p, e, &s->min_items);
}

static err parse_max_items(mql__filter_parser *p, const doc_element *e, mql__schema *s) {
    return parse_count(p, e, &s->max_items);
}

static err parse_unique_items(mql__filter_parser *p, const doc_element *e, mql__schema *s) {
    return parse_bool(p, e, &s->unique_items);
}

static err parse_items(mql__filter_parser *p, const doc_element *e, mql__schema *s) {
    if (e->type == BSON_TYPE_ARRAY && mql_length(mql_of(e)) == 0) {
        return OK;
    }
    if (e->type == BSON_TYPE_ARRAY) {
        return parse_subschemas(p, e, &s->items_at);
    }
    return e->type == BSON_TYPE_DOCUMENT
               ? parse_subschema(p, e, e->key, &s->items)
               : mql_fail(mql__op(p), 14, "$jsonSchema keyword 'items' must be an array or an object, not %s", mql_type_name(e->type));
}

/* Parses additionalProperties and additionalItems: true, false or a schema. */
static err parse_additional(mql__filter_parser *p, const doc_element *e, bool *forbidden, const mql__schema **schema) {
    if (e->type == BSON_TYPE_BOOL) {
        *forbidden = !mql_as_bool(mql_of(e));
        return OK;
    }
    return e->type == BSON_TYPE_DOCUMENT ? parse_subschema(p, e, e->key, schema) : not_of_type(p, e, "an object or a boolean");
}

static err parse_additional_items(mql__filter_parser *p, const doc_element *e, mql__schema *s) {
    return parse_additional(p, e, &s->no_additional_items, &s->additional_items);
}

/* ---- objects ---- */

static err parse_required(mql__filter_parser *p, const doc_element *e, mql__schema *s) {
    return parse_names(p, e, &s->required);
}

static err parse_min_properties(mql__filter_parser *p, const doc_element *e, mql__schema *s) {
    return parse_count(p, e, &s->min_properties);
}

static err parse_max_properties(mql__filter_parser *p, const doc_element *e, mql__schema *s) {
    return parse_count(p, e, &s->max_properties);
}

static err parse_additional_properties(mql__filter_parser *p, const doc_element *e, mql__schema *s) {
    return parse_additional(p, e, &s->no_additional_properties, &s->additional_properties);
}

static err open_rows(mql__filter_parser *p, const doc_element *e, mql__properties *list) {
    if (e->type != BSON_TYPE_DOCUMENT) {
        return not_of_type(p, e, "an object");
    }
    list->all = NEW_ROWS(p, mql__property, e);
    return list->all ? OK : mql__room(p);
}

static err parse_properties(mql__filter_parser *p, const doc_element *e, mql__schema *s) {
    doc_walk w;
    doc_element each;
    TRY(open_rows(p, e, &s->properties));
    for (doc_walk_init(&w, e->value); doc_walk_next(&w, &each);) {
        mql__property *row = &s->properties.all[s->properties.n++];
        row->name = each.key;
        if (each.type != BSON_TYPE_DOCUMENT) {
            return mql_fail(mql__op(p), 14, "Nested schema for $jsonSchema property '%.*s' must be an object", slice_shown(each.key),
                            each.key.p);
        }
        TRY(parse_subschema(p, &each, each.key, &row->schema));
    }
    mql__sort_properties(&s->properties);
    return OK;
}

static err parse_pattern_properties(mql__filter_parser *p, const doc_element *e, mql__schema *s) {
    doc_walk w;
    doc_element each;
    TRY(open_rows(p, e, &s->pattern_properties));
    for (doc_walk_init(&w, e->value); doc_walk_next(&w, &each);) {
        mql__property *row = &s->pattern_properties.all[s->pattern_properties.n++];
        TRY(parse_pattern_text(p, each.key, &row->pattern));
        TRY(parse_subschema(p, &each, e->key, &row->schema));
    }
    return OK;
}

static err parse_dependencies(mql__filter_parser *p, const doc_element *e, mql__schema *s) {
    doc_walk w;
    doc_element each;
    TRY(open_rows(p, e, &s->dependencies));
    for (doc_walk_init(&w, e->value); doc_walk_next(&w, &each);) {
        mql__property *row = &s->dependencies.all[s->dependencies.n++];
        row->name = each.key;
        TRY(each.type == BSON_TYPE_ARRAY ? parse_names(p, &each, &row->names) : parse_subschema(p, &each, e->key, &row->schema));
    }
    return OK;
}

/* ---- schemas ---- */

static err parse_unsupported(mql__filter_parser *p, const doc_element *e, mql__schema *s) {
    (void)s;
    return mql_fail(mql__op(p), 9, "$jsonSchema keyword '%.*s' is not currently supported", slice_shown(e->key), e->key.p);
}

static const struct {
    slice name;
    parse_keyword parse;
} keywords[] = {
    {SLICE_LIT("bsonType"), parse_bson_type},
    {SLICE_LIT("type"), parse_json_type},
    {SLICE_LIT("enum"), parse_enum},
    {SLICE_LIT("allOf"), parse_all_of},
    {SLICE_LIT("anyOf"), parse_any_of},
    {SLICE_LIT("oneOf"), parse_one_of},
    {SLICE_LIT("not"), parse_not},
    {SLICE_LIT("title"), parse_text},
    {SLICE_LIT("description"), parse_text},
    {SLICE_LIT("minimum"), parse_minimum},
    {SLICE_LIT("maximum"), parse_maximum},
    {SLICE_LIT("exclusiveMinimum"), parse_exclusive_minimum},
    {SLICE_LIT("exclusiveMaximum"), parse_exclusive_maximum},
    {SLICE_LIT("multipleOf"), parse_multiple_of},
    {SLICE_LIT("minLength"), parse_min_length},
    {SLICE_LIT("maxLength"), parse_max_length},
    {SLICE_LIT("pattern"), parse_pattern},
    {SLICE_LIT("minItems"), parse_min_items},
    {SLICE_LIT("maxItems"), parse_max_items},
    {SLICE_LIT("uniqueItems"), parse_unique_items},
    {SLICE_LIT("items"), parse_items},
    {SLICE_LIT("additionalItems"), parse_additional_items},
    {SLICE_LIT("required"), parse_required},
    {SLICE_LIT("minProperties"), parse_min_properties},
    {SLICE_LIT("maxProperties"), parse_max_properties},
    {SLICE_LIT("properties"), parse_properties},
    {SLICE_LIT("patternProperties"), parse_pattern_properties},
    {SLICE_LIT("additionalProperties"), parse_additional_properties},
    {SLICE_LIT("dependencies"), parse_dependencies},
    {SLICE_LIT("$ref"), parse_unsupported},
    {SLICE_LIT("$schema"), parse_unsupported},
    {SLICE_LIT("default"), parse_unsupported},
    {SLICE_LIT("definitions"), parse_unsupported},
    {SLICE_LIT("format"), parse_unsupported},
    {SLICE_LIT("id"), parse_unsupported},
    {SLICE_LIT("encrypt"), parse_unsupported},
    {SLICE_LIT("encryptMetadata"), parse_unsupported},
};

static err parse_one_keyword(mql__filter_parser *p, const doc_element *e, mql__schema *s) {
    for (size_t i = 0; i < sizeof keywords / sizeof *keywords; i++) {
        if (slice_eq(e->key, keywords[i].name)) {
            return keywords[i].parse(p, e, s);
        }
    }
    return mql_fail(mql__op(p), 9, "Unknown $jsonSchema keyword: %.*s", slice_shown(e->key), e->key.p);
}

static err check_bounds(mql__filter_parser *p, const mql__schema *s) {
    if (s->needs_minimum && mql_is_missing(s->minimum)) {
        return mql_fail(mql__op(p), 9, "$jsonSchema keyword 'minimum' must be a present if exclusiveMinimum is present");
    }
    if (s->needs_maximum && mql_is_missing(s->maximum)) {
        return mql_fail(mql__op(p), 9, "$jsonSchema keyword 'maximum' must be a present if exclusiveMaximum is present");
    }
    return OK;
}

err mql__parse_schema(mql__filter_parser *p, slice document, mql__schema **schema_out) {
    mql__schema *s = *schema_out = arena_new(mql__arena(p), mql__schema);
    doc_walk w;
    doc_element e;
    s->max_length = s->max_items = s->max_properties = INT64_MAX;
    if (++p->depth > MQL_DEPTH_MAX) {
        return mql_fail(mql__op(p), 15, "exceeded the maximum nesting depth of a filter: %d", MQL_DEPTH_MAX);
    }
    for (doc_walk_init(&w, document); doc_walk_next(&w, &e);) {
        TRY(parse_one_keyword(p, &e, s));
        TRY(mql__room(p));
    }
    p->depth--;
    return check_bounds(p, s);
}

err mql__parse_json_schema(mql__filter_parser *p, const mql__operand *of, mql_node **node_out) {
    mql__schema *s = NULL;
    if (of->e->type != BSON_TYPE_DOCUMENT) {
        return mql_fail(mql__op(p), 14, "$jsonSchema must be an object");
    }
    TRY(mql__parse_schema(p, of->e->value, &s));
    *node_out = mql__node(p, MQL_JSON_SCHEMA, SLICE_EMPTY, mql_of(of->e));
    (*node_out)->detail = s;
    return OK;
}
