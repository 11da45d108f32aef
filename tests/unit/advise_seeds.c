/* The examples of the service's documentation on choosing a key, on generated data: the adviser recommends what the documentation does. */
#include "advise_harness.h"

#define GB (1024.0 * 1024 * 1024)

static random_source source;

static unsigned below(unsigned bound) {
    return (unsigned)random_below(&source, bound);
}

static advise *begin(const advise_options *o) {
    random_seed(&source, 7);
    return advise_new(o);
}

/* "User profiles: the user id." */
static void user_profiles(void **state) {
    (void)state;
    static const char *const cities[] = {"Lima", "Cusco", "Arequipa", "Puno", "Tacna"};
    advise *a = begin(&advise_defaults);
    for (unsigned i = 0; i < 200; i++) {
        operation(a,
                  "{\"operation\":\"query\",\"query\":\"SELECT * FROM c WHERE c.userId = "
                  "@u\",\"parameters\":[{\"name\":\"@u\",\"value\":\"u%u\"}]}",
                  below(5000));
    }
    operation(a, "{\"query\":\"SELECT VALUE COUNT(1) FROM c WHERE c.address.city = 'Lima'\",\"count\":5}");
    for (unsigned i = 0; i < 5000; i++) {
        item(a, "{\"id\":\"profile-%u\",\"userId\":\"u%u\",\"name\":\"Ana %u\",\"age\":%u,\"address\":{\"city\":\"%s\"},\"newsletter\":%s}",
             i, i, below(3000), 18 + below(60), cities[below(5)], below(2) ? "true" : "false");
    }
    const advise_report *r = advise_finish(a);
    assert_recommends(r, "/userId");
    assert_true(key_named(r, "/address/city")->score < r->keys[0]->score - 10);
    advise_free(a);
}

static void add_readings(advise *a, unsigned devices) {
    for (unsigned i = 0; i < 20000; i++) {
        unsigned minute = i * 10 / 20;
        item(a,
             "{\"id\":\"r%u\",\"deviceId\":\"XMS-%04u\",\"date\":\"2017-02-%02u\",\"readingTime\":\"2017-02-%02uT%02u:%02u:00Z\","
             "\"metricType\":\"%s\","
             "\"metricValue\":%u.5}",
             i, below(devices), 1 + minute / 1440, 1 + minute / 1440, minute / 60 % 24, minute % 60, below(2) ? "Temperature" : "Humidity",
             below(100));
    }
}

/* "State of devices: the device id": writes are spread, and the latest reading of a device is read from one partition. */
static void device_telemetry(void **state) {
    (void)state;
    advise *a = begin(&advise_defaults);
    operation(a, "{\"operation\":\"create\",\"charge\":7,\"count\":4000}");
    for (unsigned i = 0; i < 300; i++) {
        operation(a,
                  "{\"query\":\"SELECT TOP 1 * FROM c WHERE c.metricType = 'Temperature' AND c.deviceId = 'XMS-%04u' ORDER BY "
                  "c.readingTime DESC\"}",
                  below(400));
    }
    operation(a, "{\"query\":\"SELECT * FROM c WHERE c.metricType = 'Temperature' AND c.metricValue > 99\",\"count\":10}");
    add_readings(a, 400);
    const advise_report *r = advise_finish(a);
    assert_recommends(r, "/deviceId");
    const advise_key *date = key_named(r, "/date"), *device = r->keys[0];
    assert_true(slice_eq(r->time_path, SLICE_LIT("/readingTime")));
    assert_true(date->hottest > 0.8 && date->refused > 0.4);
    assert_true(device->hottest < 0.02 && device->refused < 0.02 && device->one_partition > 0.95);
    advise_free(a);
}

/* Without a log too: what is written decides. */
static void device_telemetry_without_a_log(void **state) {
    (void)state;
    advise *a = begin(&advise_defaults);
    add_readings(a, 400);
    assert_recommends(advise_finish(a), "/deviceId");
    advise_free(a);
}

static void add_log_lines(advise *a) {
    for (unsigned i = 0; i < 20000; i++) {
        unsigned day = i / 667;
        item(a,
             "{\"id\":\"l%u\",\"host\":\"web-%03u\",\"date\":\"2018-08-%02u\",\"process\":%u,\"level\":\"%s\",\"text\":\"request took %u "
             "ms\"}",
             i, below(300), 1 + day, below(40), below(10) ? "info" : "error", below(500));
    }
}

/* "Many writes, as is usual: a key that is not the time, such as the host." */
static void logs_with_many_writes(void **state) {
    (void)state;
    advise *a = begin(&advise_defaults);
    operation(a, "{\"operation\":\"create\",\"charge\":7,\"count\":1000}");
    operation(a, "{\"query\":\"SELECT * FROM c WHERE c.host = 'web-007' AND c.date = '2018-08-03'\",\"charge\":3,\"count\":200}");
    operation(a, "{\"query\":\"SELECT * FROM c WHERE c.host = 'web-017'\",\"charge\":3,\"count\":200}");
    add_log_lines(a);
    const advise_report *r = advise_finish(a);
    assert_recommends(r, "/host");
    assert_true(key_named(r, "/date")->refused > 0.4);
    advise_free(a);
}

/* "Few writes over a long time, and queries of periods: the date." */
static void logs_with_few_writes(void **state) {
    (void)state;
    advise_options o = advise_defaults;
    o.throughput = 4000;
    o.partitions = 4;
    o.load = 100;
    advise *a = begin(&o);
    operation(a, "{\"operation\":\"create\",\"charge\":7,\"count\":100}");
    for (unsigned day = 1; day <= 30; day++) {
        operation(a, "{\"query\":\"SELECT * FROM c WHERE c.date = '2018-08-%02u' AND c.level = 'error'\",\"charge\":3,\"count\":20}", day);
    }
    add_log_lines(a);
    const advise_report *r = advise_finish(a);
    assert_recommends(r, "/date");
    assert_true(r->keys[0]->refused == 0 && r->keys[0]->one_partition == 1);
    advise_free(a);
}

static void add_tenants(advise *a, unsigned part_of_largest) {
    for (unsigned i = 0; i < 20000; i++) {
        bool large = below(100) < part_of_largest;
        unsigned tenant = 1 + below(200);
        item(a, "{\"id\":\"d%u\",\"tenantId\":\"%s%03u\",\"userId\":\"user-%u\",\"kind\":\"%s\",\"pages\":%u}", i,
             large ? "contoso" : "tenant", large ? 0 : tenant, large ? below(3000) : tenant * 50 + below(20),
             below(3) ? "invoice" : "order", below(20));
    }
    for (unsigned i = 0; i < 300; i++) {
        operation(a, "{\"query\":\"SELECT * FROM c WHERE c.tenantId = 'tenant%03u'\"}", 1 + below(200));
    }
    operation(a, "{\"operation\":\"create\",\"charge\":7,\"count\":150}");
}

/* "Many tenants: the tenant id." */
static void tenants_of_similar_size(void **state) {
    (void)state;
    advise_options o = advise_defaults;
    o.total_bytes = 50 * GB;
    advise *a = begin(&o);
    add_tenants(a, 0);
    assert_recommends(advise_finish(a), "/tenantId");
    advise_free(a);
}

/* "Keep small tenants together, and large ones apart": one half is one tenant's, more than a logical partition may hold. */
static void tenants_of_very_different_size(void **state) {
    (void)state;
    advise_options o = advise_defaults;
    o.total_bytes = 100 * GB;
    o.growth = 2;
    advise *a = begin(&o);
    add_tenants(a, 50);
    const advise_report *r = advise_finish(a);
    const advise_key *flat = key_named(r, "/tenantId");
    assert_recommends(r, "/tenantId, /userId");
    assert_true(flat->outgrows && !r->keys[0]->outgrows);
    assert_true(flat->largest_share > 0.48 && flat->largest_share < 0.52);
    assert_memory_equal(flat->largest.p, "contoso000", 10);
    slice last = r->keys[0]->reasons[r->keys[0]->reasons_n - 1];
    assert_non_null(memmem(last.p, last.n, "a container of its own", 22));
    advise_free(a);
}

static void add_foods(advise *a, unsigned n) {
    static const char *const groups[] = {"Beef Products",
                                         "Baked Products",
                                         "Sausages and Luncheon Meats",
                                         "Dairy and Egg Products",
                                         "Spices and Herbs",
                                         "Fats and Oils",
                                         "Soups",
                                         "Fruits",
                                         "Vegetables",
                                         "Nuts and Seeds",
                                         "Beverages",
                                         "Fish",
                                         "Legumes",
                                         "Lamb",
                                         "Sweets",
                                         "Cereal Grains",
                                         "Fast Foods",
                                         "Meals",
                                         "Snacks",
                                         "Restaurant Foods"};
    for (unsigned i = 0; i < n; i++) {
        item(a,
             "{\"id\":\"%05u\",\"foodGroup\":\"%s\",\"description\":\"Food number %u, "
             "raw\",\"servings\":[{\"amount\":1}],\"tags\":[\"a\"],\"kcal\":%u.25}",
             i, groups[below(4) ? below(20) : below(3)], i, below(900));
    }
}

/* "A container of foods has foodGroup as its key": it is small, and read by group. */
static void food_groups_of_a_small_container(void **state) {
    (void)state;
    advise_options o = advise_defaults;
    o.throughput = 1000;
    advise *a = begin(&o);
    operation(a, "{\"query\":\"SELECT * FROM foods f WHERE f.foodGroup = 'Fruits'\",\"count\":100}");
    operation(a, "{\"query\":\"SELECT * FROM foods f WHERE f.foodGroup = 'Snacks' ORDER BY f.kcal\",\"count\":50}");
    add_foods(a, 8000);
    assert_recommends(advise_finish(a), "/foodGroup");
    advise_free(a);
}

/* "The id has many values, and spreads storage and throughput evenly." */
static void food_groups_of_a_large_container(void **state) {
    (void)state;
    advise_options o = advise_defaults;
    o.throughput = 60000;
    o.total_bytes = 400 * GB;
    advise *a = begin(&o);
    operation(a, "{\"operation\":\"create\",\"charge\":7,\"count\":50}");
    for (unsigned i = 0; i < 200; i++) {
        operation(a, "{\"operation\":\"read\",\"id\":\"%05u\",\"charge\":1}", below(8000));
    }
    add_foods(a, 8000);
    const advise_report *r = advise_finish(a);
    assert_recommends(r, "/id");
    assert_true(key_named(r, "/foodGroup")->outgrows);
    advise_free(a);
}

/* "Dates with a suffix computed from the vehicle's number": read by day, and by day and vehicle. */
static void vehicles_by_number_and_date(void **state) {
    (void)state;
    advise *a = begin(&advise_defaults);
    operation(a, "{\"operation\":\"create\",\"charge\":7,\"count\":200}");
    for (unsigned i = 0; i < 200; i++) {
        operation(a, "{\"query\":\"SELECT * FROM c WHERE c.date = '2018-08-%02u' AND c.vin = 'WVW%05u'\"}", 1 + below(28), below(3000));
        operation(a, "{\"query\":\"SELECT VALUE COUNT(1) FROM c WHERE c.date = '2018-08-%02u'\"}", 1 + below(28));
    }
    for (unsigned i = 0; i < 20000; i++) {
        item(a, "{\"id\":\"e%u\",\"vin\":\"WVW%05u\",\"date\":\"2018-08-%02u\",\"speed\":%u,\"place\":\"A-%u\"}", i, below(3000),
             1 + i / 715, below(130), below(99));
    }
    const advise_report *r = advise_finish(a);
    assert_recommends(r, "/date.hash(/vin)");
    assert_true(key_named(r, "/date")->refused > 0.2);
    assert_true(key_named(r, "/date.random")->score < r->keys[0]->score);
    assert_true(r->keys[0]->hottest < 0.02);
    advise_free(a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(user_profiles),
        cmocka_unit_test(device_telemetry),
        cmocka_unit_test(device_telemetry_without_a_log),
        cmocka_unit_test(logs_with_many_writes),
        cmocka_unit_test(logs_with_few_writes),
        cmocka_unit_test(tenants_of_similar_size),
        cmocka_unit_test(tenants_of_very_different_size),
        cmocka_unit_test(food_groups_of_a_small_container),
        cmocka_unit_test(food_groups_of_a_large_container),
        cmocka_unit_test(vehicles_by_number_and_date),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
