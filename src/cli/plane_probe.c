/* SPDX-License-Identifier: Apache-2.0 */
/* oneway plane probe: sends sparse probes to reflectors, for segments without passive points. */
#include "base/time.h"
#include "cli/cli.h"
#include "sandbox/guard.h"
#include "cli/options.h"
#include "cli/shared_options.h"
#include "cli/output.h"
#include "cli/plane.h"
#include "cli/plane_stamp.h"
#include "cli/terminal.h"
#include "report/probes.h"
#include "report/show.h"
#include "doctor/chrony.h"
#include "active/prober.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <unistd.h>

#define RATE_PPS    10.0
#define INTERVAL_NS OW_NS_PER_S
#define WAIT_NS     (2 * OW_NS_PER_S)
/*
 * The time to wait for the reply to a probe, in mean distances of probes: the replies to the next ones show in which
 * direction a probe was lost.
 */
#define WAIT_PROBES 3

struct arguments {
	const char *segment, *class_name, *from, *to, *key;
	double rate_pps;
	int64_t interval_ns, wait_ns, run_ns;
	uint64_t dscp, size, seed;
	bool seeded, ipv6, ptp, no_sandbox;
	const char *hardware;
	struct ow_show_options show;
	bool no_color;
	bool help, version;
};

/* 10, 10/s, 0.5/s, 30/min */
static int set_rate(void *field, const char *value, struct ow_error *err)
{
	static const struct {
		const char *name;
		double seconds;
	} units[] = {{"", 1}, {"/s", 1}, {"/min", 60}, {"/h", 3600}};
	char *end;
	double rate = strtod(value, &end);
	for (size_t i = 0; end != value && isfinite(rate) && i < sizeof units / sizeof *units; i++) {
		if (strcmp(end, units[i].name) == 0) {
			*(double *)field = rate / units[i].seconds;
			return 0;
		}
	}
	return ow_error_set(err, EINVAL, "'%.40s' is not a rate: 10/s, 0.5/s, 30/min", value);
}

/* The field is a struct arguments. */
static int set_seed(void *field, const char *value, struct ow_error *err)
{
	struct arguments *args = field;
	args->seeded = true;
	return ow_option_count(&args->seed, value, err);
}

static int set_dscp(void *field, const char *value, struct ow_error *err)
{
	uint64_t dscp;
	if (ow_option_count(&dscp, value, err) < 0 || dscp > 63)
		return ow_error_set(err, EINVAL, "'%.40s' is not a DSCP of 0 to 63 (46 is EF)", value);
	*(uint64_t *)field = dscp;
	return 0;
}

#define FIELD(name) offsetof(struct arguments, name)

static const struct ow_option options[] = {
	{NULL, 0, NULL, NULL, 0, "Probes:"},
	{"rate", 'r', "N/s", set_rate, FIELD(rate_pps),
         "Mean rate of the probes to each reflector, at random times (default 10/s, at most 1000/s; 30/min)."},
	{"interval", 'i', "D", ow_option_positive_duration, FIELD(interval_ns), "Length of an interval (default 1s)."},
	{"wait", 0, "D", ow_option_positive_duration, FIELD(wait_ns),
         "Waiting time after which a probe is lost (default 2s, or the mean time of three probes if that is longer)."},
	{"seconds", 's', "N", ow_option_seconds, FIELD(run_ns), "End after this time (default: Ctrl-C ends it)."},
	{"key", 'k', "FILE", ow_option_text, FIELD(key),
         "Use authenticated mode with the secret in this file, hexadecimal digits as written by 'oneway point keygen "
         "--psk'."},
	{"dscp", 0, "N", set_dscp, FIELD(dscp), "DSCP of the probes (default 0; 46 is EF)."},
	{"size", 0, "N", ow_option_count, FIELD(size),
         "Octets of UDP payload (default 44, or 112 with --key); the rest is padding."},
	{"ipv6", '6', NULL, ow_option_flag, FIELD(ipv6), "Use only IPv6 addresses of host names."},
	{"ptp", 0, NULL, ow_option_flag, FIELD(ptp), "Send timestamps in PTP's format instead of NTP's."},
	{"hardware-timestamps", 0, "IF", ow_option_text, FIELD(hardware),
         "Use hardware timestamps of this interface; its clock must be synchronised to the host's."},
	{"seed", 0, "N", set_seed, 0, "Seed of the random times (default: a random one)."},

	{NULL, 0, NULL, NULL, 0, "Names:"},
	{"segment", 0, "NAME", ow_option_text, FIELD(segment),
         "Name of the segment (one reflector only): 'F>E>D' is the place of that name for 'oneway plane monitor'."},
	{"from", 0, "A", ow_option_text, FIELD(from),
         "Name of this end (default: the first of F>E>D, else this host's)."},
	{"to", 0, "B", ow_option_text, FIELD(to),
         "Name of the other end (default: the last of F>E>D, else the reflector's)."},
	{"class", 0, "NAME", ow_option_text, FIELD(class_name), "Class of traffic (default all)."},

	{NULL, 0, NULL, NULL, 0, "Output:"},
	{"json", 0, NULL, ow_option_flag, FIELD(show.json), "Print a line of JSON for each result, and a summary."},
	{"lines", 0, NULL, ow_option_flag, FIELD(show.lines), "Print lines instead of a table, also on a terminal."},
	{"store", 0, "FILE", ow_option_output, FIELD(show.store), "Also write results to this SQLite database."},
	OW_OPTIONS_NO_COLOR(struct arguments),

	{NULL, 0, NULL, NULL, 0, "Other:"},
	{"no-sandbox", 0, NULL, ow_option_flag, FIELD(no_sandbox), "Run without seccomp and landlock."},
	OW_OPTIONS_HELP(struct arguments),
	{0},
};

static void help(void)
{
	fputs("usage: oneway plane probe [NAME=]HOST[:PORT]... [OPTION]...\n"
	      "\n"
	      "Measures delay and loss to reflectors of STAMP (RFC 8762) or TWAMP Light by\n"
	      "probes: there, back, and the round trip. For segments without passive points.\n"
	      "One-way delays are as good as both clocks; the round trip depends on none.\n",
	      stdout);
	ow_options_help(stdout, options);
	fputs("\n"
	      "Examples:\n"
	      "  oneway plane probe 192.0.2.7\n"
	      "  oneway plane probe 'F>E>D=192.0.2.7' 'F>B=[2001:db8::b]:8620' --store p.db\n"
	      "  oneway plane probe router.example --rate 30/min --interval 1min --dscp 46\n"
	      "  oneway plane probe 192.0.2.7 --key lab.psk --seconds 60 --json\n",
	      stdout);
}

/* -- names -------------------------------------------------------------------------------------------------------- */

struct names {
	char segment[OW_RESULT_NAME], from[OW_RESULT_NAME], to[OW_RESULT_NAME];
};

static int put_name(char name[OW_RESULT_NAME], const char *text, size_t length, struct ow_error *err)
{
	if (!length || length >= OW_RESULT_NAME)
		return ow_error_set(err, EINVAL, "'%.*s': names have 1 to %d bytes", length > 80 ? 80 : (int)length,
		                    text, OW_RESULT_NAME - 1);
	memcpy(name, text, length);
	name[length] = '\0';
	return 0;
}

/* The ends of "F>E>D" are F and D. Names that were given take precedence, then those of the place, then host names. */
static int name_ends(const struct arguments *args, const char *segment, const char *address, struct names *names,
                     struct ow_error *err)
{
	char host[OW_RESULT_NAME] = "here";
	const char *first = segment ? strchr(segment, '>') : NULL, *last = segment ? strrchr(segment, '>') : NULL;
	if (gethostname(host, sizeof host) < 0 || !*host)
		snprintf(host, sizeof host, "here");
	host[sizeof host - 1] = '\0';
	const char *from = args->from ? args->from : first ? segment : host;
	const char *to = args->to ? args->to : last ? last + 1 : address;
	int r = put_name(names->from, from, !args->from && first ? (size_t)(first - segment) : strlen(from), err);
	return r < 0 ? r : put_name(names->to, to, strlen(to), err);
}

/* [NAME=]HOST[:PORT]; an address never contains '='. */
static int name_target(const struct arguments *args, const char *operand, struct names *names,
                       struct ow_prober_target *target, struct ow_error *err)
{
	const char *equal = strrchr(operand, '=');
	char own[OW_RESULT_NAME];
	const char *segment = args->segment;
	if (equal && args->segment)
		return ow_error_set(err, EINVAL, "'%.80s' has a name, but --segment gives another", operand);
	target->address = equal ? equal + 1 : operand;
	if (equal) {
		int r = put_name(own, operand, (size_t)(equal - operand), err);
		if (r < 0)
			return r;
		segment = own;
	}
	int r = name_ends(args, segment, target->address, names, err);
	if (r < 0)
		return r;
	if (segment)
		r = put_name(names->segment, segment, strlen(segment), err);
	else
		snprintf(names->segment, sizeof names->segment, "%.31s-%.31s", names->from, names->to);
	target->segment = names->segment;
	target->from = names->from;
	target->to = names->to;
	target->class_name = args->class_name ? args->class_name : "all";
	return r;
}

/* -- the run ------------------------------------------------------------------------------------------------------ */

struct job {
	struct arguments args;
	struct names *names;
	struct ow_prober_target *target;
	unsigned targets;
	struct ow_stamp_secret secret;
	struct ow_show *show;
	struct ow_prober *prober;
	struct ow_clocks *clocks;
	int signals;
};

static int name_all(struct job *job, char **operand, struct ow_error *err)
{
	job->names = calloc(job->targets, sizeof *job->names);
	job->target = calloc(job->targets, sizeof *job->target);
	if (!job->names || !job->target)
		return ow_error_set(err, ENOMEM, "out of memory");
	for (unsigned i = 0; i < job->targets; i++) {
		int r = name_target(&job->args, operand[i], &job->names[i], &job->target[i], err);
		if (r < 0)
			return r;
		for (unsigned k = 0; k < i; k++) {
			if (strcmp(job->names[k].segment, job->names[i].segment) == 0)
				return ow_error_set(err, EINVAL, "'%.80s' is the name of two reflectors",
				                    job->names[i].segment);
		}
	}
	return 0;
}

static int open_prober(struct job *job, struct ow_error *err)
{
	const struct arguments *args = &job->args;
	uint64_t seed = args->seed;
	if (!args->seeded && getrandom(&seed, sizeof seed, 0) != (ssize_t)sizeof seed)
		return ow_error_set(err, errno, "cannot get random numbers: %s", strerror(errno));
	const struct ow_prober_options o = {.target = job->target,
	                                    .targets = job->targets,
	                                    .rate_pps = args->rate_pps,
	                                    .length_ns = args->interval_ns,
	                                    .wait_ns = args->wait_ns,
	                                    .run_ns = args->run_ns,
	                                    .key = ow_stamp_secret_key(&job->secret),
	                                    .size = args->size,
	                                    .dscp = (uint8_t)args->dscp,
	                                    .ptp = args->ptp,
	                                    .family = args->ipv6 ? AF_INET6 : AF_UNSPEC,
	                                    .hardware = args->hardware,
	                                    .seed = seed,
	                                    .sink = ow_show_result,
	                                    .arg = job->show};
	return ow_prober_create(&o, &job->prober, err);
}

static int measure(struct job *job, struct ow_error *err)
{
	struct pollfd fds[] = {{.fd = ow_prober_fd(job->prober), .events = POLLIN},
	                       {.fd = job->signals, .events = POLLIN}};
	struct signalfd_siginfo signal;
	for (;;) {
		struct ow_clock_state clock;
		int64_t now_ns = ow_clock_steady_ns();
		ow_clocks_tick(job->clocks, now_ns);
		ow_clocks_state(job->clocks, now_ns, &clock);
		ow_prober_clock(job->prober, &clock);
		int r = ow_prober_work(job->prober, err);
		if (r < 0)
			return r;
		int shown = ow_show_flush(job->show, err);
		if (r > 0 || shown < 0)
			return shown;
		if (poll(fds, 2, -1) < 0 && errno != EINTR)
			return ow_error_set(err, errno, "cannot wait: %s", strerror(errno));
		if (fds[1].revents & POLLIN && read(job->signals, &signal, sizeof signal) == (ssize_t)sizeof signal)
			ow_prober_stop(job->prober);
	}
}

/* -- the end ------------------------------------------------------------------------------------------------------ */

/* No reply came back: prints the probable mistake. */
static int explain_silence(const struct job *job, unsigned i, const struct ow_prober_counts *n)
{
	const char *why = n->refused       ? "replies have another key, or no key"
	                  : n->unreachable ? "no program listens there"
	                  : n->failed      ? "probes could not be sent"
	                  : n->replies
	                          ? "replies are not those of a reflector"
	                          : "check that a reflector runs there with this key, and that firewalls let UDP pass";
	ow_cli_say("oneway plane probe: %s: none of %" PRIu64 " probes was answered: %s", job->target[i].address,
	           n->sent, why);
	return OW_EXIT_FAILED;
}

static int sum_up(const struct job *job)
{
	int code = OW_EXIT_OK;
	for (unsigned i = 0; i < job->targets; i++) {
		struct ow_prober_counts counts;
		struct ow_interval_result total;
		ow_prober_counts(job->prober, i, &counts);
		for (int lane = 0; lane < OW_PROBES_LANES; lane++) {
			ow_prober_total(job->prober, i, (enum ow_probes_lane)lane, &total);
			ow_show_summary(job->show, &total);
		}
		if (job->args.show.json)
			ow_report_session_json(stdout, &job->target[i], &counts);
		else
			ow_report_session_text(stdout, &job->target[i], &counts);
		fflush(stdout);
		if (counts.sent && !counts.verdict[OW_PROBES_ANSWER])
			code = explain_silence(job, i, &counts);
	}
	return code;
}

static int confine(const struct job *job, struct ow_error *err)
{
	const struct ow_guard guard = {.sandbox = job->args.no_sandbox ? OW_SANDBOX_OFF : OW_SANDBOX_ON,
	                               .write = {job->args.show.store}};
	return ow_stamp_confine("plane probe", &guard, err);
}

static int run(struct job *job, char **operand)
{
	struct ow_error err = {"no reason given"};
	int code = OW_EXIT_FAILED, r = name_all(job, operand, &err);
	if (r == 0)
		r = ow_stamp_secret_load(&job->secret, job->args.key, &err);
	if (r == 0)
		r = job->signals = ow_stamp_signals(&err);
	job->args.show.style = ow_terminal_style(stdout, job->args.no_color);
	if (r >= 0)
		r = ow_show_create(&job->args.show, &job->show, &err);
	if (r == 0)
		r = open_prober(job, &err);
	if (r == 0 && ow_clocks_create(OW_CLOCKS_CHRONY_PORT, &job->clocks) < 0)
		r = ow_error_set(&err, ENOMEM, "out of memory");
	if (r == 0)
		r = confine(job, &err);
	if (r == 0) {
		r = measure(job, &err);
		code = sum_up(job);
	}
	if (r < 0)
		code = ow_cli_failed("plane probe", &err);
	ow_prober_free(job->prober);
	ow_clocks_free(job->clocks);
	ow_show_free(job->show);
	ow_stamp_secret_forget(&job->secret);
	if (job->signals >= 0)
		close(job->signals);
	free(job->names);
	free(job->target);
	return code;
}

int ow_cli_plane_probe(int argc, char **argv)
{
	struct job job = {.args = {.rate_pps = RATE_PPS, .interval_ns = INTERVAL_NS}, .signals = -1};
	struct arguments *args = &job.args;
	struct ow_error err;
	int operands = ow_options_parse(options, argc, argv, args, &err);
	if (operands < 0)
		return ow_cli_refused("plane probe", operands, &err);
	if (ow_cli_answered(args->help, args->version, help))
		return OW_EXIT_OK;
	if (operands == 0)
		ow_error_set(&err, EINVAL, "a reflector is required: HOST, HOST:PORT or NAME=HOST");
	else if (operands > 1 && (args->segment || args->to))
		ow_error_set(&err, EINVAL, "--segment and --to are for one reflector; with several, write NAME=HOST");
	else if (operands > OW_PROBER_TARGETS_MAX)
		ow_error_set(&err, EINVAL, "%d reflectors are more than %d", operands, OW_PROBER_TARGETS_MAX);
	else if (!(args->rate_pps >= OW_PROBER_RATE_MIN && args->rate_pps <= OW_PROBER_RATE_MAX))
		ow_error_set(&err, EINVAL, "--rate: 1/h to %.0f/s", OW_PROBER_RATE_MAX);
	else {
		if (!args->wait_ns) {
			double wait_ns = fmax((double)WAIT_NS, WAIT_PROBES / args->rate_pps * (double)OW_NS_PER_S);
			args->wait_ns = (int64_t)fmin(wait_ns, (double)OW_PROBER_WAIT_MAX);
		}
		job.targets = (unsigned)operands;
		return run(&job, argv + 1);
	}
	return ow_cli_misused("plane probe", &err);
}
