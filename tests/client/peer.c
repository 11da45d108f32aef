#include "peer.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { REQUEST_BYTES_MAX = 256 * 1024 };

struct peer_link {
    int socket;
    size_t n;
    char request[REQUEST_BYTES_MAX];
};

static _Atomic(peer_answer) playing;
static int listening;

int peer_send(peer_link *link, const void *bytes, size_t n) {
    const char *p = bytes;
    while (n) {
        ssize_t sent = send(link->socket, p, n, MSG_NOSIGNAL);
        if (sent <= 0) {
            return 0;
        }
        p += sent;
        n -= (size_t)sent;
    }
    return 1;
}

int peer_text(peer_link *link, const char *text) {
    return peer_send(link, text, strlen(text));
}

int peer_wait(peer_link *link) {
    char bytes[256];
    while (recv(link->socket, bytes, sizeof bytes, 0) > 0) {
    }
    return 0;
}

int peer_json(peer_link *link, const char *status, const char *fields, const char *body) {
    char head[8192];
    snprintf(head, sizeof head, "HTTP/1.1 %s\r\nContent-Type: application/json\r\n%sContent-Length: %zu\r\n\r\n", status, fields,
             strlen(body));
    return peer_text(link, head) && peer_text(link, body);
}

/* Reads a request's header and body; returns the header's length, 0: the client has gone. */
static size_t read_request(peer_link *l) {
    for (l->n = 0; l->n < sizeof l->request - 1;) {
        ssize_t n = recv(l->socket, l->request + l->n, sizeof l->request - 1 - l->n, 0);
        if (n <= 0) {
            return 0;
        }
        l->n += (size_t)n;
        l->request[l->n] = 0;
        const char *end = strstr(l->request, "\r\n\r\n"), *length = strcasestr(l->request, "\r\nContent-Length:");
        size_t body = length && end && length < end ? strtoul(length + 17, NULL, 10) : 0;
        if (end && l->n >= (size_t)(end - l->request) + 4 + body) {
            return (size_t)(end - l->request) + 4;
        }
    }
    return 0;
}

static void *serve(void *link) {
    peer_link *l = link;
    size_t n;
    while ((n = read_request(l)) > 0) {
        l->request[n] = 0;
        if (!playing(l, l->request)) {
            break;
        }
    }
    close(l->socket);
    free(l);
    return NULL;
}

static void *accept_all(void *unused) {
    (void)unused;
    for (;;) {
        pthread_t thread;
        peer_link *l = calloc(1, sizeof *l);
        l->socket = accept(listening, NULL, NULL);
        setsockopt(l->socket, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int)); /* head and body go at once */
        if (l->socket < 0 || pthread_create(&thread, NULL, serve, l) != 0) {
            free(l);
            return NULL;
        }
        pthread_detach(thread);
    }
}

void peer_start(char endpoint[64]) {
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof at;
    pthread_t thread;
    listening = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (bind(listening, (struct sockaddr *)&at, n) != 0 || listen(listening, 64) != 0 ||
        getsockname(listening, (struct sockaddr *)&at, &n) != 0 || pthread_create(&thread, NULL, accept_all, NULL) != 0) {
        perror("peer");
        exit(1);
    }
    pthread_detach(thread);
    snprintf(endpoint, 64, "http://127.0.0.1:%d", ntohs(at.sin_port));
}

void peer_plays(peer_answer answer) {
    playing = answer;
}
