# The entry point. Meson and Ninja build everything; this file only calls them.
# `make run` and `make test` install missing Debian packages first (see scripts/deps).

PREFIX ?= /usr/local
DESTDIR ?=
FUZZ_SECONDS ?= 60
SOAK_SECONDS ?= 600
SOAK_SEED ?= 1
STORM_SECONDS ?= 30
STORM_SEED ?= 1
BUILD := build

.PHONY: all build run test lint bench fuzz faults soak storm install clean help

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

storm:
	@scripts/deps build test
	@$(MAKE) --no-print-directory build
	@STORM_SECONDS=$(STORM_SECONDS) STORM_SEED=$(STORM_SEED) STORM_PLACE=$(STORM_PLACE) STORM_NAME=$(STORM_NAME) \
		tests/lib/in_memory tests/storm/run

install: build
	@meson configure $(BUILD) -Dprefix=$(abspath $(PREFIX))
	@ninja -C $(BUILD) build.ninja >/dev/null
	@ninja -C $(BUILD) --quiet
	@DESTDIR=$(abspath $(DESTDIR)) meson install -C $(BUILD) --no-rebuild --quiet

clean:
	rm -rf build build-asan build-lib-thread build-lib-address build-fuzz build-aarch64 build-walk

help:
	@echo 'make             build $(BUILD)/carrel and the library'
	@echo 'make run         install what is missing, build, and run the demonstration'
	@echo 'make test        run all tests; the last line sums them up'
	@echo 'make lint        check layout, static analysis, shell scripts, manual pages'
	@echo 'make bench       measure start-up time, throughput and memory, next to other tools'
	@echo 'make fuzz        run every fuzz target for FUZZ_SECONDS=$(FUZZ_SECONDS)'
	@echo 'make faults      let each system call of the setup fail in turn, with every error (minutes)'
	@echo 'make soak        use living sandboxes at random for SOAK_SECONDS=$(SOAK_SECONDS), SOAK_SEED=$(SOAK_SEED)'
	@echo 'make storm       exchange files while carrel opens them, STORM_SECONDS=$(STORM_SECONDS) for each place, STORM_SEED=$(STORM_SEED)'
	@echo 'make install     install to DESTDIR=$(DESTDIR) PREFIX=$(PREFIX)'
	@echo 'make clean       remove what was built'
