#include "api/sql/triggers.h"

#include "account/scripts.h"
#include "account/users.h"
#include "api/sql/itembody.h"

struct sql_triggers {
    call_transact call; /* must be first */
    sql_request *q;
    account_script *pre, *post;
    slice self, alt;

    /* the outcome, in the request's arena */
    item_op done;
    slice body; /* JSON that a post-trigger returned instead of the item */
    buf log;
};

/* ---- finding the triggers ---- */

static const char *operation_of(item_kind kind) {
    static const char *const words[] = {
        [ITEM_CREATE] = "Create", [ITEM_UPSERT] = "Upsert", [ITEM_REPLACE] = "Replace", [ITEM_DELETE] = "Delete"};
    return words[kind];
}

static bool is_for(const account_script *s, item_kind kind) {
    switch (s->operation) {
    case TRIGGER_ALL:
        return true;
    case TRIGGER_CREATE:
        return kind == ITEM_CREATE;
    case TRIGGER_UPSERT:
        return kind == ITEM_UPSERT;
    case TRIGGER_DELETE:
        return kind == ITEM_DELETE;
    default:
        return kind == ITEM_REPLACE;
    }
}

/* The next name in a comma-separated list; empty at its end. */
static slice next_name(slice *list) {
    slice name = SLICE_EMPTY;
    while (list->n && !name.n) {
        const char *comma = memchr(list->p, ',', list->n);
        slice part = slice_of(list->p, comma ? (size_t)(comma - list->p) : list->n);
        *list = slice_skip(*list, part.n + (comma ? 1 : 0));
        name = slice_trim(part);
    }
    return name;
}

static bool is_listed(slice list, slice name) {
    slice each;
    do {
        each = next_name(&list);
    } while (each.n && !slice_eq(each, name));
    return each.n;
}

/* The one name that is included and not excluded; empty if there is none. */
static err one_name(sql_request *q, sql_field include, sql_field exclude, slice *name_out) {
    slice list = sql_get(q, include);
    *name_out = SLICE_EMPTY;
    for (slice name = next_name(&list); name.n; name = next_name(&list)) {
        if (is_listed(sql_get(q, exclude), name)) {
            continue;
        }
        if (name_out->n) {
            return op_fail(&q->op, E_BAD_REQUEST, "Currently only one %s is permitted per operation.",
                           include == FIELD_PRE_TRIGGERS ? "PreTrigger" : "PostTrigger");
        }
        *name_out = name;
    }
    return OK;
}

static err check_trigger(op *o, const account_script *s, item_kind kind, bool post) {
    if (s->post != post) {
        return op_fail(o, E_BAD_REQUEST, "Trigger '%.*s' was defined with trigger type '%s', and therefore is invalid for '%s'.",
                       slice_shown(s->id), s->id.p, s->post ? "Post" : "Pre", post ? "Post" : "Pre");
    }
    if (!is_for(s, kind)) {
        return op_fail(o, E_BAD_REQUEST, "Trigger '%.*s' was defined with operation type '%s', and therefore is invalid for '%s'.",
                       slice_shown(s->id), s->id.p, trigger_operation_names[s->operation], operation_of(kind));
    }
    return OK;
}

static err find_one(sql_request *q, item_kind kind, slice name, bool post, account_script **script_out) {
    *script_out = NULL;
    if (!name.n) {
        return OK;
    }
    err code = account_find_script(q->front->account, q->container, ACCOUNT_TRIGGER, name, false, script_out);
    if (code == E_NOT_FOUND) {
        return op_fail(&q->op, E_BAD_REQUEST, "The trigger '%.*s' that the request names is not there.", slice_shown(name), name.p);
    }
    return code == OK ? check_trigger(&q->op, *script_out, kind, post) : code;
}

err sql_triggers_find(sql_request *q, item_kind kind) {
    slice pre, post;
    TRY(one_name(q, FIELD_PRE_TRIGGERS, FIELD_PRE_TRIGGERS_NOT, &pre));
    TRY(one_name(q, FIELD_POST_TRIGGERS, FIELD_POST_TRIGGERS_NOT, &post));
    if (!pre.n && !post.n) {
        return OK;
    }
    if (q->reach.permission && q->reach.permission->grant.kind != RID_CONTAINER) { /* triggers can access the item's whole partition */
        return op_fail(&q->op, E_FORBIDDEN, "A permission for a single item does not run triggers.");
    }
    q->triggers = arena_new(q->http->arena, sql_triggers);
    q->triggers->q = q;
    q->triggers->log = buf_init(LIMIT_RESPONSE_BYTES);
    TRY(find_one(q, kind, pre, false, &q->triggers->pre));
    return find_one(q, kind, post, true, &q->triggers->post);
}

err sql_triggers_none(sql_request *q, const char *what) {
    static const sql_field fields[] = {FIELD_PRE_TRIGGERS, FIELD_POST_TRIGGERS};
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        slice list = sql_get(q, fields[i]), name = next_name(&list);
        if (name.n) {
            return op_fail(&q->op, E_BAD_REQUEST, "%s does not run triggers, and '%.*s' was named.", what, slice_shown(name), name.p);
        }
    }
    return OK;
}

void sql_triggers_give(sql_triggers *triggers) {
    if (triggers) {
        account_script_give(triggers->pre);
        account_script_give(triggers->post);
        buf_free(&triggers->log);
    }
}

/* ---- one attempt, on a script thread ---- */

static err run_one(sql_triggers *w, script_attempt *a, const account_script *s, slice request, slice response, slice *body_out) {
    script_run run = {
        .kind = s->post ? "post" : "pre",
        .id = s->id,
        .source = s->body,
        .logging = sql_flag(w->q, FIELD_SCRIPT_LOGGING),
        .self = w->self,
        .alt = w->alt,
        .request_body = request,
        .operation = operation_of(w->q->one.kind),
        .response_body = response,
        .arena = w->q->http->arena,
    };
    err code = script_attempt_run(a, &run);
    *body_out = run.body;
    buf_add_slice(&w->log, run.log);
    return code;
}

/* Takes over the body that a trigger has set. */
static err take_body(sql_triggers *w, slice text, item_op *item) {
    json_options options = {.drop = item_system_properties, .drop_n = ITEM_SYSTEM_PROPERTIES};
    json_root root = JSON_ARRAY;
    op *o = &w->q->op;
    if (text.n > LIMIT_ITEM_BYTES) {
        return E_TOO_LARGE;
    }
    buf bson = buf_init(BUF_NO_LIMIT);
    err code = json_to_bson(text, &options, &bson, &root, NULL);
    if (code != OK || root != JSON_OBJECT) {
        code = op_fail(o, E_BAD_REQUEST, "The body that the trigger '%.*s' has set is no item: it must be an object.",
                       slice_shown(w->pre->id), w->pre->id.p);
    } else {
        item->body = arena_copy(o->arena, buf_view(&bson));
    }
    buf_free(&bson);
    return code;
}

static slice written_item(sql_triggers *w, const item_op *item) {
    buf text = buf_init(BUF_NO_LIMIT);
    if (item->kind != ITEM_DELETE) {
        script_write_document(&text, w->q->container, &item->after, item->result);
    }
    slice made = arena_copy(w->q->http->arena, buf_view(&text));
    buf_free(&text);
    return made;
}

static err attempt(call_transact *call, script_attempt *a) {
    sql_triggers *w = (sql_triggers *)call;
    sql_request *q = w->q;
    item_op item = q->one;
    slice request = item.kind == ITEM_DELETE ? SLICE_EMPTY : q->http->body, set;
    w->body = SLICE_EMPTY;
    buf_clear(&w->log);
    if (w->pre) {
        TRY(run_one(w, a, w->pre, request, SLICE_EMPTY, &set));
        if (set.n && item.kind != ITEM_DELETE) {
            TRY(take_body(w, set, &item));
            request = set;
        }
    }
    if (item.kind != ITEM_DELETE) {
        TRY(item_check_body(&q->op, q->container, q->container->key.n ? &w->call.key.partition : NULL, &item));
    }
    TRY(script_transaction_write(a->transaction, &item));
    if (w->post) {
        TRY(run_one(w, a, w->post, request, written_item(w, &item), &w->body));
    }
    item.result = arena_copy(q->http->arena, item.result);
    w->done = item;
    return OK;
}

/* ---- on the loop ---- */

static range_usage usage_of_partition(const sql_triggers *w) {
    const container *c = w->q->container;
    range_info info;
    return range_info_at(c, range_position(c, &w->call.key.epk), &info) ? info.usage : (range_usage){0};
}

static void answer(call *c) {
    sql_triggers *w = (sql_triggers *)c;
    sql_request *q = w->q;
    const item_op *item = &w->done;
    sql_call_done(q, c);
    if (c->code != OK) {
        sql_fail(q, c->code);
        return;
    }
    sql_start(q, sql_item_status(item));
    if (item->kind != ITEM_DELETE) {
        sql_add_etag(q, item_version(&item->after), item->after.ts);
    }
    sql_add_range(q, q->mark);
    sql_add_usage(q, usage_of_partition(w));
    if (sql_flag(q, FIELD_SCRIPT_LOGGING)) {
        sql_add_script_log(q, buf_view(&w->log));
    }
    buf *out = sql_start_body(q);
    if (w->body.n) {
        buf_add_slice(out, w->body);
    } else if (item->kind != ITEM_DELETE && !sql_wants_minimal(q)) {
        sql_write_item(out, q->container, item->result, &item->after);
    }
    sql_end(q);
}

void sql_triggers_run(sql_request *q) {
    sql_triggers *w = q->triggers;
    sql_script_links(q->container, q->http->arena, &w->self, &w->alt);
    sql_call_prepare(q, call_transact_init, &w->call, answer);
    w->call.key = q->one.key;
    w->call.tokens = &sql_script_tokens;
    w->call.attempt = attempt;
    call_transact_submit(&w->call);
}
