/* harness.h — a server for each test program: TESELA_BIN, a free port, a temporary folder; and the few calls that every test makes. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tesela/tesela.h>

#define KEY "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw=="

extern char endpoint[128];
extern tesela_client *client;
extern tesela_error error;

/* Starts the server, with further flags up to NULL, and opens `client`. */
void server_start(const char *flag, ...);
void server_kill(void);                    /* SIGKILL */
void server_restart(void);                 /* on the same port and folder, after server_kill */
void server_stop(void);                    /* at the end: the folder is removed, the client closed */
const char *server_file(const char *name); /* a path in the server's folder; valid until the next call */

/* `tesela COMMAND… --endpoint …`, such as command("fault", "--status", "429", NULL). */
void command(const char *word, ...);

/* Splits every range of a container in two. */
void split(const char *container);

/* A container in database "d" by the key /pk. Close it with tesela_container_close. */
tesela_container *container_new(const char *name, unsigned throughput);

#define ok(call) assert_status(call, TESELA_OK, #call, __FILE__, __LINE__)
#define fails(call, status) assert_status(call, status, #call, __FILE__, __LINE__)
void assert_status(tesela_status is, tesela_status wanted, const char *call, const char *file, int line);

/* Rows of a cursor, joined with newlines; closes the cursor. The caller frees the text. */
char *rows_of(tesela_cursor *cursor, size_t *count_out);
char *query_rows(tesela_container *k, const char *text, const char *parameters, const tesela_query_options *options, size_t *count_out);

/* Creates `n` items {"id":"i0","pk":"p0","n":…,"g":0…6}: pk has `keys` values, n is a permutation of 0…n-1. */
void fill(tesela_container *k, int n, int keys);
