# A short front for meson and ninja. The packages are in tools/packages.
build/build.ninja:
	meson setup build
all: build/build.ninja
	ninja -C build
test: all
	meson test -C build --print-errorlogs
.PHONY: all test
.DEFAULT_GOAL := all
