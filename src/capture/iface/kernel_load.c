/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loads the program of kernel.bpf.c with libbpf, which adapts it to the running kernel. libbpf itself is loaded when it
 * is needed.
 */
#include "capture/iface/kernel_load.h"

#include "base/library.h"
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* The compiled program: made by tools/embed-object. */
extern const unsigned char ow_kernel_object[];
extern const size_t ow_kernel_object_bytes;

/* The functions of libbpf. */
static struct {
	libbpf_print_fn_t (*set_print)(libbpf_print_fn_t);
	int (*processors)(void);
	struct bpf_object *(*open_mem)(const void *, size_t, const struct bpf_object_open_opts *);
	int (*load)(struct bpf_object *);
	void (*close)(struct bpf_object *);
	struct bpf_map *(*find_map)(const struct bpf_object *, const char *);
	struct bpf_program *(*find_program)(const struct bpf_object *, const char *);
	int (*set_entries)(struct bpf_map *, uint32_t);
	int (*set_value_size)(struct bpf_map *, uint32_t);
	void *(*initial_value)(struct bpf_map *, size_t *);
	int (*map_fd)(const struct bpf_map *);
	int (*program_fd)(const struct bpf_program *);
	const char *(*version)(void);
} bpf;

static int load_library(struct ow_error *err)
{
	static const struct ow_library_function functions[] = {
		{"libbpf_set_print", &bpf.set_print},
		{"libbpf_num_possible_cpus", &bpf.processors},
		{"bpf_object__open_mem", &bpf.open_mem},
		{"bpf_object__load", &bpf.load},
		{"bpf_object__close", &bpf.close},
		{"bpf_object__find_map_by_name", &bpf.find_map},
		{"bpf_object__find_program_by_name", &bpf.find_program},
		{"bpf_map__set_max_entries", &bpf.set_entries},
		{"bpf_map__set_value_size", &bpf.set_value_size},
		{"bpf_map__initial_value", &bpf.initial_value},
		{"bpf_map__fd", &bpf.map_fd},
		{"bpf_program__fd", &bpf.program_fd},
		{"libbpf_version_string", &bpf.version},
	};
	int r = ow_library_load("libbpf.so.1", functions, sizeof functions / sizeof *functions, err);
	if (r == 0)
		bpf.set_print(NULL); /* it would write to standard error */
	return r;
}

const char *ow_iface_kernel_library(struct ow_error *err)
{
	const char *version = load_library(err) == 0 ? bpf.version() : NULL;
	return version && *version == 'v' ? version + 1 : version;
}

/* In another time namespace, the monotonic clock of this process is not that of the kernel. */
static bool has_own_clock(void)
{
	char clock[16];
	long long seconds = 0, ns = 0;
	bool own = false;
	FILE *file = fopen("/proc/self/timens_offsets", "re");
	while (file && !own && fscanf(file, "%15s %lld %lld", clock, &seconds, &ns) == 3)
		own = strcmp(clock, "monotonic") == 0 && (seconds || ns);
	if (file)
		fclose(file);
	return own;
}

static int check_host(struct ow_error *err)
{
	if (access("/sys/kernel/btf/vmlinux", R_OK) < 0)
		return ow_error_set(err, ENOTSUP, "the kernel does not describe itself (/sys/kernel/btf/vmlinux)");
	if (has_own_clock())
		return ow_error_set(err, ENOTSUP, "this process is in a time namespace");
	return 0;
}

static int set_up(struct ow_kernel *kernel, size_t bytes, struct ow_error *err)
{
	size_t size = 0;
	int processors = bpf.processors();
	if (processors < 1)
		return ow_error_set(err, ENOTSUP, "the number of processors is not known");
	kernel->processors = (unsigned)processors;
	uint64_t memory = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
	kernel->ring_bytes = ow_iface_kernel_ring(bytes, kernel->processors, memory);
	kernel->stride = kernel->ring_bytes + OW_KERNEL_ROOM;
	struct bpf_map *data = bpf.find_map(kernel->object, ".rodata");
	struct bpf_map *positions = bpf.find_map(kernel->object, "positions");
	struct bpf_map *rings = bpf.find_map(kernel->object, "rings");
	uint32_t *ring_bytes = data ? bpf.initial_value(data, &size) : NULL;
	if (!ring_bytes || size < sizeof *ring_bytes || !positions || !rings)
		return ow_error_set(err, EINVAL, "the program in the kernel is another one than expected");
	*ring_bytes = (uint32_t)kernel->ring_bytes;
	int r = bpf.set_entries(positions, kernel->processors);
	if (r == 0)
		r = bpf.set_entries(rings, kernel->processors);
	if (r == 0)
		r = bpf.set_value_size(rings, (uint32_t)kernel->stride);
	return r < 0 ? ow_error_set(err, -r, "cannot size the rings: %s", strerror(-r)) : 0;
}

static int load(struct ow_kernel *kernel, struct ow_error *err)
{
	int r = bpf.load(kernel->object);
	if (r == -EPERM || r == -EACCES)
		return ow_error_set(err, EPERM, "it needs root, or CAP_BPF and CAP_PERFMON");
	if (r == -ENOMEM)
		return ow_error_set(err, ENOMEM, "the rings need more memory than there is");
	if (r < 0)
		return ow_error_set(err, ENOTSUP, "it needs Linux 6.2 or later; this kernel refuses the program: %s",
		                    strerror(-r));
	struct bpf_program *program = bpf.find_program(kernel->object, "on_frame");
	if (!program)
		return ow_error_set(err, EINVAL, "the program in the kernel is another one than expected");
	kernel->program = bpf.program_fd(program);
	return 0;
}

static void *map(const struct ow_kernel *kernel, const char *name, size_t bytes, struct ow_error *err)
{
	struct bpf_map *of = bpf.find_map(kernel->object, name);
	void *memory = of ? mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, bpf.map_fd(of), 0)
	                  : MAP_FAILED;
	if (memory != MAP_FAILED)
		return memory;
	ow_error_set(err, ENOMEM, "cannot map the rings: %s", strerror(errno));
	return NULL;
}

int ow_kernel_load(size_t bytes, struct ow_kernel *ret_kernel, struct ow_error *err)
{
	struct ow_kernel *kernel = ret_kernel;
	*kernel = (struct ow_kernel){0};
	int r = check_host(err);
	if (r == 0)
		r = load_library(err);
	if (r < 0)
		return r;
	kernel->object = bpf.open_mem(ow_kernel_object, ow_kernel_object_bytes, NULL);
	r = kernel->object ? set_up(kernel, bytes, err)
	                   : ow_error_set(err, EINVAL, "libbpf cannot read the program: %s", strerror(errno));
	if (r == 0)
		r = load(kernel, err);
	if (r == 0) {
		kernel->positions = map(kernel, "positions", kernel->processors * sizeof *kernel->positions, err);
		kernel->memory =
			kernel->positions ? map(kernel, "rings", kernel->processors * kernel->stride, err) : NULL;
		r = kernel->memory ? 0 : -ENOMEM;
	}
	if (r < 0)
		ow_kernel_unload(kernel);
	return r;
}

void ow_kernel_unload(struct ow_kernel *kernel)
{
	if (kernel->memory)
		munmap(kernel->memory, kernel->processors * kernel->stride);
	if (kernel->positions)
		munmap(kernel->positions, kernel->processors * sizeof *kernel->positions);
	if (kernel->object)
		bpf.close(kernel->object);
	*kernel = (struct ow_kernel){0};
}

int ow_iface_kernel_possible(struct ow_error *err)
{
	struct ow_kernel kernel;
	int r = ow_kernel_load(OW_IFACE_KERNEL_LEAST, &kernel, err);
	if (r == 0)
		ow_kernel_unload(&kernel);
	return r;
}
