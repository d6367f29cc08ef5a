/*
 * registry_sample.c - an owner without a sandbox: claims, publishes, reports that, and lives
 * until its standard input ends. For tests of listing.
 *
 * usage: registry_sample ID NAME MAX_LIVING RECORD    NAME may be "", MAX_LIVING 0
 */
#include "registry/registry.h"
#include <carrel/error.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    struct carrel_error err = { 0 };
    AUTO(registry_close) struct registry reg = REGISTRY_NONE;
    AUTO(registry_entry_free) struct registry_entry *entry = NULL;
    char byte;

    if (argc != 5)
        return 2;
    const struct registry_request request = {
        .id = argv[1],
        .name = argv[2][0] ? argv[2] : NULL,
        .max_living = strtoull(argv[3], NULL, 10),
        .max_queued = 100,
        .queue_ms = 600000,
    };
    const struct registry_status status = { .state = REGISTRY_RUNNING, .pid = getpid() };
    int r = registry_open(&reg, &err);
    if (r == 0)
        r = registry_claim(&reg, &request, &entry, &err);
    if (r == 0)
        r = registry_publish(entry, argv[4], strlen(argv[4]), &err);
    if (r == 0)
        r = registry_set_status(entry, &status, &err);
    if (r < 0) {
        (void)fprintf(stderr, "%s\n", err.message);
        return 1;
    }
    while (read(STDIN_FILENO, &byte, 1) > 0)
        continue;
    return registry_remove(entry, &err) < 0;
}
