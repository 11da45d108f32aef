/* tickets.h — the keys of TLS session tickets: random, replaced every two hours, forgotten two hours later.
 *
 * OpenSSL would keep one key for the life of the process, and anybody who obtained it could read every resumed TLS 1.2 session since the
 * start. A ticket sealed with the previous key is accepted and replaced by a new one. Any loop's thread; private to this folder. */
#pragma once

#include <openssl/ssl.h>
#include <stdbool.h>

#include "base/clock.h"

enum { NET_TICKETS_CHANGE_S = 2 * 60 * 60 };

/* The keys live as long as the context. The clock outlives it. False: no memory, or no random numbers. */
bool net_tickets_use(SSL_CTX *context, const clock_source *clock);
