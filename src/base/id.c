/* id.c - 80 random bits as text. */
#include "base/id.h"
#include "base/err.h"
#include <errno.h>
#include <string.h>
#include <sys/random.h>

#define LEN 16

/* 32 digits of five bits each; letters that are easily confused are left out */
static const char digits[] = "0123456789abcdefghjkmnpqrstvwxyz";

int id_new(char prefix, char id[static ID_SIZE], struct carrel_error *err)
{
    unsigned char bytes[LEN];

    if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
        return err_set_errno(err, -errno, "getrandom");
    id[0] = prefix;
    id[1] = '-';
    for (size_t i = 0; i < sizeof(bytes); i++)
        id[2 + i] = digits[bytes[i] % 32];
    id[2 + LEN] = '\0';
    return 0;
}

bool id_is_made_up(char prefix, const char *text)
{
    return text[0] == prefix && text[1] == '-' && strlen(text) == 2 + LEN &&
           strspn(text + 2, digits) == LEN;
}
