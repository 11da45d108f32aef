/* The commands, by name. */
#include <assert.h>

#include "api/mongo/mongo_int.h"
#include "base/hash.h"

enum {
    OPEN = MONGO_OPEN,
    NAMED = MONGO_NAMED,
    BEYOND = MONGO_BEYOND,
    PLAIN = MONGO_READABLE,
    SILENT = MONGO_SILENT,
    WRITES = MONGO_WRITES,
    WITHIN = MONGO_WITHIN,
    VIEW = MONGO_VIEW,
};

/* Sorted by name. */
static const mongo_command commands[] = {
    {"abortTransaction", ACCESS_READ, 0, mongo_abort_transaction},
    {"aggregate", ACCESS_READ, WITHIN | VIEW, mongo_aggregate},
    {"buildInfo", 0, OPEN | SILENT, mongo_build_info},
    {"buildinfo", 0, OPEN | SILENT, mongo_build_info},
    {"bulkWrite", ACCESS_WRITE, BEYOND | WRITES | WITHIN, mongo_bulk_write},
    {"cloneCollectionAsCapped", 0, BEYOND, mongo_not_supported},
    {"collMod", ACCESS_ALTER, NAMED | BEYOND | VIEW, mongo_coll_mod},
    {"collStats", ACCESS_LIST, NAMED, mongo_coll_stats},
    {"commitTransaction", ACCESS_READ, 0, mongo_commit_transaction},
    {"connPoolStats", 0, BEYOND, mongo_not_supported},
    {"connectionStatus", 0, OPEN | BEYOND | SILENT, mongo_connection_status},
    {"convertToCapped", 0, BEYOND, mongo_not_supported},
    {"copydb", 0, BEYOND, mongo_not_supported},
    {"count", ACCESS_READ, NAMED | WITHIN | VIEW, mongo_count},
    {"create", ACCESS_CREATE, NAMED | VIEW, mongo_create},
    {"createIndexes", ACCESS_ALTER, NAMED, mongo_create_indexes},
    {"currentOp", ACCESS_DESCRIBE, SILENT, mongo_current_op},
    {"customAction", 0, 0, mongo_custom_action},
    {"dataSize", ACCESS_LIST, BEYOND, mongo_data_size},
    {"dbHash", 0, BEYOND, mongo_not_supported},
    {"dbStats", ACCESS_LIST, 0, mongo_db_stats},
    {"dbstats", ACCESS_LIST, 0, mongo_db_stats},
    {"delete", ACCESS_DELETE, NAMED | WRITES | WITHIN, mongo_delete},
    {"deleteIndexes", ACCESS_ALTER, NAMED, mongo_drop_indexes},
    {"distinct", ACCESS_READ, NAMED | WITHIN | VIEW, mongo_distinct},
    {"drop", ACCESS_DROP, NAMED | VIEW, mongo_drop},
    {"dropDatabase", ACCESS_DROP, 0, mongo_drop_database},
    {"dropIndexes", ACCESS_ALTER, NAMED, mongo_drop_indexes},
    {"endSessions", 0, OPEN | SILENT, mongo_end_sessions},
    {"eval", 0, BEYOND, mongo_not_supported},
    {"explain", ACCESS_READ, VIEW, mongo_explain},
    {"features", 0, BEYOND, mongo_not_supported},
    {"find", ACCESS_READ, NAMED | WITHIN | VIEW, mongo_find_documents},
    {"findAndModify", ACCESS_WRITE, NAMED | WRITES | WITHIN, mongo_find_and_modify},
    {"findandmodify", ACCESS_WRITE, NAMED | WRITES | WITHIN, mongo_find_and_modify},
    {"getCmdLineOpts", ACCESS_DESCRIBE, BEYOND | SILENT, mongo_command_line},
    {"getLastError", 0, SILENT, mongo_get_last_error},
    {"getLastRequestStatistics", 0, SILENT, mongo_last_statistics},
    {"getLog", ACCESS_DESCRIBE, BEYOND | SILENT, mongo_get_log},
    {"getMore", ACCESS_READ, WITHIN, mongo_get_more},
    {"getParameter", ACCESS_DESCRIBE, BEYOND | SILENT, mongo_get_parameter},
    {"getPrevError", 0, BEYOND, mongo_not_supported},
    {"getlasterror", 0, SILENT, mongo_get_last_error},
    {"hello", 0, OPEN | PLAIN | SILENT, mongo_hello},
    {"hostInfo", ACCESS_DESCRIBE, SILENT, mongo_host_info},
    {"insert", ACCESS_INSERT, NAMED | WRITES | WITHIN, mongo_insert},
    {"isMaster", 0, OPEN | PLAIN | SILENT, mongo_is_master},
    {"ismaster", 0, OPEN | PLAIN | SILENT, mongo_is_master},
    {"killCursors", ACCESS_READ, NAMED, mongo_kill_cursors},
    {"killOp", ACCESS_ALTER, BEYOND | SILENT, mongo_kill_op},
    {"killSessions", 0, SILENT, mongo_end_sessions},
    {"listCollections", ACCESS_LIST, 0, mongo_list_collections},
    {"listCommands", 0, BEYOND | SILENT, mongo_list_commands},
    {"listDatabases", ACCESS_LIST, 0, mongo_list_databases},
    {"listIndexes", ACCESS_LIST, NAMED, mongo_list_indexes},
    {"logout", 0, OPEN | SILENT, mongo_logout},
    {"mapReduce", 0, BEYOND, mongo_not_supported},
    {"parallelCollectionScan", 0, BEYOND, mongo_not_supported},
    {"ping", 0, OPEN | SILENT, mongo_ok},
    {"profile", 0, BEYOND, mongo_not_supported},
    {"reIndex", ACCESS_ALTER, NAMED, mongo_re_index},
    {"refreshSessions", 0, SILENT, mongo_ok},
    {"renameCollection", ACCESS_ALTER, BEYOND, mongo_rename},
    {"resetError", 0, BEYOND, mongo_not_supported},
    {"saslContinue", 0, OPEN | PLAIN | SILENT, mongo_sasl_continue},
    {"saslStart", 0, OPEN | PLAIN | SILENT, mongo_sasl_start_command},
    {"serverStatus", ACCESS_DESCRIBE, BEYOND | SILENT, mongo_server_status},
    {"shardCollection", ACCESS_CREATE, 0, mongo_shard_collection},
    {"startSession", 0, SILENT, mongo_start_session},
    {"top", ACCESS_DESCRIBE, BEYOND | SILENT, mongo_top},
    {"update", ACCESS_UPDATE, NAMED | WRITES | WITHIN, mongo_update},
    {"validate", ACCESS_LIST, NAMED | BEYOND, mongo_validate_collection},
    {"whatsmyuri", 0, OPEN | SILENT, mongo_whats_my_uri},
};

enum { COMMANDS = sizeof commands / sizeof *commands };

/* Open addressing: the index of a command plus 1; 0: free. */
static uint8_t places[256];
_Static_assert(COMMANDS < sizeof places / 2, "the table of names has room");

static uint8_t *place_of(slice name) {
    uint8_t at = (uint8_t)hash_bytes(name, 0);
    while (places[at] && !slice_eq(slice_str(commands[places[at] - 1].name), name)) {
        at++; /* modulo 256 */
    }
    return &places[at];
}

void mongo_commands_open(void) {
    for (size_t i = 0; i < COMMANDS; i++) {
        *place_of(slice_str(commands[i].name)) = (uint8_t)(i + 1);
    }
}

const mongo_command *mongo_command_of(slice name) {
    uint8_t place = *place_of(name);
    return place ? &commands[place - 1] : NULL;
}

size_t mongo_commands(const mongo_command **list_out) {
    *list_out = commands;
    return COMMANDS;
}
