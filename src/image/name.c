/* name.c - names of images, and the files of their records. */
#include "image/image.h"
#include "image/store.h"
#include <ctype.h>
#include <stdio.h>
#include <string.h>

static bool is_plain(unsigned char c)
{
    return c < 128 && (isalnum(c) || c == '.' || c == '_' || c == '-');
}

#define PIN_DIGITS 16
static const char *find_pin(const char *text)
{
    const char *at = strrchr(text, '@');

    return at && strlen(at + 1) == PIN_DIGITS &&
                           strspn(at + 1, "0123456789abcdef") == PIN_DIGITS
                   ? at
                   : NULL;
}

bool image_is_name(const char *text)
{
    size_t len = strlen(text);

    if (len == 0 || len > IMAGE_NAME_MAX || strcmp(text, "none") == 0)
        return false;
    if (!is_plain((unsigned char)text[0]) || !isalnum((unsigned char)text[0]))
        return false;
    for (size_t i = 0; i < len; i++)
        if (!is_plain((unsigned char)text[i]) && !strchr(":/@", text[i]))
            return false;
    return !find_pin(text);
}

/* "a/b:1" -> "a%2Fb%3A1.json": one component, and no two names share it. */
void image_store_file_name(const char *name, char file[static STORE_FILE_MAX])
{
    size_t at = 0;

    for (; *name; name++) {
        if (is_plain((unsigned char)*name))
            file[at++] = *name;
        else
            at += (size_t)snprintf(file + at, 4, "%%%02X", (unsigned char)*name);
    }
    memcpy(file + at, ".json", sizeof(".json"));
}

static int hex(char c)
{
    static const char digits[] = "0123456789ABCDEF";
    const char *at = c ? strchr(digits, c) : NULL;

    return at ? (int)(at - digits) : -1;
}

bool image_store_name_of_file(const char *file, char name[static IMAGE_NAME_MAX + 1])
{
    size_t len = strlen(file);
    size_t at = 0;

    if (len < 6 || strcmp(file + len - 5, ".json") != 0)
        return false;
    len -= 5;
    for (size_t i = 0; i < len; i++) {
        char c = file[i];
        if (c == '%') {
            if (i + 2 >= len || hex(file[i + 1]) < 0 || hex(file[i + 2]) < 0)
                return false;
            c = (char)(hex(file[i + 1]) * 16 + hex(file[i + 2]));
            i += 2;
        }
        if (at >= IMAGE_NAME_MAX)
            return false;
        name[at++] = c;
    }
    name[at] = '\0';
    return image_is_name(name);
}

const char *image_store_split_pin(const char *text, char name[static IMAGE_NAME_MAX + 1])
{
    const char *at = find_pin(text);
    size_t len = at ? (size_t)(at - text) : strlen(text);

    if (len > IMAGE_NAME_MAX)
        len = 0; /* no name, then */
    memcpy(name, text, len);
    name[len] = '\0';
    return at ? at + 1 : NULL;
}

bool image_pin_is_of(const char *pin, const char *name)
{
    char pinned[IMAGE_NAME_MAX + 1];

    return image_store_split_pin(pin, pinned) && strcmp(pinned, name) == 0;
}

bool image_store_is_layer_id(const char *id)
{
    return strlen(id) == STORE_ID_LEN && strspn(id, "0123456789abcdef") == STORE_ID_LEN;
}
