/* host_test.c - facts about machines that are not at hand. */
#include "harness.h"
#include "runtime/local/host.h"

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
