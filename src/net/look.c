#include "net/look.h"

static void judge(net_look *l, bool useful) {
    if (useful) {
        l->apart = 0;
    } else if (l->apart < NET_LOOK_APART_MAX) {
        l->apart = l->apart * 2 + 1;
    }
}

bool net_look_again(net_look *l, unsigned reads, int64_t now_ms) {
    if (l->looking) {
        judge(l, reads > 0);
        l->looking = false;
    }
    if (!reads || now_ms < l->rests_until_ms) {
        return false;
    }
    if (l->skipped < l->apart) {
        l->skipped++;
        return false;
    }
    l->skipped = 0;
    l->looking = true;
    return true;
}

void net_look_took(net_look *l, int64_t us, int64_t now_ms) {
    if (us > NET_LOOK_SLOW_US) {
        l->rests_until_ms = now_ms + us * NET_LOOK_REST / 1000;
    }
}
