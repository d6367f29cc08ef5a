/* sensitive.h - paths that tools on the host execute or obey automatically. */
#pragma once

/* The reason in a few words ("git hook directory", "CI workflow"), or NULL. Ignores case. */
const char *sensitive_why(const char *path);
