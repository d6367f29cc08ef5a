#include "base/boot.h"
#include "harness.h"
#include <stddef.h>
#include <string.h>

TEST(the_id_is_one_word_and_stays_the_same)
{
    char id[BOOT_ID_MAX];
    char again[BOOT_ID_MAX];

    CHECK_EQ(boot_id_read(id, NULL), 0);
    CHECK_EQ(boot_id_read(again, NULL), 0);
    CHECK_EQ(strlen(id), 36);
    CHECK_EQ(strspn(id, "0123456789abcdef-"), 36);
    CHECK_STR(again, id);
}
