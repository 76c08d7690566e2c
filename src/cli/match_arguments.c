/* SPDX-License-Identifier: Apache-2.0 */
/* The options of oneway match, and which of them go together. */
#include "cli/match_arguments.h"

#include "base/array.h"
#include "cli/capture_when.h"
#include "cli/cli.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/shared_options.h"
#include "cli/stream_argument.h"
#include "config/keys.h"
#include "packet/flow_parse.h"
#include "capture/file/file_set.h"
#include "capture/file/reader.h"
#include "capture/file/writer.h"
#include "path/path.h"
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <oneway/oneway.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

static int set_key(void *field, const char *value, struct ow_error *err)
{
	return ow_option_flow_key(field, value, "match has no classes: give five-tuple, addresses or prefix:IPV4,IPV6",
	                          err);
}

/* A duration, or off. */
static int set_dedup(void *field, const char *value, struct ow_error *err)
{
	if (strcmp(value, "off") != 0)
		return ow_option_positive_duration(field, value, err);
	*(int64_t *)field = -1;
	return 0;
}

static int set_order(void *field, const char *value, struct ow_error *err)
{
	*(bool *)field = strcmp(value, "given") == 0;
	if (strcmp(value, "given") != 0 && strcmp(value, "auto") != 0)
		return ow_error_set(err, EINVAL, "%s: give auto or given", value);
	return 0;
}

static int set_stamps(void *field, const char *value, struct ow_error *err)
{
	static const char *const names[] = {
		[OW_STAMPS_CAPTURE] = "capture", [OW_STAMPS_AUTO] = "auto", [OW_STAMPS_TRAILER] = "trailer"};
	size_t index;
	int r = ow_option_choice(names, sizeof names / sizeof *names, value, &index, err);
	if (r == 0)
		*(enum ow_stamps *)field = (enum ow_stamps)index;
	return r;
}

/* NAME=FILTER */
static int set_class(void *field, const char *value, struct ow_error *err)
{
	struct ow_match_classes *classes = field;
	size_t length = strcspn(value, "=");
	if (length == 0 || !value[length] || !value[length + 1] || length >= OW_CLASS_NAME)
		return ow_error_set(err, EINVAL, "'%.40s' is not NAME=FILTER", value);
	if (classes->count == OW_MATCH_CLASSES_MAX)
		return ow_error_set(err, EINVAL, "more than %d classes", OW_MATCH_CLASSES_MAX);
	for (unsigned i = 0; i < classes->count; i++) {
		if (strncmp(classes->name[i], value, length) == 0 && !classes->name[i][length])
			return ow_error_set(err, EINVAL, "two classes are called %s", classes->name[i]);
	}
	snprintf(classes->name[classes->count], OW_CLASS_NAME, "%.*s", (int)length, value);
	classes->filter[classes->count] = value + length + 1;
	return ow_name_check(classes->name[classes->count++], err);
}

static int set_by(void *field, const char *value, struct ow_error *err)
{
	static const char *const names[] = {"port", "dscp", "size"};
	struct ow_match_arguments *args =
		(struct ow_match_arguments *)((char *)field - offsetof(struct ow_match_arguments, by_port));
	size_t index;
	int r = ow_option_choice(names, sizeof names / sizeof *names, value, &index, err);
	if (r < 0)
		return r;
	if (index == 0)
		args->by_port = true;
	else
		args->classes.by = index == 1 ? OW_CLASS_BY_DSCP : OW_CLASS_BY_SIZE;
	return 0;
}

/* 50,95,99.9 */
static int set_percentiles(void *field, const char *value, struct ow_error *err)
{
	struct ow_match_percentiles *p = field;
	const char *text = value;
	p->count = 0;
	do {
		char *end;
		if (p->count == OW_PERCENTILES_MAX)
			return ow_error_set(err, EINVAL, "more than %d percentiles", OW_PERCENTILES_MAX);
		double percent = isdigit((unsigned char)*text) ? strtod(text, &end) : 0;
		if (!(percent > 0 && percent <= 100) || (*end && *end != ','))
			return ow_error_set(err, EINVAL, "'%.40s': give numbers above 0, at most 100, as in 50,95,99.9",
			                    value);
		p->percent[p->count++] = percent;
		text = *end ? end + 1 : NULL;
	} while (text);
	return 0;
}

#define FIELD(name) offsetof(struct ow_match_arguments, name)

static const struct ow_option options[] = {
	{NULL, 0, NULL, NULL, 0, "What counts as the same packet:"},
	{"level", 0, "LEVEL", ow_option_level, FIELD(match.level),
         "ip: from the IP header on, without what routers change (TTL, DSCP, checksums); nat: also without addresses "
         "and "
         "ports; frame: all bytes as they are; auto (default): ip, or what clearly finds more."},
	{"inner", 0, "WHEN", ow_option_toggle, FIELD(match.inner),
         "Enter tunnels (GRE, VXLAN, Geneve, GTP-U, IP in IP): auto (default), on or off."},
	{"segments", 0, "WHEN", ow_option_toggle, FIELD(match.segments),
         "Cut TSO, GSO and GRO superframes into the segments of the wire: auto (default), on or off."},

	{"dedup", 0, "D|off", set_dedup, FIELD(match.dedup_ns),
         "Ignore copies that a capture shows within D, as a mirror port or a capture on all interfaces does "
         "(default: "
         "where a capture shows twice what arrives once)."},

	{NULL, 0, NULL, NULL, 0, "What to look at:"},
	{"filter", 0, "FILTER", ow_option_text, FIELD(match.filter),
         "Only packets that this filter accepts, in tcpdump's language; it looks at the IP packet that is compared, "
         "inside "
         "of tags and of tunnels that are entered."},
	{"since", 0, "TIME", ow_option_text, FIELD(since),
         "Only packets captured from then on: '2026-11-15 10:02', 10:02:30, 10:02Z, +90s after the first packet."},
	{"until", 0, "TIME", ow_option_text, FIELD(until), "Only packets captured before then."},
	{"flow", 0, "FLOW", ow_option_text, FIELD(flow),
         "Follow one connection packet by packet, in both directions: '10.0.0.1:80 > 10.0.0.2:1234 tcp', as tables of "
         "flows show it."},
	{"class", 0, "NAME=FILTER", set_class, FIELD(classes),
         "Also results from end to end of the packets that this filter accepts; up to 8 times."},
	{"follow", 0, NULL, ow_option_flag, FIELD(follow),
         "The files are still being written: results of each interval as they come, until Ctrl-C or --until. Of more "
         "than two points: each hop and both ends, in the order given."},
	{"forward", 0, "FILTER", ow_option_text, FIELD(forward),
         "With --follow: packets that match this filter go from A to B, all others back (default: the first packets "
         "tell)."},
	{"by", 0, "WHAT", set_by, FIELD(by_port),
         "dscp: also results of each DSCP, as the sending point shows it; size: of packets of similar size. port: one "
         "capture that many taps share: the ports in the stamps of the capture device are the points; FILE#PORT or "
         "FILE#DEVICE:PORT is one of them."},

	{NULL, 0, NULL, NULL, 0, "Time:"},
	{"stamps", 0, "WHOSE", set_stamps, FIELD(match.stamps),
         "Times of packets: capture (default), of the capture file; auto, of a capture device, where frames have its "
         "stamps (MetaWatch, Arista, ExaNIC, Gigamon, VSS, Keysight); trailer, only of such."},
	{"offset", 0, "D|auto", ow_option_offset, FIELD(match),
         "Add D (-37s, 1.5us) to the times of B; auto estimates it. Without it, both clocks are trusted."},
	{"window", 0, "D", ow_option_positive_duration, FIELD(match.window_ns),
         "Waiting time after which a packet is lost (default: chosen from the traffic)."},
	{"interval", 0, "D", ow_option_positive_duration, FIELD(match.interval_ns),
         "Also print results for each interval of D."},
	{"utc", 0, NULL, ow_option_flag, FIELD(utc), "Times on the command line and in text are UTC, not local."},
	{"one-direction", 0, NULL, ow_option_flag, FIELD(match.one_direction),
         "All traffic goes from A to B: packets that B never saw are lost, also in flows without any match."},

	{"lag", 0, "D", ow_option_positive_duration, FIELD(lag_ns),
         "With --follow: how long results wait for a point whose files do not grow (default 10s); after that they are "
         "unknown."},
	{"order", 0, "ORDER", set_order, FIELD(keep_order),
         "Order of more than two points: auto (default) finds it by TTL and time, given keeps that of the arguments."},

	{NULL, 0, NULL, NULL, 0, "Output:"},
	{"json", 0, NULL, ow_option_flag, FIELD(json), "Print JSON instead of text."},
	{"percentiles", 0, "P,...", set_percentiles, FIELD(percentiles),
         "Percentiles of the delay to show, such as 50,95,99,99.9 (default: 90,95,99,99.9)."},
	{"details", 0, NULL, ow_option_flag, FIELD(match.details),
         "Also delay variation (RFC 5481), jitter (RFC 3550), loss periods (RFC 3357), extent of reordering (RFC 4737) "
         "and TCP retransmissions. Reads the captures once more."},
	{"csv", 0, "FILE", ow_option_output, FIELD(csv), "Write a row for every packet; - is standard output."},
	{"flows", 0, NULL, ow_option_flag, FIELD(flows),
         "Results of each flow: tables of the slowest flows and of those that lost most; with --json all flows."},
	{"top", 0, "N", ow_option_count, FIELD(top), "Number of rows of these tables (default 10)."},
	{"min-packets", 0, "N", ow_option_count, FIELD(least),
         "Show only flows of which at least N packets arrived in these tables (default 1)."},
	{"intervals-csv", 0, "FILE", ow_option_output, FIELD(intervals_csv),
         "With --interval: write a row for every interval and direction; - is standard output."},
	{"flows-csv", 0, "FILE", ow_option_output, FIELD(flows_csv),
         "Write a row for every flow; - is standard output."},
	{"key", 0, "KEY", set_key, FIELD(key),
         "Fields that define a flow: five-tuple (default), addresses, or prefix:24,48 for the networks of IPv4 and "
         "IPv6 "
         "addresses."},
	{"lost", 0, "FILE", ow_option_output, FIELD(lost),
         "Write the lost packets to a capture: pcapng if the name ends so, else pcap; .gz compresses."},
	{"extra", 0, "FILE", ow_option_output, FIELD(extra),
         "Write the packets that are not in the sender's capture, and duplicates, to a capture."},
	{"annotate", 0, "FILE", ow_option_output, FIELD(annotate),
         "Copy A to a pcapng file with a comment on every packet: fate, delay, copy, frame and time in B. Wireshark "
         "shows "
         "them, as columns with contrib/wireshark/oneway.lua."},
	{"plot", 0, "FILE", ow_option_plot, FIELD(plot),
         "Plot delay and loss over time and the distribution, as .svg or .png (needs gnuplot)."},
	{"report", 0, "FILE", ow_option_output, FIELD(report),
         "Write all results with plots and the worst flows as one page of HTML, to send to others."},
	OW_OPTIONS_NO_COLOR(struct ow_match_arguments),

	{NULL, 0, NULL, NULL, 0, "Thresholds, for each direction (exit code 3 if crossed):"},
	{"max-loss", 0, "P", ow_option_share, FIELD(max_loss), "Highest acceptable loss: 0.01 or 1%."},
	{"max-delay-p99", 0, "D", ow_option_duration, FIELD(max_p99_ns),
         "Highest acceptable 99th percentile of the delay."},

	{NULL, 0, NULL, NULL, 0, "Other:"},
	{"threads", 0, "N", ow_option_count, FIELD(threads),
         "Number of threads: 1, 2 or 3 (default: depends on the number of processors)."},
	OW_OPTIONS_HELP(struct ow_match_arguments),
	{0},
};

void ow_match_arguments_help(void)
{
	fputs("usage: oneway match [OPTION]... A [HOP]... B\n"
	      "\n"
	      "Matches two captures of the same traffic packet by packet: exact one-way delay,\n"
	      "loss, duplicates and reordering between the points where A and B were taken.\n"
	      "Files are pcap, pcapng, snoop or ERF, also compressed (gzip, zstd, lz4, xz,\n"
	      "bzip2); - is standard input. Instead of a file: a folder of files, a quoted\n"
	      "pattern, or several of them joined by +; NAME= before it names the point. With\n"
	      "more than two points: hop by hop and end to end. Durations have a unit: ns, us,\n"
	      "ms, s, min, h, d.\n",
	      stdout);
	ow_options_help(stdout, options);
	fputs("\n"
	      "Examples:\n"
	      "  oneway match client.pcap server.pcap\n"
	      "  oneway match 'client_*.pcap*' server/                 rotated files\n"
	      "  oneway match client.pcap fw-in.pcap fw-out.pcap server.pcap    a path\n"
	      "  oneway match a=a.pcap b=b1.pcap+b2.pcap c=c/           b: two links\n"
	      "  oneway match --offset auto lan.pcapng wan.pcapng.gz    clocks not synchronised\n"
	      "  oneway match --level nat inside.pcap outside.pcap      a NAT in between\n"
	      "  oneway match --json --interval 1s a.pcap b.pcap | jq .a_to_b.delay_ns\n"
	      "  oneway match --flows --min-packets 100 a.pcap b.pcap   the slowest flows\n"
	      "  oneway match --filter 'tcp port 443' --since 10:02 --until 10:05 a.pcap b.pcap\n"
	      "  oneway match --follow 'a_*.pcap' b/                    as they grow\n"
	      "  oneway match --lost lost.pcap --plot delay.svg a.pcap b.pcap\n"
	      "  oneway match --max-loss 0.1% --max-delay-p99 250us a.pcap b.pcap || echo bad\n",
	      stdout);
}

/* Whether the file is the capture, or one of its files. */
static bool is_input(const char *path, const char *capture)
{
	uint64_t port;
	char files[OW_POINT_PATH];
	size_t length = ow_reader_port_of_path(capture, &port);
	if (length && length < sizeof files) {
		snprintf(files, sizeof files, "%.*s", (int)length, capture);
		return is_input(path, files);
	}
	if (ow_file_set_is_file(capture))
		return ow_same_file(path, capture);
	struct ow_file_set set;
	bool found = false;
	if (ow_file_set_find(capture, &set, NULL) == 0) {
		for (size_t i = 0; i < set.count && !found; i++)
			found = ow_same_file(path, set.file[i].path);
	}
	ow_file_set_done(&set);
	return found;
}

/* No output may overwrite an input or another output. */
static int check_outputs(const struct ow_match_arguments *args, struct ow_error *err)
{
	const struct {
		const char *option, *path;
		bool capture;
	} outputs[] = {{"--csv", args->csv},
	               {"--lost", args->lost, true},
	               {"--extra", args->extra, true},
	               {"--annotate", args->annotate, true},
	               {"--plot", args->plot},
	               {"--flows-csv", args->flows_csv},
	               {"--intervals-csv", args->intervals_csv},
	               {"--report", args->report}};
	const size_t count = sizeof outputs / sizeof *outputs;
	for (size_t i = 0; i < count; i++) {
		const char *path = outputs[i].path;
		for (unsigned p = 0; path && p < args->points.count; p++) {
			if (is_input(path, args->points.point[p].path))
				return ow_error_set(err, EINVAL, "%s %.200s would overwrite the input %.200s",
				                    outputs[i].option, path, args->points.point[p].path);
			if (outputs[i].capture && ow_file_set_takes(args->points.point[p].path, path))
				return ow_error_set(err, EINVAL,
				                    "%s %.200s would be a file of the input %.200s, and read next time",
				                    outputs[i].option, path, args->points.point[p].path);
		}
		for (size_t k = 0; path && k < i; k++) {
			const char *other = outputs[k].path;
			if (other && (strcmp(path, other) == 0 || ow_same_file(path, other)))
				return ow_error_set(err, EINVAL, "%s and %s are both %.200s", outputs[k].option,
				                    outputs[i].option, path);
		}
	}
	return 0;
}

/* Whether a capture can be read only once. */
static bool is_pipe(const char *path)
{
	struct stat info;
	return strcmp(path, "-") == 0 ||
	       (ow_file_set_is_file(path) && stat(path, &info) == 0 && !S_ISREG(info.st_mode));
}

/* Outputs that have packets of the captures, which are read again for them. */
static int check_copies(const struct ow_match_arguments *args, struct ow_error *err)
{
	const char *option = args->lost ? "--lost" : args->extra ? "--extra" : "--annotate";
	unsigned read = args->lost || args->extra ? args->points.count : args->annotate ? 1 : 0;
	enum ow_file_format format = OW_FILE_PCAPNG;
	bool gzip;
	for (unsigned i = 0; i < read; i++) {
		if (is_pipe(args->points.point[i].path))
			return ow_error_set(err, EINVAL, "%s reads %.200s again: it needs a file, not %s", option,
			                    i ? "B" : "A", "standard input or a pipe");
	}
	if (ow_output_is_stdout(args->lost) || ow_output_is_stdout(args->extra) || ow_output_is_stdout(args->annotate))
		return ow_error_set(err, EINVAL, "%s needs a file name", option);
	if (args->annotate)
		ow_writer_options_of_name(args->annotate, &format, &gzip);
	if (format != OW_FILE_PCAPNG)
		return ow_error_set(err, EINVAL,
		                    "--annotate writes comments: the name must end in .pcapng or .pcapng.gz");
	return 0;
}

/* What needs the whole captures. */
static int check_follow(const struct ow_match_arguments *args, struct ow_error *err)
{
	const struct {
		const char *option;
		bool given;
	} whole[] = {{"--csv", args->csv},
	             {"--lost", args->lost},
	             {"--extra", args->extra},
	             {"--annotate", args->annotate},
	             {"--plot", args->plot},
	             {"--report", args->report},
	             {"--percentiles", args->percentiles.count},
	             {"--details", args->match.details},
	             {"--intervals-csv", args->intervals_csv},
	             {"--flows", args->flows || args->flows_csv},
	             {"--flow", args->flow},
	             {"--by", args->by_port || args->classes.by},
	             {"--order", args->keep_order},
	             {"--dedup", args->match.dedup_ns},
	             {"--segments", args->match.segments == OW_ON},
	             {"--stamps", args->match.stamps != OW_STAMPS_CAPTURE},
	             {"--offset D", args->match.offset_ns},
	             {"--level frame", args->match.level == OW_LEVEL_FRAME}};
	for (size_t i = 0; i < sizeof whole / sizeof *whole; i++) {
		if (whole[i].given)
			return ow_error_set(err, EINVAL, "%s does not go with --follow", whole[i].option);
	}
	for (unsigned i = 0; i < args->points.count && args->points.count > OW_SIDES; i++) {
		if (ow_stream_is_argument(args->points.point[i].path))
			return ow_error_set(err, EINVAL, "%s: at more than two points only files can be followed",
			                    args->points.point[i].path);
	}
	if (!args->forward && !args->match.one_direction && args->match.inner == OW_ON)
		return ow_error_set(err, EINVAL, "--follow --inner on needs --forward FILTER, or --one-direction");
	return 0;
}

const char *ow_match_arguments_table(const struct ow_match_arguments *args)
{
	return ow_output_is_stdout(args->csv)             ? "--csv"
	       : ow_output_is_stdout(args->flows_csv)     ? "--flows-csv"
	       : ow_output_is_stdout(args->intervals_csv) ? "--intervals-csv"
	                                                  : NULL;
}

static int check_arguments(const struct ow_match_arguments *args, struct ow_error *err)
{
	unsigned inputs = 0;
	for (unsigned i = 0; i < args->points.count; i++)
		inputs += strcmp(args->points.point[i].path, "-") == 0;
	if (inputs > 1)
		return ow_error_set(err, EINVAL, "only one of A and B can be standard input");
	if (inputs && args->points.count > OW_SIDES)
		return ow_error_set(err, EINVAL, "more than two points need files, not standard input");
	if (args->points.count > OW_SIDES && args->match.clock == OW_CLOCK_GIVEN && args->match.offset_ns)
		return ow_error_set(err, EINVAL, "--offset with more than two points: auto, or 0");
	if (args->points.count == OW_SIDES && args->keep_order)
		return ow_error_set(err, EINVAL, "--order is for more than two points");
	int r = args->follow ? check_follow(args, err) : check_copies(args, err);
	if (r < 0)
		return r;
	if (ow_output_is_stdout(args->report))
		return ow_error_set(err, EINVAL, "--report needs a file name");
	if ((args->forward || args->lag_ns) && !args->follow)
		return ow_error_set(err, EINVAL, "%s is for --follow", args->forward ? "--forward" : "--lag");
	if (args->json && ow_match_arguments_table(args))
		return ow_error_set(err, EINVAL, "--json and %s - cannot both use standard output",
		                    ow_match_arguments_table(args));
	if (args->classes.by && args->classes.count)
		return ow_error_set(err, EINVAL, "--class and --by dscp or size: choose one");
	if (args->intervals_csv && !args->match.interval_ns)
		return ow_error_set(err, EINVAL, "--intervals-csv needs --interval");
	if ((args->top || args->least) && args->json)
		return ow_error_set(err, EINVAL, "%s is for text: JSON has all flows",
		                    args->top ? "--top" : "--min-packets");
	return check_outputs(args, err);
}

/* --since and --until, by the clock of A. */
static int read_times(struct ow_match_arguments *args, struct ow_error *err)
{
	struct ow_error why;
	int r = args->since ? ow_capture_when_parse(args->since, args->path[OW_SIDE_A], &args->match.since_ns, &why)
	                    : 0;
	if (r < 0)
		return ow_error_set(err, -r, "--since: %s", why.text);
	r = args->until ? ow_capture_when_parse(args->until, args->path[OW_SIDE_A], &args->match.until_ns, &why) : 0;
	if (r < 0)
		return ow_error_set(err, -r, "--until: %s", why.text);
	if (args->since && args->until && args->match.since_ns >= args->match.until_ns)
		return ow_error_set(err, EINVAL, "--until %.40s is not after --since %.40s", args->until, args->since);
	return 0;
}

/* The packets of --flow that also pass --filter. */
static int read_flow(struct ow_match_arguments *args, struct ow_error *err)
{
	const struct ow_flow_select select = {.by = OW_FLOW_BY_FIVE_TUPLE};
	struct ow_flow_key key;
	struct ow_error why;
	char filter[OW_FLOW_FILTER];
	if (!args->flow)
		return 0;
	int r = ow_flow_key_parse(args->flow, &select, &key, &why);
	if (r < 0)
		return ow_error_set(err, -r, "--flow: %s", why.text);
	if (args->match.filter && strlen(args->match.filter) > OW_MATCH_FILTER_MOST - 16)
		return ow_error_set(err, EINVAL, "--flow with a filter of more than %d bytes",
		                    OW_MATCH_FILTER_MOST - 16);
	ow_flow_filter(&key, filter);
	snprintf(args->flow_filter, sizeof args->flow_filter, "%s%s%s%s", filter, args->match.filter ? " and (" : "",
	         args->match.filter ? args->match.filter : "", args->match.filter ? ")" : "");
	args->match.filter = args->flow_filter;
	return 0;
}

int ow_match_arguments_read(int argc, char **argv, struct ow_match_arguments *args, struct ow_error *err)
{
	*args = (struct ow_match_arguments){.max_loss = 2, .max_p99_ns = INT64_MAX};
	args->key.by = OW_FLOW_BY_FIVE_TUPLE;
	ow_match_defaults(&args->match);
	int operands = ow_options_parse(options, argc, argv, args, err);
	if (operands < 0 || args->help || args->version)
		return operands < 0 ? operands : 0;
	if (args->by_port && operands != 1)
		return ow_error_set(err, EINVAL, "--by port needs one capture, got %d", operands);
	if (!args->by_port && operands < OW_SIDES)
		return ow_error_set(err, EINVAL, "needs two captures, A and B, got %d", operands);
	int r = args->by_port ? ow_point_ports(argv[1], &args->points, err)
	                      : ow_point_arguments(argv + 1, (unsigned)operands, &args->points, err);
	if (r < 0)
		return r;
	args->path[OW_SIDE_A] = args->points.point[0].path;
	args->path[OW_SIDE_B] = args->points.point[args->points.count - 1].path;
	/* An option about flows implies --flows. */
	args->flows |= args->top || args->least || (args->key.by != OW_FLOW_BY_FIVE_TUPLE && !args->flows_csv);
	if (args->utc && setenv("TZ", "UTC0", 1) < 0)
		return ow_error_set(err, ENOMEM, "--utc: not enough memory");
	tzset();
	if (args->threads > 3)
		return ow_error_set(err, EINVAL, "--threads: %" PRIu64 " is not 1, 2 or 3", args->threads);
	args->match.threads = (unsigned)args->threads;
	r = check_arguments(args, err);
	if (r == 0)
		r = read_flow(args, err);
	return r < 0 ? r : read_times(args, err);
}
