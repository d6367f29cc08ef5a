/* terminal.c - raw mode and size. */
#include "cli/terminal.h"
#include <carrel/run.h>
#include <sys/ioctl.h>
#include <unistd.h>

void terminal_begin(struct terminal *terminal, struct carrel_run_options *options)
{
    struct winsize size = { .ws_row = 24, .ws_col = 80 };

    (void)ioctl(STDOUT_FILENO, TIOCGWINSZ, &size); /* not a terminal: the default stays */
    options->rows = size.ws_row;
    options->cols = size.ws_col;
    if (options->stdin_fd < 0 || tcgetattr(STDIN_FILENO, &terminal->saved) < 0)
        return;
    struct termios raw = terminal->saved;
    cfmakeraw(&raw);
    terminal->is_raw = tcsetattr(STDIN_FILENO, TCSANOW, &raw) == 0;
}

void terminal_end(struct terminal *terminal)
{
    if (terminal->is_raw)
        (void)tcsetattr(STDIN_FILENO, TCSANOW, &terminal->saved); /* nothing left to try */
    terminal->is_raw = false;
}
