#include "base/keyed_hash.h"

#include "base/random.h"

uint64_t keyed_hash_secrets[2];

static __attribute__((constructor)) void choose_secrets(void) {
    random_source random;
    random_seed_system(&random);
    keyed_hash_secrets[0] = random_u64(&random) | 1;
    keyed_hash_secrets[1] = random_u64(&random) | 1;
}
