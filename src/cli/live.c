/* SPDX-License-Identifier: Apache-2.0 */
/* oneway live: both points are interfaces of this host; one result for each lane and interval. */
#include "cli/cli.h"
#include "sandbox/guard.h"
#include "cli/options.h"
#include "cli/shared_options.h"
#include "cli/output.h"
#include "cli/terminal.h"
#include "report/show.h"

#include "base/time.h"
#include "point/identity_survey.h"
#include "packet/packet_filter.h"
#include "point/local_pair.h"
#include "config/config.h"
#include "sandbox/privileges.h"
#include "reconcile/late_packets.h"
#include <errno.h>
#include <oneway/oneway.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

struct classes {
	size_t count;
	struct ow_local_pair_class class[OW_CONFIG_CLASSES_MAX];
	char name[OW_CONFIG_CLASSES_MAX][OW_RESULT_NAME];
};

struct arguments {
	const char *from, *to, *filter, *forward;
	struct classes classes;
	enum ow_level level;
	enum ow_clock_mode clock;
	bool files;  /* from and to are capture files */
	int signals; /* signalfd; open once the sources are open */
	enum ow_scope_of scope;
	bool inner, hardware_stamps, no_sandbox;
	const char *user;
	int64_t interval_ns, wait_ns, run_ns;
	uint64_t count, threads, memory, ring;
	double speed;
	struct ow_show_options show;
	bool no_color;
	double max_loss;    /* above 1: no threshold was given */
	int64_t max_p99_ns; /* INT64_MAX: no threshold was given */
	bool help, version;
};

/* NAME=FILTER */
static int set_class(void *field, const char *value, struct ow_error *err)
{
	struct classes *classes = field;
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

#define FIELD(name) offsetof(struct arguments, name)

static const struct ow_option options[] = {
	{NULL, 0, NULL, NULL, 0, "What to measure:"},
	{"from", 0, "IF", ow_option_text, FIELD(from), "Interface at which packets arrive, or a capture file."},
	{"to", 0, "IF", ow_option_text, FIELD(to), "Interface at which they leave, or a capture file."},
	{"class", 0, "NAME=FILTER", set_class, FIELD(classes),
         "A class of traffic with its own results, by a filter (pcap-filter(7)); may be given several times. Without "
         "it, "
         "all IP packets are one class."},
	{"filter", 0, "FILTER", ow_option_text, FIELD(filter), "Capture only packets that match this filter."},
	{"forward", 0, "FILTER", ow_option_text, FIELD(forward),
         "Packets that match this filter go from --from to --to, all others back. For taps and capture files, which do "
         "not know the direction."},
	{"identity", 0, "LEVEL", NULL, FIELD(level),
         "What makes a packet the same: ip from the IP header on, without what routers change; nat also without "
         "addresses and ports; auto (default) begins with ip, and finds out if packets do not match (not for files).",
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
	OW_OPTIONS_NO_COLOR(struct arguments),

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
	{"hardware-timestamps", 0, NULL, ow_option_flag, FIELD(hardware_stamps),
         "Use hardware timestamps of the interfaces; their clocks must be synchronised."},

	{NULL, 0, NULL, NULL, 0, "Privileges:"},
	{"user", 0, "NAME", ow_option_text, FIELD(user),
         "Become this user if started by root; the store then belongs to this user as well."},
	{"no-sandbox", 0, NULL, ow_option_flag, FIELD(no_sandbox),
         "Capture without seccomp and landlock. Capabilities are always dropped once the interfaces are open."},

	{NULL, 0, NULL, NULL, 0, "Other:"},
	OW_OPTIONS_HELP(struct arguments),
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
	      "  oneway live --from a.pcap --to b.pcap --forward 'src net 10.1' --speed 0\n"
	      "  oneway live --from eth0 --to eth1 --seconds 60 --max-loss 0.1% || echo bad\n",
	      stdout);
}

static bool is_regular(const char *path)
{
	struct stat st;
	return stat(path, &st) < 0 || S_ISREG(st.st_mode); /* opening it will report what is wrong */
}

static int check_points(struct arguments *args, struct ow_error *err)
{
	if (!args->from || !args->to)
		return ow_error_set(err, EINVAL, "needs --from and --to");
	bool from = ow_iface_is_file(args->from), to = ow_iface_is_file(args->to);
	if (strcmp(args->from, args->to) == 0 || (from && to && ow_same_file(args->from, args->to)))
		return ow_error_set(err, EINVAL, "--from and --to are both %.200s", args->from);
	if (from != to)
		return ow_error_set(err, EINVAL, "%.200s is a capture file, %.200s is not",
		                    from ? args->from : args->to, from ? args->to : args->from);
	args->files = from;
	/* A file is read twice: first for the time range that it covers, then for its packets. */
	if (from && (!is_regular(args->from) || !is_regular(args->to)))
		return ow_error_set(err, EINVAL, "%.200s is a pipe or a device, not a file: write it to a file first",
		                    is_regular(args->from) ? args->to : args->from);
	if (from && !args->forward)
		return ow_error_set(
			err, EINVAL,
			"capture files do not contain directions: give --forward FILTER ('ip or ip6' if all "
			"packets go forward)");
	return 0;
}

static int read_arguments(int argc, char **argv, struct arguments *args, struct ow_error *err)
{
	*args = (struct arguments){
		.level = OW_LEVEL_AUTO, .speed = 1, .signals = -1, .max_loss = 2, .max_p99_ns = INT64_MAX};
	int64_t wait_ns;
	ow_key_default(ow_segment_keys, "interval", &args->interval_ns);
	ow_key_default(ow_segment_keys, "wait", &wait_ns);
	int operands = ow_options_parse(options, argc, argv, args, err);
	if (operands < 0 || args->help || args->version)
		return operands < 0 ? operands : 0;
	if (operands)
		return ow_error_set(err, EINVAL, "unexpected '%.60s': interfaces are given by --from and --to",
		                    argv[1]);
	if (args->count && args->run_ns)
		return ow_error_set(err, EINVAL, "--seconds and --count exclude each other");
	int64_t longest_ns = OW_LOCAL_PAIR_WAIT_MAX * args->interval_ns;
	if (!args->wait_ns)
		args->wait_ns = wait_ns < longest_ns ? wait_ns : longest_ns;
	if (args->wait_ns > longest_ns)
		return ow_error_set(err, EINVAL, "--wait: at most %d intervals", OW_LOCAL_PAIR_WAIT_MAX);
	return check_points(args, err);
}

static struct ow_source_options source_of(const struct arguments *args, const char *name)
{
	return (struct ow_source_options){
		.live = {.kind = args->files ? OW_IFACE_FILE : OW_IFACE_AUTO,
	                 .name = name,
	                 .filter = args->filter,
	                 .cut_tcp = true,
	                 .ring_bytes = args->ring,
	                 .hardware_stamps = args->hardware_stamps,
	                 .speed = args->speed},
		.threads = (unsigned)args->threads,
	};
}

/* For a file, its name without the folder. */
static const char *point_name(const char *name)
{
	const char *slash = strrchr(name, '/');
	return slash ? slash + 1 : name;
}

/* From here on signals are read from args->signals. Threads that start later inherit the blocked signals. */
static int open_signals(struct arguments *args, struct ow_error *err)
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, NULL);
	args->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return args->signals < 0 ? ow_error_set(err, errno, "cannot wait for signals: %s", strerror(errno)) : 0;
}

/*
 * Called once the sources are open, which can take long with files; until then a signal ends the program at once. A
 * message about the sandbox is printed only if it could not be set up as requested.
 */
static int confine(void *arg, struct ow_error *err)
{
	struct arguments *args = arg;
	const struct ow_guard guard = {.sandbox = args->no_sandbox ? OW_SANDBOX_OFF : OW_SANDBOX_ON,
	                               .write = {args->show.store}};
	char text[OW_CONFINE_TEXT];
	bool whole;
	int r = open_signals(args, err);
	if (r == 0)
		r = ow_guard_close(&guard, text, &whole, err);
	if (r == 0 && !whole)
		ow_cli_say("oneway live: %s", text);
	return r;
}

static void say_changed(void *arg, const char *line)
{
	(void)arg;
	ow_cli_say("oneway live: %s", line);
}

static void warn_filter(const char *what, const char *filter)
{
	const char *caution = filter ? ow_packet_filter_caution(filter) : NULL;
	if (caution)
		ow_cli_say("oneway live: warning: %s: %s", what, caution);
}

static void warn_filters(const struct arguments *args)
{
	warn_filter("--filter", args->filter);
	for (size_t i = 0; i < args->classes.count; i++)
		warn_filter(args->classes.class[i].name, args->classes.class[i].filter);
}

static int open_both(struct arguments *args, struct ow_show *show, struct ow_local_pair **ret_both,
                     struct ow_error *err)
{
	static const struct ow_local_pair_class all = {"all", NULL};
	uint64_t seed;
	if (getrandom(&seed, sizeof seed, 0) != (ssize_t)sizeof seed)
		return ow_error_set(err, errno, "cannot get random numbers: %s", strerror(errno));
	struct ow_local_pair_options o = {
		.from = source_of(args, args->from),
		.to = source_of(args, args->to),
		.from_name = point_name(args->from),
		.to_name = point_name(args->to),
		.identity = {.level = args->level == OW_LEVEL_NAT ? OW_LEVEL_NAT : OW_LEVEL_IP,
	                     .inner = args->inner,
	                     .tcp_headers = !args->files,
	                     .pieces = true,
	                     .hash_limit = UINT32_MAX},
		.identities = args->level == OW_LEVEL_AUTO && !args->files
	                              ? ow_identity_allowed(args->inner ? &args->inner : NULL)
	                              : 0,
		.changed = say_changed,
		.forward = args->forward,
		.classes = args->classes.count ? args->classes.class : &all,
		.class_count = args->classes.count ? args->classes.count : 1,
		.length_ns = args->interval_ns,
		.wait_ns = args->wait_ns,
		.clock = args->clock,
		.intervals = args->count,
		.shared = args->scope == OW_SCOPE_OF_SHARED,
		.memory = args->memory,
		.opened = confine,
		.opened_arg = args,
		.sink = ow_show_result,
		.event = ow_show_event,
		.arg = show,
	};
	if (args->run_ns)
		o.intervals = (uint64_t)((args->run_ns - 1) / args->interval_ns) + 1;
	snprintf(o.segment, sizeof o.segment, "%.31s-%.31s", o.from_name, o.to_name);
	ow_identity_seed(&o.identity, seed);
	warn_filters(args);
	return ow_local_pair_create(&o, ret_both, err);
}

/* Runs until the end, or until a signal: the first signal stops the measurement, the second ends the program. */
static int measure(struct ow_local_pair *both, struct ow_show *show, int signals, struct ow_error *err)
{
	struct pollfd fds[] = {{.fd = ow_local_pair_fd(both), .events = POLLIN}, {.fd = signals, .events = POLLIN}};
	struct signalfd_siginfo signal;
	bool asked = false;
	for (;;) {
		if (poll(fds, 2, ow_local_pair_timeout_ms(both)) < 0 && errno != EINTR)
			return ow_error_set(err, errno, "cannot wait: %s", strerror(errno));
		if (fds[1].revents & POLLIN && read(signals, &signal, sizeof signal) == (ssize_t)sizeof signal) {
			if (asked)
				return ow_error_set(err, EINTR, "interrupted");
			asked = true;
			ow_local_pair_stop(both);
		}
		int r = ow_local_pair_work(both, err);
		struct ow_error reason;
		if (ow_show_flush(show, &reason) < 0 && r >= 0) {
			*err = reason;
			return -EIO;
		}
		if (r != 0)
			return r;
	}
}

static int check_total(const struct arguments *args, const struct ow_interval_result *total)
{
	int code = OW_EXIT_OK;
	if (total->loss_ratio.status != OW_VALUE_NONE && total->loss_ratio.value > args->max_loss) {
		ow_cli_say("oneway live: %s to %s, %s: loss of %.4g %% is above --max-loss %.4g %%", total->from,
		           total->to, total->class_name, 100 * total->loss_ratio.value, 100 * args->max_loss);
		code = OW_EXIT_CROSSED;
	}
	if (args->max_p99_ns == INT64_MAX)
		return code;
	const struct ow_value *p99 = &total->quantile_ns[OW_Q99];
	char text[OW_DURATION_TEXT], limit[OW_DURATION_TEXT];
	ow_duration_text(p99->value, text);
	ow_duration_text((double)args->max_p99_ns, limit);
	if (p99->status == OW_VALUE_NONE) {
		/* An unknown delay also crosses the threshold: a script that checks it must not continue. */
		ow_cli_say("oneway live: %s to %s, %s: no delay to compare with --max-delay-p99 %s", total->from,
		           total->to, total->class_name, limit);
		return OW_EXIT_CROSSED;
	}
	if (p99->value > (double)args->max_p99_ns) {
		ow_cli_say("oneway live: %s to %s, %s: p99 delay of %s is above --max-delay-p99 %s", total->from,
		           total->to, total->class_name, text, limit);
		return OW_EXIT_CROSSED;
	}
	return code;
}

/* If no packet matched, there is no result to print: prints the probable mistake instead. */
static int explain_nothing(const struct arguments *args, const struct ow_local_pair *both, uint64_t sent,
                           uint64_t received)
{
	struct ow_recorder_counts from, to;
	ow_local_pair_counts(both, 0, &from);
	ow_local_pair_counts(both, 1, &to);
	if (!sent && !received)
		ow_cli_say("oneway live: no packets to compare: %s had %llu frames, %s had %llu%s", args->from,
		           (unsigned long long)from.frames, args->to, (unsigned long long)to.frames,
		           args->classes.count || args->filter || args->forward ? "; check the filters" : "");
	else if (!sent || !received)
		ow_cli_say("oneway live: no packet passed both %s and %s: %llu arrived, %llu left", args->from,
		           args->to, (unsigned long long)sent, (unsigned long long)received);
	else
		ow_cli_say("oneway live: none of %llu packets that arrived and %llu that left matched%s",
		           (unsigned long long)sent, (unsigned long long)received,
		           args->level != OW_LEVEL_NAT ? ": try --identity nat, or --inner for tunnels" : "");
	return OW_EXIT_FAILED;
}

/* A class without packets probably has a mistake in its filter, which the summary would not show. */
static void tell_empty(const struct arguments *args, const struct ow_local_pair *both)
{
	for (size_t c = 0; c < args->classes.count; c++) {
		const char *name = args->classes.class[c].name;
		uint64_t packets = 0;
		for (size_t i = 0; i < ow_local_pair_lanes(both); i++) {
			struct ow_interval_result total;
			ow_local_pair_total(both, i, &total);
			if (strcmp(total.class_name, name) == 0)
				packets += total.total_sent + total.total_received;
		}
		if (!packets)
			ow_cli_say("oneway live: no packet matched class '%s'", name);
	}
}

/* whole: the run came to its end; otherwise the error message is enough. */
static int sum_up(const struct arguments *args, const struct ow_local_pair *both, struct ow_show *show, bool whole)
{
	int code = OW_EXIT_OK;
	uint64_t matched = 0, sent = 0, received = 0;
	for (size_t i = 0; i < ow_local_pair_lanes(both); i++) {
		struct ow_interval_result total;
		ow_local_pair_total(both, i, &total);
		matched += total.matched;
		sent += total.total_sent;
		received += total.total_received;
		if (total.total_sent || total.total_received || total.status != OW_RESULT_MEASURED)
			ow_show_summary(show, &total);
		if (total.sent && check_total(args, &total) != OW_EXIT_OK)
			code = OW_EXIT_CROSSED;
	}
	fflush(stdout);
	if (!whole)
		return OW_EXIT_FAILED;
	if (!matched)
		return explain_nothing(args, both, sent, received);
	tell_empty(args, both);
	return code;
}

/* The first result takes more than an interval, so a line tells the user that the measurement has started. */
static void greet(const struct arguments *args)
{
	char interval[OW_DURATION_TEXT];
	if (!isatty(STDERR_FILENO) || args->files)
		return;
	ow_duration_text((double)args->interval_ns, interval);
	ow_cli_say("Measuring between %s and %s, with a result every %s.%s", args->from, args->to, interval,
	           args->run_ns || args->count ? "" : " Press Ctrl-C to end it.");
}

static void warn_untimed(const struct arguments *args, const struct ow_local_pair *both)
{
	for (unsigned i = 0; i < 2; i++) {
		unsigned long long count = ow_local_pair_untimed(both, i);
		if (count)
			ow_cli_say("oneway live: warning: %s: %llu packet%s left out: no timestamp (0)",
			           i ? args->to : args->from, count, count == 1 ? " is" : "s are");
	}
}

static int run(struct arguments *args)
{
	struct ow_error err = {"no reason given"};
	struct ow_show *show = NULL;
	struct ow_local_pair *both = NULL;
	int code = OW_EXIT_FAILED;
	signal(SIGPIPE, SIG_IGN); /* a reader that closes the pipe is an error of writing */
	args->show.style = ow_terminal_style(stdout, args->no_color);
	int r = ow_privileges_reduce(args->user, args->hardware_stamps, &err);
	if (r == 0)
		r = ow_show_create(&args->show, &show, &err);
	if (r == 0)
		r = open_both(args, show, &both, &err);
	if (r == 0) {
		greet(args);
		warn_untimed(args, both);
		r = measure(both, show, args->signals, &err);
		if (r >= 0 && ow_local_pair_is_blind(both, &err))
			r = -ENODEV;
		code = sum_up(args, both, show, r >= 0);
	}
	if (r < 0)
		code = ow_cli_failed("live", &err);
	ow_local_pair_free(both);
	ow_show_free(show);
	if (args->signals >= 0)
		close(args->signals);
	return code;
}

int ow_cli_live(int argc, char **argv)
{
	struct arguments args;
	struct ow_error err;
	int refused = read_arguments(argc, argv, &args, &err);
	if (refused < 0)
		return ow_cli_refused("live", refused, &err);
	if (ow_cli_answered(args.help, args.version, help))
		return OW_EXIT_OK;
	return run(&args);
}
