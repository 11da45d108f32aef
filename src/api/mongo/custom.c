/* The service's extension commands: customAction. */
#include "api/mongo/change_stream.h"
#include "api/mongo/collections.h"

/* ---- arguments ---- */

static err read_throughput(mongo_request *q, throughput_setting *setting_out) {
    int64_t manual = 0, maximum = 0;
    slice autoscale;
    *setting_out = (throughput_setting){0};
    TRY(mongo_arg_count(q, "offerThroughput", &manual));
    TRY(mongo_arg_document(q, "autoScaleSettings", &autoscale));
    if (autoscale.n && !mql_as_integer(mongo_member(autoscale, "maxThroughput"), &maximum)) {
        return op_fail_as(&q->op, E_BAD_REQUEST, CODE_BAD_VALUE, "autoScaleSettings has an integer maxThroughput.");
    }
    if ((manual && autoscale.n) || manual < 0 || maximum < 0 || manual > UINT32_MAX || maximum > UINT32_MAX) {
        return op_fail_as(&q->op, E_BAD_REQUEST, CODE_BAD_VALUE, "Give either offerThroughput or autoScaleSettings, as positive numbers.");
    }
    if (manual || autoscale.n) {
        *setting_out =
            (throughput_setting){.kind = manual ? THROUGHPUT_MANUAL : THROUGHPUT_AUTOSCALE, .value = (uint32_t)(manual ? manual : maximum)};
    }
    return OK;
}

static err read_collection(mongo_request *q) {
    TRY(mongo_arg_text(q, "collection", &q->collection));
    return mongo_check_collection(&q->op, q->collection);
}

static err need(mongo_request *q, unsigned verbs) {
    return (q->conn->reach.verbs & verbs) == verbs ? OK : access_refuse(&q->op);
}

/* ---- databases ---- */

static err database_there(mongo_request *q) {
    return mongo_ok(q);
}

static err create_database(mongo_request *q) {
    throughput_setting setting;
    database *d;
    TRY(need(q, ACCESS_CREATE));
    TRY(read_throughput(q, &setting));
    if (account_database(q->front->core.account, q->database, false, &d) == OK) {
        database_give(d);
        return op_fail_as(&q->op, E_CONFLICT, CODE_NAMESPACE_EXISTS, "The database exists already.");
    }
    mongo_with_database(q, setting, database_there);
    return OK;
}

/* ---- offers ---- */

static void add_throughput(mql_builder *b, const offer *o) {
    bool manual = o->throughput.kind == THROUGHPUT_MANUAL;
    mongo_add_int(b, "provisionedThroughput", (int32_t)(manual ? o->throughput.value : o->throughput.value / 10));
    if (!manual) {
        mongo_open_document(b, "autoScaleSettings");
        mongo_add_int(b, "maxThroughput", (int32_t)o->throughput.value);
        mql_close(b);
    }
}

static err offer_changed(mongo_request *q) {
    TRY(q->change->commit.code);
    return mongo_ok(q);
}

static err change_offer(mongo_request *q, uint32_t database_number, uint32_t container_number) {
    offer o;
    throughput_setting setting;
    TRY(need(q, ACCESS_ALTER));
    TRY(read_throughput(q, &setting));
    if (setting.kind == THROUGHPUT_NONE) {
        return mongo_ok(q);
    }
    if (!account_offer_of(q->front->core.account, database_number, container_number, &o)) {
        return op_fail_as(&q->op, E_BAD_REQUEST, CODE_BAD_VALUE, "It has no throughput of its own.");
    }
    if (o.throughput.kind != setting.kind) {
        return op_fail_as(&q->op, E_BAD_REQUEST, CODE_BAD_VALUE, "Manual throughput cannot be changed to autoscale, or back.");
    }
    offer_replacement *replace = mongo_new_change(q, offer_replacement);
    replace->offer = o.rid;
    replace->throughput = setting;
    mongo_await_change(q, offer_changed);
    account_replace_offer(replace);
    return OK;
}

static err find_database(mongo_request *q, uint32_t *number_out) {
    database *d;
    TRY(account_database(q->front->core.account, q->database, false, &d));
    *number_out = d->number;
    database_give(d);
    return OK;
}

static err update_database(mongo_request *q) {
    uint32_t number;
    TRY(find_database(q, &number));
    return change_offer(q, number, 0);
}

static err get_database(mongo_request *q) {
    uint32_t number;
    offer o;
    TRY(need(q, ACCESS_LIST));
    TRY(find_database(q, &number));
    mql_builder *b = mongo_answer(q);
    mongo_add_text(b, "database", q->database);
    if (account_offer_of(q->front->core.account, number, 0, &o)) {
        add_throughput(b, &o);
    }
    mongo_end(q);
    return OK;
}

/* ---- collections ---- */

static err read_shard_key(mongo_request *q, slice *key_out) {
    slice path;
    *key_out = SLICE_EMPTY;
    TRY(mongo_arg_text(q, "shardKey", &path));
    if (path.n) {
        buf out = buf_init(BUF_NO_LIMIT);
        mql_builder b = mql_build(&out);
        mql_add(&b, path, mql_text(q->frame->arena, SLICE_LIT("hashed")));
        *key_out = mongo_built_copy(q->frame->arena, &b, &out);
        return mongo_check_shard_key(&q->op, *key_out);
    }
    return OK;
}

static err collection_there(mongo_request *q) {
    slice indexes;
    TRY(mongo_arg_array(q, "indexes", &indexes));
    return indexes.n > 5 ? mongo_create_indexes(q) : mongo_ok(q);
}

static err create_collection(mongo_request *q) {
    mongo_creation *c = arena_new(q->frame->arena, mongo_creation);
    TRY(need(q, ACCESS_CREATE));
    TRY(read_collection(q));
    *c = (mongo_creation){.collection = q->collection, .then = collection_there};
    TRY(read_throughput(q, &c->throughput));
    TRY(read_shard_key(q, &c->memo.shard_key));
    mongo_create_collection(q, c);
    return OK;
}

static err update_throughput(mongo_request *q) {
    uint32_t number;
    TRY(find_database(q, &number));
    return change_offer(q, number, q->container->space->container);
}

static err update_collection(mongo_request *q) {
    slice indexes;
    throughput_setting setting;
    TRY(read_collection(q));
    TRY(need(q, ACCESS_ALTER));
    TRY(read_throughput(q, &setting));
    TRY(mongo_arg_array(q, "indexes", &indexes));
    TRY(mongo_need_collection(q));
    TRY(mongo_need_writable(q));
    return mql_is_missing(mongo_arg(q, "indexes")) ? update_throughput(q) : mongo_replace_indexes(q, update_throughput);
}

static err change_stream_tokens(mongo_request *q) {
    TRY(need(q, ACCESS_READ));
    TRY(read_collection(q));
    return mongo_stream_tokens(q);
}

static err get_collection(mongo_request *q) {
    uint32_t number;
    offer o;
    bool shows = false;
    TRY(need(q, ACCESS_LIST));
    TRY(read_collection(q));
    TRY(mongo_arg_bool(q, "showIndexes", &shows));
    TRY(mongo_need_collection(q));
    TRY(find_database(q, &number));
    mongo_memo memo = mongo_memo_of(q->container);
    mql_builder *b = mongo_answer(q);
    mongo_add_text(b, "database", q->database);
    mongo_add_text(b, "collection", q->collection);
    if (memo.shard_key.n) {
        mongo_add_document(b, "shardKeyDefinition", memo.shard_key);
    }
    if (account_offer_of(q->front->core.account, number, q->container->space->container, &o)) {
        add_throughput(b, &o);
    }
    if (shows) {
        mongo_add_array(b, "indexes", memo.indexes);
    }
    mongo_end(q);
    return OK;
}

err mongo_custom_action(mongo_request *q) {
    static const struct {
        const char *name;
        mongo_handler handle;
    } actions[] = {
        {"CreateDatabase", create_database},
        {"UpdateDatabase", update_database},
        {"GetDatabase", get_database},
        {"CreateCollection", create_collection},
        {"UpdateCollection", update_collection},
        {"GetCollection", get_collection},
        {"GetChangeStreamTokens", change_stream_tokens},
    };
    slice name;
    TRY(mongo_arg_text(q, "customAction", &name));
    for (size_t i = 0; i < sizeof actions / sizeof *actions; i++) {
        if (slice_eq_nocase(name, slice_str(actions[i].name))) {
            return actions[i].handle(q);
        }
    }
    return op_fail_as(&q->op, E_BAD_REQUEST, CODE_BAD_VALUE, "Unknown customAction '%.*s'.", slice_shown(name), name.p);
}
