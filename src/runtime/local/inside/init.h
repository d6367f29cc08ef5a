/* init.h - pid 1 of a sandbox. */
#pragma once

struct setup;

/*
 * Sets the sandbox up, reports that (WIRE_READY or WIRE_FAILED) and serves the host until the
 * socket ends; then everything in the sandbox is killed with it. Never returns.
 */
_Noreturn void init_main(struct setup *setup);
