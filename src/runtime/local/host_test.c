/* host_test.c - facts about other machines. */
#include "base/err.h"
#include "harness.h"
#include "runtime/local/host.h"
#include "runtime/runtime.h"
#include <stdio.h>
#include <sys/stat.h>

TEST(kernels_from_5_15_on_are_new_enough)
{
    CHECK(host_is_new_enough("5.15.0"));
    CHECK(host_is_new_enough("5.15.0-91-generic"));
    CHECK(host_is_new_enough("5.19"));
    CHECK(host_is_new_enough("6.1.0-13-amd64"));
    CHECK(host_is_new_enough("10.0.1"));
}

TEST(older_kernels_and_names_that_are_no_versions_are_not)
{
    CHECK(!host_is_new_enough("5.14.21"));
    CHECK(!host_is_new_enough("5.4.0-150-generic"));
    CHECK(!host_is_new_enough("4.18.0-513.el8.x86_64"));
    CHECK(!host_is_new_enough("2.6.78"));
    CHECK(!host_is_new_enough("6"));
    CHECK(!host_is_new_enough("linux"));
    CHECK(!host_is_new_enough(""));
}

TEST(a_root_may_have_any_number_of_names)
{
    enum { N_NAMES = 50 };
    AUTO(host_free) struct host *host = NULL;
    char root[] = "/tmp/carrel-host.XXXXXX";
    struct sandbox_spec spec = { .root = root };
    struct carrel_error err = { 0 };
    uint64_t seen = 0;
    unsigned number;
    char name[64];

    CHECK(test_mkdtemp(root));
    for (number = 0; number < N_NAMES; number++) {
        (void)snprintf(name, sizeof(name), "%s/name-%u", root, number);
        CHECK_EQ(mkdir(name, 0755), 0);
    }
    CHECK_EQ(host_read(&spec, &host, &err), 0);
    CHECK_EQ(host->n_entries, (size_t)N_NAMES);
    for (size_t i = 0; i < host->n_entries; i++) {
        CHECK_EQ(sscanf(host->entries[i].path, "name-%u", &number), 1);
        CHECK(host->entries[i].kind == ENTRY_DIR && number < N_NAMES);
        seen |= UINT64_C(1) << number;
    }
    CHECK_EQ(seen, (UINT64_C(1) << N_NAMES) - 1);
}
