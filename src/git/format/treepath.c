/* treepath.c - names that must not be in a tree. */
#include "git/format/treepath.h"
#include "base/buf.h"
#include <limits.h>
#include <stdbool.h>
#include <string.h>
#include <strings.h>

/*
 * Code points that HFS+ ignores when it compares names; each has three bytes in UTF-8. The list
 * is that of Apple's technical note 1150, which git uses too.
 */
static bool is_ignored_by_hfs(const unsigned char *at, size_t len)
{
    if (len < 3)
        return false;
    unsigned point = (at[0] & 0x0fU) << 12 | (at[1] & 0x3fU) << 6 | (at[2] & 0x3fU);
    if ((at[0] & 0xf0U) != 0xe0U || (at[1] & 0xc0U) != 0x80U || (at[2] & 0xc0U) != 0x80U)
        return false;
    return (point >= 0x200c && point <= 0x200f) || (point >= 0x202a && point <= 0x202e) ||
           (point >= 0x206a && point <= 0x206f) || point == 0xfeff;
}

/*
 * Copies the start of the name without what HFS+ ignores. A name that does not fit is not
 * ".git".
 */
static void fold_hfs(const char *name, size_t len, char *out, size_t size)
{
    const unsigned char *at = (const unsigned char *)name;
    size_t used = 0;

    for (size_t i = 0; i < len && used + 1 < size;) {
        if (is_ignored_by_hfs(at + i, len - i)) {
            i += 3;
            continue;
        }
        out[used++] = name[i++];
    }
    out[used] = '\0';
}

static bool is_hfs_dotgit(const char *name, size_t len)
{
    char folded[8];

    fold_hfs(name, len, folded, sizeof(folded));
    return strcasecmp(folded, ".git") == 0;
}

/* NTFS ignores trailing dots and spaces, and treats what follows a colon as a stream. */
static bool is_ntfs_dotgit(const char *name, size_t len)
{
    size_t skip = 0;

    if (len >= 4 && strncasecmp(name, ".git", 4) == 0)
        skip = 4;
    else if (len >= 5 && strncasecmp(name, "git~1", 5) == 0)
        skip = 5;
    else
        return false;
    while (skip < len && (name[skip] == '.' || name[skip] == ' '))
        skip++;
    return skip == len || name[skip] == ':';
}

static const char *why_not_name(const char *name, size_t len)
{
    if (len == 0)
        return "it has an empty component";
    if (len > NAME_MAX)
        return "a name in it is longer than 255 bytes";
    if ((len == 1 && name[0] == '.') || (len == 2 && name[0] == '.' && name[1] == '.'))
        return "it has a '.' or '..' component";
    if (is_hfs_dotgit(name, len))
        return "a name in it is equivalent to '.git'";

    /* If a backslash separates, each part is a name. */
    for (const char *part = name, *end = name + len; part <= end;) {
        const char *slash = memchr(part, '\\', (size_t)(end - part));
        size_t part_len = (size_t)((slash ? slash : end) - part);
        if (is_ntfs_dotgit(part, part_len))
            return "a name in it is equivalent to '.git'";
        if (slash && part_len == 2 && memcmp(part, "..", 2) == 0)
            return "it has a '..' component before a backslash";
        part += part_len + 1;
    }
    return NULL;
}

const char *treepath_why_not(const char *path)
{
    if (strlen(path) >= PATH_MAX)
        return "it is longer than 4095 bytes";
    for (;;) {
        size_t len = strcspn(path, "/");
        const char *why = why_not_name(path, len);
        if (why)
            return why;
        if (path[len] == '\0')
            return NULL;
        path += len + 1;
    }
}

void treepath_quote(struct buf *out, const char *text)
{
    buf_add_str(out, "\"");
    for (;;) {
        size_t plain = strcspn(text, "\"\\\n");
        buf_add(out, text, plain);
        text += plain;
        if (*text == '\0')
            break;
        buf_add_str(out, *text == '\n' ? "\\n" : *text == '"' ? "\\\"" : "\\\\");
        text++;
    }
    buf_add_str(out, "\"");
}
