/* SPDX-License-Identifier: Apache-2.0 */
/* Opens a live source: chooses the kind for a name. */
#include "capture/iface/iface.h"

#include "capture/iface/iface_ops.h"
#include <errno.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

bool ow_iface_is_file(const char *name)
{
	struct stat st;
	if (strchr(name, '/'))
		return true;
	if (if_nametoindex(name))
		return false;
	return strcmp(name, "-") == 0 || (stat(name, &st) == 0 && !S_ISDIR(st.st_mode));
}

static int open_auto(const struct ow_iface_options *options, struct ow_iface **ret_live, struct ow_error *err)
{
	int r;
	if (ow_iface_is_file(options->name))
		return ow_iface_open_file(options, ret_live, err);
	if (!if_nametoindex(options->name))
		return ow_error_set(err, ENODEV, "%s: no such interface or file", options->name);
	r = ow_iface_open_ring(options, ret_live, err);
	if (r == -ENOTSUP) /* no such ring on this kernel, or a link layer that the ring does not support */
		r = ow_iface_open_libpcap(options, ret_live, err);
	return r;
}

/* Whatever prevents the recording in the kernel, a ring may do. */
static int open_kernel(const struct ow_iface_options *options, struct ow_iface **ret_live, struct ow_error *err)
{
	struct ow_error why = {""};
	int r = ow_iface_open_kernel(options, ret_live, &why);
	if (r == 0)
		return 0;
	r = open_auto(options, ret_live, err);
	if (r == 0)
		snprintf((*ret_live)->note, OW_IFACE_NOTE, "%.*s", OW_IFACE_NOTE - 1, why.text);
	return r;
}

static int open_kind(const struct ow_iface_options *options, struct ow_iface **ret_live, struct ow_error *err)
{
	switch (options->kind) {
	case OW_IFACE_RING:
		return ow_iface_open_ring(options, ret_live, err);
	case OW_IFACE_LIBPCAP:
		return ow_iface_open_libpcap(options, ret_live, err);
	case OW_IFACE_KERNEL:
		return open_kernel(options, ret_live, err);
	case OW_IFACE_FILE:
		return ow_iface_open_file(options, ret_live, err);
	case OW_IFACE_STREAM:
		*ret_live = options->stream;
		return 0;
	default:
		return open_auto(options, ret_live, err);
	}
}

int ow_iface_open(const struct ow_iface_options *options, struct ow_iface **ret_live, struct ow_error *err)
{
	if (options->snaplen > OW_IFACE_SNAPLEN_MAX)
		return ow_error_set(err, EINVAL, "%s: snapshot length %u is above %u", options->name, options->snaplen,
		                    OW_IFACE_SNAPLEN_MAX);
	int r = open_kind(options, ret_live, err);
	if (r == 0)
		(*ret_live)->wait = options->wait;
	return r;
}
