/* SPDX-License-Identifier: Apache-2.0 */
/* oneway fleet init DIR: the folder of a new fleet. */
#include "base/time.h"
#include "cli/fleet.h"
#include "fleet/folder.h"
#include "fleet/init.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define COMMAND "fleet init"

struct arguments {
	struct ow_fleet_init how;
	bool help, version;
};

#define FIELD(name) offsetof(struct arguments, how.name)
static const struct ow_option options[] = {
	{"name", 'n', "NAME", ow_option_text, FIELD(name), "Name of the fleet. Default: the last part of DIR."},
	{"server", 's', "HOSTS", ow_option_text, FIELD(servers),
         "Hosts of the bus (nats-server): one, or three with a comma between them, each with :PORT if it is not 4222. "
         "Default: this host."},
	{"address", 'a', "HOST", ow_option_text, FIELD(address),
         "Where 'oneway fleet serve' runs, as points reach it, with :PORT if it is not 8621. Default: the first host "
         "of the bus."},
	{"database", 0, "URL", ow_option_text, FIELD(database),
         "PostgreSQL for the results: postgresql://user@host/name"},
	{"valid", 0, "D", NULL, FIELD(valid_ns),
         "How long a certificate of a point is valid (default 7d). Points renew it when half of that is over.",
         ow_fleet_settings_keys},
	OW_OPTIONS_HELP(struct arguments),
	{0},
};

static void help(void)
{
	fputs("oneway fleet init: makes the folder of a fleet\n"
	      "\n"
	      "usage: oneway fleet init DIR [OPTION]...\n"
	      "\n",
	      stdout);
	ow_options_help(stdout, options);
	fputs("\n"
	      "DIR must not exist. It gets the authority with its key, certificates for all\n"
	      "services, the configuration of each server of the bus, and units for systemd.\n"
	      "DIR/README says what each file is. Only its owner can read it.\n"
	      "\n"
	      "examples:\n"
	      "  oneway fleet init /etc/oneway/fleet --server fleet.example\n"
	      "  oneway fleet init fleet --server bus1:4222,bus2:4222,bus3:4222 \\\n"
	      "      --database postgresql://oneway@db/oneway\n",
	      stdout);
}

/* The last part of the path. */
static const char *name_of(const char *path, char name[256])
{
	size_t length = strlen(path);
	while (length > 1 && path[length - 1] == '/')
		length--;
	size_t start = length;
	while (start > 0 && path[start - 1] != '/')
		start--;
	snprintf(name, 256, "%.*s", (int)(length - start), path + start);
	return name;
}

int ow_cli_fleet_init(int argc, char **argv)
{
	struct arguments args = {0};
	char name[256], host[HOST_NAME_MAX + 1] = "localhost";
	struct ow_error err;
	ow_key_default(ow_fleet_settings_keys, "valid", &args.how.valid_ns);
	int operands = ow_options_parse(options, argc, argv, &args, &err);
	if (operands < 0)
		return ow_cli_misused(COMMAND, &err);
	if (ow_cli_answered(args.help, args.version, help))
		return OW_EXIT_OK;
	if (operands != 1) {
		ow_error_set(&err, EINVAL, "needs one DIR");
		return ow_cli_misused(COMMAND, &err);
	}
	(void)gethostname(host, sizeof host - 1);
	if (!args.how.servers)
		args.how.servers = host;
	if (!args.how.name)
		args.how.name = name_of(argv[1], name);
	if (ow_fleet_init(argv[1], &args.how, &err) < 0)
		return ow_cli_failed(COMMAND, &err);
	printf("%s: the fleet %s\n"
	       "%s/README says what each file is. ca.key owns the fleet: keep a copy in a safe place.\n"
	       "Next: start nats-server in each folder of %s/nats, and 'oneway fleet serve --dir %s'.\n",
	       argv[1], args.how.name, argv[1], argv[1], argv[1]);
	const char *comma = strchr(args.how.servers, ',');
	if (comma && !strchr(comma + 1, ','))
		ow_cli_say("oneway " COMMAND ": warning: 2 servers: if one is lost, the bus stops; use 1 or 3");
	return OW_EXIT_OK;
}
