/* SPDX-License-Identifier: Apache-2.0 */
/* sd_notify without libsystemd: a line or two in a datagram. */
#include "point/service.h"

#include "base/clock.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static int open_socket(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	size_t length = strlen(path);
	if ((*path != '/' && *path != '@') || length >= sizeof address.sun_path)
		return -1;
	memcpy(address.sun_path, path, length);
	if (*path == '@')
		address.sun_path[0] = '\0';
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length);
	if (fd >= 0 && connect(fd, (struct sockaddr *)&address, size) < 0) {
		close(fd);
		fd = -1;
	}
	return fd;
}

/* Half of the watchdog's time; 0 if it is not meant for this process. */
static int64_t watchdog_ns(void)
{
	const char *usec = getenv("WATCHDOG_USEC"), *pid = getenv("WATCHDOG_PID");
	if (!usec || (pid && strtol(pid, NULL, 10) != (long)getpid()))
		return 0;
	long long n = strtoll(usec, NULL, 10);
	return n > 0 && n < INT64_MAX / 1000 ? n * 1000 / 2 : 0;
}

void ow_service_open(struct ow_service *s)
{
	const char *path = getenv("NOTIFY_SOCKET");
	*s = (struct ow_service){.fd = path ? open_socket(path) : -1};
	if (s->fd >= 0)
		s->beat_ns = watchdog_ns();
}

void ow_service_close(struct ow_service *s)
{
	if (s->fd >= 0)
		close(s->fd);
	s->fd = -1;
}

/* If nobody listens, the datagram is lost. */
static void say(const struct ow_service *s, const char *text)
{
	if (s->fd >= 0)
		(void)send(s->fd, text, strlen(text), MSG_NOSIGNAL | MSG_DONTWAIT);
}

void ow_service_ready(struct ow_service *s)
{
	say(s, "READY=1");
}

void ow_service_reloading(struct ow_service *s)
{
	char text[80];
	snprintf(text, sizeof text, "RELOADING=1\nMONOTONIC_USEC=%lld", (long long)(ow_clock_steady_ns() / 1000));
	say(s, text);
}

void ow_service_stopping(struct ow_service *s)
{
	say(s, "STOPPING=1");
}

void ow_service_status(struct ow_service *s, const char *status)
{
	char text[sizeof s->status + 8];
	if (s->fd < 0 || strcmp(status, s->status) == 0)
		return;
	snprintf(s->status, sizeof s->status, "%s", status);
	snprintf(text, sizeof text, "STATUS=%s", s->status);
	say(s, text);
}

void ow_service_beat(struct ow_service *s, int64_t now_ns)
{
	if (s->beat_ns == 0 || now_ns < s->next_ns)
		return;
	s->next_ns = now_ns + s->beat_ns;
	say(s, "WATCHDOG=1");
}
