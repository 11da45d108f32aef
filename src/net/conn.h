/* conn.h — one connection: bytes in, bytes out, plain or TLS. For the files of this folder; a protocol is a net_protocol.
 *
 * The connection layer knows sockets, TLS, what could not be sent yet, and the deadline. The protocol knows what the bytes mean. All calls
 * are on the loop's thread. After net_conn_close or net_conn_finish the connection takes calls and ignores them, until `closed`.
 *
 *   OPEN ── finish ──► FINISHING ── all sent ──► LINGERING ── peer closes, or 2 s ──► CLOSED
 *     └──── close, peer resets, deadline of a stalled write or of a handshake ─────────►
 *
 * Lingering (half-closed, reading and throwing away) is for answers to a peer that may still be sending: closing at once would reset the
 * connection, and the answer could be lost with it. */
#pragma once

#include "net/peers.h"

/* How far a client has come that sends a body or reads an answer. */
typedef struct net_progress {
    int64_t began_ms;
    int64_t moved_bytes;
    size_t held_bytes; /* memory that waits for it */
} net_progress;

typedef struct net_protocol {
    const char *name;
    const char *alpn;   /* what it answers to in TLS, the best first, each name behind its length; NULL: nothing */
    size_t state_bytes; /* of memory that lives with the connection, zeroed: net_conn_state */
    void (*opened)(net_conn *c, void *context);
    void (*bytes)(net_conn *c, char *p, size_t n); /* writable, valid during the call; the protocol copies what it cannot use yet */
    void (*ended)(net_conn *c);                    /* the peer will send no more; it may still read */
    void (*drained)(net_conn *c);                  /* what was stuck has been sent */
    void (*timed_out)(net_conn *c);                /* the protocol's deadline passed; none is set now */
    bool (*receiving)(net_conn *c, net_progress *progress_out); /* a large request is coming in */
    bool (*answering)(net_conn *c, net_progress *progress_out); /* answers wait for the client, though nothing is stuck. May be NULL */
    bool (*busy)(net_conn *c);                                  /* a request is being worked on */
    void (*surplus)(net_conn *c);                               /* the first bytes came on a connection too many: say so, and finish */
    void (*stopping)(net_conn *c); /* the server stops: finish when idle, or else with the answer in progress */
    void (*closed)(net_conn *c);   /* last call; not from within any other call on the connection */
} net_protocol;

/* Hands an accepted socket to a loop. Any thread; the connection has been counted in net_shared, as one too many if `surplus`. */
void net_conn_deal(net_loop *loop, int fd, const net_peer *peer, bool surplus, const net_protocol *protocol, void *context);

/* From now on it speaks another protocol, whose state is not larger. The caller has ended the old one, and begins the new one. */
void net_conn_switch(net_conn *c, const net_protocol *protocol);

void *net_conn_state(net_conn *c);
net_conn *net_conn_of(void *state); /* the other way */
net_loop *net_conn_loop(const net_conn *c);
bool net_conn_is_tls(const net_conn *c);
slice net_conn_alpn(const net_conn *c);   /* the protocol that TLS has chosen; empty: none */
bool net_conn_is_open(const net_conn *c); /* neither finishing nor closed */
bool net_conn_is_trusted(const net_conn *c);
void net_conn_trust(net_conn *c);          /* its peer has authenticated: it is no longer the first to go */
bool net_conn_is_stuck(const net_conn *c); /* sent bytes wait in memory: make no more of them until `drained` */

/* Sends at once what the kernel takes; the rest waits. net_conn_send empties `b` and may keep its memory. */
void net_conn_send(net_conn *c, buf *b);

void net_conn_read(net_conn *c, bool on); /* back-pressure; on at first */
void net_conn_deadline(net_conn *c, unsigned after_ms);
void net_conn_no_deadline(net_conn *c);

void net_conn_finish(net_conn *c, bool linger); /* close once all is sent */
void net_conn_close(net_conn *c);               /* now */
void net_conn_stopping(net_conn *c);            /* the loop drains */

net_peer net_conn_peer(const net_conn *c);
net_peer net_peer_of(const struct sockaddr_storage *address);
net_peer net_conn_local(const net_conn *c); /* our own end; a system call */
const char *net_peer_text(const net_peer *peer, char into[static HTTP_PEER_BYTES]);

/* For the loop: its list of connections, and what its wheel calls. */
net_conn *net_conn_next(const net_conn *c);
void net_conn_expired(net_deadline *deadline);
