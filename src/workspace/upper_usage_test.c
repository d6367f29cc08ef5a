#include "workspace/upper_fixture.h"

TEST(usage_counts_every_inode_once)
{
    struct place place;
    uint64_t bytes = 0;
    uint64_t inodes = 0;
    AUTO(free) char *text = calloc(1, 100001);

    CHECK(text);
    make_place(&place);
    CHECK_EQ(upper_usage(place.upper, &bytes, &inodes, &err), 0);
    CHECK_EQ(inodes, 0);
    memset(text, 'x', 100000);
    put(&place, "upper/file", text);
    put_dir(&place, "upper/d");
    CHECK_EQ(symlinkat("/", place.upper, "d/link"), 0);
    CHECK_EQ(linkat(place.upper, "file", place.upper, "d/again", 0), 0);
    CHECK_EQ(linkat(place.upper, "file", place.upper, "d/and again", 0), 0);
    CHECK_EQ(upper_usage(place.upper, &bytes, &inodes, &err), 0);
    CHECK_EQ(inodes, 3);
    CHECK(bytes > 99000 && bytes < 150000);
    drop_place(&place);
}
