/* arena_test.c */
#include "base/arena.h"
#include "harness.h"
#include <stdalign.h>
#include <stdint.h>

TEST(pieces_are_aligned_zeroed_and_apart)
{
    AUTO(arena_finish) struct arena arena = { 0 };
    unsigned char *pieces[300];

    for (size_t i = 0; i < ARRAY_LEN(pieces); i++) {
        pieces[i] = arena_alloc(&arena, i);
        CHECK(pieces[i]);
        CHECK_EQ((uintptr_t)pieces[i] % alignof(max_align_t), 0);
        for (size_t j = 0; j < i; j++)
            CHECK_EQ(pieces[i][j], 0);
        memset(pieces[i], (int)(i & 0xff), i);
    }
    for (size_t i = 0; i < ARRAY_LEN(pieces); i++)
        for (size_t j = 0; j < i; j++)
            CHECK_EQ(pieces[i][j], i & 0xff);
}

TEST(a_large_piece_fits_too)
{
    AUTO(arena_finish) struct arena arena = { 0 };
    const size_t size = 1U << 20;
    char *large = arena_alloc(&arena, size);

    CHECK(large);
    large[size - 1] = 1;
    CHECK(!arena_alloc(&arena, SIZE_MAX - 4));
}

TEST(a_list_is_empty_and_has_room_for_its_end)
{
    AUTO(arena_finish) struct arena arena = { 0 };
    const char **list = arena_list(&arena, 2);

    CHECK(list && !list[0] && !list[1] && !list[2]);
}

TEST(a_copy_ends_with_nul)
{
    AUTO(arena_finish) struct arena arena = { 0 };

    CHECK_STR(arena_copy(&arena, "policy", 3), "pol");
    CHECK_STR(arena_copy(&arena, NULL, 0), "");
}
