# The front door. Everything is built by Meson and Ninja; this file only knows what to call.
# `make run` and `make test` install missing Debian packages first (see scripts/deps).

PREFIX ?= /usr/local
DESTDIR ?=
FUZZ_SECONDS ?= 60
SOAK_SECONDS ?= 600
SOAK_SEED ?= 1
BUILD := build

.PHONY: all build run test lint bench fuzz faults soak install clean help

all: build

build: $(BUILD)/build.ninja
	@ninja -C $(BUILD) --quiet

$(BUILD)/build.ninja:
	@scripts/deps build
	@scripts/configure $(BUILD)

run:
	@scripts/deps build
	@scripts/configure $(BUILD)
	@ninja -C $(BUILD) --quiet carrel
	@scripts/demo

test:
	@scripts/deps build test lint
	@scripts/run-tests

lint:
	@scripts/deps build lint
	@scripts/lint

bench:
	@scripts/deps build bench
	@$(MAKE) --no-print-directory build
	@bench/run

fuzz:
	@scripts/deps build fuzz
	@scripts/fuzz $(FUZZ_SECONDS)

faults:
	@scripts/deps build test
	@$(MAKE) --no-print-directory build
	@CARREL_FAULTS=full bats tests/cli/faults.bats

soak:
	@scripts/deps build test
	@$(MAKE) --no-print-directory build
	@SOAK_SECONDS=$(SOAK_SECONDS) SOAK_SEED=$(SOAK_SEED) tests/soak/run

install: build
	@meson configure $(BUILD) -Dprefix=$(abspath $(PREFIX))
	@ninja -C $(BUILD) build.ninja >/dev/null
	@ninja -C $(BUILD) --quiet
	@DESTDIR=$(abspath $(DESTDIR)) meson install -C $(BUILD) --no-rebuild --quiet

clean:
	rm -rf build build-asan build-fuzz build-aarch64

help:
	@echo 'make             build $(BUILD)/carrel and the library'
	@echo 'make run         install what is missing, build, and show what carrel does'
	@echo 'make test        all tests, with gcc, clang and sanitizers; the last line sums them up'
	@echo 'make lint        layout, static analysis, shell scripts, manual pages'
	@echo 'make bench       start-up time and throughput, next to bubblewrap'
	@echo 'make fuzz        every fuzz target for FUZZ_SECONDS=$(FUZZ_SECONDS)'
	@echo 'make faults      each system call of the setup fails in turn, with every error (minutes)'
	@echo 'make soak        living sandboxes, used at random for SOAK_SECONDS=$(SOAK_SECONDS), SOAK_SEED=$(SOAK_SEED)'
	@echo 'make install     to DESTDIR=$(DESTDIR) PREFIX=$(PREFIX)'
	@echo 'make clean       remove what was built'
