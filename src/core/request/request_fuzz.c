/* request_fuzz.c - whatever is read can be written, and is the same when it is read again. */
#include "base/buf.h"
#include "core/request/request.h"
#include "fuzz.h"
#include <carrel/error.h>
#include <stdlib.h>
#include <string.h>

static void write_again(const struct request *request, struct buf *out)
{
    struct carrel_error err = { 0 };

    if (request_write(&request->run, &request->sandbox, &request->layers, out, &err) < 0)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO(request_free) struct request *first = NULL;
    AUTO(request_free) struct request *second = NULL;
    AUTO(buf_finish) struct buf once = BUF_INIT(2 * REQUEST_MAX);
    AUTO(buf_finish) struct buf twice = BUF_INIT(2 * REQUEST_MAX);
    struct carrel_error err = { 0 };

    if (request_parse((const char *)data, size, &first, &err) < 0) {
        if (err.code >= 0 || !err.message[0])
            abort();
        return 0;
    }
    write_again(first, &once);
    if (request_parse(once.data, once.len, &second, &err) < 0)
        abort();
    write_again(second, &twice);
    if (once.len != twice.len || memcmp(once.data, twice.data, once.len) != 0)
        abort();
    return 0;
}
