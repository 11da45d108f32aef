#include "api/cassandra/plain.h"

#include <endian.h>

/* How a value becomes a cell. */
typedef enum way {
    BY_TYPE, /* by the type's own reader */
    AS_TEXT,
    AS_BYTES,
    AS_BOOL,
    TURNED_32,
    TURNED_64,
} way;

typedef struct stored_column {
    slice member; /* the zero byte behind it is there too */
    const cql_type *type;
    uint64_t head, mask; /* of a short name: its bytes with the zero byte, and which of the eight these are; else no mask */
    uint8_t bson;        /* the type of BSON for which `way` is good */
    uint8_t way;
    uint8_t bytes; /* of values of that type; 0: they differ */
} stored_column;

/* A value as it lies in the item. */
typedef struct stored_value {
    const char *p; /* NULL: the item has none */
    uint32_t n;
    uint8_t bson;
} stored_value;

struct cass_plain {
    uint32_t n;              /* columns of the table */
    stored_column *columns;  /* in the order of the table, in which they are stored */
    stored_value *values;    /* beside them */
    const uint32_t *results; /* of each column of the result that of the table */
    uint32_t results_n;
};

/* ---- the plan ---- */

static void plan_column(stored_column *c) {
    static const struct {
        uint8_t bson, way, bytes;
    } plans[] = {
        [CQL_TEXT] = {BSON_TYPE_UTF8, AS_TEXT, 0},       [CQL_BLOB] = {BSON_TYPE_BINARY, AS_BYTES, 0},
        [CQL_BOOLEAN] = {BSON_TYPE_BOOL, AS_BOOL, 1},    [CQL_INT] = {BSON_TYPE_INT32, TURNED_32, 4},
        [CQL_BIGINT] = {BSON_TYPE_INT64, TURNED_64, 8},  [CQL_COUNTER] = {BSON_TYPE_INT64, TURNED_64, 8},
        [CQL_DOUBLE] = {BSON_TYPE_DOUBLE, TURNED_64, 8}, [CQL_TIMESTAMP] = {BSON_TYPE_DATE_TIME, TURNED_64, 8},
    };
    size_t kind = (size_t)c->type->kind, named = c->member.n + 1;
    if (kind < sizeof plans / sizeof *plans) {
        c->bson = plans[kind].bson;
        c->way = plans[kind].way;
        c->bytes = plans[kind].bytes;
    }
    if (named <= sizeof c->head) {
        memcpy(&c->head, c->member.p, named);
        memset(&c->mask, 0xFF, named);
    }
}

cass_plain *cass_plain_make(op *o, const cass_selection *s) {
    const cass_table *t = s->table;
    if (!t->plain || !s->plain) {
        return NULL;
    }
    cass_plain *p = arena_new(o->arena, cass_plain);
    *p = (cass_plain){.n = t->table.n, .results = s->plain, .results_n = s->n};
    p->columns = arena_array(o->arena, stored_column, p->n);
    p->values = arena_array(o->arena, stored_value, p->n);
    for (uint32_t i = 0; i < p->n; i++) {
        slice member = slice_of(arena_text(o->arena, t->stored[i].member), t->stored[i].member.n);
        p->columns[i] = (stored_column){.member = member, .type = t->table.columns[i].type};
        plan_column(&p->columns[i]);
    }
    return p;
}

/* ---- finding ---- */

static uint32_t load_u32(const char *p) {
    uint32_t n;
    memcpy(&n, p, sizeof n);
    return le32toh(n);
}

/* The bytes of a value; more than `left` if it would end behind them. SIZE_MAX: the type is not one of a plain row. */
static size_t value_bytes(uint8_t bson, const char *p, size_t left) {
    switch (bson) {
    case BSON_TYPE_NULL:
    case BSON_TYPE_UNDEFINED:
        return 0;
    case BSON_TYPE_BOOL:
        return 1;
    case BSON_TYPE_INT32:
        return 4;
    case BSON_TYPE_INT64:
    case BSON_TYPE_DOUBLE:
    case BSON_TYPE_DATE_TIME:
        return 8;
    case BSON_TYPE_DECIMAL128:
        return 16;
    case BSON_TYPE_UTF8:
        return left < 4 || load_u32(p) < 1 ? SIZE_MAX : 4 + (size_t)load_u32(p);
    case BSON_TYPE_BINARY:
        return left < 4 ? SIZE_MAX : 5 + (size_t)load_u32(p);
    case BSON_TYPE_DOCUMENT:
    case BSON_TYPE_ARRAY:
        return left < 4 || load_u32(p) < 5 ? SIZE_MAX : load_u32(p);
    default:
        return SIZE_MAX;
    }
}

/* Whether an element of this key begins at `key`; the document ends at `end`. */
static bool is_column_at(const char *key, const char *end, const stored_column *c) {
    uint64_t bytes;
    size_t left = (size_t)(end - key), n = c->member.n + 1;
    if (!c->mask || left < sizeof bytes) {
        return left >= n && memcmp(key, c->member.p, n) == 0;
    }
    memcpy(&bytes, key, sizeof bytes);
    return ((bytes ^ c->head) & c->mask) == 0;
}

/* Key texts stand among the columns, and are not needed. */
static const char *pass_key_texts(const char *at, const char *end) {
    const char *value = at + 1 + sizeof CASS_KEYS;
    if (value > end || memcmp(at + 1, CASS_KEYS, sizeof CASS_KEYS) != 0) {
        return NULL;
    }
    size_t left = (size_t)(end - value), n = value_bytes((uint8_t)*at, value, left);
    return n > left ? NULL : value + n;
}

/* The metadata comes last: {"t": …} as int64 is the row's timestamp and nothing else. */
static bool is_plain_end(const char *at, const char *end) {
    enum { META_BYTES = 4 + 1 + 2 + 8 + 1 };
    const char *value = at + 1 + sizeof CASS_META;
    return end - at == 1 + sizeof CASS_META + META_BYTES && *at == BSON_TYPE_DOCUMENT && memcmp(at + 1, CASS_META, sizeof CASS_META) == 0 &&
           load_u32(value) == META_BYTES && value[4] == BSON_TYPE_INT64 && value[5] == 't' && value[6] == 0;
}

/* Columns are stored in the order of the table; those that an item lacks are null. */
bool cass_plain_find(cass_plain *p, slice body) {
    const char *at = body.p + 4, *then, *end = body.p + body.n - 1;
    const stored_column *c = p->columns, *last = c + p->n;
    stored_value *v = p->values;
    if (body.n < 5 || load_u32(body.p) != body.n) {
        return false;
    }
    while (c < last && at < end) {
        if (is_column_at(at + 1, end, c)) {
            const char *value = at + 1 + c->member.n + 1;
            size_t left = (size_t)(end - value);
            v->bson = (uint8_t)*at;
            size_t n = v->bson == c->bson && c->bytes ? c->bytes : value_bytes(v->bson, value, left);
            if (n > left) {
                return false;
            }
            v->p = value;
            v->n = (uint32_t)n;
            at = value + n;
            c++, v++;
        } else if ((then = pass_key_texts(at, end))) {
            at = then;
        } else {
            v->p = NULL;
            c++, v++;
        }
    }
    return is_plain_end(at, end) || ((then = pass_key_texts(at, end)) && is_plain_end(then, end));
}

/* ---- putting ---- */

static void put_u32(char *p, uint32_t n) {
    n = htobe32(n);
    memcpy(p, &n, sizeof n);
}

static inline void put_bytes(buf *out, const char *p, size_t n) {
    if (buf_reserve(out, 4 + n)) {
        put_u32(out->p + out->n, (uint32_t)n);
        memcpy(out->p + out->n + 4, p, n);
        out->n += 4 + n;
    }
}

static err put_by_type(op *o, const stored_column *c, const stored_value *v, buf *out) {
    doc_element e = {.key = c->member, .value = slice_of(v->p, v->n), .type = (bson_type_t)v->bson};
    cql_value value = cql_value_null();
    if (!o->arena->blocks) { /* a block stays from value to value */
        arena_alloc(o->arena, 1);
    }
    arena_mark mark = arena_marked(o->arena);
    err code = v->p ? cql_bson_read(o, c->type, &e, &value) : OK;
    code = code == OK ? budget_error(o->budget) : code;
    if (code == OK) {
        cql_value_encode(out, value);
    }
    arena_release(o->arena, mark);
    return code;
}

static void put_32(buf *out, const char *p) {
    uint32_t bytes[2] = {htobe32(sizeof(uint32_t)), htobe32(load_u32(p))};
    buf_add(out, bytes, sizeof bytes);
}

static void put_64(buf *out, const char *p) {
    uint32_t head = htobe32(sizeof(uint64_t));
    uint64_t number;
    memcpy(&number, p, sizeof number);
    number = htobe64(le64toh(number));
    if (buf_reserve(out, sizeof head + sizeof number)) {
        memcpy(out->p + out->n, &head, sizeof head);
        memcpy(out->p + out->n + sizeof head, &number, sizeof number);
        out->n += sizeof head + sizeof number;
    }
}

err cass_plain_put(op *o, const cass_plain *p, buf *out) {
    for (uint32_t i = 0; i < p->results_n; i++) {
        const stored_column *c = &p->columns[p->results[i]];
        const stored_value *v = &p->values[p->results[i]];
        switch (v->p && v->bson == c->bson ? c->way : BY_TYPE) {
        case AS_TEXT:
            put_bytes(out, v->p + 4, v->n - 5);
            break;
        case AS_BYTES:
            put_bytes(out, v->p + 5, v->n - 5);
            break;
        case AS_BOOL:
            put_bytes(out, v->p[0] ? "\1" : "\0", 1);
            break;
        case TURNED_32:
            put_32(out, v->p);
            break;
        case TURNED_64:
            put_64(out, v->p);
            break;
        default:
            TRY(put_by_type(o, c, v, out));
        }
    }
    return OK;
}
