/* SPDX-License-Identifier: Apache-2.0 */
/* oneway match A B: runs the library's matcher and writes what was asked for. */
#include "cli/capture_when.h"
#include "base/array.h"
#include "cli/cli.h"
#include "cli/shared_options.h"
#include "match/annotate.h"
#include "match/extract.h"
#include "cli/interrupt.h"
#include "cli/measure_hops.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/terminal.h"

#include "base/side.h"
#include "base/time.h"
#include "config/keys.h"
#include "estimate/class_tally.h"
#include "packet/flow_filter.h"
#include "packet/flow_parse.h"
#include "capture/file/file_set.h"
#include "capture/file/reader.h"
#include "capture/file/writer.h"
#include "report/match_classes.h"
#include "report/match_flows.h"
#include "report/match_packets.h"
#include "report/match_page.h"
#include "report/plot.h"
#include "report/report.h"
#include "path/flow_hops.h"
#include "path/path.h"
#include "cli/point_argument.h"
#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <libgen.h>
#include <oneway/oneway.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <sys/stat.h>
#include <unistd.h>
#include <sys/random.h>

#define FILTER_MOST 1024 /* bytes of a filter that is used together with --flow */

struct percentiles {
	double percent[OW_PERCENTILES_MAX];
	unsigned count;
};

struct arguments {
	struct ow_match_options match;
	struct percentiles percentiles;
	uint64_t threads, top, least;
	bool flows;
	struct ow_flow_select key;
	bool json, utc, no_color, help, version;
	const char *csv, *lost, *extra, *annotate, *plot, *report, *flows_csv, *intervals_csv;
	const char *since, *until;
	bool by_port, follow;
	const char *forward;
	int64_t lag_ns;
	struct ow_match_classes classes;
	const char *flow;
	char flow_filter[OW_FLOW_FILTER + FILTER_MOST];
	double max_loss;    /* above 1: no threshold was given */
	int64_t max_p99_ns; /* INT64_MAX: no threshold was given */
	bool keep_order;
	struct ow_point_arguments points;
	const char *path[OW_SIDES]; /* of both ends */
};

/* Rows of a table of flows, if no number was given. */
#define TOP_DEFAULT 10

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
	struct arguments *args = (struct arguments *)((char *)field - offsetof(struct arguments, by_port));
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
	struct percentiles *p = field;
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

#define FIELD(name) offsetof(struct arguments, name)

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
	OW_OPTIONS_NO_COLOR(struct arguments),

	{NULL, 0, NULL, NULL, 0, "Thresholds, for each direction (exit code 3 if crossed):"},
	{"max-loss", 0, "P", ow_option_share, FIELD(max_loss), "Highest acceptable loss: 0.01 or 1%."},
	{"max-delay-p99", 0, "D", ow_option_duration, FIELD(max_p99_ns),
         "Highest acceptable 99th percentile of the delay."},

	{NULL, 0, NULL, NULL, 0, "Other:"},
	{"threads", 0, "N", ow_option_count, FIELD(threads),
         "Number of threads: 1, 2 or 3 (default: depends on the number of processors)."},
	OW_OPTIONS_HELP(struct arguments),
	{0},
};

static void help(void)
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

/* Collects packets for the outputs while they are matched. */
struct collector {
	struct ow_output csv, path_csv;      /* one of them */
	struct ow_record_file *notes, *hops; /* of --annotate; hops: of a path */
	struct ow_plot *plot;
	struct ow_flow_tally *tally;
	struct ow_class_tally *classes;
	struct ow_match_packets packets; /* flow is not NULL if they are wanted */
	struct ow_last_seen *seen;       /* of these, on a path */
	size_t seens, seen_room;
	struct ow_flow_hops *flow_hops; /* of a path */
	struct ow_match_flows flows;
	bool lost_wanted, extra_wanted;
	int64_t from_ns;  /* offsets in the CSV are from this time on, .. */
	bool csv_started; /* .. if a row was written */
	struct ow_records lost[OW_SIDES], extra[OW_SIDES];
	struct ow_progress progress;
	struct ow_error err; /* why on_packet stopped the run, if it did */
	struct ow_error path_err;
};

/* Lost packets are records of the sending side, extra ones of the receiving side. */
static int note_record(struct collector *c, const struct ow_packet_event *event)
{
	enum ow_side sender = ow_sender_of(event->direction), receiver = !sender;
	if (event->fate == OW_FATE_LOST && c->lost_wanted)
		return ow_records_add(&c->lost[sender], event->number[sender]);
	if ((event->fate == OW_FATE_EXTRA || event->fate == OW_FATE_DUPLICATED) && c->extra_wanted)
		return ow_records_add(&c->extra[receiver], event->number[receiver]);
	return 0;
}

static int on_packet(void *arg, const struct ow_packet_event *event)
{
	struct collector *c = arg;
	if (ow_interrupted)
		return ow_error_set(&c->err, EINTR, "interrupted");
	if (c->csv.stream) {
		if (!c->csv_started)
			c->from_ns = event->time_ns[event->number[OW_SIDE_A] ? OW_SIDE_A : OW_SIDE_B];
		c->csv_started = true;
		ow_report_csv_packet(c->csv.stream, event, c->from_ns);
		int r = ow_output_check(&c->csv, &c->err);
		if (r < 0)
			return r;
	}
	int r = note_record(c, event);
	if (r == 0 && c->notes && (r = ow_packet_note_add(c->notes, OW_SIDE_A, event, &c->err)) < 0)
		return r;
	if (r == 0 && c->plot)
		r = ow_plot_add(c->plot, event);
	if (r == 0 && c->tally)
		r = ow_flow_tally_add(c->tally, event);
	if (r == 0 && c->classes)
		r = ow_class_tally_add(c->classes, event);
	if (r == 0 && c->packets.flow)
		r = ow_match_packets_add(&c->packets, event);
	return r < 0 ? ow_error_set(&c->err, -r, "collecting packets: %s", strerror(-r)) : 0;
}

static int note_last_seen(struct collector *c, const struct ow_path_packet *packet)
{
	const struct ow_path_report *path = packet->path;
	int last = ow_path_last_seen(packet);
	if (last < 0 || packet->ambiguous || c->seens == OW_MATCH_PACKETS_MAX)
		return 0;
	if (OW_GROW(c->seen, c->seen_room, c->seens + 1) < 0)
		return -ENOMEM;
	unsigned end = path->points - 1;
	c->seen[c->seens++] = (struct ow_last_seen){
		.number = {packet->seen & 1 ? packet->number[0] : 0, packet->seen >> end & 1 ? packet->number[end] : 0},
		.point = path->point[last].name};
	return 0;
}

/* Rows and hops of a path. Runs beside on_packet. */
static int on_path_packet(void *arg, const struct ow_path_packet *packet)
{
	struct collector *c = arg;
	if (ow_interrupted)
		return ow_error_set(&c->path_err, EINTR, "interrupted");
	if (c->plot && ow_plot_add_path(c->plot, packet) < 0)
		return ow_error_set(&c->path_err, ENOMEM, "--plot: not enough memory");
	if (c->hops && (packet->seen & 1) && !packet->ambiguous) {
		const struct ow_hop_note hop = {.seen = packet->seen, .direction = (uint8_t)packet->direction};
		int r = ow_hop_note_add(c->hops, packet->number[0], &hop, packet->time_ns, packet->path->points,
		                        &c->path_err);
		if (r < 0)
			return r;
	}
	if (c->flow_hops && ow_flow_hops_add(c->flow_hops, packet) < 0)
		return ow_error_set(&c->path_err, ENOMEM, "--flows: not enough memory");
	if (c->packets.flow && note_last_seen(c, packet) < 0)
		return ow_error_set(&c->path_err, ENOMEM, "--flow: not enough memory");
	if (!c->path_csv.stream)
		return 0;
	if (!c->csv_started) {
		ow_report_csv_path_header(c->path_csv.stream, packet->path);
		c->from_ns = packet->time_ns[__builtin_ctz(packet->seen)];
	}
	c->csv_started = true;
	ow_report_csv_path_packet(c->path_csv.stream, packet->path, packet, c->from_ns);
	return ow_output_check(&c->path_csv, &c->path_err);
}

static void on_progress(void *arg, double done)
{
	struct collector *c = arg;
	ow_progress_show(&c->progress, done);
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
static int check_outputs(const struct arguments *args, struct ow_error *err)
{
	const struct {
		const char *option, *path;
	} outputs[] = {{"--csv", args->csv},
	               {"--lost", args->lost},
	               {"--extra", args->extra},
	               {"--annotate", args->annotate},
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
static int check_copies(const struct arguments *args, struct ow_error *err)
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
static int check_follow(const struct arguments *args, struct ow_error *err)
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

/* The option of a table that goes to standard output; NULL if there is none. */
static const char *stdout_table(const struct arguments *args)
{
	return ow_output_is_stdout(args->csv)             ? "--csv"
	       : ow_output_is_stdout(args->flows_csv)     ? "--flows-csv"
	       : ow_output_is_stdout(args->intervals_csv) ? "--intervals-csv"
	                                                  : NULL;
}

static int check_arguments(const struct arguments *args, struct ow_error *err)
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
	if (args->json && stdout_table(args))
		return ow_error_set(err, EINVAL, "--json and %s - cannot both use standard output", stdout_table(args));
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
static int read_times(struct arguments *args, struct ow_error *err)
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
static int read_flow(struct arguments *args, struct ow_error *err)
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
	if (args->match.filter && strlen(args->match.filter) > FILTER_MOST - 16)
		return ow_error_set(err, EINVAL, "--flow with a filter of more than %d bytes", FILTER_MOST - 16);
	ow_flow_filter(&key, filter);
	snprintf(args->flow_filter, sizeof args->flow_filter, "%s%s%s%s", filter, args->match.filter ? " and (" : "",
	         args->match.filter ? args->match.filter : "", args->match.filter ? ")" : "");
	args->match.filter = args->flow_filter;
	return 0;
}

/* Fills args from the command line. Returns 0, or -EINVAL with err filled. */
static int read_arguments(int argc, char **argv, struct arguments *args, struct ow_error *err)
{
	*args = (struct arguments){.max_loss = 2, .max_p99_ns = INT64_MAX};
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
	args->match.threads = args->threads > 3 ? 3 : (unsigned)args->threads;
	r = check_arguments(args, err);
	if (r == 0)
		r = read_flow(args, err);
	return r < 0 ? r : read_times(args, err);
}

/* Notes about packets are in the folder of the file that they are for. */
static int start_notes(struct collector *c, const char *path, unsigned points, struct ow_error *err)
{
	char *copy = strdup(path);
	struct ow_error why;
	const char *folder = copy ? dirname(copy) : NULL;
	int r = folder ? ow_record_file_create(folder, sizeof(struct ow_packet_note), &c->notes, &why)
	               : ow_error_set(&why, ENOMEM, "not enough memory");
	if (r == 0 && points > OW_SIDES)
		r = ow_record_file_create(folder, ow_hop_note_size(points), &c->hops, &why);
	free(copy);
	return r < 0 ? ow_error_set(err, -r, "--annotate: %s", why.text) : 0;
}

static int start_collecting(struct collector *c, struct arguments *args, struct ow_error *err)
{
	ow_progress_init(&c->progress, "matching");
	args->match.arg = c;
	args->match.on_progress = on_progress;
	c->lost_wanted = args->lost != NULL;
	c->extra_wanted = args->extra != NULL;
	c->packets.flow = args->flow;
	bool flows = args->flows || args->flows_csv || args->report, plot = args->plot || args->report;
	args->match.percentile = args->percentiles.percent;
	args->match.percentiles = args->percentiles.count;
	args->match.class_filter = args->classes.filter;
	args->match.classes = args->classes.count;
	args->match.class_by = args->classes.by;
	bool classes = args->classes.count || args->classes.by;
	if (!args->csv && !args->lost && !args->extra && !args->annotate && !plot && !flows && !classes && !args->flow)
		return 0;
	args->match.on_packet = on_packet;
	ow_interrupt_catch();
	if (plot && ow_plot_create(args->points.count > OW_SIDES ? args->points.count - 1 : 0, &c->plot) < 0)
		return ow_error_set(err, ENOMEM, "--plot: not enough memory");
	if (flows && !args->match.seed &&
	    getrandom(&args->match.seed, sizeof args->match.seed, 0) != (ssize_t)sizeof args->match.seed)
		return ow_error_set(err, EIO, "no random numbers: %s", strerror(errno));
	if (flows && ow_flow_tally_create(&args->key, args->match.seed, &c->tally) < 0)
		return ow_error_set(err, ENOMEM, "--flows: not enough memory");
	if (classes && ow_class_tally_create(args->classes.by, &c->classes) < 0)
		return ow_error_set(err, ENOMEM, "--class: not enough memory");
	int r = args->annotate ? start_notes(c, args->annotate, args->points.count, err) : 0;
	if (!args->csv || r < 0)
		return r;
	if (args->points.count > OW_SIDES)
		return ow_output_open(&c->path_csv, args->csv, err);
	r = ow_output_open(&c->csv, args->csv, err);
	if (r == 0)
		ow_report_csv_header(c->csv.stream);
	return r;
}

static void stop_collecting(struct collector *c)
{
	ow_output_abort(&c->csv);
	ow_output_abort(&c->path_csv);
	ow_record_file_free(c->notes);
	ow_record_file_free(c->hops);
	ow_plot_free(c->plot);
	ow_flow_tally_free(c->tally);
	ow_class_tally_free(c->classes);
	ow_match_packets_done(&c->packets);
	ow_match_flows_done(&c->flows);
	ow_flow_hops_free(c->flow_hops);
	free(c->seen);
	for (int side = 0; side < OW_SIDES; side++) {
		ow_records_done(&c->lost[side]);
		ow_records_done(&c->extra[side]);
	}
}

static int write_flows(const struct collector *c, const char *path, struct ow_error *err)
{
	struct ow_output csv = {0};
	int r = ow_output_open(&csv, path, err);
	if (r < 0)
		return r;
	ow_report_match_flows_csv(csv.stream, &c->flows);
	return ow_output_close(&csv, err);
}

static struct ow_match_page page_of(const struct collector *c, const struct arguments *args,
                                    const struct ow_match_report *report, const struct ow_path_report *path)
{
	return (struct ow_match_page){.report = report,
	                              .name = args->points.given,
	                              .path = path,
	                              .classes = args->classes.count ? &args->classes : NULL,
	                              .packets = args->flow ? &c->packets : NULL,
	                              .flows = args->flows ? &c->flows : NULL,
	                              .top = args->top ? args->top : TOP_DEFAULT,
	                              .least = args->least,
	                              .plot = c->plot};
}

/* It has tables of flows, whether or not the text has them. */
static int write_page(const struct collector *c, const char *path, struct ow_match_page page, struct ow_error *err)
{
	struct ow_output html = {0};
	struct ow_error why;
	int r = ow_output_open(&html, path, err);
	if (r < 0)
		return r;
	page.flows = &c->flows;
	r = ow_match_page_html(html.stream, &page, &why);
	if (r == 0)
		return ow_output_close(&html, err);
	ow_output_abort(&html);
	return ow_error_set(err, -r, "%s: %s", path, why.text);
}

/* The first point of a path, or A. */
static int write_annotated(const struct collector *c, const struct arguments *args,
                           const struct ow_match_report *report, const struct ow_path_report *path,
                           struct ow_error *err)
{
	struct ow_annotation annotation = {
		.packets = c->notes, .window_ns = report->window_ns, .interrupted = &ow_interrupted, .hops = c->hops};
	_Static_assert(OW_ANNOTATE_POINTS >= OW_PATH_POINTS, "a path has more points");
	for (; path && annotation.points < path->points; annotation.points++)
		annotation.name[annotation.points] = path->point[annotation.points].name;
	return ow_annotate(args->path[OW_SIDE_A], args->annotate, &annotation, err);
}

static int write_intervals(const struct ow_match_report *report, const char *path, struct ow_error *err)
{
	struct ow_output csv = {0};
	int r = ow_output_open(&csv, path, err);
	if (r < 0)
		return r;
	ow_report_csv_intervals(csv.stream, report);
	return ow_output_close(&csv, err);
}

/* Writes the files besides the report. If one fails, the others are still written. */
static int write_files(struct collector *c, const struct arguments *args, const struct ow_match_report *report,
                       const struct ow_path_report *path)
{
	struct ow_error err;
	int code = OW_EXIT_OK;
	if (ow_output_close(&c->csv, &err) < 0 || ow_output_close(&c->path_csv, &err) < 0)
		code = ow_cli_failed("match", &err);
	if (args->lost && ow_extract(args->lost, args->path, c->lost, &err) < 0)
		code = ow_cli_failed("match", &err);
	if (args->extra && ow_extract(args->extra, args->path, c->extra, &err) < 0)
		code = ow_cli_failed("match", &err);
	if (args->annotate && write_annotated(c, args, report, path, &err) < 0)
		code = ow_cli_failed("match", &err);
	if (args->flows_csv && write_flows(c, args->flows_csv, &err) < 0)
		code = ow_cli_failed("match", &err);
	if (args->intervals_csv && write_intervals(report, args->intervals_csv, &err) < 0)
		code = ow_cli_failed("match", &err);
	if (args->plot && ow_plot_write(c->plot, report, path, args->plot, &err) < 0)
		code = ow_cli_failed("match", &err);
	if (args->report && write_page(c, args->report, page_of(c, args, report, path), &err) < 0)
		code = ow_cli_failed("match", &err);
	return code;
}

/* Prints to standard output, or to standard error if CSV uses standard output. */
static void print_report(const struct collector *c, const struct arguments *args, const struct ow_match_report *report,
                         const struct ow_path_report *path)
{
	FILE *out = stdout_table(args) ? stderr : stdout;
	int width = ow_terminal_width(out);
	bool colour = !args->no_color && ow_terminal_colour(out);
	if (args->json) {
		ow_report_match_json(out, report, args->points.given, args->flows ? &c->flows : NULL,
		                     args->classes.count ? &args->classes : NULL, args->flow ? &c->packets : NULL,
		                     path);
		return;
	}
	struct ow_match_page page = page_of(c, args, report, path);
	ow_match_page_text(out, &page, width, ow_terminal_is(out), colour ? OW_LOOK_COLOUR : OW_LOOK_PLAIN);
}

static int check_thresholds(const struct arguments *args, const struct ow_match_report *report)
{
	static const char *const title[] = {"A to B", "B to A"};
	int code = OW_EXIT_OK;
	for (int d = 0; d < OW_DIRECTIONS; d++) {
		const struct ow_result *result = &report->direction[d];
		if (!report->has_direction[d])
			continue;
		if (result->sent && (double)result->lost / (double)result->sent > args->max_loss) {
			ow_cli_say("oneway match: %s: loss of %.4g %% is above --max-loss %.4g %%", title[d],
			           100 * (double)result->lost / (double)result->sent, 100 * args->max_loss);
			code = OW_EXIT_CROSSED;
		}
		if (args->max_p99_ns == INT64_MAX)
			continue;
		char p99[OW_DURATION_TEXT], limit[OW_DURATION_TEXT];
		ow_duration_text(result->delay.quantile_ns[OW_Q99], p99);
		ow_duration_text((double)args->max_p99_ns, limit);
		if (!result->delay.samples) {
			/* An unknown delay also crosses the threshold: a script that checks it must not continue. */
			ow_cli_say("oneway match: %s: no delay sample to compare with --max-delay-p99 %s", title[d],
			           limit);
			code = OW_EXIT_CROSSED;
		} else if (result->delay.quantile_ns[OW_Q99] > (double)args->max_p99_ns) {
			ow_cli_say("oneway match: %s: p99 delay of %s is above --max-delay-p99 %s", title[d], p99,
			           limit);
			code = OW_EXIT_CROSSED;
		}
	}
	return code;
}

static int get_classes(struct collector *c, struct ow_match_classes *classes, const struct ow_match_report *report)
{
	for (unsigned i = 0; i < OW_CLASSES_MAX && classes->by; i++) {
		if (ow_class_tally_used(c->classes, i))
			ow_match_classes_add(classes, (uint8_t)i);
	}
	classes->percentiles = report->percentiles;
	for (unsigned i = 0; i < classes->count; i++) {
		for (unsigned d = 0; d < OW_DIRECTIONS; d++) {
			if (ow_class_tally_get(c->classes, report, classes->by ? classes->number[i] : i, d,
			                       &classes->result[i][d], classes->percentile[i][d]) < 0)
				return -ENOMEM;
		}
	}
	return 0;
}

static int get_flow_hops(struct collector *c, const struct ow_flow_select *key, const struct ow_path_report *path)
{
	struct ow_flow_hops_report *hops = &c->flows.hops;
	*hops = (struct ow_flow_hops_report){
		.path = path, .select = key, .omitted = ow_flow_hops_omitted(c->flow_hops)};
	return ow_flow_hops_all(c->flow_hops, &hops->flow, &hops->flows);
}

/* Prints and writes all that was asked for. */
static int write_results(struct arguments *args, struct collector *c, const struct ow_match_report *report,
                         const struct ow_path_report *path)
{
	struct ow_error err;
	if (c->tally) {
		assert(ow_flow_tally_conserves(c->tally, report));
		if (ow_match_flows_init(&c->flows, c->tally, &args->key) < 0 ||
		    ow_match_flows_add_jitter(&c->flows, report) < 0) {
			ow_error_set(&err, ENOMEM, "--flows: not enough memory");
			return ow_cli_failed("match", &err);
		}
	}
	if (path && args->flow)
		ow_match_packets_place(&c->packets, c->seen, c->seens);
	ow_match_packets_sort(&c->packets);
	if (c->flow_hops && get_flow_hops(c, &args->key, path) < 0) {
		ow_error_set(&err, ENOMEM, "--flows: not enough memory");
		return ow_cli_failed("match", &err);
	}
	if (get_classes(c, &args->classes, report) < 0) {
		ow_error_set(&err, ENOMEM, "--class: not enough memory");
		return ow_cli_failed("match", &err);
	}
	/* The report is printed before the files are written, so that a failing file does not lose it. */
	print_report(c, args, report, path);
	int code = write_files(c, args, report, path);
	return code == OW_EXIT_OK ? check_thresholds(args, report) : code;
}

static int run_pair(struct arguments *args, struct collector *c)
{
	struct ow_match *match = NULL;
	struct ow_error err = {"no reason given"};
	int r = start_collecting(c, args, &err);
	if (r == 0)
		r = ow_match_files(args->path[OW_SIDE_A], args->path[OW_SIDE_B], &args->match, &match, &err);
	ow_progress_done(&c->progress);
	if (r < 0)
		return ow_cli_failed("match", *c->err.text ? &c->err : &err);
	int code = write_results(args, c, ow_match_report(match), NULL);
	ow_match_free(match);
	return code;
}

static int run_path(struct arguments *args, struct collector *c)
{
	struct ow_path *path = NULL;
	struct ow_error err = {"no reason given"};
	int r = start_collecting(c, args, &err);
	struct ow_path_options path_options = {
		.match = args->match,
		.keep_order = args->keep_order,
		.on_path_packet = args->csv || args->plot || args->report || args->annotate || args->flow || c->tally
	                                  ? on_path_packet
	                                  : NULL};
	if (r == 0 && c->tally && ow_flow_hops_create(&args->key, args->match.seed, &c->flow_hops) < 0)
		r = ow_error_set(&err, ENOMEM, "--flows: not enough memory");
	if (r == 0)
		r = ow_path_match(args->points.point, args->points.count, &path_options, &path, &err);
	ow_progress_done(&c->progress);
	if (r < 0)
		return ow_cli_failed("match", *c->err.text ? &c->err : *c->path_err.text ? &c->path_err : &err);
	const struct ow_path_report *report = ow_path_report(path);
	args->path[OW_SIDE_A] = report->point[0].path;
	args->path[OW_SIDE_B] = report->point[report->points - 1].path;
	args->points.given[OW_SIDE_A] = report->point[0].name;
	args->points.given[OW_SIDE_B] = report->point[report->points - 1].name;
	int code = write_results(args, c, report->ends, report);
	ow_path_free(path);
	return code;
}

/* -- files that are still being written ------------------------------------------------------------------------- */

static int follow_options(struct arguments *args, struct ow_measure *m, struct ow_error *err)
{
	ow_measure_defaults("match", m);
	m->streams = true;
	m->filter = args->match.filter;
	m->forward = args->match.one_direction ? "ip or ip6" : args->forward;
	m->one_way = args->match.one_direction;
	m->level = args->match.level;
	m->inner = args->match.inner == OW_ON;
	m->outer = args->match.inner == OW_OFF;
	m->clock = args->match.clock == OW_CLOCK_ESTIMATED ? OW_CLOCK_RELATIVE : OW_CLOCK_AUTO;
	m->interval_ns = args->match.interval_ns ? args->match.interval_ns : m->interval_ns;
	m->wait_ns = args->match.window_ns;
	m->lag_ns = args->lag_ns ? args->lag_ns : m->lag_ns;
	m->since_ns = args->since ? args->match.since_ns : m->since_ns;
	m->until_ns = args->until ? args->match.until_ns : m->until_ns;
	m->show.json = args->json;
	m->no_color = args->no_color;
	for (unsigned i = 0; i < args->classes.count; i++) {
		snprintf(m->classes.name[i], sizeof m->classes.name[i], "%s", args->classes.name[i]);
		m->classes.class[i] = (struct ow_local_pair_class){m->classes.name[i], args->classes.filter[i]};
	}
	m->classes.count = args->classes.count;
	return ow_measure_check_times(m, err);
}

static void follow_between(const struct arguments *args, unsigned from, unsigned to, struct ow_measure *m)
{
	const unsigned place[OW_SIDES] = {from, to};
	for (unsigned i = 0; i < OW_SIDES; i++) {
		const struct ow_path_point *point = &args->points.point[place[i]];
		snprintf(m->stream[i].name, sizeof m->stream[i].name, "%.*s", OW_RESULT_NAME - 1, point->name);
		m->stream[i].what = point->path;
	}
}

/* Of more than two points each hop is measured by itself, and both ends: thresholds are about these. */
static int run_follow(struct arguments *args)
{
	unsigned last = args->points.count - 1, count = last > 1 ? last + 1 : 1;
	struct ow_measure *measure = calloc(count, sizeof *measure);
	struct ow_error err;
	int r = measure ? follow_options(args, &measure[0], &err) : ow_error_set(&err, ENOMEM, "out of memory");
	for (unsigned i = count; i-- > 0 && r == 0;) {
		bool ends = i == last || count == 1;
		measure[i] = measure[0];
		follow_between(args, i == last ? 0 : i, i == last ? last : i + 1, &measure[i]);
		measure[i].max_loss = ends ? args->max_loss : 2;
		measure[i].max_p99_ns = ends ? args->max_p99_ns : INT64_MAX;
	}
	int code = r < 0       ? ow_cli_refused("match", r, &err)
	           : count > 1 ? ow_measure_hops_run(measure, count)
	                       : ow_measure_run(measure);
	free(measure);
	return code;
}

int ow_cli_match(int argc, char **argv)
{
	struct arguments args;
	struct ow_error err;
	int refused = read_arguments(argc, argv, &args, &err);
	if (refused < 0)
		return ow_cli_refused("match", refused, &err);
	if (ow_cli_answered(args.help, args.version, help))
		return OW_EXIT_OK;
	if (args.follow)
		return run_follow(&args);
	struct collector collector = {0};
	int code = args.points.count > OW_SIDES ? run_path(&args, &collector) : run_pair(&args, &collector);
	stop_collecting(&collector);
	return code;
}
