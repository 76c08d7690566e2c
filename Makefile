# SPDX-License-Identifier: Apache-2.0
# A short front end for meson and ninja. Every target works right after a clone: missing Debian packages (tools/packages)
# are installed if you are root, and named if you are not.
#
#   make            only build/oneway and the library; make install PREFIX=/usr/local DESTDIR=, make uninstall
#   make demo       half a minute of the lab: real packets, two points, results compared with the truth (needs root)
#   make check      the quick tests of the release build, for the inner loop of a change (a minute)
#   make test       all tests: release, ASan+UBSan and TSan builds, fuzz corpora, sources (some 10 minutes)
#   make repeat     make test RUNS=20 times, and which tests failed how often (hours)
#   make prove      live results against captures and the wire, for every loss and interval (needs root; some minutes)
#   make soak       the whole system for SOAK=10m, or any time: constant memory, no false losses (needs root)
#   make networks   NETWORKS=200 random routed networks with two points: no false losses (needs root; some minutes)
#   make scarce     each of the first 2000 allocations of each command fails (some minutes; make test has a sample)
#   make faults     kill -9, partitions, stalls, full disks: longer than in the tests, with 50 kills (needs root)
#   make fleet-test the map of random networks, the station on them, a fleet under load (needs root; an hour)
#   make bare       make demo and make test on a bare Debian 12 that it makes in BARE=build/bare (needs root; 15 to 25 minutes)
#   make perturb    PERTURB=5000 cases of perturbed captures with the truth of every packet (make test has 40)
#   make prove-memory  peak memory with 20 and with 2000 rotated files (some minutes)
#   make accuracy   estimates of 100 k flows against exact results (some minutes)
#   make bench      speed and memory as ratios (BENCH_FLAGS="--only match --large 0": one benchmark, without the 10 M-packet
#                   pair); SAVE=1 puts the results into docs/performance.md
#   make deb        Debian packages, into build/deb      make deb-test      installs, upgrades and purges them (needs root; minutes)
#   make coverage   lines that the tests run, by room, and the functions that none runs (some minutes)
#   make fuzz       FUZZ_SECONDS=60 for each parser     make lint          clang-tidy and cppcheck
#   make pictures   those of README.md and docs/web.md: the page in Chromium
#   make format     clang-format in place               make clean
#
# WERROR=true makes warnings errors (.ci/run does).

WERROR ?= false
FUZZ_SECONDS ?= 60
SOAK ?= 10m
RUNS ?= 20
NETWORKS ?= 200
PERTURB ?= 5000
PERTURB_FLAGS ?=
BENCH_FLAGS ?=
SAVE ?=
BARE ?= build/bare
PREFIX ?=
DESTDIR ?=
# Quick to build: optimisation where it is worth it (meson.build); lines in backtraces, no variables; a linker that takes half of the time.
# With sanitizers gcc has false positives of -Wmaybe-uninitialized.
SANITIZED := -Doptimization=0 -Ddebug=true -Dc_args='-g1 -Wno-maybe-uninitialized' -Db_lundef=false -Dc_link_args=-fuse-ld=gold

.DEFAULT_GOAL := all
.PHONY: all check test repeat demo coverage prove prove-memory faults fleet-test networks soak scarce bare perturb accuracy bench pictures fuzz lint format install uninstall deb deb-test clean
# One build after the other: ninja already uses all cores.
.NOTPARALLEL:
.DELETE_ON_ERROR:

all: build/.werror-$(WERROR)
	@ninja -C build program

check: build/.packages-test build/.werror-$(WERROR)
	@tools/run-check build

test: build/.packages-test build/.werror-$(WERROR) build-asan/.werror-$(WERROR) build-tsan/.werror-$(WERROR)
	@tools/run-tests

repeat: build/.packages-test build/.werror-$(WERROR) build-asan/.werror-$(WERROR) build-tsan/.werror-$(WERROR)
	@tools/run-repeatedly $(RUNS)

demo: build/.packages-demo all
	@tools/demo build/oneway build/demo

pictures: build/.packages-pictures all
	@ninja -C build tests/web/make_store
	@mkdir -p docs/images
	@ONEWAY=build/oneway MAKE_STORE=build/tests/web/make_store tests/web/pictures.py docs/images

prove: build/.packages-test all
	@ninja -C build tests/system/cables tests/plane/test_monitor
	@ONEWAY=build/oneway tests/system/prove_live.py
	@ONEWAY=build/oneway CABLES=build/tests/system/cables tests/system/test_plane_ospf.py --all
	@OW_MONITOR_RUNS=1 build/tests/plane/test_monitor

# Longer proofs of what `make test` shows shortly.
fleet-test: build/.packages-test all
	@ninja -C build tests/system/cables tests/system/oneway_stepped tests/discovery/test_simulation
	@build/tests/discovery/test_simulation --long
	@tests/cli/check-fleet-map build/oneway 300
	@ONEWAY=build/tests/system/oneway_stepped tests/system/discovered_networks.py --count 100 --side-by-side 4
	@ONEWAY=build/oneway CABLES=build/tests/system/cables tests/system/station_network.py --seeds 10
	@tests/system/test_fleet_load.py build/oneway --servers 3
	@tests/system/test_fleet_load.py build/oneway --hour
	@tests/system/test_fleet_load.py build/oneway --long

faults: build/.packages-test all
	@ninja -C build tests/system/labwire tests/point/test_outage
	@tools/run-faults build

networks: build/.packages-test all
	@ONEWAY=build/oneway tests/system/random_networks.py --count $(NETWORKS)

soak: build/.packages-test all
	@ninja -C build tests/system/labwire
	@ONEWAY=build/oneway LABWIRE=build/tests/system/labwire tests/system/soak.py --seconds $(SOAK) --csv build/soak.csv

scarce: build/.packages-test all
	@ninja -C build tests/scarce/libscarce.so
	@SCARCE_FULL=1 SCARCE_PRELOAD=$(CURDIR)/build/tests/scarce/libscarce.so ONEWAY=build/oneway python3 tests/system/test_scarce.py
	@SCARCE_FULL=1 SCARCE_PRELOAD=$(CURDIR)/build/tests/scarce/libscarce.so ONEWAY=build/oneway python3 tests/system/test_scarce_pair.py

bare: build/.packages-bare
	@tools/run-bare-root $(BARE)

perturb: all
	@tests/perturb/perturb.py build/oneway --cases $(PERTURB) $(PERTURB_FLAGS)

accuracy: all
	@tests/cli/check-flows-accuracy --flows 100000 --packets 4000000 build/oneway

# Peak memory does not grow with the number of rotated files.
prove-memory: all
	@tests/cli/check-simulated-paths build/oneway memory_of_many_files

bench: build/.packages-bench all
	@ninja -C build benchmarks
	@bench/run-all $(if $(SAVE),--save docs/performance.md) $(BENCH_FLAGS) build

fuzz: build-fuzz/.werror-$(WERROR)
	@ninja -C build-fuzz fuzzers
	@tools/run-fuzz build-fuzz $(FUZZ_SECONDS)

lint: build/.packages-lint build-lint/.werror-$(WERROR)
	@tools/run-lint build-lint

coverage: build/.packages-test build/.packages-coverage build-coverage/.werror-$(WERROR)
	@tools/run-coverage build-coverage

format: build/.packages-format
	@tools/check-format --fix

install: all
	@if [ -n "$(PREFIX)" ]; then meson configure build --prefix="$(PREFIX)" && ninja -C build program; fi
	@tools/install build "$(DESTDIR)"

# Into build/deb.
deb: build/.packages-deb
	@tools/build-deb build/deb
	@lintian build/deb/*.changes
	@ls build/deb/*.deb

deb-test: build/.packages-deb build/.packages-bare
	@tools/run-deb-test build/deb-test

uninstall:
	@tools/uninstall "$(DESTDIR)" "$(or $(PREFIX),/usr/local)"

clean:
	rm -rf build build-asan build-tsan build-fuzz build-lint build-coverage

# Packages are checked once per build directory and change of the list.
build/.packages-%: tools/packages
	@tools/install-packages $*
	@mkdir -p build
	@touch $@

# $(call configure,DIRECTORY,OPTIONS): sets the directory up, or changes its werror.
configure = if [ -f $(1)/build.ninja ]; then meson configure $(1) -Dwerror=$(WERROR); \
	else meson setup $(1) -Dwerror=$(WERROR) $(2); fi && rm -f $(1)/.werror-* && touch $(1)/.werror-$(WERROR)

build/.werror-$(WERROR): | build/.packages-build
	@$(call configure,build)
build-asan/.werror-$(WERROR): | build/.packages-build
	@$(call configure,build-asan,$(SANITIZED) -Db_sanitize=address$(comma)undefined -Db_pch=false)
build-tsan/.werror-$(WERROR): | build/.packages-build
	@$(call configure,build-tsan,$(SANITIZED) -Db_sanitize=thread)
build-coverage/.werror-$(WERROR): | build/.packages-build
	@$(call configure,build-coverage,-Doptimization=1 -Ddebug=false -Db_coverage=true)
build-fuzz/.werror-$(WERROR): | build/.packages-build build/.packages-fuzz
	@CC=clang-14 && export CC && $(call configure,build-fuzz,-Dbuildtype=debugoptimized -Db_lundef=false -Db_sanitize=address$(comma)undefined -Db_pch=false -Dfuzz=true -Dtests=false)
# clang-tidy reads clang's compile commands: gcc's know options that clang does not.
build-lint/.werror-$(WERROR): | build/.packages-build build/.packages-lint
	@CC=clang-14 && export CC && $(call configure,build-lint,-Dbuildtype=debug -Db_pch=false)

comma := ,
