/* tickets.h — the keys that TLS session tickets are sealed with: made at random, changed every two hours, forgotten two hours later.
 *
 * OpenSSL would keep one for the life of the process; whoever got hold of it could then read every resumed TLS 1.2 session since the start.
 * A ticket under the key before the present one is taken and exchanged for another. Any loop's thread; for the files of this folder. */
#pragma once

#include <openssl/ssl.h>
#include <stdbool.h>

#include "base/clock.h"

enum { NET_TICKETS_CHANGE_S = 2 * 60 * 60 };

/* The keys live as long as the context. The clock outlives it. False: out of memory or of randomness. */
bool net_tickets_use(SSL_CTX *context, const clock_source *clock);
