/* Commands by which shells, drivers and monitoring tools ask about the server: buildInfo, hostInfo, serverStatus, …. */
#include <unistd.h>

#include "api/mongo/cursors.h"
#include "api/mongo/mongo_int.h"

err mongo_build_info(mongo_request *q) {
    static const int version[] = {7, 0, 0, 0};
    mql_builder *b = mongo_answer(q);
    mongo_add_text(b, "version", SLICE_LIT(MONGO_VERSION));
    mongo_add_text(b, "gitVersion", SLICE_LIT("tesela-" TESELA_VERSION));
    mongo_open_array(b, "modules");
    mql_close(b);
    mongo_open_array(b, "versionArray");
    for (unsigned i = 0; i < sizeof version / sizeof *version; i++) {
        mql_add_next(b, mql_int32(q->frame->arena, version[i]));
    }
    mql_close(b);
    mongo_open_array(b, "storageEngines");
    mql_close(b);
    mongo_add_int(b, "bits", 64);
    mongo_add_bool(b, "debug", false);
    mongo_add_int(b, "maxBsonObjectSize", 16 * 1024 * 1024);
    mongo_end(q);
    return OK;
}

/* ---- the connection ---- */

err mongo_whats_my_uri(mongo_request *q) {
    char room[HTTP_PEER_BYTES];
    mongo_add_text(mongo_answer(q), "you", slice_str(frames_peer(q->frame->conn, room)));
    mongo_end(q);
    return OK;
}

err mongo_connection_status(mongo_request *q) {
    mql_builder *b = mongo_answer(q);
    bool known = q->conn->reach.proof != ACCESS_NOBODY;
    mongo_open_document(b, "authInfo");
    mongo_open_array(b, "authenticatedUsers");
    if (known) {
        mql_open_next(b, BSON_TYPE_DOCUMENT);
        mongo_add_text(b, "user", slice_str(q->conn->user));
        mongo_add_text(b, "db", SLICE_LIT("admin"));
        mql_close(b);
    }
    mql_close(b);
    mongo_open_array(b, "authenticatedUserRoles");
    if (known) {
        bool writes = q->conn->reach.verbs & ACCESS_WRITE;
        mql_open_next(b, BSON_TYPE_DOCUMENT);
        mongo_add_text(b, "role", slice_str(writes ? "root" : "readAnyDatabase"));
        mongo_add_text(b, "db", SLICE_LIT("admin"));
        mql_close(b);
    }
    mql_close(b);
    mql_close(b);
    mongo_end(q);
    return OK;
}

err mongo_last_statistics(mongo_request *q) {
    const mongo_conn *c = q->conn;
    if (!c->last_command) {
        return op_fail_as(&q->op, E_BAD_REQUEST, CODE_BAD_VALUE, "This connection has had no request yet.");
    }
    mql_builder *b = mongo_answer(q);
    mongo_add_text(b, "_t", SLICE_LIT("GetRequestStatisticsResponse"));
    mongo_add_text(b, "CommandName", slice_str(c->last_command->name));
    mongo_add_double(b, "RequestCharge", c->last_charge_ru);
    mongo_add_double(b, "RequestDurationInMilliSeconds", c->last_ms);
    mongo_end(q);
    return OK;
}

/* ---- the server ---- */

err mongo_host_info(mongo_request *q) {
    char host[256] = "";
    gethostname(host, sizeof host - 1);
    mql_builder *b = mongo_answer(q);
    mongo_open_document(b, "system");
    mongo_add_date(b, "currentTime", q->now_ms);
    mongo_add_text(b, "hostname", slice_str(host));
    mongo_add_int(b, "cpuAddrSize", 64);
    mongo_add_int(b, "numCores", (int32_t)sysconf(_SC_NPROCESSORS_ONLN));
    mongo_add_long(b, "memSizeMB", (int64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE) >> 20);
    mql_close(b);
    mongo_open_document(b, "os");
    mongo_add_text(b, "type", SLICE_LIT("Linux"));
    mql_close(b);
    mongo_open_document(b, "extra");
    mql_close(b);
    mongo_end(q);
    return OK;
}

err mongo_server_status(mongo_request *q) {
    char host[256] = "";
    gethostname(host, sizeof host - 1);
    net_stats stats = net_server_stats(q->front->server);
    int64_t up_ms = q->now_ms - q->front->started_ms;
    mql_builder *b = mongo_answer(q);
    mongo_add_text(b, "host", slice_str(host));
    mongo_add_text(b, "version", SLICE_LIT(MONGO_VERSION));
    mongo_add_text(b, "process", SLICE_LIT("tesela"));
    mongo_add_long(b, "pid", (int64_t)getpid());
    mongo_add_double(b, "uptime", (double)(up_ms / 1000));
    mongo_add_long(b, "uptimeMillis", up_ms);
    mongo_add_date(b, "localTime", q->now_ms);
    mongo_open_document(b, "connections");
    mongo_add_int(b, "current", (int32_t)stats.connections);
    mongo_add_long(b, "totalCreated", (int64_t)atomic_load(&q->front->connections));
    mongo_add_int(b, "active", (int32_t)stats.requests);
    mql_close(b);
    mongo_open_document(b, "metrics");
    mongo_open_document(b, "cursor");
    mongo_open_document(b, "open");
    mongo_add_long(b, "total", (int64_t)mongo_cursors_open(q->front->cursors));
    mql_close(b);
    mql_close(b);
    mql_close(b);
    mongo_open_document(b, "storageEngine");
    mongo_add_text(b, "name", SLICE_LIT("rocksdb"));
    mongo_add_bool(b, "persistent", true);
    mql_close(b);
    mongo_end(q);
    return OK;
}

/* The log is the process's standard error; here are only the names of what MongoDB keeps in memory. */
err mongo_get_log(mongo_request *q) {
    static const char *const names[] = {"global", "startupWarnings"};
    slice which;
    TRY(mongo_arg_text(q, "getLog", &which));
    bool known = slice_eq(which, slice_str(names[0])) || slice_eq(which, slice_str(names[1]));
    if (slice_eq(which, SLICE_LIT("*"))) {
        mql_builder *b = mongo_answer(q);
        mongo_open_array(b, "names");
        for (size_t i = 0; i < 2; i++) {
            mql_add_next(b, mql_text(q->frame->arena, slice_str(names[i])));
        }
        mql_close(b);
        mongo_end(q);
        return OK;
    }
    if (!known) {
        return op_fail_as(&q->op, E_BAD_REQUEST, 96, "No RamLog found with name: %.*s", slice_shown(which), which.n ? which.p : "");
    }
    mql_builder *b = mongo_answer(q);
    mongo_add_int(b, "totalLinesWritten", 0);
    mongo_open_array(b, "log");
    mql_close(b);
    mongo_end(q);
    return OK;
}

/* MongoDB has it, or had; neither the service nor we do. */
err mongo_not_supported(mongo_request *q) {
    return op_fail_as(&q->op, E_BAD_REQUEST, CODE_COMMAND_NOT_SUPPORTED, "Command %s not supported.", q->command->name);
}

/* Writes are answered with their errors; old clients ask for them. */
err mongo_get_last_error(mongo_request *q) {
    mql_builder *b = mongo_answer(q);
    mongo_add_int(b, "n", 0);
    mql_add(b, SLICE_LIT("err"), mql_null());
    mongo_end(q);
    return OK;
}

err mongo_kill_op(mongo_request *q) {
    int64_t id = 0;
    if (mql_is_missing(mongo_arg(q, "op"))) {
        return op_fail_as(&q->op, E_BAD_REQUEST, 4, "Did not provide \"op\" field");
    }
    TRY(mongo_arg_count(q, "op", &id));
    mongo_operations_kill(q->front, id > 0 && id <= INT32_MAX ? (uint32_t)id : 0);
    mongo_add_text(mongo_answer(q), "info", SLICE_LIT("attempting to kill op"));
    mongo_end(q);
    return OK;
}

err mongo_command_line(mongo_request *q) {
    mql_builder *b = mongo_answer(q);
    mongo_open_array(b, "argv");
    mql_close(b);
    mongo_open_document(b, "parsed");
    mql_close(b);
    mongo_end(q);
    return OK;
}

/* Of MongoDB's hundreds of parameters, the one that tools read. */
err mongo_get_parameter(mongo_request *q) {
    mql_value all = mongo_arg(q, "getParameter"), wanted = mongo_arg(q, "featureCompatibilityVersion");
    bool every = mql_is_text(all) && slice_eq(mql_as_text(all), SLICE_LIT("*"));
    if (!every && mql_is_missing(wanted)) {
        return op_fail_as(&q->op, E_BAD_REQUEST, CODE_INVALID_OPTIONS, "no option found to get");
    }
    mql_builder *b = mongo_answer(q);
    mongo_open_document(b, "featureCompatibilityVersion");
    mongo_add_text(b, "version", SLICE_LIT("7.0"));
    mql_close(b);
    mongo_end(q);
    return OK;
}

err mongo_list_commands(mongo_request *q) {
    const mongo_command *list;
    size_t n = mongo_commands(&list);
    mql_builder *b = mongo_answer(q);
    mongo_open_document(b, "commands");
    for (size_t i = 0; i < n; i++) {
        mongo_open_document(b, list[i].name);
        mongo_add_bool(b, "requiresAuth", !(list[i].flags & MONGO_OPEN));
        mongo_add_bool(b, "secondaryOk", false);
        mongo_add_bool(b, "adminOnly", false);
        mql_close(b);
    }
    mql_close(b);
    mongo_end(q);
    return OK;
}
