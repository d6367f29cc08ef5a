/* python_report_fuzz.c - whatever a sandbox leaves: the result is one line of valid JSON. */
#include "base/json_read.h"
#include "base/utf8.h"
#include "core/python/python_report.h"
#include "core/result/result.h"
#include "fuzz.h"
#include <stdlib.h>
#include <string.h>

/* The first byte decides how it ended; findings, a NUL, the report. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct carrel_run_result *result = calloc(1, sizeof(*result));
    struct json_value value;

    if (!result || size == 0) {
        free(result);
        return 0;
    }
    const char *text = (const char *)data + 1;
    const char *nul = memchr(text, '\0', size - 1);
    size_t len = nul ? (size_t)(nul - text) : size - 1;
    const struct python_texts texts = {
        .findings = data[0] & 0x80 ? NULL : text,
        .findings_len = len,
        .report = nul ? nul + 1 : "",
        .report_len = nul ? size - 2 - len : 0,
        .is_warning = data[0] & 0x40,
    };
    result->has_status = true;
    result->wait_status = (data[0] & 3) << 8;
    result->reason = data[0] & 4 ? CARREL_TIMEOUT : CARREL_EXITED;
    result->usage = USAGE_INIT;
    result->guest = GUEST_ANSWER_INIT;
    result->json = BUF_INIT(64U << 20);
    result->stderr_text = BUF_INIT(64U << 20);
    buf_add(&result->stderr_text, data, size);

    python_report_apply(&texts, result);
    if (result_write_json(result) < 0)
        abort();
    if (json_read_check(result->json.data, result->json.len, &value, NULL) < 0)
        abort();
    const unsigned char *at = (const unsigned char *)result->json.data;
    for (size_t i = 0; i < result->json.len;) {
        size_t n = utf8_valid(at + i, result->json.len - i);
        if (n == 0 || utf8_is_control(at + i, n))
            abort();
        i += n;
    }
    carrel_run_result_free(result);
    return 0;
}
