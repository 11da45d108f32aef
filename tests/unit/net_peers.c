/* Connections per address, compared with a plain array as a model. */
// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on

#include <arpa/inet.h>

#include "base/random.h"
#include "net/peers.h"

static net_peer peer(const char *text) {
    net_peer p = {.ipv6 = strchr(text, ':') != NULL, .port = 1};
    assert_int_equal(inet_pton(p.ipv6 ? AF_INET6 : AF_INET, text, p.address), 1);
    return p;
}

static bool take(net_peers *peers, const char *text) {
    net_peer p = peer(text);
    return net_peers_take(peers, &p);
}

static void give(net_peers *peers, const char *text) {
    net_peer p = peer(text);
    net_peers_give(peers, &p);
}

static void an_address_has_a_limit(void **state) {
    (void)state;
    net_peers *peers = net_peers_new(100, 2, false);
    assert_true(take(peers, "192.0.2.1") && take(peers, "192.0.2.1"));
    assert_false(take(peers, "192.0.2.1"));
    assert_false(take(peers, "::ffff:192.0.2.1")); /* the same address, as a dual-stack socket reports it */
    assert_true(take(peers, "192.0.2.2"));
    give(peers, "192.0.2.1");
    assert_true(take(peers, "192.0.2.1"));
    assert_true(take(peers, "127.0.0.1") && take(peers, "127.0.0.1"));
    assert_false(take(peers, "127.0.0.1"));
    net_peers_free(peers);
}

static void a_network_counts_as_one(void **state) {
    (void)state;
    net_peers *peers = net_peers_new(100, 2, false);
    assert_true(take(peers, "2001:db8:1:2::1") && take(peers, "2001:db8:1:2:ffff::9"));
    assert_false(take(peers, "2001:db8:1:2:3:4:5:6"));
    assert_true(take(peers, "2001:db8:1:3::1"));
    give(peers, "2001:db8:1:2:5::"); /* any address of the same network */
    assert_true(take(peers, "2001:db8:1:2::1"));
    net_peers_free(peers);
}

static void loopback_may_be_spared(void **state) {
    (void)state;
    net_peers *peers = net_peers_new(100, 1, true);
    for (int i = 0; i < 10; i++) {
        assert_true(take(peers, "127.0.0.1") && take(peers, "127.8.9.10") && take(peers, "::1") && take(peers, "::ffff:127.0.0.1"));
    }
    assert_true(take(peers, "192.0.2.1"));
    assert_false(take(peers, "192.0.2.1"));
    give(peers, "127.0.0.1");
    net_peers_free(peers);
}

static void without_a_limit_nothing_is_counted(void **state) {
    (void)state;
    net_peers *peers = net_peers_new(1, 0, false);
    for (int i = 0; i < 10000; i++) {
        assert_true(take(peers, "192.0.2.1"));
    }
    net_peers_free(peers);
}

/* Fills the table to its limit, so that removals move displaced entries, which must still be found. */
static void many_addresses_come_and_go(void **state) {
    (void)state;
    enum { ADDRESSES = 3000, OPEN_MAX = 2000, ROUNDS = 200000, MAX = 3 };
    static unsigned model[ADDRESSES];
    net_peers *peers = net_peers_new(OPEN_MAX, MAX, false);
    random_source random;
    random_seed(&random, 7);
    unsigned open = 0;
    for (int i = 0; i < ROUNDS; i++) {
        uint32_t which = (uint32_t)random_below(&random, ADDRESSES);
        net_peer p = {.address = {10, 0, (uint8_t)(which >> 8), (uint8_t)which}};
        if (model[which] && random_below(&random, 2)) {
            net_peers_give(peers, &p);
            model[which]--;
            open--;
        } else if (open < OPEN_MAX) {
            bool fits = net_peers_take(peers, &p);
            assert_int_equal(fits, model[which] < MAX);
            model[which] += fits;
            open += fits;
        }
    }
    net_peers_free(peers);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_address_has_a_limit),     cmocka_unit_test(a_network_counts_as_one),
        cmocka_unit_test(loopback_may_be_spared),     cmocka_unit_test(without_a_limit_nothing_is_counted),
        cmocka_unit_test(many_addresses_come_and_go),
    };
    return cmocka_run_group_tests_name("net/peers", tests, NULL, NULL);
}
