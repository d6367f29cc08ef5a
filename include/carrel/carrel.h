/* carrel.h - everything of libcarrel. */
#pragma once
#include <carrel/error.h>
#include <carrel/files.h>
#include <carrel/host.h>
#include <carrel/image.h>
#include <carrel/journal.h>
#include <carrel/policy.h>
#include <carrel/process.h>
#include <carrel/python.h>
#include <carrel/request.h>
#include <carrel/run.h>
#include <carrel/sandbox.h>
#include <carrel/task.h>
#include <carrel/workspace.h>
