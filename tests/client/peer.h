/* peer.h — a hostile peer: a server in this program that answers with whatever bytes a test wants. */
#pragma once

#include <stddef.h>

typedef struct peer_link peer_link;

/* Answers one request, whose header it gets as text. False: the connection is closed. */
typedef int (*peer_answer)(peer_link *link, const char *request);

void peer_start(char endpoint[64]); /* on a free port of the loopback interface, until the program ends */
void peer_plays(peer_answer answer);

/* For answers. All return 0 once the client has gone. */
int peer_send(peer_link *link, const void *bytes, size_t n);
int peer_text(peer_link *link, const char *text);
int peer_wait(peer_link *link);                                                           /* until the client goes */
int peer_json(peer_link *link, const char *status, const char *fields, const char *body); /* `fields`: lines that end with \r\n */
