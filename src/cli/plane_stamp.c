/* SPDX-License-Identifier: Apache-2.0 */
/* Keys, signals and the sandbox of probes and reflectors. */
#include "cli/cli.h"
#include "cli/plane_stamp.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>

int ow_stamp_secret_load(struct ow_stamp_secret *secret, const char *path, struct ow_error *err)
{
	size_t size = 0;
	int r = path ? ow_psk_load(path, secret->bytes, &size, err) : 0;
	secret->key = (struct ow_stamp_key){secret->bytes, size};
	return r;
}

const struct ow_stamp_key *ow_stamp_secret_key(const struct ow_stamp_secret *secret)
{
	return secret->key.size ? &secret->key : NULL;
}

void ow_stamp_secret_forget(struct ow_stamp_secret *secret)
{
	explicit_bzero(secret, sizeof *secret);
}

int ow_stamp_signals(struct ow_error *err)
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
	int fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return fd < 0 ? ow_error_set(err, errno, "cannot wait for signals: %s", strerror(errno)) : fd;
}

int ow_stamp_confine(const char *command, const struct ow_guard *guard, struct ow_error *err)
{
	char text[OW_CONFINE_TEXT];
	bool whole;
	int r = ow_guard_close(guard, text, &whole, err);
	if (r == 0 && !whole)
		ow_cli_say("oneway %s: %s", command, text);
	return r;
}
