/* SPDX-License-Identifier: Apache-2.0 */
/* oneway plane reflect: answers probes. */
#include "base/time.h"
#include "cli/cli.h"
#include "cli/options.h"
#include "cli/plane.h"
#include "cli/plane_stamp.h"
#include "doctor/chrony.h"
#include "report/probes.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <unistd.h>

#define TICK_MS 1000

struct arguments {
	const char *listen, *key, *hardware;
	uint64_t total_pps, source_pps;
	int64_t run_ns;
	bool stateless, ptp, json, no_sandbox, help, version;
};

#define FIELD(name) offsetof(struct arguments, name)

static const struct ow_option options[] = {
	{NULL, 0, NULL, NULL, 0, "Options:"},
	{"listen", 'l', "ADDR:PORT", ow_option_text, FIELD(listen),
         "Address and port (default :862, all addresses of this host; port 862 needs root or CAP_NET_BIND_SERVICE)."},
	{"key", 'k', "FILE", ow_option_text, FIELD(key),
         "Use authenticated mode with the secret in this file, hexadecimal digits as written by 'oneway point keygen "
         "--psk'; "
         "probes without it are not answered."},
	{"stateless", 0, NULL, ow_option_flag, FIELD(stateless),
         "Do not number replies: senders then cannot know in which direction a probe was lost."},
	{"limit", 0, "N", ow_option_count, FIELD(total_pps), "Replies per second to all sources (default 10000)."},
	{"source-limit", 0, "N", ow_option_count, FIELD(source_pps),
         "Replies per second to one source, an IPv4 address or an IPv6 /64 (default 1000)."},
	{"ptp", 0, NULL, ow_option_flag, FIELD(ptp), "Send timestamps in PTP's format instead of NTP's."},
	{"hardware-timestamps", 0, "IF", ow_option_text, FIELD(hardware),
         "Use hardware timestamps of this interface; its clock must be synchronised to the host's."},
	{"seconds", 's', "N", ow_option_seconds, FIELD(run_ns), "End after this time (default: Ctrl-C ends it)."},
	{"json", 0, NULL, ow_option_flag, FIELD(json), "Print the counts at the end as a line of JSON."},
	{"no-sandbox", 0, NULL, ow_option_flag, FIELD(no_sandbox), "Run without seccomp and landlock."},
	OW_OPTIONS_HELP(struct arguments),
	{0},
};

static void help(void)
{
	fputs("usage: oneway plane reflect [OPTION]...\n"
	      "\n"
	      "Answers probes of STAMP (RFC 8762) and TWAMP Light, those of 'oneway plane\n"
	      "probe' and of routers, with the times of arrival and departure. A reply is never\n"
	      "longer than its probe, and the rate of replies is limited. Ctrl-C ends it; a\n"
	      "summary follows.\n",
	      stdout);
	ow_options_help(stdout, options);
	fputs("\n"
	      "Examples:\n"
	      "  oneway plane reflect\n"
	      "  oneway plane reflect --listen 192.0.2.7:8620 --key lab.psk\n"
	      "  oneway plane reflect --listen [2001:db8::7]:862 --source-limit 20\n",
	      stdout);
}

static int serve(struct ow_reflector *reflector, struct ow_clocks *clocks, int signals, int64_t run_ns,
                 struct ow_error *err)
{
	struct pollfd fds[] = {{.fd = ow_reflector_fd(reflector), .events = POLLIN}, {.fd = signals, .events = POLLIN}};
	int64_t begun_ns = ow_clock_steady_ns(), clock_ns = INT64_MIN;
	for (;;) {
		int64_t now_ns = ow_clock_steady_ns();
		if (run_ns && now_ns - begun_ns >= run_ns)
			return 0;
		ow_clocks_tick(clocks, now_ns);
		if (now_ns - OW_NS_PER_S > clock_ns) {
			struct ow_clock_state clock;
			ow_clocks_state(clocks, now_ns, &clock);
			ow_reflector_clock(reflector, &clock);
			clock_ns = now_ns;
		}
		int64_t left_ms = run_ns ? (run_ns - (now_ns - begun_ns)) / OW_NS_PER_MS + 1 : TICK_MS;
		if (poll(fds, 2, left_ms < TICK_MS ? (int)left_ms : TICK_MS) < 0 && errno != EINTR)
			return ow_error_set(err, errno, "cannot wait: %s", strerror(errno));
		if (fds[1].revents & POLLIN)
			return 0;
		int r = ow_reflector_work(reflector, err);
		if (r < 0)
			return r;
	}
}

static int open_reflector(const struct arguments *args, const struct ow_stamp_secret *secret,
                          struct ow_reflector **ret_reflector, struct ow_error *err)
{
	struct ow_reflector_options o = {.listen = args->listen,
	                                 .key = ow_stamp_secret_key(secret),
	                                 .stateless = args->stateless,
	                                 .ptp = args->ptp,
	                                 .total_pps = (double)args->total_pps,
	                                 .source_pps = (double)args->source_pps,
	                                 .hardware = args->hardware};
	if (getrandom(&o.seed, sizeof o.seed, 0) != (ssize_t)sizeof o.seed)
		return ow_error_set(err, errno, "cannot get random numbers: %s", strerror(errno));
	return ow_reflector_create(&o, ret_reflector, err);
}

static void greet(const struct ow_reflector *reflector)
{
	char text[OW_REFLECTOR_TEXT];
	ow_reflector_text(reflector, text);
	ow_cli_say("oneway plane reflect: listening on %s", text);
}

static int run(const struct arguments *args)
{
	struct ow_error err = {"no reason given"};
	struct ow_stamp_secret secret = {0};
	struct ow_reflector *reflector = NULL;
	struct ow_clocks *clocks = NULL;
	const struct ow_guard guard = {.sandbox = args->no_sandbox ? OW_SANDBOX_OFF : OW_SANDBOX_ON};
	int signals = ow_stamp_signals(&err), code = OW_EXIT_OK, r = signals < 0 ? signals : 0;
	if (r == 0)
		r = ow_stamp_secret_load(&secret, args->key, &err);
	if (r == 0)
		r = open_reflector(args, &secret, &reflector, &err);
	if (r == 0 && ow_clocks_create(OW_CLOCKS_CHRONY_PORT, &clocks) < 0)
		r = ow_error_set(&err, ENOMEM, "out of memory");
	if (r == 0)
		r = ow_stamp_confine("plane reflect", &guard, &err);
	if (r == 0) {
		struct ow_reflector_counts counts;
		greet(reflector);
		r = serve(reflector, clocks, signals, args->run_ns, &err);
		ow_reflector_counts(reflector, &counts);
		(args->json ? ow_report_reflector_json : ow_report_reflector_text)(stdout, &counts);
	}
	if (r < 0)
		code = ow_cli_failed("plane reflect", &err);
	ow_reflector_free(reflector);
	ow_clocks_free(clocks);
	ow_stamp_secret_forget(&secret);
	if (signals >= 0)
		close(signals);
	return code;
}

int ow_cli_plane_reflect(int argc, char **argv)
{
	struct arguments args = {.total_pps = OW_REFLECTOR_TOTAL_PPS, .source_pps = OW_REFLECTOR_SOURCE_PPS};
	struct ow_error err;
	int operands = ow_options_parse(options, argc, argv, &args, &err);
	if (operands < 0)
		return ow_cli_refused("plane reflect", operands, &err);
	if (ow_cli_answered(args.help, args.version, help))
		return OW_EXIT_OK;
	if (operands > 0)
		ow_error_set(&err, EINVAL, "unexpected '%.60s': an address is given by --listen", argv[1]);
	else if (!args.total_pps || !args.source_pps)
		ow_error_set(&err, EINVAL, "--limit and --source-limit must be above 0");
	else
		return run(&args);
	return ow_cli_misused("plane reflect", &err);
}
