#include "base/kernel.h"
#include "harness.h"
#include <stddef.h>
#include <string.h>

TEST(the_id_is_one_word_and_stays_the_same)
{
    char id[KERNEL_BOOT_ID_MAX];
    char again[KERNEL_BOOT_ID_MAX];

    CHECK_EQ(kernel_boot_id(id, NULL), 0);
    CHECK_EQ(kernel_boot_id(again, NULL), 0);
    CHECK_EQ(strlen(id), 36);
    CHECK_EQ(strspn(id, "0123456789abcdef-"), 36);
    CHECK_STR(again, id);
}
