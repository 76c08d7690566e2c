/* SPDX-License-Identifier: Apache-2.0 */
/* In place of kernel.c, if oneway is built without clang or libbpf. */
#include "capture/iface/iface_ops.h"

#include <errno.h>

int ow_iface_kernel_possible(struct ow_error *err)
{
	return ow_error_set(err, ENOTSUP, "oneway was built without clang or libbpf");
}

const char *ow_iface_kernel_library(struct ow_error *err)
{
	ow_iface_kernel_possible(err);
	return NULL;
}

int ow_iface_open_kernel(const struct ow_iface_options *options, struct ow_iface **ret_live, struct ow_error *err)
{
	(void)ret_live;
	return ow_error_set(err, ENOTSUP, "%s: oneway was built without clang or libbpf", options->name);
}
