/* conn.h — one connection: bytes in, bytes out, plain or TLS. Private to this folder; a protocol is a net_protocol.
 *
 * The connection layer handles sockets, TLS, unsent bytes and the deadline. The protocol interprets the bytes. All calls are on the loop's
 * thread. After net_conn_close or net_conn_finish, calls on the connection have no effect, until `closed`.
 *
 *   OPEN ── finish ──► FINISHING ── all sent ──► LINGERING ── peer closes, or 2 s ──► CLOSED
 *     └──── close, peer resets, deadline of a stalled write or of a handshake ─────────►
 *
 * Lingering (half-closed, input is read and discarded) is for answers to a peer that may still be sending: closing at once would reset the
 * connection, and the peer might lose the answer. */
#pragma once

#include "base/pieces.h"
#include "net/peers.h"

/* How far a client has got with sending a body or reading an answer. */
typedef struct net_progress {
    int64_t began_ms;
    int64_t moved_bytes;
    size_t held_bytes; /* memory held until the transfer is complete */
} net_progress;

typedef struct net_protocol {
    const char *name;
    const char *alpn;   /* protocol names for ALPN, in order of preference, each after a length byte; NULL: none */
    size_t state_bytes; /* size of the protocol's state in each connection, zeroed; see net_conn_state */
    void (*opened)(net_conn *c, void *context);
    void (*bytes)(net_conn *c, char *p, size_t n); /* `p` is writable and valid during the call; the protocol copies what it needs later */
    void (*ended)(net_conn *c);                    /* the peer will send no more; it may still read */
    void (*drained)(net_conn *c);                  /* all queued output has been sent */
    void (*timed_out)(net_conn *c);                /* the protocol's deadline passed, and is now unset */
    bool (*receiving)(net_conn *c, net_progress *progress_out); /* whether a large request is being received */
    bool (*answering)(net_conn *c, net_progress *progress_out); /* whether answers wait for the client to open its windows; may be NULL */
    bool (*busy)(net_conn *c);                                  /* whether a request is being served */
    void (*surplus)(net_conn *c);  /* first bytes arrived on a surplus connection: send a refusal, and finish */
    void (*stopping)(net_conn *c); /* the server stops: finish now if idle, otherwise after the answer in progress */
    void (*closed)(net_conn *c);   /* the last call; never made from within another call on the connection */
} net_protocol;

/* Hands an accepted socket to a loop. Any thread. The caller has counted the connection in net_shared (as surplus if `surplus` is set). */
void net_conn_deal(net_loop *loop, int fd, const net_peer *peer, bool surplus, const net_protocol *protocol, void *context);

/* Switches the connection to another protocol, whose state must not be larger. The caller has ended the old protocol, and starts the new
 * one. */
void net_conn_switch(net_conn *c, const net_protocol *protocol);

void *net_conn_state(net_conn *c);
net_conn *net_conn_of(void *state); /* inverse of net_conn_state */
net_loop *net_conn_loop(const net_conn *c);
bool net_conn_is_tls(const net_conn *c);
slice net_conn_alpn(const net_conn *c);        /* the protocol chosen by ALPN; empty: none */
slice net_conn_server_name(const net_conn *c); /* the host name of the TLS handshake (SNI); empty: none */
bool net_conn_is_open(const net_conn *c);      /* neither finishing nor closed */
bool net_conn_is_trusted(const net_conn *c);
void net_conn_trust(net_conn *c);          /* its peer has authenticated, so it no longer gives way to newcomers */
bool net_conn_is_stuck(const net_conn *c); /* output is queued: the protocol produces no more until `drained` */

/* Sends as much as the kernel takes, and queues the rest. net_conn_send empties `b` and may take over its memory. */
void net_conn_send(net_conn *c, buf *b);
void net_conn_send_apart(net_conn *c, buf *b, const uint32_t *ends, unsigned ends_n); /* TLS: a new record begins at each of these ends */

/* Sends the head, then the pieces, which are not copied; leaves both empty. */
void net_conn_send_pieces(net_conn *c, buf *head, const uint32_t *ends, unsigned ends_n, pieces *p);

void net_conn_read(net_conn *c, bool on); /* backpressure: turns reading off and on; on at first */
void net_conn_deadline(net_conn *c, unsigned after_ms);
void net_conn_no_deadline(net_conn *c);

void net_conn_finish(net_conn *c, bool linger); /* closes once all output is sent */
void net_conn_close(net_conn *c);               /* closes at once */
void net_conn_stopping(net_conn *c);            /* called when the loop drains */

net_peer net_conn_peer(const net_conn *c);
net_peer net_peer_of(const struct sockaddr_storage *address);
net_peer net_conn_local(const net_conn *c); /* local address of the socket; makes a system call */
const char *net_peer_text(const net_peer *peer, char into[static HTTP_PEER_BYTES]);

/* Used by the loop: its list of connections, and the callback of its wheel. */
net_conn *net_conn_next(const net_conn *c);
void net_conn_expired(net_deadline *deadline);
