/* A $filter of the Table API: refused with a sentence; or it can be evaluated, an entity that passes lies within the bounds that the filter
 * requires of the keys, and the conditions for the index are a sound document. */
#include <assert.h>

#include "api/table/filter.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

enum { TEXT_MAX = 4096 };

/* The keys are taken from here; other properties have a value that their name's first letter tells. */
typedef struct sample {
    slice partition, row;
} sample;

static bool get(const void *context, slice name, edm_value *v) {
    const sample *s = context;
    *v = (edm_value){.type = EDM_STRING};
    if (slice_eq(name, SLICE_LIT("PartitionKey"))) {
        v->text = s->partition;
    } else if (slice_eq(name, SLICE_LIT("RowKey"))) {
        v->text = s->row;
    } else {
        *v = (edm_value){.type = (edm_type)(name.p[0] % EDM_TYPES), .number = 1, .real = 1, .text = SLICE_LIT("0123456789abcdef")};
    }
    return name.p[0] != 'z';
}

static bool is_within(slice value, const filter_bound *from, const filter_bound *to) {
    int low = from->given ? slice_cmp(value, from->value) : 1, high = to->given ? slice_cmp(value, to->value) : -1;
    return (from->exclusive ? low > 0 : low >= 0) && (to->exclusive ? high < 0 : high <= 0);
}

static void check(op *o, const filter *f, slice text) {
    static const char *const keys[] = {"", "a", "b", "p", "r1", "~"};
    filter_keys bounds = filter_keys_of(f);
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        sample s = {slice_str(keys[i]), slice_str(keys[(i * 2 + 1) % 6])};
        if (filter_passes(f, get, &s)) {
            assert(is_within(s.partition, &bounds.partition_from, &bounds.partition_to));
            assert(is_within(s.row, &bounds.row_from, &bounds.row_to));
            assert(!bounds.one_partition || slice_eq(s.partition, bounds.partition_from.value));
        }
    }
    slice empty = SLICE_LIT("\5\0\0\0");
    filter_entity nothing = {slice_of(empty.p, 5), 1, 1};
    assert(!f || !filter_excludes(f, &nothing) || !filter_accepts(f, NULL, &nothing));
    assert(!f || !filter_narrows(f) || filter_conditions(o, f, text, true, NULL).n);
    for (int one = 0; one < 2; one++) {
        slice conditions = filter_conditions(o, f, text, one, NULL);
        assert(!f || doc_is_well_formed(conditions, 128));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    arena memory = arena_init();
    op o;
    const filter *f;
    slice text = slice_of(data, n);
    op_init(&o, &memory, 0);
    if (n <= TEXT_MAX && bson_utf8_validate((const char *)data, n, false)) {
        if (filter_parse(&o, text, &f) == TABLE_FINE) {
            check(&o, f, text);
        } else {
            assert(o.detail_n);
        }
    }
    arena_free(&memory);
    return 0;
}
