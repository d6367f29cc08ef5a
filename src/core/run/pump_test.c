#include "base/fd.h"
#include "core/run/pump.h"
#include "harness.h"
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

static struct pump pump; /* large */

/* What a loop does: waits for what the pump waits for, then lets it move. */
static enum pump_state step(void)
{
    struct pollfd watch;

    pump_watch(&pump, &watch);
    CHECK(poll(&watch, 1, 5000) == 1);
    return pump_move(&pump, watch.revents);
}

TEST(bytes_go_through_and_are_captured)
{
    struct capture c;
    AUTO(buf_finish) struct buf text = BUF_INIT(100);
    int in[2];
    int out[2];
    char got[16] = "";

    CHECK(pipe(in) == 0 && pipe(out) == 0);
    CHECK_EQ(capture_init(&c, 100, NULL, 0), 0);
    pump_init(&pump, in[0], out[1], &c);
    CHECK_EQ(write(in[1], "hello", 5), 5);
    (void)close(in[1]);
    while (step() != PUMP_SOURCE_ENDED)
        ;
    CHECK(pump_is_done(&pump));
    CHECK_EQ(read(out[0], got, sizeof(got)), 5);
    CHECK_STR(got, "hello");
    (void)capture_text(&c, &text);
    CHECK_STR(text.data, "hello");
    capture_finish(&c);
}

TEST(a_reader_that_does_not_read_stops_the_writer)
{
    static char block[1 << 20];
    int in[2];
    int out[2];
    size_t total = 0;

    CHECK(pipe2(in, O_NONBLOCK) == 0 && pipe2(out, O_NONBLOCK) == 0);
    pump_init(&pump, in[0], out[1], NULL);
    for (int idle = 0; idle < 3;) {
        ssize_t n = write(in[1], block, sizeof(block));
        total += n > 0 ? (size_t)n : 0;
        struct pollfd watch;
        pump_watch(&pump, &watch);
        idle = poll(&watch, 1, 0) == 0 ? idle + 1 : 0;
        (void)pump_move(&pump, watch.revents);
    }
    CHECK(total > 0);
    CHECK(total <= 3 * 64 * 1024); /* two pipes and one buffer */
}

TEST(a_sink_that_is_gone_is_said_once_and_nothing_waits)
{
    int in[2];
    int out[2];

    (void)signal(SIGPIPE, SIG_IGN);
    CHECK(pipe(in) == 0 && pipe(out) == 0);
    pump_init(&pump, in[0], out[1], NULL);
    (void)close(out[0]);
    CHECK_EQ(write(in[1], "hello", 5), 5);
    CHECK_EQ(step(), PUMP_GOES_ON);
    CHECK_EQ(step(), PUMP_SINK_CLOSED);
    CHECK_EQ(write(in[1], "more", 4), 4);
    CHECK_EQ(step(), PUMP_GOES_ON); /* read and thrown away */
    (void)close(in[1]);
    CHECK_EQ(step(), PUMP_SOURCE_ENDED);
    CHECK(pump_is_done(&pump));
}

/* Two pumps on one pipe: room that poll() saw for both is there for one only. */
TEST(a_pipe_that_another_writer_has_filled_does_not_block)
{
    static char block[1 << 16];
    int in[2];
    int out[2];

    CHECK(pipe(in) == 0 && pipe(out) == 0);
    int sink = pump_open_sink(out[1]);
    CHECK(sink >= 0);
    CHECK_EQ(fcntl(out[1], F_GETFL) & O_NONBLOCK, 0); /* the caller's is as it was */
    pump_init(&pump, in[0], sink, NULL);
    CHECK_EQ(write(in[1], "hello", 5), 5);
    CHECK_EQ(pump_move(&pump, POLLIN), PUMP_GOES_ON);
    int filler = pump_open_sink(out[1]);
    while (write(filler, block, sizeof(block)) > 0)
        ;
    CHECK_EQ(pump_move(&pump, POLLOUT), PUMP_GOES_ON); /* would hang here */
    CHECK(!pump_is_done(&pump));
}
