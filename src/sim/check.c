/* SPDX-License-Identifier: Apache-2.0 */
/* The options of a simulation: their defaults and their limits. */
#include "sim/check.h"
#include "base/time.h"
#include "sim/replay.h"
#include "sim/traffic.h"
#include "sim/view.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>

/* Client addresses are 24 bits of 10.0.0.0/8; 10 M flows need 1 GB. */
#define FLOWS_MAX 10000000u
/* How many sending times the model looks ahead. */
#define TUPLE_MAX         1000000
#define BASE_DELAY_MAX_NS (86400 * OW_NS_PER_S)
#define MTU_MIN           576
#define SUPERFRAME_MAX    262144
#define DEFAULT_START_S   1700000000
#define DEFAULT_PACKETS   1000000

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
	/* Packets / rate seconds after the start do not overflow 64 bits. */
	if ((double)o->packets / o->rate_pps > 1e8)
		return ow_error_set(err, EINVAL, "--packets at this --rate take more than three years");
	return 0;
}

static int check_path(const struct ow_sim_options *o, struct ow_error *err)
{
	bool tuple = o->tuple[0] || o->tuple[1] || o->tuple[2] || o->tuple[3];
	if (o->delay.paths < 1 || o->delay.paths > OW_SIM_PATHS)
		return ow_error_set(err, EINVAL, "--delay: %u paths, not 1 .. %d", o->delay.paths, OW_SIM_PATHS);
	if (o->base_delay_ns < 0 || o->base_delay_ns > BASE_DELAY_MAX_NS)
		return ow_error_set(err, EINVAL, "--base-delay is not in 0 .. 1 day");
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

/* Options about generated packets contradict a file of packets. */
static bool generates(const struct ow_sim_options *o)
{
	struct ow_sim_options usual;
	ow_sim_defaults(&usual);
	return o->identical > 0 || o->retransmissions > 0 || o->fragments > 0 || o->ipv6 > 0 ||
	       o->ipv6_extensions > 0 || o->rate_pps != usual.rate_pps || o->constant_rate || o->flows != usual.flows ||
	       o->flow_skew != usual.flow_skew || o->tcp != usual.tcp || o->size.kind != usual.size.kind;
}

static int check_replay(const struct ow_sim_options *o, struct ow_error *err)
{
	if (o->side[OW_SIDE_A].superframes || o->side[OW_SIDE_B].superframes)
		return ow_error_set(
			err, EINVAL,
			"--traffic and --superframes exclude each other: the frames of the file are not changed");
	if (generates(o))
		return ow_error_set(
			err, EINVAL,
			"--traffic gives packets and times: no --rate, --arrivals, --size, --flows, --flow-skew, "
			"--tcp, --ipv6, --ipv6-extensions, --fragments, --identical or --retransmissions");
	return 0;
}

/* Only resolutions that can represent every nanosecond: the truth does not model further rounding. */
static bool is_fine(int tsresol)
{
	int n = tsresol & 0x7f;
	return tsresol & 0x80 ? n >= 30 && n <= 34 : n >= 9 && n <= 12;
}

static int check_side(const struct ow_sim_side *side, const char *name, struct ow_error *err)
{
	if (!side->path)
		return ow_error_set(err, EINVAL, "-%s FILE is missing: the file for the capture of point %s", name,
		                    name);
	if (side->skip_ns < 0 || side->early_ns < 0)
		return ow_error_set(err, EINVAL, "--%s-%s must not be negative", name,
		                    side->skip_ns < 0 ? "skip" : "early");
	if (side->format == OW_FILE_PCAP && (side->interfaces > 1 || side->tsoffset_s || side->tsresol))
		return ow_error_set(err, EINVAL,
		                    "--%s-interfaces, --%s-tsoffset and --%s-tsresol need --%s-format pcapng", name,
		                    name, name, name);
	if (side->tsresol && (side->microseconds || !is_fine(side->tsresol)))
		return ow_error_set(err, EINVAL, "--%s-tsresol is for nanoseconds or finer: 9 .. 12 or 2^-30 .. 2^-34",
		                    name);
	return ow_view_check(side, name, err);
}

/* The same name, or two names of the same existing file. */
static bool same_file(const char *x, const char *y)
{
	struct stat sx, sy;
	if (strcmp(x, y) == 0)
		return true;
	return stat(x, &sx) == 0 && stat(y, &sy) == 0 && S_ISREG(sx.st_mode) && sx.st_dev == sy.st_dev &&
	       sx.st_ino == sy.st_ino;
}

int ow_sim_check_traffic(const struct ow_sim_options *options, struct ow_error *err)
{
	int r = check_shares(options, err);
	if (r >= 0)
		r = check_traffic(options, err);
	if (r >= 0)
		r = check_path(options, err);
	if (r >= 0 && options->traffic)
		r = check_replay(options, err);
	return r;
}

int ow_sim_check(const struct ow_sim_options *options, struct ow_error *err)
{
	int r = ow_sim_check_traffic(options, err);
	if (r >= 0)
		r = check_side(&options->side[OW_SIDE_A], "a", err);
	if (r >= 0)
		r = check_side(&options->side[OW_SIDE_B], "b", err);
	if (r >= 0 && same_file(options->side[OW_SIDE_A].path, options->side[OW_SIDE_B].path))
		r = ow_error_set(err, EINVAL, "-a and -b are the same file");
	for (int i = 0; r >= 0 && options->traffic && i < OW_SIDES; i++) {
		if (same_file(options->traffic, options->side[i].path))
			r = ow_error_set(err, EINVAL, "-%c would overwrite the file of --traffic", "ab"[i]);
	}
	return r;
}

int ow_sim_resolve(struct ow_sim_options *options, int *ret_linktype, int64_t *ret_end_ns, struct ow_error *err)
{
	*ret_linktype = -1;
	if (options->traffic) {
		struct ow_replay_info info;
		int r = ow_replay_scan(options->traffic, &info, err);
		if (r < 0)
			return r;
		options->start_ns = info.first_ns;
		*ret_end_ns = info.last_ns;
		if (!ow_replay_unchanged(options))
			return 0;
		if (info.mixed)
			return ow_error_set(
				err, EINVAL,
				"--traffic %s: frames of several link types; --a-link and --b-link convert them to one",
				options->traffic);
		*ret_linktype = info.linktype;
		return 0;
	}
	if (!options->packets)
		options->packets = DEFAULT_PACKETS;
	*ret_end_ns = INT64_MAX;
	if (options->side[OW_SIDE_A].early_ns || options->side[OW_SIDE_B].early_ns)
		*ret_end_ns = ow_traffic_end(options);
	return 0;
}

void ow_sim_defaults(struct ow_sim_options *ret_options)
{
	*ret_options = (struct ow_sim_options){
		.seed = 1,
		.rate_pps = 100000,
		.start_ns = DEFAULT_START_S * OW_NS_PER_S,
		.flows = 1000,
		.flow_skew = 1,
		.tcp = 0.8,
		.mtu = 1500,
		.superframe_bytes = 65535,
		.delay = {.path = {{.kind = OW_SIM_WEIBULL, .a = 20e3, .b = 0.6, .weight = 1}}, .paths = 1},
		.dscp = -1,
	};
}
