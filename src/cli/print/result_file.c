/* result_file.c - what a run gave, in a file of the caller's. */
#include "cli/print/result_file.h"
#include "base/named.h"

/* The program may have been able to write to the directory: nothing is written through a link.
 */
int result_file_write(const char *path, const void *data, size_t len, struct carrel_error *err)
{
    return named_replace(path, data, len, 0644, err);
}

int result_file_check(const char *path, struct carrel_error *err)
{
    return named_may_replace(path, err);
}
