/* SPDX-License-Identifier: Apache-2.0 */
/* oneway fleet serve: gives points their certificates. oneway fleet follow: users of the bus on its other hosts. */
#include "cli/fleet.h"
#include "cli/interrupt.h"
#include "fleet/bus_users.h"
#include "fleet/enrol.h"
#include "fleet/enrol_server.h"
#include "fleet/folder.h"
#include "point/journal.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

struct arguments {
	const char *dir, *listen;
	bool help, version;
};

#define FIELD(name) offsetof(struct arguments, name)

static const struct ow_option serve_options[] = {
	OW_OPTION_DIR(struct arguments),
	{"listen", 'l', "ADDRESS", ow_option_text, FIELD(listen),
         "Where points connect: address:port. Default: all addresses, with the port of the fleet's address."},
	OW_OPTIONS_HELP(struct arguments),
	{0},
};

static const struct ow_option follow_options[] = {
	OW_OPTIONS_HELP(struct arguments),
	{0},
};

static void help_serve(void)
{
	fputs("oneway fleet serve: gives points their certificates, and renews them\n"
	      "\n"
	      "usage: oneway fleet serve [OPTION]...\n"
	      "\n",
	      stdout);
	ow_options_help(stdout, serve_options);
	fputs("\n"
	      "Runs until SIGTERM. Points that have a certificate go on without it, until half\n"
	      "of the certificate's time is over.\n"
	      "\n"
	      "example:\n"
	      "  oneway fleet serve --dir /etc/oneway/fleet\n",
	      stdout);
}

static void help_follow(void)
{
	fputs("oneway fleet follow: keeps the users of a server of the bus up to date\n"
	      "\n"
	      "usage: oneway fleet follow ADDRESS FOLDER\n"
	      "\n",
	      stdout);
	ow_options_help(stdout, follow_options);
	fputs("\n"
	      "For hosts of the bus that do not have the folder of the fleet, only their own\n"
	      "folder nats/HOST of it. ADDRESS is that of 'oneway fleet serve'. A change of the\n"
	      "users (a point that joins, or is revoked) arrives within a second.\n"
	      "\n"
	      "example:\n"
	      "  oneway fleet follow fleet.example /etc/oneway/nats/bus2.example\n",
	      stdout);
}

static void log_line(void *arg, bool bad, const char *line)
{
	(void)arg;
	ow_cli_say("%soneway fleet serve: %s", bad && ow_journal_is_stream(STDERR_FILENO) ? "<4>" : "", line);
}

/* ":8621", with the port that points use. */
static void default_listen(const char *address, char text[32])
{
	const char *bracket = strrchr(address, ']'), *colon = strrchr(bracket ? bracket : address, ':');
	bool port = colon && (bracket || strchr(address, ':') == colon);
	if (port)
		snprintf(text, 32, ":%.10s", colon + 1);
	else
		snprintf(text, 32, ":%d", OW_FLEET_PORT);
}

static int serve(const char *dir, const char *listen, struct ow_error *err)
{
	struct ow_fleet *fleet = NULL;
	char text[32];
	sigset_t set;
	int r = ow_fleet_open(dir, &fleet, err);
	if (r < 0)
		return r;
	default_listen(fleet->settings.address, text);
	ow_fleet_close(fleet);
	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	(void)signal(SIGPIPE, SIG_IGN);
	struct ow_enrol_server how = {.folder = dir, .listen = listen ? listen : text, .log = log_line};
	how.stop_fd = sigprocmask(SIG_BLOCK, &set, NULL) < 0 ? -1 : signalfd(-1, &set, SFD_CLOEXEC);
	if (how.stop_fd < 0)
		return ow_error_set(err, errno, "signalfd: %s", strerror(errno));
	r = ow_enrol_serve(&how, err);
	close(how.stop_fd);
	return r;
}

int ow_cli_fleet_serve(int argc, char **argv)
{
	struct arguments args = {0};
	struct ow_error err;
	int operands = ow_options_parse(serve_options, argc, argv, &args, &err);
	if (operands > 0)
		operands = ow_error_set(&err, EINVAL, "unexpected '%.60s'", argv[1]);
	if (operands < 0)
		return ow_cli_misused("fleet serve", &err);
	if (ow_cli_answered(args.help, args.version, help_serve))
		return OW_EXIT_OK;
	return serve(ow_cli_fleet_dir(args.dir), args.listen, &err) < 0 ? ow_cli_failed("fleet serve", &err)
	                                                                : OW_EXIT_OK;
}

/* Says a failure once, and when it is over. */
static void follow(const char *address, const char *folder)
{
	struct ow_error err, said = {""};
	while (!ow_interrupted) {
		int r = ow_enrol_users(address, folder, &err);
		if (r < 0 && strcmp(said.text, err.text) != 0) {
			ow_cli_say("oneway fleet follow: %s; trying again", err.text);
			said = err;
		}
		if (r >= 0 && said.text[0]) {
			ow_cli_say("oneway fleet follow: %s answers again", address);
			said.text[0] = 0;
		}
		if (r > 0)
			ow_cli_say("oneway fleet follow: new users%s",
			           ow_bus_reload(folder) < 0 ? "; no nats-server runs here" : "");
		if (r < 0)
			sleep(1);
	}
}

int ow_cli_fleet_follow(int argc, char **argv)
{
	struct arguments args = {0};
	struct ow_error err;
	int operands = ow_options_parse(follow_options, argc, argv, &args, &err);
	if (operands >= 0 && ow_cli_answered(args.help, args.version, help_follow))
		return OW_EXIT_OK;
	if (operands >= 0 && operands != 2)
		operands = ow_error_set(&err, EINVAL, "needs ADDRESS and FOLDER");
	if (operands < 0)
		return ow_cli_misused("fleet follow", &err);
	ow_interrupt_catch();
	(void)signal(SIGPIPE, SIG_IGN);
	follow(argv[1], argv[2]);
	return OW_EXIT_OK;
}
