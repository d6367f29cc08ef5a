/* Writes without end: lines, one line, or bytes that are no text; on stdout, stderr or both. */
#include "attack.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static char chunk[65536];

/* attack lines|line|binary */
static void attack(char **args)
{
    if (!args[0])
        cannot("which flood?");
    for (size_t i = 0; i < sizeof(chunk); i++)
        chunk[i] = strcmp(args[0], "lines") == 0  ? "y\n"[i % 2]
                   : strcmp(args[0], "line") == 0 ? 'y'
                                                  : (char)(i * 7);
    for (;;)
        for (int fd = 1; fd <= 2; fd++)
            if (write(fd, chunk, sizeof(chunk)) < 0)
                return; /* nobody reads any more */
}

/* Little enough to be kept whole. */
static void control(char **args)
{
    (void)args;
    for (int i = 0; i < 100; i++)
        works("line", true);
}

int main(int argc, char **argv)
{
    return attack_main(argc, argv,
            (struct attack_mode[]){ { "attack", attack }, { "control", control }, { 0 } });
}
