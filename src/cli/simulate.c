/* SPDX-License-Identifier: Apache-2.0 */
/* oneway simulate: writes two captures of the same traffic, and the truth about it. */
#include "base/time.h"
#include "cli/cli.h"
#include "cli/shared_options.h"
#include "cli/options.h"
#include "cli/simulate_points.h"
#include "cli/terminal.h"
#include "cli/output.h"
#include "sim/check.h"
#include "sim/sim.h"

#include <errno.h>
#include <math.h>
#include <oneway/oneway.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct arguments {
	struct ow_sim_options sim;
	const char *truth, *packet_truth;
	struct ow_simulate_places places;
	bool json, help, version;
	bool format_given[OW_SIDES];
};

/* Reads a number in min .. max. */
static int number(const char *value, double min, double max, double *ret_number, struct ow_error *err)
{
	char *end;
	double x = strtod(value, &end);
	if (end == value || *end || !isfinite(x) || x < min || x > max)
		return ow_error_set(err, EINVAL, "'%.40s' is not a number in %g .. %g", value, min, max);
	*ret_number = x;
	return 0;
}

static int set_rate(void *field, const char *value, struct ow_error *err)
{
	uint64_t count;
	if (ow_option_count(&count, value, err) == 0) {
		*(double *)field = (double)count;
		return 0;
	}
	return number(value, 1e-3, 1e9, field, err);
}

static int set_number(void *field, const char *value, struct ow_error *err)
{
	return number(value, 0, 1e9, field, err);
}

static int set_u32(void *field, const char *value, struct ow_error *err)
{
	uint64_t count = 0;
	int r = ow_option_count(&count, value, err);
	if (r < 0)
		return r;
	if (count > UINT32_MAX)
		return ow_error_set(err, EINVAL, "'%.40s' is too large", value);
	*(uint32_t *)field = (uint32_t)count;
	return 0;
}

static int set_seed(void *field, const char *value, struct ow_error *err)
{
	char *end;
	errno = 0;
	unsigned long long seed = strtoull(value, &end, 0);
	if (end == value || *end || errno || *value == '-')
		return ow_error_set(err, EINVAL, "'%.40s' is not a number in 0 .. 2^64-1", value);
	*(uint64_t *)field = seed;
	return 0;
}

static int set_link(void *field, const char *value, struct ow_error *err)
{
	return ow_sim_link_parse(value, field, err);
}

/* The field is a struct ow_sim_side. */
static int set_encap(void *field, const char *value, struct ow_error *err)
{
	return ow_sim_encap_parse(value, field, err);
}

static int set_dscp(void *field, const char *value, struct ow_error *err)
{
	double dscp = 0;
	int r = number(value, 0, 63, &dscp, err);
	if (r >= 0)
		*(int *)field = (int)dscp;
	return r;
}

static int set_start(void *field, const char *value, struct ow_error *err)
{
	double seconds = 0;
	int r = number(value, 0, 4e9, &seconds, err);
	if (r >= 0)
		*(int64_t *)field = (int64_t)seconds * OW_NS_PER_S;
	return r;
}

static int set_tuple(void *field, const char *value, struct ow_error *err)
{
	uint32_t *tuple = field, t[4];
	const char *p = value;
	char *end;
	for (int i = 0; i < 4; i++) {
		unsigned long n = strtoul(p, &end, 10);
		if (*p < '0' || *p > '9' || n > UINT32_MAX || *end != (i < 3 ? ',' : '\0'))
			return ow_error_set(err, EINVAL, "'%.40s' is not four counts (example: 0,50,0,0)", value);
		t[i] = (uint32_t)n;
		p = end + 1;
	}
	memcpy(tuple, t, sizeof t);
	return 0;
}

/* "a", "b" or "both"; the field is the bool of side A. */
static int set_sides(void *field, const char *value, struct ow_error *err)
{
	static const char *const names[] = {"a", "b", "both"};
	size_t chosen = 0;
	int r = ow_option_choice(names, 3, value, &chosen, err);
	for (size_t i = 0; r >= 0 && i < OW_SIDES; i++)
		*(bool *)((char *)field + i * sizeof(struct ow_sim_side)) = (chosen + 1) >> i & 1;
	return r;
}

static int set_tsoffset(void *field, const char *value, struct ow_error *err)
{
	char *end;
	double seconds = strtod(value, &end);
	if (end == value || *end || !(fabs(seconds) <= 4e9) || seconds != floor(seconds))
		return ow_error_set(err, EINVAL, "'%.40s' is not a number of whole seconds", value);
	*(int64_t *)field = (int64_t)seconds;
	return 0;
}

/* "9": 10^-9 s; "2^-30". */
static int set_tsresol(void *field, const char *value, struct ow_error *err)
{
	bool binary = strncmp(value, "2^-", 3) == 0;
	double n = 0;
	int r = number(binary ? value + 3 : value, 0, 127, &n, err);
	if (r >= 0)
		*(int *)field = (int)n | (binary ? 0x80 : 0);
	return r;
}

/*
 * Each setter below exists for one side (the field is a struct ow_sim_side) and for both (the field is a struct
 * arguments).
 */
static int set_resolution(void *field, const char *value, struct ow_error *err)
{
	struct ow_sim_side *side = field;
	static const char *const names[] = {"ns", "us"};
	size_t i = 0;
	int r = ow_option_choice(names, 2, value, &i, err);
	if (r >= 0)
		side->microseconds = i == 1;
	return r;
}

static int set_resolutions(void *field, const char *value, struct ow_error *err)
{
	struct arguments *args = field;
	int r = set_resolution(&args->sim.side[OW_SIDE_A], value, err);
	return r < 0 ? r : set_resolution(&args->sim.side[OW_SIDE_B], value, err);
}

static int format(struct arguments *args, enum ow_side side, const char *value, struct ow_error *err)
{
	static const char *const names[] = {"pcap", "pcapng"};
	size_t i = 0;
	int r = ow_option_choice(names, 2, value, &i, err);
	if (r >= 0) {
		args->sim.side[side].format = i == 1 ? OW_FILE_PCAPNG : OW_FILE_PCAP;
		args->format_given[side] = true;
	}
	return r;
}

static int set_format_a(void *field, const char *value, struct ow_error *err)
{
	return format(field, OW_SIDE_A, value, err);
}

static int set_format_b(void *field, const char *value, struct ow_error *err)
{
	return format(field, OW_SIDE_B, value, err);
}

static int set_formats(void *field, const char *value, struct ow_error *err)
{
	int r = set_format_a(field, value, err);
	return r < 0 ? r : set_format_b(field, value, err);
}

static int set_big_endian(void *field, const char *value, struct ow_error *err)
{
	struct ow_sim_options *sim = field;
	(void)value;
	(void)err;
	sim->side[OW_SIDE_A].big_endian = sim->side[OW_SIDE_B].big_endian = true;
	return 0;
}

static int set_gzip(void *field, const char *value, struct ow_error *err)
{
	struct ow_sim_options *sim = field;
	(void)value;
	(void)err;
	sim->side[OW_SIDE_A].gzip = sim->side[OW_SIDE_B].gzip = true;
	return 0;
}

static int set_snaplens(void *field, const char *value, struct ow_error *err)
{
	struct ow_sim_options *sim = field;
	int r = set_u32(&sim->side[OW_SIDE_A].snaplen, value, err);
	sim->side[OW_SIDE_B].snaplen = sim->side[OW_SIDE_A].snaplen;
	return r;
}

#define SIM(member)     offsetof(struct arguments, sim.member)
#define SIDE(x, member) offsetof(struct arguments, sim.side[OW_SIDE_##x].member)

static const struct ow_option table[] = {
	{.help = "Output"},
	{"a", 'a', "FILE", ow_option_output, SIDE(A, path),
         "Capture of point A; .gz compresses, .pcapng chooses that format."},
	{"b", 'b', "FILE", ow_option_output, SIDE(B, path), "Capture of point B."},
	{"truth", 't', "FILE", ow_option_output, offsetof(struct arguments, truth),
         "Write the truth to this file, as JSON."},
	{"packet-truth", 0, "FILE", ow_option_output, offsetof(struct arguments, packet_truth),
         "With --point: write a row of CSV for each packet: where it was lost, its time at each point."},
	{"json", 0, NULL, ow_option_flag, offsetof(struct arguments, json), "Also print the truth to standard output."},
	{"seed", 's', "N", set_seed, SIM(seed), "The same seed and options give the same bytes. Default 1."},

	{.help = "Traffic"},
	{"packets", 'n', "N", ow_option_count, SIM(packets),
         "Number of packets on the wire. Default 1M, or all of --traffic."},
	{"rate", 'r', "PPS", set_rate, SIM(rate_pps), "Packets a second. Default 100k."},
	{"arrivals", 0, "KIND", ow_option_arrivals, SIM(constant_rate), "poisson (default) or constant."},
	{"size", 0, "SIZE", ow_option_sizes, SIM(size),
         "Size of the IP packets in bytes: N, imix (default, 354 on average), uniform:MIN,MAX."},
	{"flows", 0, "N", set_u32, SIM(flows), "Number of flows. Default 1000."},
	{"flow-skew", 0, "S", set_number, SIM(flow_skew),
         "Zipf exponent of the flows' sizes: with 0 all have the same size. Default 1."},
	{"tcp", 0, "SHARE", ow_option_share, SIM(tcp), "Share of TCP flows; the others are UDP. Default 0.8."},
	{"ipv6", 0, "SHARE", ow_option_share, SIM(ipv6), "IPv6 flows."},
	{"ipv6-extensions", 0, "SHARE", ow_option_share, SIM(ipv6_extensions),
         "Share of IPv6 packets with extension headers."},
	{"fragments", 0, "SHARE", ow_option_share, SIM(fragments), "Share of UDP datagrams in two fragments."},
	{"identical", 0, "SHARE", ow_option_share, SIM(identical),
         "Share of packets that are identical, with IP id 0, as polling sends them."},
	{"retransmissions", 0, "SHARE", ow_option_share, SIM(retransmissions),
         "Share of TCP segments that are retransmitted."},
	{"reverse", 0, "SHARE", ow_option_share, SIM(reverse), "Share of packets that go from B to A."},
	{"traffic", 0, "FILE", ow_option_text, SIM(traffic), "Take packets and times from this capture."},
	{"ip-only", 0, NULL, ow_option_flag, SIM(ip_only), "Ignore frames of --traffic that are not IP packets."},
	{"start", 0, "SECONDS", set_start, SIM(start_ns), "Unix time of the start. Default 1700000000."},

	{.help = "Path"},
	{"delay", 'd', "MODEL", ow_option_delay_model, SIM(delay),
         "constant:D, normal:MEAN,SD, weibull:SCALE,SHAPE, pareto:SCALE,SHAPE, "
         "fifo:RATE[,BUFFER], red:RATE, paths:SHARE,MODEL;SHARE,MODEL (chosen by packet) or ecmp:... (by flow). "
         "Default weibull:20us,0.6."},
	{"base-delay", 0, "D", ow_option_duration, SIM(base_delay_ns), "Added to every delay."},
	{"in-order", 0, NULL, ow_option_flag, SIM(in_order), "No packet overtakes another."},
	{"loss", 'l', "LOSS", ow_option_loss_model, SIM(loss),
         "P, or episodes:P,LENGTH: runs of about LENGTH packets."},
	{"duplicate", 0, "SHARE", ow_option_share, SIM(duplicate), "Share of packets that arrive twice."},
	{"reorder-tuple", 0, "A,B,C,D", set_tuple, SIM(tuple),
         "FineComb's reordering: pre-start, post-start, pre-end and post-end "
         "packets at the boundaries of --interval."},
	{"interval", 0, "D", ow_option_positive_duration, SIM(interval_ns), "For --reorder-tuple."},
	{"router", 0, NULL, ow_option_flag, SIM(router),
         "A router between the points: TTL minus one, other MAC addresses."},
	{"dscp", 0, "N", set_dscp, SIM(dscp), "Set the DSCP of received packets."},
	{"ecn-mark", 0, "SHARE", ow_option_share, SIM(ecn_mark), "Share of packets that are marked for congestion."},
	{"nat", 0, NULL, ow_option_flag, SIM(nat), "B sees A's addresses and ports translated."},

	{.help = "Measurement points"},
	{"point", 0, "POINT", ow_option_sim_point, offsetof(struct arguments, places),
         "Instead of -a and -b: a point of a path, see below."},
	{"hop", 0, "HOP", ow_option_sim_hop, offsetof(struct arguments, places), "Begins the next place of the path."},
	{"a-link", 0, "LINK", set_link, SIDE(A, link),
         "ethernet (default), raw, sll, sll2, ppp, null, loop or radiotap."},
	{"b-link", 0, "LINK", set_link, SIDE(B, link), "The same for B."},
	{"a-encap", 0, "LIST", set_encap, SIM(side[OW_SIDE_A]),
         "Tags and tunnels, the outermost first: vlan:ID, qinq:ID, mpls:LABEL, "
         "pppoe:ID, vxlan:ID, geneve:ID, gre, ipip, gtpu:ID."},
	{"b-encap", 0, "LIST", set_encap, SIM(side[OW_SIDE_B]), "The same for B."},
	{"superframes", 0, "SIDES", set_sides, SIDE(A, superframes),
         "a, b or both: a host that shows TSO and GRO frames."},
	{"mtu", 0, "N", set_u32, SIM(mtu), "Of the segments with --superframes. Default 1500."},
	{"superframe-size", 0, "N", set_u32, SIM(superframe_bytes),
         "Largest superframe. Default 65535; beyond it the IP length is 0."},
	{"snaplen", 0, "N", set_snaplens, 0, "Bytes stored of a frame."},
	{"a-snaplen", 0, "N", set_u32, SIDE(A, snaplen), "At A only."},
	{"b-snaplen", 0, "N", set_u32, SIDE(B, snaplen), "At B only."},
	{"a-skip", 0, "D", ow_option_duration, SIDE(A, skip_ns), "This capture starts later."},
	{"b-skip", 0, "D", ow_option_duration, SIDE(B, skip_ns), "The same for B."},
	{"a-early", 0, "D", ow_option_duration, SIDE(A, early_ns), "This capture ends before the last packet is sent."},
	{"b-early", 0, "D", ow_option_duration, SIDE(B, early_ns), "The same for B."},
	{"offset", 0, "D", ow_option_duration, SIM(offset_ns), "Offset by which B's clock is ahead."},
	{"drift", 0, "RATE", ow_option_drift, SIM(drift_ppb), "Drift of B's clock: 20ppm, -500ppb."},
	{"backwards", 0, "SHARE", ow_option_share, SIM(backwards),
         "Share of records with a timestamp up to 10 us too early."},
	{"zero-timestamps", 0, "SIDES", set_sides, SIDE(A, zero_timestamps), "a, b or both: no timestamps."},

	{.help = "Files"},
	{"rotate", 0, "D", ow_option_seconds, SIM(rotate_ns),
         "A new file each time: a_00001.pcap, a_00002.pcap, ... by the clock of the point."},
	{"format", 0, "KIND", set_formats, 0, "pcap (default) or pcapng."},
	{"a-format", 0, "KIND", set_format_a, 0, "At A only."},
	{"b-format", 0, "KIND", set_format_b, 0, "At B only."},
	{"resolution", 0, "UNIT", set_resolutions, 0, "ns (default) or us."},
	{"a-resolution", 0, "UNIT", set_resolution, SIM(side[OW_SIDE_A]), "At A only."},
	{"b-resolution", 0, "UNIT", set_resolution, SIM(side[OW_SIDE_B]), "At B only."},
	{"big-endian", 0, NULL, set_big_endian, 0, "Write files in the other byte order."},
	{"a-big-endian", 0, NULL, ow_option_flag, SIDE(A, big_endian), "At A only."},
	{"b-big-endian", 0, NULL, ow_option_flag, SIDE(B, big_endian), "At B only."},
	{"gzip", 0, NULL, set_gzip, 0, "Compress."},
	{"a-interfaces", 0, "N", set_u32, SIDE(A, interfaces), "pcapng: number of interface blocks, used in turn."},
	{"b-interfaces", 0, "N", set_u32, SIDE(B, interfaces), "The same for B."},
	{"a-tsresol", 0, "N", set_tsresol, SIDE(A, tsresol),
         "pcapng: times in 10^-N s (9 to 12) or in 2^-N s (30 to 34)."},
	{"b-tsresol", 0, "N", set_tsresol, SIDE(B, tsresol), "The same for B."},
	{"a-tsoffset", 0, "SECONDS", set_tsoffset, SIDE(A, tsoffset_s), "pcapng: times are stored relative to this."},
	{"b-tsoffset", 0, "SECONDS", set_tsoffset, SIDE(B, tsoffset_s), "The same for B."},
	OW_OPTIONS_HELP(struct arguments),
	{.name = NULL},
};

static void help(void)
{
	fputs("oneway simulate: writes captures of two or more points, and the truth about them\n"
	      "\n"
	      "usage: oneway simulate [OPTION]... -a A.pcap -b B.pcap --truth T.json\n"
	      "       oneway simulate [OPTION]... --point A=FILE --hop HOP --point B=FILE ...\n",
	      stdout);
	ow_options_help(stdout, table);
	fputs("\n"
	      "Times have units (250ms, 1.5us), shares are 0.01 or 1%, rates of links are\n"
	      "10G or 100M.\n"
	      "Delays in the truth are those of the files, without the error of B's clock.\n"
	      "\n",
	      stdout);
	fputs(ow_simulate_points_help, stdout);
	fputs("\n"
	      "examples:\n"
	      "  oneway simulate --packets 1M --rate 1M --flows 1000 --delay weibull:20us,0.6 \\\n"
	      "      --loss 0.01 --seed 7 -a a.pcap -b b.pcap --truth truth.json\n"
	      "  oneway simulate --delay red:100M --rate 40k -a a.pcap -b b.pcap --json\n"
	      "  oneway simulate --reverse 0.5 --router --nat --b-encap vlan:10,vxlan:42 \\\n"
	      "      --offset 37s -a a.pcapng -b b.pcap.gz --json\n"
	      "  oneway simulate --superframes a --in-order -a host.pcap -b tap.pcap --json\n"
	      "  oneway simulate --traffic real.pcap -a a.pcap -b b.pcap --truth truth.json \\\n"
	      "      --delay 'paths:0.9,constant:50us;0.1,constant:80us'\n"
	      "  oneway simulate --reverse 0.5 --point a=a.pcap --hop 'loss=1% routers=1' \\\n"
	      "      --point b1=b1.pcap --point 'b2=b2.pcap offset=5ms' --hop routers=2 \\\n"
	      "      --point c=c.pcap --rotate 1s --truth truth.json --packet-truth packets.csv\n",
	      stdout);
}

/* Options that were not given depend on the name of the file. */
static void choose_format(struct arguments *args, enum ow_side i)
{
	struct ow_sim_side *side = &args->sim.side[i];
	if (!side->path)
		return;
	enum ow_file_format format;
	bool gzip;
	ow_writer_options_of_name(side->path, &format, &gzip);
	side->gzip |= gzip;
	if (!args->format_given[i])
		side->format = format;
}

static int write_points_truth(const struct arguments *args, const struct ow_sim_points *points,
                              const struct ow_sim_points_truth *truth, struct ow_error *err)
{
	int r = args->truth ? ow_sim_points_truth_write(args->truth, points, &args->sim, truth, err) : 0;
	if (r >= 0 && args->json && !(args->truth && strcmp(args->truth, "-") == 0))
		r = ow_sim_points_truth_write("-", points, &args->sim, truth, err);
	return r;
}

static bool is_same(const char *a, const char *b)
{
	return a && b && (strcmp(a, b) == 0 || ow_same_file(a, b));
}

/* A capture of the simulation must be neither the traffic that it reads nor another file that it writes. */
static int check_capture(const struct arguments *args, const char *option, const char *path, struct ow_error *err)
{
	if (is_same(path, args->sim.traffic))
		return ow_error_set(err, EINVAL, "%s would overwrite the file of --traffic", option);
	if (is_same(path, args->truth))
		return ow_error_set(err, EINVAL, "--truth and %s are the same file", option);
	if (is_same(path, args->packet_truth))
		return ow_error_set(err, EINVAL, "--packet-truth and %s are the same file", option);
	return 0;
}

static int check_truth(const struct arguments *args, struct ow_error *err)
{
	if (is_same(args->truth, args->sim.traffic))
		return ow_error_set(err, EINVAL, "--truth would overwrite the file of --traffic");
	if (is_same(args->packet_truth, args->sim.traffic))
		return ow_error_set(err, EINVAL, "--packet-truth would overwrite the file of --traffic");
	if (is_same(args->truth, args->packet_truth))
		return ow_error_set(err, EINVAL, "--truth and --packet-truth are the same file");
	return 0;
}

static int check_points(const struct arguments *args, const struct ow_sim_points *points, struct ow_error *err)
{
	int r = check_truth(args, err);
	for (unsigned i = 0; r >= 0 && i < points->points; i++) {
		char option[100];
		snprintf(option, sizeof option, "--point %.80s", points->point[i].name);
		r = check_capture(args, option, points->point[i].path, err);
		for (unsigned k = 0; r >= 0 && k < i; k++) {
			if (is_same(points->point[i].path, points->point[k].path))
				r = ow_error_set(err, EINVAL, "--point: %s and %s have the same file",
				                 points->point[k].name, points->point[i].name);
		}
	}
	return r;
}

static int run_points(struct arguments *args)
{
	struct ow_sim_points points;
	struct ow_error err;
	int r = 0;
	for (int i = 0; i < OW_SIDES; i++)
		r = args->sim.side[i].path ? ow_error_set(&err, EINVAL, "--point and -%c exclude each other", "ab"[i])
		                           : r;
	if (r >= 0)
		r = ow_simulate_points(&args->places, &args->sim, &points, &err);
	if (r < 0)
		return ow_cli_misused("simulate", &err);
	r = check_points(args, &points, &err);
	if (r < 0) {
		ow_sim_points_done(&points);
		return ow_cli_misused("simulate", &err);
	}
	struct ow_progress progress;
	struct ow_sim_points_truth truth;
	ow_progress_init(&progress, "simulating");
	args->sim.on_progress = ow_progress_show;
	args->sim.arg = &progress;
	r = ow_sim_points_run(&points, &args->sim, args->packet_truth, &truth, &err);
	ow_progress_done(&progress);
	if (r >= 0)
		r = write_points_truth(args, &points, &truth, &err);
	ow_sim_points_done(&points);
	return r < 0 ? ow_cli_failed("simulate", &err) : OW_EXIT_OK;
}

static int run(struct arguments *args)
{
	struct ow_progress progress;
	ow_progress_init(&progress, "simulating");
	args->sim.on_progress = ow_progress_show;
	args->sim.arg = &progress;
	struct ow_sim_truth truth;
	struct ow_error err;
	int r = ow_sim_run(&args->sim, &truth, &err);
	ow_progress_done(&progress);
	if (r >= 0 && args->truth)
		r = ow_sim_truth_write(args->truth, &truth, &err);
	if (r >= 0 && args->json && !(args->truth && strcmp(args->truth, "-") == 0))
		r = ow_sim_truth_write("-", &truth, &err);
	return r < 0 ? ow_cli_failed("simulate", &err) : OW_EXIT_OK;
}

int ow_cli_simulate(int argc, char **argv)
{
	struct arguments args = {.help = false};
	struct ow_error err;
	ow_sim_defaults(&args.sim);
	int operands = ow_options_parse(table, argc, argv, &args, &err);
	if (operands >= 0 && ow_cli_answered(args.help, args.version, help))
		return OW_EXIT_OK;
	if (operands > 0)
		operands = ow_error_set(&err, EINVAL, "unexpected argument '%.60s'", argv[1]);
	if (operands < 0)
		return ow_cli_refused("simulate", operands, &err);
	if (args.places.count)
		return run_points(&args);
	choose_format(&args, OW_SIDE_A);
	choose_format(&args, OW_SIDE_B);
	int r = args.packet_truth ? ow_error_set(&err, EINVAL, "--packet-truth is for a path with --point") : 0;
	if (r >= 0)
		r = ow_sim_check(&args.sim, &err);
	if (r >= 0)
		r = check_truth(&args, &err);
	for (int i = 0; r >= 0 && i < OW_SIDES; i++)
		r = check_capture(&args, i ? "-b" : "-a", args.sim.side[i].path, &err);
	return r < 0 ? ow_cli_misused("simulate", &err) : run(&args);
}
