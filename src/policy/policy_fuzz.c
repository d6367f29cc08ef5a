/* policy_fuzz.c - a policy file with bytes of any kind. */
#include "base/err.h"
#include "fuzz.h"
#include "policy/policy.h"
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct carrel_error err = { 0 };

    int r = policy_check((const char *)data, size, "fuzz", &err);
    if (r > 0 || (r < 0 && (err.code != r || !err.message[0])))
        abort();
    return 0;
}
