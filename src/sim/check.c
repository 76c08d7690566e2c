/* SPDX-License-Identifier: Apache-2.0 */
/* The rules that options must keep. */
#include "sim/check.h"
#include "base/time.h"
#include "sim/view.h"

#include <errno.h>
#include <math.h>
#include <string.h>

/* Client addresses are 24 bits of 10.0.0.0/8; 4 M flows need 400 MB. */
#define FLOWS_MAX (1u << 22)
/* The times of sending that the model looks ahead. */
#define TUPLE_MAX      1000000
#define MTU_MIN        576
#define SUPERFRAME_MAX 262144

static bool is_share(double x)
{
	return x >= 0 && x <= 1;
}

static int check_shares(const struct ow_sim_options *o, struct ow_error *err)
{
	const struct {
		const char *flag;
		double value;
	} shares[] = {
		{"tcp", o->tcp},
		{"ipv6", o->ipv6},
		{"ipv6-extensions", o->ipv6_extensions},
		{"fragments", o->fragments},
		{"identical", o->identical},
		{"retransmissions", o->retransmissions},
		{"reverse", o->reverse},
		{"loss", o->loss.ratio},
		{"duplicate", o->duplicate},
		{"ecn-mark", o->ecn_mark},
		{"backwards", o->backwards},
	};
	for (size_t i = 0; i < sizeof shares / sizeof *shares; i++) {
		if (!is_share(shares[i].value))
			return ow_error_set(err, EINVAL, "--%s: %g is not in 0 .. 1", shares[i].flag, shares[i].value);
	}
	return 0;
}

static int check_traffic(const struct ow_sim_options *o, struct ow_error *err)
{
	if (!(o->rate_pps >= 1e-3 && o->rate_pps <= 1e9))
		return ow_error_set(err, EINVAL, "--rate: %g is not in 0.001 .. 1e9 packets a second", o->rate_pps);
	if (o->flows < 1 || o->flows > FLOWS_MAX)
		return ow_error_set(err, EINVAL, "--flows: %u is not in 1 .. %u", o->flows, FLOWS_MAX);
	if (!(o->flow_skew >= 0 && o->flow_skew <= 10))
		return ow_error_set(err, EINVAL, "--flow-skew: %g is not in 0 .. 10", o->flow_skew);
	if (o->mtu < MTU_MIN || o->mtu > 65535)
		return ow_error_set(err, EINVAL, "--mtu: %u is not in %d .. 65535", o->mtu, MTU_MIN);
	if (o->superframe_bytes < o->mtu || o->superframe_bytes > SUPERFRAME_MAX)
		return ow_error_set(err, EINVAL, "--superframe-size: %u is not in MTU .. %d", o->superframe_bytes,
		                    SUPERFRAME_MAX);
	/* Packets / rate seconds after the start: far from the end of 64 bits. */
	if ((double)o->packets / o->rate_pps > 1e8)
		return ow_error_set(err, EINVAL, "--packets at this --rate take more than three years");
	return 0;
}

static int check_path(const struct ow_sim_options *o, struct ow_error *err)
{
	bool tuple = o->tuple[0] || o->tuple[1] || o->tuple[2] || o->tuple[3];
	if (o->delay.paths < 1 || o->delay.paths > OW_SIM_PATHS)
		return ow_error_set(err, EINVAL, "--delay: %u paths, not 1 .. %d", o->delay.paths, OW_SIM_PATHS);
	if (o->base_delay_ns < 0)
		return ow_error_set(err, EINVAL, "--base-delay must not be negative");
	if (o->dscp < -1 || o->dscp > 63)
		return ow_error_set(err, EINVAL, "--dscp: %d is not in 0 .. 63", o->dscp);
	if (fabs(o->drift_ppb) > 1e6)
		return ow_error_set(err, EINVAL, "--drift: more than 1000 ppm");
	if (tuple != (o->interval_ns > 0))
		return ow_error_set(err, EINVAL, "--reorder-tuple and --interval need each other");
	for (int i = 0; i < 4; i++) {
		if (o->tuple[i] > TUPLE_MAX)
			return ow_error_set(err, EINVAL, "--reorder-tuple: %u is more than %d", o->tuple[i], TUPLE_MAX);
	}
	if (tuple && (o->in_order || o->reverse > 0 || o->fragments > 0 || o->traffic ||
	              o->side[OW_SIDE_A].superframes || o->side[OW_SIDE_B].superframes))
		return ow_error_set(err, EINVAL,
		                    "--reorder-tuple does not go with --in-order, --reverse, --fragments, --traffic or "
		                    "--superframes");
	return 0;
}

static int check_replay(const struct ow_sim_options *o, struct ow_error *err)
{
	if (o->side[OW_SIDE_A].superframes || o->side[OW_SIDE_B].superframes)
		return ow_error_set(err, EINVAL,
		                    "--traffic and --superframes do not go together: its frames are what they are");
	if (o->identical > 0 || o->retransmissions > 0 || o->fragments > 0 || o->ipv6 > 0 || o->ipv6_extensions > 0)
		return ow_error_set(err, EINVAL,
		                    "--traffic gives the packets: no --identical, --retransmissions, --fragments, "
		                    "--ipv6 or --ipv6-extensions");
	return 0;
}

static int check_side(const struct ow_sim_side *side, const char *name, struct ow_error *err)
{
	if (!side->path)
		return ow_error_set(err, EINVAL, "-%s FILE is missing: where the capture of point %s goes", name, name);
	if (side->skip_ns < 0 || side->early_ns < 0)
		return ow_error_set(err, EINVAL, "--%s-%s must not be negative", name,
		                    side->skip_ns < 0 ? "skip" : "early");
	if (side->format == OW_FILE_PCAP && (side->interfaces > 1 || side->tsoffset_s))
		return ow_error_set(err, EINVAL, "--%s-interfaces and --%s-tsoffset need --%s-format pcapng", name,
		                    name, name);
	return ow_view_check(side, name, err);
}

int ow_sim_check(const struct ow_sim_options *options, struct ow_error *err)
{
	int r = check_shares(options, err);
	if (r >= 0)
		r = check_traffic(options, err);
	if (r >= 0)
		r = check_path(options, err);
	if (r >= 0 && options->traffic)
		r = check_replay(options, err);
	if (r >= 0)
		r = check_side(&options->side[OW_SIDE_A], "a", err);
	if (r >= 0)
		r = check_side(&options->side[OW_SIDE_B], "b", err);
	if (r >= 0 && strcmp(options->side[OW_SIDE_A].path, options->side[OW_SIDE_B].path) == 0)
		r = ow_error_set(err, EINVAL, "-a and -b are the same file");
	return r;
}
