/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a measurement between two sources of this process: opens them, gives up privileges, prints results. */
#include "cli/measure.h"

#include "base/time.h"
#include "cli/cli.h"
#include "cli/terminal.h"
#include "packet/packet_filter.h"
#include "point/identity_survey.h"
#include "reconcile/late_packets.h"
#include "sandbox/guard.h"
#include "sandbox/privileges.h"
#include <errno.h>
#include <oneway/oneway.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <unistd.h>

void ow_measure_defaults(const char *command, struct ow_measure *ret)
{
	*ret = (struct ow_measure){.command = command,
	                           .level = OW_LEVEL_AUTO,
	                           .speed = 1,
	                           .signals = -1,
	                           .max_loss = 2,
	                           .max_p99_ns = INT64_MAX,
	                           .since_ns = INT64_MIN,
	                           .until_ns = INT64_MAX,
	                           .lag_ns = 10 * OW_NS_PER_S};
	ow_key_default(ow_segment_keys, "interval", &ret->interval_ns);
}

int ow_measure_check_times(struct ow_measure *args, struct ow_error *err)
{
	int64_t wait_ns, longest_ns = OW_LOCAL_PAIR_WAIT_MAX * args->interval_ns;
	ow_key_default(ow_segment_keys, "wait", &wait_ns);
	if (!args->wait_ns)
		args->wait_ns = wait_ns < longest_ns ? wait_ns : longest_ns;
	if (args->wait_ns > longest_ns)
		return ow_error_set(err, EINVAL, "--wait: at most %d intervals", OW_LOCAL_PAIR_WAIT_MAX);
	return 0;
}

static struct ow_source_options source_of(const struct ow_measure *args, int side, const char *name)
{
	return (struct ow_source_options){
		.live = {.kind = args->streams ? OW_IFACE_STREAM
	                         : args->files ? OW_IFACE_FILE
	                                       : args->capture,
	                 .name = name,
	                 .filter = args->filter,
	                 .cut_tcp = true,
	                 .ring_bytes = args->ring,
	                 .hardware_stamps = args->hardware_stamps,
	                 .speed = args->speed},
		.threads = (unsigned)args->threads,
		.streams = args->opened[side],
	};
}

/* For a file, its name without the folder. */
static const char *point_name(const char *name)
{
	const char *slash = strrchr(name, '/');
	return slash ? slash + 1 : name;
}

/* From here on signals are read from args->signals. Threads that start later inherit the blocked signals. */
static int open_signals(struct ow_measure *args, struct ow_error *err)
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, NULL);
	args->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return args->signals < 0 ? ow_error_set(err, errno, "cannot wait for signals: %s", strerror(errno)) : 0;
}

/* A message about the sandbox is printed only if it could not be set up as requested. */
static int confine(const struct ow_measure *args, struct ow_error *err)
{
	struct ow_guard guard = {.sandbox = args->no_sandbox ? OW_SANDBOX_OFF : OW_SANDBOX_ON,
	                         .write = {args->show.store}};
	_Static_assert(OW_GUARD_READ >= 4 * OW_STREAM_PARTS, "a guard has more places");
	char text[OW_CONFINE_TEXT];
	bool whole;
	ow_stream_place *places = calloc(4 * OW_STREAM_PARTS, sizeof *places);
	if (!places)
		return ow_error_set(err, ENOMEM, "out of memory");
	for (unsigned i = 0; args->streams && i < 2; i++)
		ow_stream_argument_places(&args->stream[i], places + 2 * i * OW_STREAM_PARTS);
	for (unsigned i = 0; i < 4 * OW_STREAM_PARTS; i++)
		guard.read[i] = *places[i] ? places[i] : NULL;
	int r = ow_guard_close(&guard, text, &whole, err);
	free(places);
	if (r == 0 && !whole)
		ow_cli_say("oneway %s: %s", args->command, text);
	return r;
}

/*
 * Called once the sources are open, which can take long with files; until then a signal ends the program at once. Streams
 * are read in the sandbox from their first byte on.
 */
static int opened(void *arg, struct ow_error *err)
{
	struct ow_measure *args = arg;
	int r = open_signals(args, err);
	return r < 0 || args->streams ? r : confine(args, err);
}

static int open_streams(struct ow_measure *args, struct ow_error *err)
{
	char program[40];
	snprintf(program, sizeof program, "oneway %s", args->command);
	int r = 0;
	for (int i = 0; i < 2 && r == 0; i++)
		r = ow_stream_argument_open(&args->stream[i], program, args->lag_ns, &args->opened[i], err);
	return r;
}

static void say_changed(void *arg, const char *line)
{
	const struct ow_measure *args = arg;
	ow_cli_say("oneway %s: %s", args->command, line);
}

static void warn_filter(const struct ow_measure *args, const char *what, const char *filter)
{
	const char *caution = filter ? ow_packet_filter_caution(filter) : NULL;
	if (caution)
		ow_cli_say("oneway %s: warning: %s: %s", args->command, what, caution);
}

static void warn_filters(const struct ow_measure *args)
{
	warn_filter(args, "--filter", args->filter);
	for (size_t i = 0; i < args->classes.count; i++)
		warn_filter(args, args->classes.class[i].name, args->classes.class[i].filter);
}

/* What comes of the sources, with where it goes. */
struct output {
	const struct ow_measure *args;
	struct ow_show *show;
};

static void on_result(void *arg, const struct ow_interval_result *result)
{
	const struct output *output = arg;
	if (!output->args->one_way || strcmp(result->from, point_name(output->args->name[0])) == 0)
		ow_show_result(output->show, result);
}

static void on_event(void *arg, const struct ow_flow_event *event)
{
	const struct output *output = arg;
	ow_show_event(output->show, event);
}

static int open_both(struct ow_measure *args, struct output *output, struct ow_local_pair **ret_both,
                     struct ow_error *err)
{
	static const struct ow_local_pair_class all = {"all", NULL};
	uint64_t seed;
	if (getrandom(&seed, sizeof seed, 0) != (ssize_t)sizeof seed)
		return ow_error_set(err, errno, "cannot get random numbers: %s", strerror(errno));
	struct ow_local_pair_options o = {
		.from = source_of(args, 0, args->name[0]),
		.to = source_of(args, 1, args->name[1]),
		.from_name = point_name(args->name[0]),
		.to_name = point_name(args->name[1]),
		.identity = {.level = args->level == OW_LEVEL_NAT ? OW_LEVEL_NAT : OW_LEVEL_IP,
	                     .inner = args->inner,
	                     .tcp_headers = !args->files, /* also for streams, which have the headers at least */
	                     .pieces = true,
	                     .hash_limit = UINT32_MAX},
		.identities = args->level == OW_LEVEL_AUTO && !args->files
	                              ? ow_identity_allowed(args->inner || args->outer ? &args->inner : NULL)
	                              : 0,
		.any_way = args->one_way,
		.changed = say_changed,
		.forward = args->forward,
		.classes = args->classes.count ? args->classes.class : &all,
		.class_count = args->classes.count ? args->classes.count : 1,
		.length_ns = args->interval_ns,
		.wait_ns = args->wait_ns,
		.clock = args->clock,
		.lag_ns = args->lag_ns,
		.since_ns = args->since_ns,
		.until_ns = args->until_ns,
		.intervals = args->count,
		.shared = args->scope == OW_SCOPE_OF_SHARED,
		.memory = args->memory,
		.opened = opened,
		.opened_arg = args,
		.sink = on_result,
		.event = on_event,
		.arg = output,
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

static int check_total(const struct ow_measure *args, const struct ow_interval_result *total)
{
	int code = OW_EXIT_OK;
	if (total->loss_ratio.status != OW_VALUE_NONE && total->loss_ratio.value > args->max_loss) {
		ow_cli_say("oneway %s: %s to %s, %s: loss of %.4g %% is above --max-loss %.4g %%", args->command,
		           total->from, total->to, total->class_name, 100 * total->loss_ratio.value,
		           100 * args->max_loss);
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
		ow_cli_say("oneway %s: %s to %s, %s: no delay to compare with --max-delay-p99 %s", args->command,
		           total->from, total->to, total->class_name, limit);
		return OW_EXIT_CROSSED;
	}
	if (p99->value > (double)args->max_p99_ns) {
		ow_cli_say("oneway %s: %s to %s, %s: p99 delay of %s is above --max-delay-p99 %s", args->command,
		           total->from, total->to, total->class_name, text, limit);
		return OW_EXIT_CROSSED;
	}
	return code;
}

/* If no packet matched, there is no result to print: prints the probable mistake instead. */
static int explain_nothing(const struct ow_measure *args, const struct ow_local_pair *both, bool compared,
                           uint64_t sent, uint64_t received)
{
	struct ow_recorder_counts from, to;
	ow_local_pair_counts(both, 0, &from);
	ow_local_pair_counts(both, 1, &to);
	if (!compared)
		ow_cli_say("oneway %s: no interval could be compared", args->command);
	else if (!sent && !received)
		ow_cli_say("oneway %s: no packets to compare: %s had %llu frames, %s had %llu%s", args->command,
		           args->name[0], (unsigned long long)from.frames, args->name[1], (unsigned long long)to.frames,
		           args->classes.count || args->filter || args->forward ? "; check the filters" : "");
	else if (!sent || !received)
		ow_cli_say("oneway %s: no packet passed both %s and %s: %llu arrived, %llu left", args->command,
		           args->name[0], args->name[1], (unsigned long long)sent, (unsigned long long)received);
	else
		ow_cli_say("oneway %s: none of %llu packets that arrived and %llu that left matched%s", args->command,
		           (unsigned long long)sent, (unsigned long long)received,
		           args->level == OW_LEVEL_NAT           ? ""
		           : strcmp(args->command, "match") == 0 ? ": try --level nat, or --inner on for tunnels"
		                                                 : ": try --identity nat, or --inner for tunnels");
	return OW_EXIT_FAILED;
}

/* A class without packets probably has a mistake in its filter, which the summary would not show. */
static void tell_empty(const struct ow_measure *args, const struct ow_local_pair *both)
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
			ow_cli_say("oneway %s: no packet matched class '%s'", args->command, name);
	}
}

/* Hosts that were not seen when it began, or not among the busiest, are on no side. */
static void tell_unclaimed(const struct ow_measure *args, const struct ow_local_pair *both)
{
	for (unsigned i = 0; i < 2 && args->streams && !args->forward && !args->classes.count; i++) {
		struct ow_recorder_counts counts;
		ow_local_pair_counts(both, i, &counts);
		if (counts.unclaimed)
			ow_cli_say("oneway %s: warning: %s: %llu %s left out, of other hosts than those said at the "
			           "start: give --forward",
			           args->command, args->name[i], (unsigned long long)counts.unclaimed,
			           counts.unclaimed == 1 ? "packet" : "packets");
	}
}

/* whole: the run came to its end; otherwise the error message is enough. */
static int sum_up(const struct ow_measure *args, const struct ow_local_pair *both, struct ow_show *show, bool whole)
{
	int code = OW_EXIT_OK;
	uint64_t matched = 0, sent = 0, received = 0;
	bool compared = false;
	for (size_t i = 0; i < ow_local_pair_lanes(both); i += args->one_way ? 2 : 1) {
		struct ow_interval_result total;
		ow_local_pair_total(both, i, &total);
		matched += total.matched;
		compared = compared || total.status != OW_RESULT_UNKNOWN;
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
		return explain_nothing(args, both, compared, sent, received);
	tell_empty(args, both);
	tell_unclaimed(args, both);
	return code;
}

/* The first result takes more than an interval, so a line tells the user that the measurement has started. */
static void greet(const struct ow_measure *args)
{
	char interval[OW_DURATION_TEXT];
	if (!isatty(STDERR_FILENO) || args->files)
		return;
	ow_duration_text((double)args->interval_ns, interval);
	ow_cli_say("Measuring between %s and %s, with a result every %s.%s", args->name[0], args->name[1], interval,
	           args->run_ns || args->count ? "" : " Press Ctrl-C to end it.");
}

static void warn_untimed(const struct ow_measure *args, const struct ow_local_pair *both)
{
	for (unsigned i = 0; i < 2; i++) {
		unsigned long long count = ow_local_pair_untimed(both, i);
		if (count)
			ow_cli_say("oneway %s: warning: %s: %llu packet%s left out: no timestamp (0)", args->command,
			           i ? args->to : args->name[0], count, count == 1 ? " is" : "s are");
	}
}

static void warn_not_recorded(const struct ow_measure *args, const struct ow_local_pair *both)
{
	for (unsigned i = 0; i < 2; i++) {
		const char *note = ow_local_pair_note(both, i);
		if (*note)
			ow_cli_say("oneway %s: warning: not recorded in the kernel: %s", args->command, note);
	}
}

static void close_streams(const struct ow_measure *args)
{
	for (int i = 0; i < 2; i++)
		ow_streams_close(&args->opened[i]);
}

int ow_measure_run(struct ow_measure *args)
{
	struct ow_error err = {"no reason given"};
	struct ow_show *show = NULL;
	struct ow_local_pair *both = NULL;
	int code = OW_EXIT_FAILED;
	signal(SIGPIPE, SIG_IGN); /* a reader that closes the pipe is an error of writing */
	args->show.style = ow_terminal_style(stdout, args->no_color);
	args->name[0] = args->streams ? args->stream[0].name : args->from;
	args->name[1] = args->streams ? args->stream[1].name : args->to;
	/* Commands have the privileges of who runs this program, or of --user. */
	int r = args->streams && !args->user ? open_streams(args, &err) : 0;
	if (r == 0)
		r = ow_privileges_reduce(args->user,
		                         (args->hardware_stamps ? OW_PRIVILEGES_STAMPS : 0) |
		                                 (args->capture == OW_IFACE_KERNEL ? OW_PRIVILEGES_KERNEL : 0),
		                         &err);
	if (r == 0 && args->streams && args->user)
		r = open_streams(args, &err);
	if (r == 0)
		r = ow_show_create(&args->show, &show, &err);
	struct output output = {args, show};
	if (r == 0 && args->streams)
		r = confine(args, &err);
	if (r < 0)
		close_streams(args);
	if (r == 0)
		r = open_both(args, &output, &both, &err);
	if (r == 0) {
		greet(args);
		warn_untimed(args, both);
		warn_not_recorded(args, both);
		r = measure(both, show, args->signals, &err);
		if (r >= 0 && ow_local_pair_is_blind(both, &err))
			r = -ENODEV;
		code = sum_up(args, both, show, r >= 0);
	}
	if (r < 0)
		code = ow_cli_failed(args->command, &err);
	ow_local_pair_free(both);
	ow_show_free(show);
	if (args->signals >= 0)
		close(args->signals);
	return code;
}
