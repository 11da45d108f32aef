#include "net/guard.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <netdb.h>
#include <netinet/in.h>
#include <unistd.h>

/* ---- addresses ---- */

void net_address_map(bool ipv6, const uint8_t *address, uint8_t into[static 16]) {
    static const uint8_t mapped[12] = {[10] = 0xFF, [11] = 0xFF};
    if (ipv6) {
        memcpy(into, address, 16);
    } else {
        memcpy(into, mapped, 12);
        memcpy(into + 12, address, 4);
    }
}

bool net_address_is_loopback(const uint8_t address[static 16]) {
    struct in6_addr a;
    memcpy(a.s6_addr, address, 16);
    return IN6_IS_ADDR_LOOPBACK(&a) || (IN6_IS_ADDR_V4MAPPED(&a) && address[12] == 127);
}

/* Reads a dotted IPv4 address, or an IPv6 address in brackets. Other spellings are rejected: browsers do not send them. */
static bool read_address(slice name, uint8_t into[static 16]) {
    bool brackets = name.n > 2 && name.p[0] == '[' && name.p[name.n - 1] == ']';
    char text[INET6_ADDRSTRLEN] = "";
    uint8_t address[16];
    slice plain = brackets ? slice_of(name.p + 1, name.n - 2) : name;
    if (plain.n >= sizeof text || memchr(plain.p ? plain.p : "", '\0', plain.n)) {
        return false;
    }
    memcpy(text, plain.p ? plain.p : "", plain.n);
    if (inet_pton(brackets ? AF_INET6 : AF_INET, text, address) != 1) {
        return false;
    }
    net_address_map(brackets, address, into);
    return true;
}

/* ---- Host ---- */

static bool is_port(slice text) {
    uint64_t port;
    return text.n && text.n <= 5 && slice_to_u64(text, &port) && port <= 65535;
}

/* Returns the host without its port. False: what follows the name is not a port. */
static bool cut_port(slice host, slice *name_out) {
    const char *bracket = host.n && host.p[0] == '[' ? memchr(host.p, ']', host.n) : NULL;
    slice rest = bracket ? slice_skip(host, (size_t)(bracket - host.p) + 1) : host;
    const char *colon = rest.n ? memchr(rest.p, ':', rest.n) : NULL;
    size_t end = colon ? (size_t)(colon - host.p) : host.n;
    *name_out = slice_of(host.p, end);
    return end ? !colon || is_port(slice_skip(host, end + 1)) : false;
}

static slice next_of(slice *list) {
    const char *comma = list->n ? memchr(list->p, ',', list->n) : NULL;
    slice first = slice_of(list->p, comma ? (size_t)(comma - list->p) : list->n);
    *list = slice_skip(*list, first.n + 1);
    return slice_trim(first);
}

static bool is_listed(slice list, slice name) {
    while (list.n) {
        if (slice_eq_nocase(next_of(&list), name)) {
            return true;
        }
    }
    return false;
}

static bool is_our_address(const net_caller *caller, slice name) {
    uint8_t asked[16], own[16];
    if (!read_address(name, asked)) {
        return false;
    }
    if (net_address_is_loopback(asked)) {
        return true;
    }
    caller->local_address(caller->context, own);
    return memcmp(asked, own, sizeof own) == 0;
}

static bool is_our_host(const net_guard *g, const net_caller *caller) {
    slice name;
    if (!cut_port(caller->host, &name)) {
        return false;
    }
    return slice_eq(name, SLICE_LIT("127.0.0.1")) || slice_eq_nocase(name, SLICE_LIT("localhost")) || is_our_address(caller, name) ||
           (g->machine[0] && slice_eq_nocase(name, slice_str(g->machine))) || (g->allowed && is_listed(slice_str(g->allowed), name));
}

/* ---- Origin ---- */

static bool is_our_origin(const net_caller *caller) {
    slice scheme = caller->tls ? SLICE_LIT("https://") : SLICE_LIT("http://");
    return !caller->origin.p ||
           (slice_starts(caller->origin, scheme) && slice_eq_nocase(slice_skip(caller->origin, scheme.n), caller->host));
}

bool net_guard_allows(const net_guard *g, const net_caller *caller) {
    return !atomic_load_explicit(&g->on, memory_order_relaxed) || (is_our_host(g, caller) && is_our_origin(caller));
}

/* ---- at the start ---- */

static bool address_of(int fd, uint8_t into[static 16]) {
    struct sockaddr_storage at = {0};
    socklen_t n = sizeof at;
    if (getsockname(fd, (struct sockaddr *)&at, &n) != 0) {
        return false;
    }
    bool ipv6 = at.ss_family == AF_INET6;
    const void *address =
        ipv6 ? (const void *)&((struct sockaddr_in6 *)&at)->sin6_addr : (const void *)&((struct sockaddr_in *)&at)->sin_addr;
    net_address_map(ipv6, address, into);
    return ipv6 || at.ss_family == AF_INET;
}

static bool has_name(const struct hostent *entry, const char *name) {
    bool is = slice_eq_nocase(slice_str(entry->h_name), slice_str(name));
    for (char **alias = entry->h_aliases; !is && *alias; alias++) {
        is = slice_eq_nocase(slice_str(*alias), slice_str(name));
    }
    return is;
}

/* Looks in /etc/hosts only. DNS is not asked, since its answers may be under an attacker's control. */
static bool leads_to(const char *name, const uint8_t address[static 16]) {
    bool found = false;
    sethostent(0);
    for (const struct hostent *entry; !found && (entry = gethostent());) {
        uint8_t listed[16];
        if (entry->h_length == (entry->h_addrtype == AF_INET6 ? 16 : 4) && entry->h_addr_list[0]) {
            net_address_map(entry->h_addrtype == AF_INET6, (const uint8_t *)entry->h_addr_list[0], listed);
            found = memcmp(listed, address, sizeof listed) == 0 && has_name(entry, name);
        }
    }
    endhostent();
    return found;
}

/* A socket that is not on the loopback address is reachable by the machine's name in any case. */
void net_guard_listens(net_guard *g, int fd) {
    char name[NET_NAME_BYTES] = "";
    uint8_t address[16];
    if (gethostname(name, sizeof name - 1) == 0 && name[0] && address_of(fd, address) &&
        (!net_address_is_loopback(address) || leads_to(name, address))) {
        memcpy(g->machine, name, sizeof name);
    }
}

static bool is_name(slice text) {
    uint8_t unused[16];
    bool good = text.n > 0 && text.n < NET_NAME_BYTES;
    for (size_t i = 0; good && i < text.n; i++) {
        unsigned char c = (unsigned char)text.p[i];
        good = isalnum(c) || c == '-' || c == '.' || c == '_';
    }
    return good || read_address(text, unused);
}

bool net_guard_list_good(slice list) {
    bool good = list.n > 0;
    while (good && list.n) {
        good = is_name(next_of(&list));
    }
    return good;
}
