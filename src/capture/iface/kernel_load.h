/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "capture/iface/iface.h"
#include "capture/iface/kernel_layout.h"

/*
 * Private to src/capture/iface: the program in the kernel, and the memory that it fills. They vanish with the process, however
 * it ends, because nothing but its file descriptors holds them.
 */
struct bpf_object;
struct ow_kernel {
	struct bpf_object *object;
	int program;                           /* its descriptor: SO_ATTACH_BPF */
	struct ow_kernel_positions *positions; /* of the rings, one for each processor */
	uint8_t *memory;                       /* of the rings: one every `stride` bytes */
	size_t stride, ring_bytes;
	unsigned processors;
};

/* bytes: of the ring of each processor, rounded down to a power of two and to what the memory of the host allows. */
int ow_kernel_load(size_t bytes, struct ow_kernel *ret_kernel, struct ow_error *err);
/* Also one that was not loaded, of zeros. */
void ow_kernel_unload(struct ow_kernel *kernel);
