/* SPDX-License-Identifier: Apache-2.0 */
/* oneway lab: runs the whole system on one machine, with a wire that records the truth. */
#include "lab/lab.h"

#include "base/time.h"
#include "cli/shared_options.h"
#include "cli/cli.h"
#include "cli/options.h"
#include "cli/terminal.h"
#include "cli/web.h"
#include "config/config.h"
#include "sim/generator.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <oneway/oneway.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A lab runs for minutes, not for months. */
#define SECONDS_MAX 86400
#define STREAMS_MAX 128 /* iperf3's own limit */
#define RATE_MAX    5e6
/* The shortest interval of the lab. Below 10 ms, most of the measured time is that of the processes around the wire. */
#define INTERVAL_MIN_NS (10 * OW_NS_PER_MS)
#define INTERVAL_MAX_NS (300 * OW_NS_PER_S)
#define HOLD_NS         (2 * OW_NS_PER_MS)

struct arguments {
	enum ow_iface_kind capture; /* AUTO or KERNEL */
	struct ow_lab_options lab;
	double seconds;
	const char *store;
	bool web, help, version;
};

static int set_seconds(void *field, const char *value, struct ow_error *err)
{
	char *end;
	double x = strtod(value, &end);
	if (end == value || (*end && strcmp(end, "s") != 0) || !(x > 0 && x <= SECONDS_MAX))
		return ow_error_set(err, EINVAL, "'%.40s' is not a number of seconds above 0, up to %d", value,
		                    SECONDS_MAX);
	*(double *)field = x;
	return 0;
}

/* SHARE or SHARE,HOLD. The field is a struct ow_impair_options. */
static int set_reorder(void *field, const char *value, struct ow_error *err)
{
	struct ow_impair_options *impair = field;
	char share[32];
	const char *comma = strchr(value, ',');
	snprintf(share, sizeof share, "%.*s", (int)(comma ? comma - value : (ptrdiff_t)strlen(value)), value);
	int r = ow_option_share(&impair->reorder, share, err);
	return r < 0 || !comma ? r : ow_option_positive_duration(&impair->hold_ns, comma + 1, err);
}

/* RATE or RATE,BUFFER, as for the model fifo; 0 = no limit. The field is a struct ow_impair_options. */
static int set_bandwidth(void *field, const char *value, struct ow_error *err)
{
	struct ow_impair_options *impair = field;
	struct ow_sim_delay fifo;
	char text[80];
	if (strcmp(value, "0") == 0) {
		impair->bandwidth_bps = 0;
		return 0;
	}
	snprintf(text, sizeof text, "fifo:%s", value);
	int r = ow_sim_delay_parse(text, &fifo, err);
	if (r < 0)
		return r;
	impair->bandwidth_bps = fifo.path[0].a;
	impair->buffer_bytes = fifo.path[0].b;
	return 0;
}

static int set_rate(void *field, const char *value, struct ow_error *err)
{
	uint64_t count;
	int r = ow_option_count(&count, value, err);
	if (r >= 0 && (double)count > RATE_MAX)
		r = ow_error_set(err, EINVAL, "'%.40s' is above %.0f", value, RATE_MAX);
	if (r >= 0)
		*(double *)field = (double)count;
	return r;
}

static int set_flows(void *field, const char *value, struct ow_error *err)
{
	uint64_t count = 0;
	int r = ow_option_count(&count, value, err);
	if (r >= 0 && (count < 1 || count > OW_GENERATOR_FLOWS))
		r = ow_error_set(err, EINVAL, "'%.40s' is not in 1 .. %d", value, OW_GENERATOR_FLOWS);
	if (r >= 0)
		*(uint32_t *)field = (uint32_t)count;
	return r;
}

static int set_streams(void *field, const char *value, struct ow_error *err)
{
	uint64_t count = 0;
	int r = ow_option_count(&count, value, err);
	if (r >= 0 && count > STREAMS_MAX)
		r = ow_error_set(err, EINVAL, "'%.40s' is above %d", value, STREAMS_MAX);
	if (r >= 0)
		*(uint64_t *)field = count;
	return r;
}

static int set_method(void *field, const char *value, struct ow_error *err)
{
	static const char *const names[] = {[OW_LAB_FOLD] = "fold", [OW_LAB_RDA] = "rda"};
	size_t i = 0;
	int r = ow_option_choice(names, 2, value, &i, err);
	if (r >= 0)
		*(enum ow_lab_method *)field = (enum ow_lab_method)i;
	return r;
}

#define LAB(member)  offsetof(struct arguments, lab.member)
#define PATH(member) offsetof(struct arguments, lab.impair.path.member)

static const struct ow_option table[] = {
	{.help = "The run"},
	{"seconds", 's', "N", set_seconds, offsetof(struct arguments, seconds), "Duration of the traffic. Default 10."},
	{"interval", 'i', "D", ow_option_positive_duration, LAB(interval_ns), "Measuring interval. Default 1s."},
	{"wait", 0, "D", ow_option_positive_duration, LAB(wait_ns),
         "Waiting time after which a packet is lost. Default 1s."},
	{"method", 0, "NAME", set_method, LAB(method), "fold (default), or rda as published."},
	{"exact", 0, NULL, ow_option_flag, LAB(exact),
         "The points exchange the times of all packets: minimum, maximum, quantiles and reordering are exact."},
	{"capture", 0, "HOW", NULL, offsetof(struct arguments, capture),
         "How the points record: auto (default), through a ring; kernel, by programs in the kernel.",
         ow_interface_keys},
	{"seed", 0, "N", ow_option_count, LAB(seed), "Seed of the wire and of the generators. Default 1."},

	{.help = "The wire, in each direction"},
	{"delay", 'd', "MODEL", ow_option_delay_model, PATH(delay),
         "constant:D, normal:MEAN,SD, weibull:SCALE,SHAPE, pareto:SCALE,SHAPE, fifo:RATE[,BUFFER], red:RATE, "
         "paths:SHARE,MODEL;SHARE,MODEL (chosen by packet) or ecmp:... (by flow). Default weibull:500us,0.8."},
	{"base-delay", 0, "D", ow_option_duration, PATH(base_delay_ns), "Added to every delay. Default 2ms."},
	{"in-order", 0, NULL, ow_option_flag, PATH(in_order), "No packet overtakes another, but for --reorder."},
	{"loss", 'l', "LOSS", ow_option_loss_model, PATH(loss),
         "P, or episodes:P,LENGTH: runs of packets. Default 1%."},
	{"reorder", 0, "P[,HOLD]", set_reorder, LAB(impair),
         "Share of packets that are delayed by up to HOLD (2ms), so that others overtake them."},
	{"duplicate", 0, "P", ow_option_share, PATH(duplicate), "Share of packets that arrive twice."},
	{"bandwidth", 0, "RATE[,BYTES]", set_bandwidth, LAB(impair),
         "Bits per second, and the size of the queue (50 ms). Default 200M; 0 = no limit."},
	{"nat", 0, NULL, ow_option_flag, LAB(nat), "B sees another address and other ports of A."},

	{.help = "Traffic"},
	{"rate", 'r', "PPS", set_rate, LAB(rate_pps), "UDP packets per second. Default 20k; 0 = none."},
	{"reverse", 0, "SHARE", ow_option_share, LAB(reverse),
         "Share of the UDP packets that B sends to A. Default 0."},
	{"arrivals", 0, "KIND", ow_option_arrivals, LAB(constant_rate), "poisson (default) or constant."},
	{"size", 0, "SIZE", ow_option_sizes, LAB(size),
         "Size of the UDP packets in bytes: N, imix (default), uniform:MIN,MAX."},
	{"flows", 0, "N", set_flows, LAB(flows), "Number of flows of the UDP packets. Default 100."},
	{"tcp", 0, "N", set_streams, LAB(tcp), "Number of iperf3 streams from A to B. Default 1."},
	{"tcp-reverse", 0, "N", set_streams, LAB(tcp_reverse), "From B to A. Default 0."},

	{.help = "Output"},
	{"json", 0, NULL, ow_option_flag, LAB(json),
         "Print a line of JSON for each interval and direction, and one for the run."},
	{"plot", 0, "FILE", ow_option_plot, LAB(plot), "Plot the delay over time, as .svg or .png."},
	{"store", 0, "DIR", ow_option_text, offsetof(struct arguments, store),
         "Keep the results in DIR/results.db and the truth in DIR/truth.json, for 'oneway results' and 'oneway web'."},
	{"web", 0, NULL, ow_option_flag, offsetof(struct arguments, web),
         "While it runs, a page shows results and truth: http://127.0.0.1:8080/, or another port if that is in use."},
	{"keep-captures", 0, "DIR", ow_option_text, LAB(captures),
         "Capture at both hosts with tcpdump, into DIR/a.pcap and DIR/b.pcap."},
	OW_OPTIONS_HELP(struct arguments),
	{.name = NULL},
};

static void help(void)
{
	fputs("oneway lab: runs the whole system on this machine and compares it with the truth\n"
	      "\n"
	      "usage: oneway lab [OPTION]...\n"
	      "\n"
	      "Connects two hosts (network namespaces) by a wire that delays, loses, reorders\n"
	      "and duplicates real traffic and records what it did. A measurement point runs at\n"
	      "each host. Prints for every interval what the points measured, the truth, the\n"
	      "error and the cost. Needs root. Leaves nothing behind. Ctrl-C ends it early, and\n"
	      "the summary follows.\n",
	      stdout);
	ow_options_help(stdout, table);
	fputs("\n"
	      "examples:\n"
	      "  oneway lab\n"
	      "  oneway lab --seconds 60 --loss episodes:0.01,100 --delay red:100M \\\n"
	      "      --plot delay.svg\n"
	      "  oneway lab --seconds 600 --web\n"
	      "  oneway lab --rate 100k --size 500 --tcp 0 --bandwidth 0 --reverse 0.5\n"
	      "  oneway lab --nat --duplicate 0.1% --method rda --json | jq .summary\n"
	      "  oneway lab --keep-captures DIR && oneway match DIR/a.pcap DIR/b.pcap\n",
	      stdout);
}

static void defaults(struct arguments *args)
{
	struct ow_error err;
	struct ow_lab_options *lab = &args->lab;
	*args = (struct arguments){.seconds = 10};
	lab->interval_ns = lab->wait_ns = OW_NS_PER_S;
	ow_sim_defaults(&lab->impair.path);
	(void)ow_sim_delay_parse("weibull:500us,0.8", &lab->impair.path.delay, &err);
	lab->impair.path.base_delay_ns = 2 * OW_NS_PER_MS;
	lab->impair.path.loss = (struct ow_sim_loss){.ratio = 0.01};
	lab->impair.bandwidth_bps = 200e6;
	lab->impair.hold_ns = HOLD_NS;
	lab->rate_pps = 20000;
	lab->flows = 100;
	lab->size.kind = OW_SIM_SIZE_IMIX;
	lab->tcp = 1;
	lab->seed = 1;
}

static int check(struct arguments *args, struct ow_error *err)
{
	struct ow_lab_options *lab = &args->lab;
	if (lab->interval_ns < INTERVAL_MIN_NS || lab->interval_ns > INTERVAL_MAX_NS)
		return ow_error_set(err, EINVAL, "--interval is not in 10ms .. 5min");
	if (lab->impair.path.base_delay_ns < 0)
		return ow_error_set(err, EINVAL, "--base-delay is negative");
	if (lab->rate_pps <= 0 && !lab->tcp && !lab->tcp_reverse)
		return ow_error_set(err, EINVAL, "no traffic: --rate, --tcp and --tcp-reverse are all 0");
	lab->length_ns = llrint(args->seconds * 1e9);
	lab->impair.path.seed = lab->seed;
	return 0;
}

static void warn(const char *text)
{
	ow_cli_say("oneway lab: %s", text);
}

static void interrupted(void)
{
	if (isatty(STDERR_FILENO))
		fprintf(stderr, "\rThe traffic has ended. Waiting for the last results.\n");
}

/* -- the store and the page --------------------------------------------------------------------------------------- */

struct shown {
	char folder[PATH_MAX], store[PATH_MAX + 16], truth[PATH_MAX + 16];
	bool is_temporary;
	pid_t web;
};

static int make_folder(const struct arguments *args, struct shown *shown, struct ow_error *err)
{
	char temporary[] = "/tmp/oneway-lab-XXXXXX";
	shown->is_temporary = !args->store;
	const char *folder = args->store ? args->store : mkdtemp(temporary);
	if (!folder || (args->store && mkdir(folder, 0755) < 0 && errno != EEXIST) || !realpath(folder, shown->folder))
		return ow_error_set(err, errno, "%s: %s", folder ? folder : temporary, strerror(errno));
	if (strpbrk(shown->folder, "\"\\\n"))
		return ow_error_set(err, EINVAL, "--store: a path without quotes and backslashes is required");
	snprintf(shown->store, sizeof shown->store, "%s/results.db", shown->folder);
	snprintf(shown->truth, sizeof shown->truth, "%s/truth.json", shown->folder);
	return 0;
}

static int show(struct arguments *args, struct shown *shown, struct ow_error *err)
{
	char url[OW_WEB_URL];
	if (!args->web && !args->store)
		return 0;
	int r = make_folder(args, shown, err);
	if (r < 0)
		return r;
	args->lab.store = shown->folder;
	if (!args->web)
		return 0;
	r = ow_cli_web_beside("127.0.0.1:8080", shown->store, shown->truth, &shown->web, url, err);
	if (r == -EADDRINUSE)
		r = ow_cli_web_beside("127.0.0.1:0", shown->store, shown->truth, &shown->web, url, err);
	if (r == 0)
		ow_cli_say("oneway lab: the page is at %s", url);
	return r;
}

static void end_show(const struct shown *shown)
{
	static const char *const names[] = {"results.db", "results.db-wal", "results.db-shm", "truth.json",
	                                    "truth.json.new"};
	ow_cli_web_end(shown->web);
	if (!shown->is_temporary || !*shown->folder)
		return;
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		char path[PATH_MAX + 32];
		snprintf(path, sizeof path, "%s/%s", shown->folder, names[i]);
		unlink(path);
	}
	rmdir(shown->folder);
}

int ow_cli_lab(int argc, char **argv)
{
	struct arguments args;
	struct ow_error err;
	defaults(&args);
	int operands = ow_options_parse(table, argc, argv, &args, &err);
	if (operands >= 0 && ow_cli_answered(args.help, args.version, help))
		return OW_EXIT_OK;
	if (operands > 0)
		operands = ow_error_set(&err, EINVAL, "unexpected argument '%.60s'", argv[1]);
	if (operands >= 0)
		operands = check(&args, &err);
	if (operands < 0)
		return ow_cli_refused("lab", operands, &err);
	args.lab.kernel = args.capture == OW_IFACE_KERNEL;
	args.lab.out = stdout;
	args.lab.style = ow_terminal_style(stdout, false);
	args.lab.warn = warn;
	args.lab.interrupted = interrupted;
	struct shown shown = {.web = 0};
	int r = show(&args, &shown, &err);
	if (r == 0)
		r = ow_lab_run(&args.lab, &err);
	end_show(&shown);
	return r < 0 ? ow_cli_failed("lab", &err) : OW_EXIT_OK;
}
