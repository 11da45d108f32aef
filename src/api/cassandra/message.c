#include "api/cassandra/message.h"

#include "api/cassandra/notation.h"

static err malformed(op *o, const char *what) {
    return op_fail(o, E_BAD_REQUEST, "Malformed %s message.", what);
}

/* ---- maps and lists of texts ---- */

err cass_startup_read(op *o, slice body, cass_startup *s) {
    uint16_t n;
    slice name, value;
    *s = (cass_startup){0};
    bool good = cass_take_short(&body, &n);
    for (uint16_t i = 0; good && i < n; i++) {
        good = cass_take_string(&body, &name) && cass_take_string(&body, &value);
        if (good && slice_eq_nocase(name, SLICE_LIT("CQL_VERSION"))) {
            s->cql_version = value;
        } else if (good && slice_eq_nocase(name, SLICE_LIT("COMPRESSION"))) {
            s->compression = value;
        } else if (good && slice_eq_nocase(name, SLICE_LIT("THROW_ON_OVERLOAD"))) {
            s->throws_on_overload = slice_eq(value, SLICE_LIT("1"));
        }
    }
    return good ? OK : malformed(o, "STARTUP");
}

err cass_register_read(op *o, slice body, unsigned *kinds_out) {
    static const struct {
        const char *name;
        cass_event_kind kind;
    } kinds[] = {{"TOPOLOGY_CHANGE", CASS_TOPOLOGY_CHANGE}, {"STATUS_CHANGE", CASS_STATUS_CHANGE}, {"SCHEMA_CHANGE", CASS_SCHEMA_CHANGE}};
    uint16_t n;
    slice name;
    bool good = cass_take_short(&body, &n);
    *kinds_out = 0;
    for (uint16_t i = 0; good && i < n; i++) {
        unsigned before = *kinds_out;
        good = cass_take_string(&body, &name);
        for (size_t k = 0; good && k < sizeof kinds / sizeof *kinds; k++) {
            *kinds_out |= slice_eq_nocase(name, slice_str(kinds[k].name)) ? kinds[k].kind : 0;
        }
        if (good && *kinds_out == before && !(before & 7)) {
            return op_fail(o, E_BAD_REQUEST, "Invalid value '%.*s' for Type", slice_shown(name), name.p);
        }
    }
    return good ? OK : malformed(o, "REGISTER");
}

err cass_payload_read(op *o, slice *rest, cass_payload *p) {
    uint16_t n;
    slice name, value;
    bool null = false, good = cass_take_short(rest, &n);
    for (uint16_t i = 0; good && i < n; i++) {
        good = cass_take_string(rest, &name) && cass_take_bytes(rest, &value, &null);
        if (good && slice_eq(name, SLICE_LIT("cosmosdb_provisioned_throughput"))) {
            p->provisioned_throughput = value;
        } else if (good && slice_eq(name, SLICE_LIT("cosmosdb_autoscale_max_throughput"))) {
            p->autoscale_throughput = value;
        }
    }
    return good ? OK : op_fail(o, E_BAD_REQUEST, "Malformed custom payload.");
}

/* ---- parameters ---- */

enum {
    HAS_VALUES = 0x01,
    SKIP_METADATA = 0x02,
    HAS_PAGE_SIZE = 0x04,
    HAS_PAGING_STATE = 0x08,
    HAS_SERIAL = 0x10,
    HAS_TIMESTAMP = 0x20,
    HAS_NAMES = 0x40,
    HAS_KEYSPACE = 0x80,
    HAS_NOW = 0x100,
};

/* Each value takes four bytes at least, so that a lying count is refused before memory is taken for it. */
static err take_values(op *o, slice *rest, bool named, const cql_value **values_out, const slice **names_out, uint32_t *n_out) {
    uint16_t n;
    if (!cass_take_short(rest, &n) || (size_t)n * 4 > rest->n) {
        return malformed(o, "values of a");
    }
    if (!arena_fits(o->arena, n * (sizeof(cql_value) + sizeof(slice)))) {
        return budget_error(o->budget);
    }
    cql_value *values = arena_array(o->arena, cql_value, n ? n : 1);
    slice *names = named ? arena_array(o->arena, slice, n ? n : 1) : NULL;
    for (uint16_t i = 0; i < n; i++) {
        if ((named && !cass_take_string(rest, &names[i])) || !cql_value_decode(rest, &values[i])) {
            return malformed(o, "values of a");
        }
    }
    *values_out = values;
    if (names_out) {
        *names_out = names;
    }
    *n_out = n;
    return OK;
}

static bool take_flags(slice *rest, unsigned version, uint32_t *flags_out) {
    uint64_t flags = 0;
    bool good = slice_take_be(rest, version >= CASS_VERSION_SEGMENTS ? 4 : 1, &flags);
    *flags_out = (uint32_t)flags;
    return good;
}

/* What follows the values and is the same in a batch. */
static bool take_late(slice *rest, unsigned version, uint32_t flags, cass_params *p) {
    p->timed = flags & HAS_TIMESTAMP;
    p->has_now = version >= CASS_VERSION_SEGMENTS && flags & HAS_NOW;
    bool keyspace = version >= CASS_VERSION_SEGMENTS && flags & HAS_KEYSPACE;
    return (!(flags & HAS_SERIAL) || cass_take_short(rest, &p->serial_consistency)) &&
           (!p->timed || cass_take_long(rest, &p->timestamp_us)) && (!keyspace || cass_take_string(rest, &p->keyspace)) &&
           (!p->has_now || cass_take_int(rest, &p->now_s));
}

static err check_consistency(op *o, const cass_params *p) {
    if (p->consistency > CASS_CONSISTENCY_LAST) {
        return op_fail(o, E_BAD_REQUEST, "Unknown code %u for a consistency level", p->consistency);
    }
    return OK;
}

static err take_params(op *o, slice *rest, unsigned version, cass_params *p) {
    uint32_t flags;
    bool null = false;
    p->serial_consistency = CASS_SERIAL;
    if (!cass_take_short(rest, &p->consistency) || !take_flags(rest, version, &flags)) {
        return malformed(o, "QUERY");
    }
    TRY(check_consistency(o, p));
    if (flags & HAS_VALUES) {
        TRY(take_values(o, rest, flags & HAS_NAMES, &p->values, &p->names, &p->values_n));
    }
    p->skip_metadata = flags & SKIP_METADATA;
    bool good = (!(flags & HAS_PAGE_SIZE) || cass_take_int(rest, &p->page_size)) &&
                (!(flags & HAS_PAGING_STATE) || cass_take_bytes(rest, &p->paging_state, &null)) && take_late(rest, version, flags, p);
    return good ? OK : malformed(o, "QUERY");
}

/* ---- messages ---- */

err cass_query_read(op *o, slice body, unsigned version, cass_query *q) {
    *q = (cass_query){0};
    if (!cass_take_long_string(&body, &q->text)) {
        return malformed(o, "QUERY");
    }
    return take_params(o, &body, version, &q->params);
}

err cass_prepare_read(op *o, slice body, unsigned version, cass_query *q) {
    int32_t flags = 0;
    *q = (cass_query){0};
    bool good = cass_take_long_string(&body, &q->text) && (version < CASS_VERSION_SEGMENTS || cass_take_int(&body, &flags)) &&
                (!(flags & 1) || cass_take_string(&body, &q->params.keyspace));
    return good ? OK : malformed(o, "PREPARE");
}

err cass_execute_read(op *o, slice body, unsigned version, cass_query *q) {
    *q = (cass_query){0};
    if (!cass_take_string(&body, &q->id) || (version >= CASS_VERSION_SEGMENTS && !cass_take_string(&body, &q->result_id))) {
        return malformed(o, "EXECUTE");
    }
    return take_params(o, &body, version, &q->params);
}

static err take_part(op *o, slice *rest, cass_batch_part *part) {
    uint8_t kind;
    if (!cass_take_byte(rest, &kind) || kind > 1 ||
        !(kind ? cass_take_string(rest, &part->id) : cass_take_long_string(rest, &part->text))) {
        return malformed(o, "BATCH");
    }
    return take_values(o, rest, false, &part->values, NULL, &part->values_n);
}

err cass_batch_read(op *o, slice body, unsigned version, cass_batch *b) {
    enum { PART_LEAST = 5 };
    uint16_t n;
    uint32_t flags;
    *b = (cass_batch){.params.serial_consistency = CASS_SERIAL};
    if (!cass_take_byte(&body, &b->kind) || b->kind > 2 || !cass_take_short(&body, &n) || (size_t)n * PART_LEAST > body.n) {
        return malformed(o, "BATCH");
    }
    if (!arena_fits(o->arena, n * sizeof(cass_batch_part))) {
        return budget_error(o->budget);
    }
    cass_batch_part *parts = arena_array(o->arena, cass_batch_part, n ? n : 1);
    for (uint16_t i = 0; i < n; i++) {
        TRY(take_part(o, &body, &parts[i]));
    }
    b->parts = parts;
    b->n = n;
    if (!cass_take_short(&body, &b->params.consistency) || !take_flags(&body, version, &flags) ||
        !take_late(&body, version, flags, &b->params)) {
        return malformed(o, "BATCH");
    }
    if (flags & HAS_NAMES) {
        return op_fail(o, E_BAD_REQUEST, "Named values are not supported in a BATCH message.");
    }
    return check_consistency(o, &b->params);
}
