/* sensitive.h - paths that something on the host would execute or obey by itself. */
#pragma once

/* Why, in a few words ("git hook directory", "CI workflow"), or NULL. One table; case folded.
 */
const char *sensitive_why(const char *path);
