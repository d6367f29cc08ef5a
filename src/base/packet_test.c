#include "base/fd.h"
#include "base/packet.h"
#include "harness.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

struct pair {
    int a, b;
};

static void pair_close(struct pair pair)
{
    fd_close(pair.a);
    fd_close(pair.b);
}
DEFINE_AUTO(struct pair, pair_close)

static struct pair make_pair(void)
{
    int fds[2];

    CHECK_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds), 0);
    return (struct pair){ fds[0], fds[1] };
}

static int count_descriptors(void)
{
    DIR *dir = opendir("/proc/self/fd");
    int n = 0;

    CHECK(dir);
    while (readdir(dir))
        n++;
    CHECK_EQ(closedir(dir), 0);
    return n;
}

TEST(a_packet_arrives_whole_and_alone)
{
    AUTO(pair_close) struct pair pair = make_pair();
    char text[4] = "";

    CHECK_EQ(packet_send(pair.a, "one", 3, NULL, 0, 0), 0);
    CHECK_EQ(packet_send(pair.a, "two", 3, NULL, 0, 0), 0);
    CHECK_EQ(packet_receive(pair.b, text, 3, NULL, 0, 0), 0);
    CHECK_STR(text, "one");
    CHECK_EQ(packet_receive(pair.b, text, 3, NULL, 0, 0), 0);
    CHECK_STR(text, "two");
    CHECK_EQ(packet_receive(pair.b, text, 3, NULL, 0, MSG_DONTWAIT), -EAGAIN);
}

TEST(descriptors_come_along_and_are_close_on_exec)
{
    AUTO(pair_close) struct pair pair = make_pair();
    int pipes[2];
    int got[2] = { -1, -1 };
    char byte;

    CHECK_EQ(pipe2(pipes, O_CLOEXEC), 0);
    CHECK_EQ(packet_send(pair.a, "x", 1, pipes, 2, 0), 0);
    CHECK_EQ(packet_receive(pair.b, &byte, 1, got, 2, 0), 2);
    CHECK_EQ(fcntl(got[0], F_GETFD), FD_CLOEXEC);
    CHECK_EQ(write(got[1], "y", 1), 1);
    CHECK_EQ(read(pipes[0], &byte, 1), 1);
    CHECK_EQ(byte, 'y');
    for (int i = 0; i < 2; i++) {
        fd_close(pipes[i]);
        fd_close(got[i]);
    }
}

TEST(a_packet_of_another_size_is_refused_and_its_descriptors_are_closed)
{
    AUTO(pair_close) struct pair pair = make_pair();
    const int fds[3] = { 0, 1, 2 };
    int got[2] = { -1, -1 };
    char text[8];
    const int before = count_descriptors();

    CHECK_EQ(packet_send(pair.a, "short", 5, fds, 2, 0), 0);
    CHECK_EQ(packet_receive(pair.b, text, 6, got, 2, 0), -EPROTO);
    CHECK_EQ(packet_send(pair.a, "too long", 8, fds, 2, 0), 0);
    CHECK_EQ(packet_receive(pair.b, text, 6, got, 2, 0), -EPROTO);
    CHECK_EQ(packet_send(pair.a, "number", 6, fds, 3, 0), 0);
    CHECK_EQ(packet_receive(pair.b, text, 6, got, 2, 0), -EPROTO);
    CHECK_EQ(packet_send(pair.a, "number", 6, fds, 1, 0), 0);
    CHECK_EQ(packet_receive(pair.b, text, 6, NULL, 0, 0), -EPROTO);
    CHECK_EQ(got[0], -1);
    CHECK_EQ(count_descriptors(), before);
    CHECK_EQ(packet_send(pair.a, "number", 6, NULL, 0, 0), 0); /* none is always fine */
    CHECK_EQ(packet_receive(pair.b, text, 6, got, 2, 0), 0);
}

TEST(more_descriptors_than_there_is_room_for_are_all_closed)
{
    AUTO(pair_close) struct pair pair = make_pair();
    union {
        char bytes[CMSG_SPACE(20 * sizeof(int))];
        struct cmsghdr align;
    } control = { 0 };
    char byte = 'x';
    struct iovec io = { &byte, 1 };
    struct msghdr header = { .msg_iov = &io,
        .msg_iovlen = 1,
        .msg_control = control.bytes,
        .msg_controllen = sizeof(control.bytes) };
    struct cmsghdr *c = CMSG_FIRSTHDR(&header);
    const int before = count_descriptors();

    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(20 * sizeof(int)); /* twenty times descriptor 0 */
    CHECK_EQ(sendmsg(pair.a, &header, 0), 1);
    CHECK_EQ(packet_receive(pair.b, &byte, 1, NULL, 0, 0), -EPROTO);
    CHECK_EQ(count_descriptors(), before);
}

TEST(the_end_of_the_other_side_is_an_error_and_no_signal)
{
    AUTO(pair_close) struct pair pair = make_pair();
    char byte;

    fd_close(fd_steal(&pair.a));
    CHECK_EQ(packet_receive(pair.b, &byte, 1, NULL, 0, 0), -EPIPE);
    CHECK_EQ(packet_send(pair.b, "x", 1, NULL, 0, 0), -EPIPE);
}

TEST(a_full_socket_says_so_instead_of_blocking)
{
    AUTO(pair_close) struct pair pair = make_pair();
    static char large[1000];
    int r = 0;

    for (int i = 0; i < 100000 && r == 0; i++)
        r = packet_send(pair.a, large, sizeof(large), NULL, 0, MSG_DONTWAIT);
    CHECK_EQ(r, -EAGAIN);
}

TEST(last_words_arrive_also_from_one_that_left_our_packet_unread)
{
    AUTO(pair_close) struct pair pair = make_pair();
    char text[4] = "";

    CHECK_EQ(packet_send(pair.a, "ask", 3, NULL, 0, 0), 0);
    CHECK_EQ(packet_send(pair.b, "bye", 3, NULL, 0, 0), 0);
    fd_close(fd_steal(&pair.b));
    CHECK_EQ(packet_receive(pair.a, text, 3, NULL, 0, 0), 0);
    CHECK_STR(text, "bye");
    CHECK_EQ(packet_receive(pair.a, text, 3, NULL, 0, 0), -EPIPE);
}
