#include "base/err.h"
#include "base/fd.h"
#include "core/files/watch_share.h"
#include "harness.h"
#include <fcntl.h>
#include <stdlib.h>

TEST(watches_together_leave_half_of_what_the_user_may_have)
{
    struct carrel_error err = { 0 };
    size_t most[8], sum = 0;
    char text[32];
    int fds[8];

    CHECK(fd_read_file(AT_FDCWD, "/proc/sys/fs/inotify/max_user_watches", text, sizeof(text)) >
            0);
    for (size_t i = 0; i < 8; i++) {
        fds[i] = watch_share_take(&most[i], &err);
        CHECK(fds[i] >= 0);
        CHECK(most[i] >= 16 && most[i] <= 16384);
        CHECK(i == 0 || most[i] <= most[i - 1]);
        sum += most[i];
    }
    CHECK(sum <= strtoul(text, NULL, 10) / 2 + 8 * 16);
    size_t again = 0;
    fd_close(fds[2]);
    fds[2] = watch_share_take(&again, &err);
    CHECK(again >= most[2]); /* one that is over gives its share back */
    for (size_t i = 0; i < 8; i++)
        fd_close(fds[i]);
}
