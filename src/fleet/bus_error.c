/* SPDX-License-Identifier: Apache-2.0 */
#include "fleet/bus_private.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/random.h>

/* What the library says, without "(conn.c:2088): " in front. */
static const char *plain(const char *text)
{
	const char *end = text && *text == '(' ? strstr(text, "): ") : NULL;
	return end ? end + 3 : text;
}

void ow_bus_hide_password(char *urls)
{
	for (char *at = urls; (at = strstr(at, "://"));) {
		at += 3;
		size_t host = strcspn(at, ",\n "), secret = 0;
		for (size_t i = 0; i < host; i++)
			secret = at[i] == '@' ? i + 1 : secret;
		memmove(at, at + secret, strlen(at + secret) + 1);
	}
}

int ow_bus_fail(natsStatus status, const char *what, struct ow_error *err)
{
	natsStatus last = NATS_OK;
	const char *text = plain(nats_GetLastError(&last)), *name = natsStatus_GetText(status);
	bool more = text && *text && last == status && strcmp(text, name) != 0;
	if (status == NATS_NO_SERVER)
		return ow_error_set(err, ENOTCONN, "%s: no server of the bus answers: does nats-server run there?",
		                    what);
	if (status == NATS_CONNECTION_AUTH_FAILED)
		return ow_error_set(err, ENOTCONN,
		                    "%s: the bus does not know this certificate: revoked, replaced, or too new", what);
	int code = status == NATS_TIMEOUT         ? ETIMEDOUT
	           : status == NATS_NO_MEMORY     ? ENOMEM
	           : status == NATS_SSL_ERROR     ? EPROTO
	           : status == NATS_NOT_PERMITTED ? EACCES
	           : status == NATS_INVALID_ARG   ? EINVAL
	                                          : ENOTCONN;
	return ow_error_set(err, code, "%s: %s%s%.300s", what, name, more ? ": " : "", more ? text : "");
}

int64_t ow_bus_pause_until(int64_t *pause_ns, int64_t least_ns, int64_t most_ns, int64_t now_ns)
{
	int64_t pause = *pause_ns < least_ns ? least_ns : *pause_ns * 2;
	*pause_ns = pause < most_ns ? pause : most_ns;
	uint32_t random = 0;
	/* Many points lose a server at the same moment; they should not all come back at the same moment. */
	if (getrandom(&random, sizeof random, 0) < 0)
		random = (uint32_t)now_ns;
	return now_ns + *pause_ns - *pause_ns / 4 * (random % 1024) / 1024;
}
