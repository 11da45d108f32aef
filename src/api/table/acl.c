/* Stored access policies of a table, which shared access signatures may name. They are kept in the container's memo:
 * {"large": bool, "acl": {"SignedIdentifiers": {"SignedIdentifier": {…}, …}}}. */
#include "api/table/table_int.h"
#include "api/table/xml.h"
#include "doc/path.h"
#include "throughput/charge.h"

enum { POLICIES_MAX = 5, ID_UNITS_MAX = 64 };

static slice policies_of(const container *c) {
    return xml_child(xml_child(c->memo, "acl"), "SignedIdentifiers");
}

bool table_find_policy(void *context, op *o, slice table, slice id, access_sas_policy *policy_out) {
    table_front *front = context;
    container *c;
    doc_walk w;
    doc_element e;
    bool found = false;
    if (account_container_any_case(front->core.account, TABLE_DATABASE, table, &c) != OK) {
        return false;
    }
    slice list = policies_of(c);
    for (doc_walk_init(&w, list); !found && doc_walk_next(&w, &e);) {
        slice policy = e.type == BSON_TYPE_DOCUMENT ? xml_child(e.value, "AccessPolicy") : SLICE_EMPTY;
        found = e.type == BSON_TYPE_DOCUMENT && slice_eq(xml_text(e.value, "Id"), id);
        *policy_out = (access_sas_policy){.start = arena_copy(o->arena, xml_text(policy, "Start")),
                                          .expiry = arena_copy(o->arena, xml_text(policy, "Expiry")),
                                          .permissions = arena_copy(o->arena, xml_text(policy, "Permission"))};
    }
    container_give(c);
    return found;
}

/* ---- get ---- */

static err allow(table_request *q, unsigned verb) {
    bool by_key = q->reach.proof == ACCESS_BY_KEY;
    return by_key && (q->reach.verbs & verb) ? OK : op_fail(&q->op, E_FORBIDDEN, "%s", table_refusal_of_core(E_FORBIDDEN).sentence);
}

void table_acl_read(table_request *q) {
    err code = allow(q, ACCESS_LIST);
    code = code != OK ? code : table_find(q, q->route.table);
    if (code != OK) {
        table_fail(q, code);
        return;
    }
    op_charge(&q->op, CHARGE_METADATA_READ);
    table_start(q, 200);
    buf *out = table_xml(q);
    slice stored = xml_child(q->container->memo, "acl");
    if (stored.n) {
        xml_write(out, stored);
    } else {
        buf_add_lit(out, "<?xml version=\"1.0\" encoding=\"utf-8\"?><SignedIdentifiers></SignedIdentifiers>");
    }
    table_end(q);
}

/* ---- set ---- */

static bool is_time(slice text) {
    int64_t ticks;
    return !text.n || edm_time_parse(text, &ticks);
}

static table_error check_policy(slice identifier) {
    slice id = xml_text(identifier, "Id"), policy = xml_child(identifier, "AccessPolicy"), letters = xml_text(policy, "Permission");
    for (size_t i = 0; i < letters.n; i++) {
        if (!strchr("raud", letters.p[i])) {
            return TABLE_INVALID_XML;
        }
    }
    bool good = id.n && entity_units(id) <= ID_UNITS_MAX && is_time(xml_text(policy, "Start")) && is_time(xml_text(policy, "Expiry"));
    return good ? TABLE_FINE : TABLE_INVALID_XML;
}

static table_error read_policies(table_request *q, slice *document_out) {
    doc_walk w;
    doc_element e;
    size_t n = 0;
    *document_out = SLICE_EMPTY;
    if (!slice_trim(q->http->body).n) { /* no body: no policies */
        return TABLE_FINE;
    }
    TABLE_TRY(xml_read(&q->op, q->http->body, document_out));
    if (!doc_find_member(*document_out, SLICE_LIT("SignedIdentifiers"), &e)) {
        return TABLE_INVALID_XML;
    }
    slice list = xml_child(*document_out, "SignedIdentifiers");
    for (doc_walk_init(&w, list); list.n && doc_walk_next(&w, &e); n++) {
        bool one = e.type == BSON_TYPE_DOCUMENT && slice_eq(e.key, SLICE_LIT("SignedIdentifier"));
        TABLE_TRY(one ? check_policy(e.value) : TABLE_INVALID_XML);
    }
    return n > POLICIES_MAX ? TABLE_POLICIES : TABLE_FINE;
}

static slice memo_with(table_request *q, slice policies) {
    bson_t memo = BSON_INITIALIZER, acl;
    bson_append_bool(&memo, "large", -1, q->large);
    if (policies.n && bson_init_static(&acl, (const uint8_t *)policies.p, policies.n)) {
        bson_append_document(&memo, "acl", -1, &acl);
    }
    slice bytes = arena_copy(q->http->arena, slice_of(bson_get_data(&memo), memo.len));
    bson_destroy(&memo);
    return bytes;
}

static void replaced(table_request *q) {
    container_replacement *replace = (container_replacement *)q->change;
    err code = q->change->commit.code;
    if (replace->container_out) {
        container_give(replace->container_out);
    }
    op_charge(&q->op, CHARGE_METADATA_WRITE);
    code == OK ? table_empty(q, 204) : table_fail(q, code);
}

void table_acl_replace(table_request *q) {
    slice policies;
    err code = allow(q, ACCESS_ALTER);
    code = code != OK ? code : table_find(q, q->route.table);
    code = code != OK ? code : table_refuse(q, read_policies(q, &policies));
    if (code != OK) {
        table_fail(q, code);
        return;
    }
    container_replacement *replace = table_new_change(q, container_replacement);
    slice *memo = arena_new(q->http->arena, slice);
    *memo = memo_with(q, policies);
    replace->database.text = TABLE_DATABASE;
    replace->container.text = q->container->id;
    replace->memo = memo;
    replace->expected = q->container->version;
    replace->api = TABLE_API;
    table_await_change(q, replaced);
    account_replace_container(replace);
}
