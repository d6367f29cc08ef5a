/*
 * conversion.h - whether files on disk differ from their blobs.
 *
 * Attributes and configuration may make git convert content. If they do, only git may turn a
 * file back into a blob.
 */
#pragma once
#include "git/repo.h"
#include <limits.h>
#include <stdbool.h>

struct carrel_error;

#define CONVERSION_DIGEST_MAX 65

struct conversion {
    bool has_filters;   /* filter, ident, working-tree-encoding; modes or links not recorded */
    bool has_line_ends; /* text, eol, crlf; core.autocrlf */
    char digest[CONVERSION_DIGEST_MAX]; /* of all settings outside of commits */
};

/* Pure: the conversions that one attributes file asks for. Adds to `out`. */
void conversion_of_attributes(const char *text, size_t len, struct conversion *out);

/* The same for the user's configuration and the attributes outside of commits. */
int conversion_of_settings(
        const struct repo *repo, struct conversion *out, struct carrel_error *err);

/*
 * The path of the user's own attributes: core.attributesFile of the user's configuration, not
 * of the repository's, else the default. Empty: none. The file need not exist.
 */
int conversion_global_attributes(
        const struct git *git, char path[static PATH_MAX], struct carrel_error *err);
