/* wire_load.c — wire_load: closed loops over MongoDB's and Redis's wire protocols, so that both are driven by the same client.
 *
 * Connections to MongoDB authenticate with SCRAM-SHA-256. Modes: find and get read items at random; insert adds new ones; fill loads the
 * items 0 … N-1 in batches; records does so with the records of the queries (data.h), and indexes makes their indexes; ask asks a question
 * of question.h, print prints its first answers. */
#include <bson/bson.h>
#include <inttypes.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "closed_loop.h"
#include "data.h"
#include "question.h"

enum { INPUT_BYTES = 1 << 20, HEADER = 16, OP_MSG = 2013, HASH = 32, FILL_BATCH = 100 };
typedef struct protocol {
    bool mongo;
    void (*request)(loop_connection *c);
} protocol;

static uint64_t random_state = DATA_SEED;
static char *item_text;
static const question *asked;

/* ---- MongoDB ---- */

enum { MESSAGE_MAX = 16 << 20 };

/* Returns the message's length. */
static size_t write_message(const bson_t *command, char *message) {
    int32_t head[5] = {(int32_t)(HEADER + 5 + command->len), 1, 0, OP_MSG, 0};
    memcpy(message, head, sizeof head);
    message[20] = 0;
    memcpy(message + 21, bson_get_data(command), command->len);
    return 21 + command->len;
}

static void send_command(loop_connection *c, const bson_t *command) {
    static char message[MESSAGE_MAX];
    loop_send(c, message, write_message(command, message));
}

static bool reply_is_ok(const char *message, size_t n) {
    bson_t reply;
    bson_iter_t it, child;
    if (n < 26 || !bson_init_static(&reply, (const uint8_t *)message + 21, n - 21) || !bson_iter_init(&it, &reply)) {
        return false;
    }
    bool ok = false, failed = false;
    while (bson_iter_next(&it)) {
        const char *key = bson_iter_key(&it);
        ok = ok || (strcmp(key, "ok") == 0 && bson_iter_as_bool(&it));
        failed = failed || strcmp(key, "writeErrors") == 0;
        if (strcmp(key, "cursor") == 0 && bson_iter_recurse(&it, &child) && bson_iter_find(&child, "firstBatch")) {
            bson_iter_t row;
            failed = failed || !bson_iter_recurse(&child, &row) || !bson_iter_next(&row);
        }
    }
    return ok && !failed;
}

static size_t receive_whole(int fd, char *into) {
    size_t n = 0;
    int32_t length = HEADER;
    while (n < (size_t)length) {
        ssize_t got = recv(fd, into + n, (size_t)length - n, 0);
        if (got <= 0) {
            loop_die("the server closed the connection");
        }
        n += (size_t)got;
        if (n == HEADER) {
            memcpy(&length, into, 4);
        }
    }
    return n;
}

/* Sends a command and returns the reply's payload as text, for authentication. */
static char *converse(loop_connection *c, const bson_t *command) {
    bson_t reply;
    bson_iter_t it;
    bson_subtype_t subtype;
    uint32_t n;
    const uint8_t *bytes;
    send_command(c, command);
    size_t got = receive_whole(c->fd, c->in);
    if (!reply_is_ok(c->in, got) || !bson_init_static(&reply, (const uint8_t *)c->in + 21, got - 21) ||
        !bson_iter_init_find(&it, &reply, "payload")) {
        fprintf(stderr, "wire_load: the server refused the key\n");
        exit(1);
    }
    bson_iter_binary(&it, &subtype, &n, &bytes);
    return strndup((const char *)bytes, n);
}

static void hmac(const void *key, size_t key_n, const char *text, uint8_t out[HASH]) {
    HMAC(EVP_sha256(), key, (int)key_n, (const unsigned char *)text, strlen(text), out, NULL);
}

static void add_payload(bson_t *command, const char *text) {
    bson_append_binary(command, "payload", -1, BSON_SUBTYPE_BINARY, (const uint8_t *)text, (uint32_t)strlen(text));
    BSON_APPEND_UTF8(command, "$db", "admin");
}

static void salted(const char *salt_base64, int iterations, uint8_t out[HASH]) {
    unsigned char salt[256];
    int n = EVP_DecodeBlock(salt, (const unsigned char *)salt_base64, (int)strlen(salt_base64));
    for (size_t i = strlen(salt_base64); i > 0 && salt_base64[i - 1] == '='; i--) {
        n--;
    }
    PKCS5_PBKDF2_HMAC(loop.key, (int)strlen(loop.key), salt, n, iterations, EVP_sha256(), HASH, out);
}

/* RFC 5802, with SHA-256. */
static void proof_of(const char *server_first, const char *nonce, char *final_out, size_t final_n) {
    char salt[256] = "", auth[1024], bare[512];
    uint8_t password[HASH], client_key[HASH], stored[HASH], signature[HASH];
    unsigned char proof[64];
    int iterations = 0;
    sscanf(strstr(server_first, "s="), "s=%255[^,],i=%d", salt, &iterations);
    snprintf(bare, sizeof bare, "c=biws,r=%.*s", (int)(strchr(server_first, ',') - server_first - 2), server_first + 2);
    snprintf(auth, sizeof auth, "n=localhost,r=%s,%s,%s", nonce, server_first, bare);
    salted(salt, iterations, password);
    hmac(password, HASH, "Client Key", client_key);
    EVP_Digest(client_key, HASH, stored, NULL, EVP_sha256(), NULL);
    hmac(stored, HASH, auth, signature);
    for (int i = 0; i < HASH; i++) {
        client_key[i] ^= signature[i];
    }
    EVP_EncodeBlock(proof, client_key, HASH);
    snprintf(final_out, final_n, "%s,p=%s", bare, proof);
}

static void authenticate(loop_connection *c) {
    static const char nonce[] = "rOprNGfwEbeRWgbNEkqOwire";
    char text[1024];
    bson_t start = BSON_INITIALIZER, go_on = BSON_INITIALIZER;
    BSON_APPEND_INT32(&start, "saslStart", 1);
    BSON_APPEND_UTF8(&start, "mechanism", "SCRAM-SHA-256");
    bson_t options;
    BSON_APPEND_DOCUMENT_BEGIN(&start, "options", &options);
    BSON_APPEND_BOOL(&options, "skipEmptyExchange", true);
    bson_append_document_end(&start, &options);
    snprintf(text, sizeof text, "n,,n=localhost,r=%s", nonce);
    add_payload(&start, text);
    char *first = converse(c, &start);
    proof_of(first, nonce, text, sizeof text);
    BSON_APPEND_INT32(&go_on, "saslContinue", 1);
    BSON_APPEND_INT32(&go_on, "conversationId", 1);
    add_payload(&go_on, text);
    free(converse(c, &go_on));
    free(first);
    bson_destroy(&start);
    bson_destroy(&go_on);
}

static int id_of(uint64_t number, char out[32]) {
    return snprintf(out, 32, "i%012" PRIu64, number);
}

static size_t write_find(const char *id, int n, char *message) {
    bson_t command = BSON_INITIALIZER, filter;
    BSON_APPEND_UTF8(&command, "find", "items");
    BSON_APPEND_DOCUMENT_BEGIN(&command, "filter", &filter);
    bson_append_utf8(&filter, "_id", 3, id, n);
    bson_append_document_end(&command, &filter);
    BSON_APPEND_INT32(&command, "limit", 1);
    BSON_APPEND_BOOL(&command, "singleBatch", true);
    BSON_APPEND_UTF8(&command, "$db", "bench");
    size_t bytes = write_message(&command, message);
    bson_destroy(&command);
    return bytes;
}

/* The message is made once, and only its id changes: so that the client takes little more time for it than for a GET. */
static void send_find(loop_connection *c) {
    static char message[1024];
    static size_t bytes;
    static char *at;
    char id[32];
    int n = id_of(data_random(&random_state) % loop.items, id);
    if (!bytes) {
        bytes = write_find(id, n, message);
        at = memmem(message, bytes, id, (size_t)n);
    }
    memcpy(at, id, (size_t)n);
    loop_send(c, message, bytes);
}

static void send_question(loop_connection *c) {
    static char text[4096];
    bson_t command;
    bson_error_t error;
    size_t n = question_command(asked, data_random(&random_state) % loop.items, text);
    if (!bson_init_from_json(&command, text, (ssize_t)n, &error)) {
        fprintf(stderr, "wire_load: %s: %s\n", asked->name, error.message);
        exit(1);
    }
    BSON_APPEND_UTF8(&command, "$db", "bench");
    send_command(c, &command);
    bson_destroy(&command);
}

/* The answers to the first questions, one in each line. */
static void print_answers(loop_connection *c) {
    bson_t reply;
    for (uint64_t i = 0; i < loop.least; i++) {
        send_question(c);
        size_t n = receive_whole(c->fd, c->in);
        char *text = bson_init_static(&reply, (const uint8_t *)c->in + 21, n - 21) ? bson_as_relaxed_extended_json(&reply, NULL) : NULL;
        printf("%s\n", text ? text : "{}");
        bson_free(text);
    }
}

/* In one command, so that they are built together. */
static void make_indexes(loop_connection *c) {
    static const char text[] = "{\"createIndexes\":\"items\",\"indexes\":[{\"key\":{\"email\":1},\"name\":\"email\"},"
                               "{\"key\":{\"city\":1},\"name\":\"city\"},{\"key\":{\"created\":1},\"name\":\"created\"},"
                               "{\"key\":{\"country\":1,\"status\":1},\"name\":\"country\"}],\"$db\":\"bench\"}";
    bson_t command;
    bson_init_from_json(&command, text, -1, NULL);
    send_command(c, &command);
    bson_destroy(&command);
    if (!reply_is_ok(c->in, receive_whole(c->fd, c->in))) {
        fprintf(stderr, "wire_load: an index was refused\n");
        exit(1);
    }
}

static bool is_mode(const char *name) {
    return strcmp(loop.mode, name) == 0;
}

/* An item as the SQL measurements have it, with `_id` in front. */
static void add_item(bson_t *list, unsigned at, uint64_t number) {
    char id[32], key[12];
    bson_t item, fields;
    bson_error_t error;
    size_t n = data_item(is_mode("records") ? DATA_BY_ID : DATA_PLAIN, number, loop.size, item_text);
    if (!bson_init_from_json(&fields, item_text, (ssize_t)n, &error)) {
        fprintf(stderr, "wire_load: %s\n", error.message);
        exit(1);
    }
    snprintf(key, sizeof key, "%u", at);
    bson_append_document_begin(list, key, -1, &item);
    bson_append_utf8(&item, "_id", 3, id, id_of(number, id));
    bson_concat(&item, &fields);
    bson_append_document_end(list, &item);
    bson_destroy(&fields);
}

static void send_inserts(loop_connection *c, unsigned n) {
    bson_t command = BSON_INITIALIZER, list;
    BSON_APPEND_UTF8(&command, "insert", "items");
    BSON_APPEND_ARRAY_BEGIN(&command, "documents", &list);
    for (unsigned i = 0; i < n; i++) {
        add_item(&list, i, loop.next++);
    }
    bson_append_array_end(&command, &list);
    BSON_APPEND_UTF8(&command, "$db", "bench");
    send_command(c, &command);
    bson_destroy(&command);
}

static void send_insert(loop_connection *c) {
    send_inserts(c, 1);
}

static void send_fill(loop_connection *c) {
    uint64_t left = loop.next < loop.items ? loop.items - loop.next : 0;
    if (left == 0) {
        c->done = true;
        return;
    }
    send_inserts(c, left < FILL_BATCH ? (unsigned)left : FILL_BATCH);
}

/* ---- Redis ---- */

static void send_get(loop_connection *c) {
    char id[32], text[96];
    int n = id_of(data_random(&random_state) % loop.items, id);
    int bytes = snprintf(text, sizeof text, "*2\r\n$3\r\nGET\r\n$%d\r\n%s\r\n", n, id);
    loop_send(c, text, (size_t)bytes);
}

static void send_set(loop_connection *c) {
    char id[32], head[128];
    if (loop.next == loop.items) {
        c->done = true;
        return;
    }
    int n = id_of(loop.next, id);
    size_t value = data_item(DATA_PLAIN, loop.next++, loop.size, item_text);
    int bytes = snprintf(head, sizeof head, "*3\r\n$3\r\nSET\r\n$%d\r\n%s\r\n$%zu\r\n", n, id, value);
    loop_send(c, head, (size_t)bytes);
    memcpy(item_text + value, "\r\n", 2);
    loop_send(c, item_text, value + 2);
}

/* The length of a reply: "$1024\r\n…\r\n" or "+OK\r\n"; 0: not whole yet. */
static size_t redis_length(const char *in, size_t n) {
    const char *end = memchr(in, '\n', n);
    if (!end) {
        return 0;
    }
    size_t head = (size_t)(end - in) + 1;
    long value = in[0] == '$' ? strtol(in + 1, NULL, 10) : -1;
    size_t whole = value < 0 ? head : head + (size_t)value + 2;
    return n >= whole ? whole : 0;
}

/* ---- the loop ---- */

static const struct {
    const char *name;
    protocol protocol;
} modes[] = {
    {"find", {true, send_find}},      {"insert", {true, send_insert}}, {"fill", {true, send_fill}},
    {"records", {true, send_fill}},   {"get", {false, send_get}},      {"ask", {true, send_question}},
    {"print", {true, send_question}}, {"indexes", {true, send_find}},  {"set", {false, send_set}},
};

static const protocol *protocol_named(const char *name) {
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        if (strcmp(modes[i].name, name) == 0) {
            return &modes[i].protocol;
        }
    }
    fprintf(stderr, "wire_load: no mode %s\n", name);
    exit(2);
}

static bool answered_by_mongo(const loop_connection *c, bool *ok_out) {
    int32_t length = INT32_MAX;
    if (c->in_n >= HEADER) {
        memcpy(&length, c->in, 4);
    }
    bool whole = c->in_n >= (size_t)length;
    *ok_out = whole && reply_is_ok(c->in, c->in_n);
    return whole;
}

static bool answered_by_redis(const loop_connection *c, bool *ok_out) {
    *ok_out = c->in[0] == '+' || (c->in[0] == '$' && c->in[1] != '-');
    return redis_length(c->in, c->in_n) > 0;
}

int main(int argc, char **argv) {
    loop.mode = "find";
    loop_parse(argc, argv, "wire_load", "find|insert|fill|records|indexes|ask|print|get|set", INPUT_BYTES / 2);
    const protocol *p = protocol_named(loop.mode);
    asked = loop.ask ? question_find(loop.ask) : NULL;
    if ((is_mode("ask") || is_mode("print")) && (!asked || !asked->mongo)) {
        fprintf(stderr, "wire_load: --ask names no question\n");
        return 2;
    }
    item_text = malloc(loop.size + 4096);
    loop_connection *connections = calloc((size_t)loop.connections, sizeof *connections);
    loop_connection **list = calloc((size_t)loop.connections, sizeof *list);
    for (int i = 0; i < loop.connections; i++) {
        list[i] = &connections[i];
        loop_connect(list[i], INPUT_BYTES);
        if (p->mongo && !loop.open) {
            authenticate(list[i]);
        }
    }
    if (is_mode("print") || is_mode("indexes")) {
        is_mode("print") ? print_answers(list[0]) : make_indexes(list[0]);
        return 0;
    }
    bool fills = is_mode("fill") || is_mode("records") || is_mode("set");
    loop_run(&(loop_work){.fills = fills, .request = p->request, .answered = p->mongo ? answered_by_mongo : answered_by_redis}, list);
    return 0;
}
