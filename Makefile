# SPDX-License-Identifier: Apache-2.0
# A thin front: every target is one or two commands that also work by hand (CONTRIBUTING.md).
.PHONY: setup configure build demo test bench plots format
JOBS ?= $(shell nproc)

setup:
	@cmake/setup.sh

configure: setup
	@test -f build/build.ninja || cmake --preset release >build-configure.log 2>&1 || { cat build-configure.log; exit 1; }
	@rm -f build-configure.log

build: configure
	@cmake --build build -j $(JOBS)

demo: configure
	@cmake --build build -j $(JOBS) --target zellige_programs
	@examples/demo.sh

test: build
	@tests/run.sh

bench: build
	@bench/run.sh

plots:
	@python3 bench/tables.py
	@bench/plots.sh

format:
	@git ls-files '*.h' '*.cpp' | xargs clang-format -i
