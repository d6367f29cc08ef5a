/* start.h - a keeper as a program: from its request to the sandbox that it keeps. */
#pragma once

/*
 * Reads the request from KEEPER_REQUEST_FD, makes the sandbox, reports to KEEPER_REPORT_FD and
 * serves until the sandbox ends. The calling process returns at once and leaves a child that
 * does all this; in both, the value is the exit status.
 */
int keeper_execute(void);
