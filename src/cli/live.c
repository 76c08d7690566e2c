/* SPDX-License-Identifier: Apache-2.0 */
/* oneway live: both points are interfaces of this host; one result for each lane and interval. */
#include "cli/cli.h"
#include "cli/measure.h"
#include "cli/options.h"
#include "cli/shared_options.h"
#include "cli/output.h"

#include "point/local_pair.h"
#include "config/config.h"
#include <errno.h>
#include <oneway/oneway.h>
#include <stdio.h>
#include <string.h>

/* NAME=FILTER */
static int set_class(void *field, const char *value, struct ow_error *err)
{
	struct ow_measure_classes *classes = field;
	const char *end = strchr(value, '=');
	if (!end || !end[1])
		return ow_error_set(err, EINVAL, "'%.60s' is not NAME=FILTER", value);
	if (classes->count == OW_CONFIG_CLASSES_MAX)
		return ow_error_set(err, EINVAL, "more than %d classes", OW_CONFIG_CLASSES_MAX);
	size_t i = classes->count, length = (size_t)(end - value);
	if (length >= OW_RESULT_NAME)
		return ow_error_set(err, EINVAL, "the name of a class has at most %d bytes", OW_RESULT_NAME - 1);
	memcpy(classes->name[i], value, length);
	classes->name[i][length] = 0;
	int r = ow_name_check(classes->name[i], err);
	if (r < 0)
		return r;
	for (size_t k = 0; k < i; k++) {
		if (strcmp(classes->name[k], classes->name[i]) == 0)
			return ow_error_set(err, EINVAL, "class '%s' was given twice", classes->name[i]);
	}
	classes->class[i] = (struct ow_local_pair_class){classes->name[i], end + 1};
	classes->count++;
	return 0;
}

/* 0: as fast as possible. */
static int set_speed(void *field, const char *value, struct ow_error *err)
{
	*(double *)field = 0;
	return strcmp(value, "0") == 0 ? 0 : ow_key_set(ow_key_find(ow_interface_keys, "speed"), value, field, err);
}

#define FIELD(name) offsetof(struct ow_measure, name)

static const struct ow_option options[] = {
	{NULL, 0, NULL, NULL, 0, "What to measure:"},
	{"from", 0, "IF", ow_option_text, FIELD(from),
         "Interface at which packets arrive; or a capture file; or a capture that is still being written: a pipe, - or "
         "exec:COMMAND, which writes it to its standard output. NAME= before these names the point."},
	{"to", 0, "IF", ow_option_text, FIELD(to), "Interface at which they leave, or a capture of the same kind."},
	{"class", 0, "NAME=FILTER", set_class, FIELD(classes),
         "A class of traffic with its own results, by a filter (pcap-filter(7)); may be given several times. Without "
         "it, "
         "all IP packets are one class."},
	{"filter", 0, "FILTER", ow_option_text, FIELD(filter), "Capture only packets that match this filter."},
	{"forward", 0, "FILTER", ow_option_text, FIELD(forward),
         "Packets that match this filter go from --from to --to, all others back. For taps and capture files, which do "
         "not know the direction; of pipes and commands, the first packets tell."},
	{"identity", 0, "LEVEL", NULL, FIELD(level),
         "What makes a packet the same: ip from the IP header on, without what routers change; nat also without "
         "addresses and ports; auto (default) begins with ip, and finds out if packets do not match (not for files); "
         "of "
         "pipes and commands, the first packets tell.",
         ow_segment_keys},
	{"scope", 0, "SCOPE", NULL, FIELD(scope),
         "Which packets can be lost: shared (default), those of flows that pass both interfaces; all, every one.",
         ow_segment_keys},
	{"inner", 0, NULL, ow_option_flag, FIELD(inner), "Enter tunnels (GRE, VXLAN, Geneve, GTP-U, IP in IP)."},

	{NULL, 0, NULL, NULL, 0, "Time:"},
	{"interval", 0, "D", NULL, FIELD(interval_ns), "Length of an interval (default 1s).", ow_segment_keys},
	{"wait", 0, "D", NULL, FIELD(wait_ns),
         "Waiting time after which a packet is lost and results are final (default 2s).", ow_segment_keys},
	{"clock", 0, "MODE", NULL, FIELD(clock),
         "Clocks of two captures or cards: trusted as they are; relative, with their difference estimated from the "
         "packets of both directions and taken off; auto (default): trusted unless packets contradict.",
         ow_segment_keys},
	{"lag", 0, "D", ow_option_positive_duration, FIELD(lag_ns),
         "How long results wait for a pipe or command that is late or silent (default 10s); after that they are "
         "unknown."},
	{"seconds", 0, "N", ow_option_seconds, FIELD(run_ns), "End after this time (default: Ctrl-C ends it)."},
	{"count", 0, "N", ow_option_count, FIELD(count), "End after this many intervals."},
	{"speed", 0, "X", set_speed, FIELD(speed),
         "Speed of capture files: 1 (default) is their own time, 10 ten times as fast, 0 as fast as possible."},

	{NULL, 0, NULL, NULL, 0, "Output:"},
	{"json", 0, NULL, ow_option_flag, FIELD(show.json),
         "Print a line of JSON for each result, provisional and final, each event of flows, and a summary."},
	{"provisional", 0, NULL, ow_option_flag, FIELD(show.provisional),
         "Also print results that late packets can still change."},
	{"lines", 0, NULL, ow_option_flag, FIELD(show.lines), "Print lines instead of a table, also on a terminal."},
	{"store", 0, "FILE", ow_option_output, FIELD(show.store), "Also write results to this SQLite database."},
	OW_OPTIONS_NO_COLOR(struct ow_measure),

	{NULL, 0, NULL, NULL, 0, "Thresholds of the run, for each class and direction (exit code 3 if crossed):"},
	{"max-loss", 0, "P", ow_option_share, FIELD(max_loss), "Highest acceptable loss: 0.01 or 1%."},
	{"max-delay-p99", 0, "D", ow_option_duration, FIELD(max_p99_ns),
         "Highest acceptable 99th percentile of the delay."},

	{NULL, 0, NULL, NULL, 0, "Capturing:"},
	{"threads", 0, "N", NULL, FIELD(threads), "Threads for each interface (default 1).", ow_interface_keys},
	{"ring", 0, "SIZE", NULL, FIELD(ring),
         "Memory of each thread's ring in the kernel (default: by the link's speed).", ow_interface_keys},
	{"memory", 0, "SIZE", ow_option_size, FIELD(memory),
         "Memory for packets (default 512MiB); if an interval has more packets, a sample of them is compared."},
	{"capture", 0, "HOW", NULL, FIELD(capture),
         "auto (default): through a ring; kernel: by programs in the kernel, which costs a busy router less.",
         ow_interface_keys},
	{"hardware-timestamps", 0, NULL, ow_option_flag, FIELD(hardware_stamps),
         "Use hardware timestamps of the interfaces; their clocks must be synchronised."},

	{NULL, 0, NULL, NULL, 0, "Privileges:"},
	{"user", 0, "NAME", ow_option_text, FIELD(user),
         "Become this user if started by root; the store then belongs to this user as well."},
	{"no-sandbox", 0, NULL, ow_option_flag, FIELD(no_sandbox),
         "Capture without seccomp and landlock. Capabilities are always dropped once the interfaces are open."},

	{NULL, 0, NULL, NULL, 0, "Other:"},
	OW_OPTIONS_HELP(struct ow_measure),
	{0},
};

static void help(void)
{
	fputs("usage: oneway live --from IF --to IF [OPTION]...\n"
	      "\n"
	      "Measures delay and loss inside this host, packet by packet: from the interface\n"
	      "where packets arrive to the one where they leave, and back. For routers,\n"
	      "firewalls, bridges, hosts of virtual machines and containers. Ctrl-C ends it; a\n"
	      "summary follows. Durations have a unit: ns, us, ms, s, min, h, d.\n",
	      stdout);
	ow_options_help(stdout, options);
	fputs("\n"
	      "Examples:\n"
	      "  oneway live --from eth0 --to eth1\n"
	      "  oneway live --from eth0 --to eth1 --class dns='port 53' --class web='port 443'\n"
	      "  oneway live --from lan0 --to wan0 --identity nat         a NAT in between\n"
	      "  oneway live --from eth0 --to eth1 --json | jq 'select(.final)|.delay_ns.mean'\n"
	      "  oneway live --from 'exec:ssh a tcpdump -U -s 128 -w - -i eth0 udp' \\\n"
	      "              --to 'exec:ssh b tcpdump -U -s 128 -w - -i eth0 udp'\n"
	      "  oneway live --from a.pcap --to b.pcap --forward 'src net 10.1' --speed 0\n"
	      "  oneway live --from eth0 --to eth1 --seconds 60 --max-loss 0.1% || echo bad\n",
	      stdout);
}

/* Captures that are still being written. */
static int check_streams(struct ow_measure *args, struct ow_error *err)
{
	bool from = ow_stream_is_argument(args->from), to = ow_stream_is_argument(args->to);
	if (from != to)
		return ow_error_set(err, EINVAL,
		                    "%.200s is a pipe or command, %.200s is not: for an interface or a file, give "
		                    "exec:tcpdump -U -w - -i IF or exec:cat FILE",
		                    from ? args->from : args->to, from ? args->to : args->from);
	args->streams = true;
	int r = ow_stream_argument(args->from, &args->stream[0], err);
	if (r == 0)
		r = ow_stream_argument(args->to, &args->stream[1], err);
	if (r < 0)
		return r;
	if (strcmp(args->stream[0].name, args->stream[1].name) == 0)
		return ow_error_set(err, EINVAL, "both points are called %s: write NAME= before one of them",
		                    args->stream[0].name);
	if (!args->forward && args->inner)
		return ow_error_set(err, EINVAL, "--inner needs --forward FILTER (what goes from --from to --to)");
	return 0;
}

static int check_points(struct ow_measure *args, struct ow_error *err)
{
	if (!args->from || !args->to)
		return ow_error_set(err, EINVAL, "needs --from and --to");
	if (strcmp(args->from, args->to) == 0)
		return ow_error_set(err, EINVAL, "--from and --to are both %.200s", args->from);
	if (ow_stream_is_argument(args->from) || ow_stream_is_argument(args->to))
		return check_streams(args, err);
	bool from = ow_iface_is_file(args->from), to = ow_iface_is_file(args->to);
	if (from && to && ow_same_file(args->from, args->to))
		return ow_error_set(err, EINVAL, "--from and --to are both %.200s", args->from);
	if (from != to)
		return ow_error_set(err, EINVAL, "%.200s is a capture file, %.200s is not",
		                    from ? args->from : args->to, from ? args->to : args->from);
	args->files = from;
	if (from && !args->forward)
		return ow_error_set(
			err, EINVAL,
			"capture files do not contain directions: give --forward FILTER ('ip or ip6' if all "
			"packets go forward)");
	return 0;
}

static int read_arguments(int argc, char **argv, struct ow_measure *args, struct ow_error *err)
{
	ow_measure_defaults("live", args);
	int operands = ow_options_parse(options, argc, argv, args, err);
	if (operands < 0 || args->help || args->version)
		return operands < 0 ? operands : 0;
	if (operands)
		return ow_error_set(err, EINVAL, "unexpected '%.60s': interfaces are given by --from and --to",
		                    argv[1]);
	if (args->count && args->run_ns)
		return ow_error_set(err, EINVAL, "--seconds and --count exclude each other");
	int r = ow_measure_check_times(args, err);
	return r < 0 ? r : check_points(args, err);
}

int ow_cli_live(int argc, char **argv)
{
	struct ow_measure args;
	struct ow_error err;
	int refused = read_arguments(argc, argv, &args, &err);
	if (refused < 0)
		return ow_cli_refused("live", refused, &err);
	if (ow_cli_answered(args.help, args.version, help))
		return OW_EXIT_OK;
	return ow_measure_run(&args);
}
