/* SPDX-License-Identifier: Apache-2.0 */
/* oneway fleet enroll NAME, revoke NAME: who belongs to a fleet. */
#include "base/clock.h"
#include "base/time.h"
#include "cli/fleet.h"
#include "fleet/authority.h"
#include "fleet/bus_users.h"
#include "fleet/control.h"
#include "fleet/desired.h"
#include "fleet/revocation.h"
#include "fleet/streams.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct arguments {
	const char *dir;
	int64_t valid_ns;
	bool help, version;
};

#define FIELD(name) offsetof(struct arguments, name)

static const struct ow_option enroll_options[] = {
	OW_OPTION_DIR(struct arguments),
	{"valid", 0, "D", ow_option_positive_duration, FIELD(valid_ns), "How long the token can be used (default 1h)."},
	OW_OPTIONS_HELP(struct arguments),
	{0},
};

static const struct ow_option revoke_options[] = {
	OW_OPTION_DIR(struct arguments),
	OW_OPTIONS_HELP(struct arguments),
	{0},
};

static void help_enroll(void)
{
	fputs("oneway fleet enroll: lets a point join\n"
	      "\n"
	      "usage: oneway fleet enroll NAME [OPTION]...\n"
	      "\n",
	      stdout);
	ow_options_help(stdout, enroll_options);
	fputs("\n"
	      "Prints the configuration that the point needs: address, name and a token. The\n"
	      "token serves once, for this name, and for an hour; with it the point fetches\n"
	      "its certificate from 'oneway fleet serve', and renews it by itself later. For a\n"
	      "point that is enrolled already, a new token replaces its key: the old one is out\n"
	      "as soon as the new one is in use: give the point the new configuration and start\n"
	      "it again.\n"
	      "\n"
	      "examples:\n"
	      "  oneway fleet enroll london >london.yaml\n"
	      "  oneway fleet enroll london --valid 10min |\n"
	      "      ssh london 'cat >/etc/oneway/london.yaml'\n",
	      stdout);
}

static void help_revoke(void)
{
	fputs("oneway fleet revoke: puts a point out\n"
	      "\n"
	      "usage: oneway fleet revoke NAME [OPTION]...\n"
	      "\n",
	      stdout);
	ow_options_help(stdout, revoke_options);
	fputs("\n"
	      "The servers of the bus on this host disconnect the point at once, those on\n"
	      "other hosts when 'oneway fleet follow' there has the new list of users, a second\n"
	      "later. The point gets no certificate any more, until 'oneway fleet enroll NAME'.\n"
	      "Its peers are told by the bus, and close their connections to it within seconds;\n"
	      "a point that is cut off from the bus is told when it is back. NAME can be a\n"
	      "service: collector, station, controller, serve. It gets a new key and\n"
	      "certificate in the folder of the fleet.\n"
	      "\n"
	      "example:\n"
	      "  oneway fleet revoke london\n",
	      stdout);
}

/* Opens the fleet of the arguments. If there is nothing more to do, *ret_fleet stays NULL, and *ret_code is the exit code. */
static bool begin(const char *command, const struct ow_option *options, void (*help)(void), int argc, char **argv,
                  struct arguments *args, struct ow_fleet **ret_fleet, int *ret_code)
{
	struct ow_error err;
	int operands = ow_options_parse(options, argc, argv, args, &err);
	*ret_code = OW_EXIT_OK;
	if (operands >= 0 && ow_cli_answered(args->help, args->version, help))
		return false;
	if (operands >= 0 && operands != 1)
		operands = ow_error_set(&err, EINVAL, "needs one NAME");
	if (operands < 0)
		*ret_code = ow_cli_misused(command, &err);
	else if (ow_fleet_open(ow_cli_fleet_dir(args->dir), ret_fleet, &err) < 0)
		*ret_code = ow_cli_failed(command, &err);
	return *ret_fleet != NULL;
}

/* What is left to do for servers that do not run here. */
static void say_elsewhere(const struct ow_fleet *fleet, const char *elsewhere)
{
	if (!elsewhere || !*elsewhere)
		return;
	ow_cli_say("oneway fleet: no nats-server runs here for:%s", elsewhere);
	ow_cli_say("  On their hosts, 'oneway fleet follow' fetches the new users within a second. If it does not run "
	           "there,");
	ow_cli_say("  copy %s/nats/HOST/users.conf there and run: kill -HUP $(cat nats.pid)", fleet->path);
}

/* See OW_DESIRED_NONE. Without a lock: others need not wait for the bus. */
static void reserve_state(const char *dir, const char *name)
{
	struct ow_fleet *fleet = NULL;
	struct ow_bus *bus = NULL;
	struct ow_error err;
	uint64_t revision;
	int r = ow_fleet_open_to_look(dir, &fleet, &err);
	if (r == 0)
		r = ow_control_open(fleet, "controller", &bus, &err);
	if (r == 0)
		r = ow_control_setup(fleet, bus, &err);
	if (r == 0)
		r = ow_bus_put_key(bus, OW_BUCKET_CONFIG, name, OW_DESIRED_NONE, strlen(OW_DESIRED_NONE), 0, &revision,
		                   &err);
	if (r < 0 && r != -ESTALE)
		ow_cli_say("oneway fleet enroll: warning: %s; until 'oneway fleet apply' has given %s a state, who has "
		           "its key can delete the streams of the bus",
		           err.text, name);
	ow_bus_free(bus);
	ow_fleet_close(fleet);
}

int ow_cli_fleet_enroll(int argc, char **argv)
{
	struct arguments args = {.valid_ns = 3600 * (int64_t)OW_NS_PER_S};
	struct ow_fleet *fleet = NULL;
	struct ow_credential ca = {0};
	struct ow_error err;
	char token[OW_TOKEN_TEXT], *elsewhere = NULL;
	int code;
	if (!begin("fleet enroll", enroll_options, help_enroll, argc, argv, &args, &fleet, &code))
		return code;
	int r = ow_authority_load(fleet, &ca, &err);
	if (r == 0)
		r = ow_authority_invite(fleet, &ca, argv[1],
		                        (args.valid_ns + (int64_t)OW_NS_PER_S - 1) / (int64_t)OW_NS_PER_S, token, &err);
	if (r == 0)
		r = ow_bus_users_apply(fleet, &elsewhere, &err);
	if (r == 0)
		printf("fleet:\n  address: '%s'\n  name: %s\n  token: %s\n", fleet->settings.address, argv[1], token);
	free(elsewhere);
	ow_credential_done(&ca);
	ow_fleet_close(fleet);
	if (r == 0)
		reserve_state(ow_cli_fleet_dir(args.dir), argv[1]);
	return r < 0 ? ow_cli_failed("fleet enroll", &err) : OW_EXIT_OK;
}

static int revoke(struct ow_fleet *fleet, const char *name, struct ow_error *err)
{
	struct ow_credential ca = {0};
	if (!ow_fleet_service(&fleet->settings, name))
		return ow_authority_revoke(fleet, name, err);
	int r = ow_authority_load(fleet, &ca, err);
	if (r == 0)
		r = ow_authority_replace(fleet, &ca, name, err);
	ow_credential_done(&ca);
	return r;
}

/* Points connect to each other without asking the bus: they have to know. */
static int tell_points(const char *dir, struct ow_error *err)
{
	struct ow_fleet *fleet = NULL;
	struct ow_credential ca = {0};
	struct ow_bus *bus = NULL;
	struct ow_error why;
	int r = ow_fleet_open_to_look(dir, &fleet, &why);
	if (r == 0)
		r = ow_authority_load(fleet, &ca, &why);
	if (r == 0)
		r = ow_control_open(fleet, "controller", &bus, &why);
	if (r == 0)
		r = ow_control_setup(fleet, bus, &why);
	if (r == 0)
		r = ow_revocation_publish(fleet, &ca, bus, &why);
	ow_bus_free(bus);
	ow_credential_done(&ca);
	ow_fleet_close(fleet);
	return r < 0 ? ow_error_set(err, -r,
	                            "its peers do not know yet, and accept its certificate until it expires: %.300s; "
	                            "revoke it again when the bus can be reached",
	                            why.text)
	             : 0;
}

int ow_cli_fleet_revoke(int argc, char **argv)
{
	struct arguments args = {0};
	struct ow_fleet *fleet = NULL;
	struct ow_error err;
	char *elsewhere = NULL;
	int code;
	if (!begin("fleet revoke", revoke_options, help_revoke, argc, argv, &args, &fleet, &code))
		return code;
	int r = revoke(fleet, argv[1], &err);
	bool is_service = ow_fleet_service(&fleet->settings, argv[1]) != NULL;
	if (r == 0)
		r = ow_bus_users_apply(fleet, &elsewhere, &err);
	if (r == 0) {
		printf("%s is out.\n", argv[1]);
		if (is_service)
			printf("Its new key and certificate: %s/%s.key, %s/%s.pem\n", fleet->path, argv[1], fleet->path,
			       argv[1]);
		say_elsewhere(fleet, elsewhere);
	}
	fflush(stdout);
	free(elsewhere);
	ow_fleet_close(fleet);
	if (r == 0 && !is_service)
		r = tell_points(ow_cli_fleet_dir(args.dir), &err);
	return r < 0 ? ow_cli_failed("fleet revoke", &err) : OW_EXIT_OK;
}
