/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of points, and sockets of addresses in their usual notation: 192.0.2.7:8620, [2001:db8::7]:8620,
 * paris.example:8620, :8620.
 */
#include "exchange/session.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#define BACKLOG   128
#define ANSWER_MS 2000

static bool letter_or_digit(unsigned char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

bool ow_point_name_valid(const char *name)
{
	size_t n = strnlen(name, OW_POINT_NAME);
	if (n == 0 || n >= OW_POINT_NAME || !letter_or_digit((unsigned char)name[0]))
		return false;
	for (size_t i = 0; i < n; i++) {
		if (!letter_or_digit((unsigned char)name[i]) && !strchr("._-", name[i]))
			return false;
	}
	return true;
}
#define HOST 256 /* longest host name, 253, which is more than any numeric address */

struct place {
	char host[HOST], port[8]; /* host "": any */
};

/* Digits of 0 .. 65535. */
static bool valid_port(const char *text)
{
	size_t digits = strspn(text, "0123456789");
	unsigned port = 0;
	for (size_t i = 0; i < digits && i < 6; i++)
		port = port * 10 + (unsigned)(text[i] - '0');
	return digits > 0 && digits <= 5 && text[digits] == '\0' && port <= 65535;
}

/* Whether an address may have no port: a name, or an IPv6 address with or without brackets. */
static bool is_host_alone(const char *address)
{
	const char *colon = strchr(address, ':');
	return !colon || (address[0] == '[' ? address[strlen(address) - 1] == ']' : strchr(colon + 1, ':') != NULL);
}

/* port: the default; NULL = the address must have one. */
static int split(const char *address, const char *port, struct place *ret_place, struct ow_error *err)
{
	const char *colon = strrchr(address, ':'), *host = address;
	size_t length = colon ? (size_t)(colon - address) : 0;
	bool alone = port && is_host_alone(address);
	if (alone) {
		length = strlen(address);
		colon = address + length;
	} else if (!colon || !valid_port(colon + 1))
		return ow_error_set(err, EINVAL,
		                    "'%.80s' is not an address with a port (examples: 192.0.2.7:8620, [::1]:8620)",
		                    address);
	if (length >= 2 && host[0] == '[' && host[length - 1] == ']') {
		host++;
		length -= 2;
	} else if (!alone && memchr(host, ':', length)) {
		return ow_error_set(err, EINVAL, "'%.80s': write an IPv6 address in brackets: [::1]:8620", address);
	}
	if (length >= sizeof ret_place->host)
		return ow_error_set(err, EINVAL, "'%.80s...': the host's name is too long", address);
	memcpy(ret_place->host, host, length);
	ret_place->host[length] = '\0';
	snprintf(ret_place->port, sizeof ret_place->port, "%s", alone ? port : colon + 1);
	return 0;
}

/* Numeric addresses first, because they need no lookup. hints: everything except flags. */
static int look_up(const char *address, const struct place *place, int flags, struct addrinfo hints,
                   struct addrinfo **ret_list, struct ow_error *err)
{
	hints.ai_flags = flags | AI_NUMERICHOST | AI_NUMERICSERV;
	const char *host = place->host[0] ? place->host : NULL;
	int r = getaddrinfo(host, place->port, &hints, ret_list);
	if (r == EAI_NONAME && host) {
		hints.ai_flags = flags | AI_NUMERICSERV;
		r = getaddrinfo(host, place->port, &hints, ret_list);
	}
	/*
	 * localhost is the loopback address, even if neither /etc/hosts nor a name server knows it (RFC 6761, section
	 * 6.3).
	 */
	if (r != 0 && host && strcasecmp(host, "localhost") == 0) {
		hints.ai_flags = flags | AI_NUMERICHOST | AI_NUMERICSERV;
		r = getaddrinfo(hints.ai_family == AF_INET6 ? "::1" : "127.0.0.1", place->port, &hints, ret_list);
	}
	if (r == 0)
		return 0;
	const char *why = r == EAI_SYSTEM ? strerror(errno) : gai_strerror(r);
	return ow_error_set(err, EHOSTUNREACH, "%s: no such host (%s)", address, why);
}

static const struct addrinfo tcp = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_protocol = IPPROTO_TCP};

int ow_address_find(const char *address, const char *port, int family, bool here, struct sockaddr_storage *ret_address,
                    struct ow_error *err)
{
	struct addrinfo hints = {.ai_family = family, .ai_socktype = SOCK_DGRAM, .ai_protocol = IPPROTO_UDP};
	struct addrinfo *list = NULL;
	struct place place = {"", ""};
	int r = split(address, port, &place, err);
	if (r == 0 && !here && place.host[0] == '\0')
		r = ow_error_set(err, EINVAL, "'%.80s': a host is required", address);
	if (r == 0)
		r = look_up(address, &place, here ? AI_PASSIVE : 0, hints, &list, err);
	if (r < 0)
		return r;
	*ret_address = (struct sockaddr_storage){0};
	memcpy(ret_address, list->ai_addr, list->ai_addrlen);
	freeaddrinfo(list);
	return 0;
}

static void set(int fd, int level, int option, int value)
{
	/* Each option is useful; none is required. */
	(void)setsockopt(fd, level, option, &value, sizeof value);
}

static int new_socket(const struct addrinfo *a)
{
	int fd = socket(a->ai_family, a->ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC, a->ai_protocol);
	return fd < 0 ? -errno : fd;
}

static int listen_at(const struct addrinfo *a, bool any)
{
	int fd = new_socket(a);
	if (fd < 0)
		return fd;
	set(fd, SOL_SOCKET, SO_REUSEADDR, 1);
	/* One socket for both families if no address is given. */
	if (a->ai_family == AF_INET6)
		set(fd, IPPROTO_IPV6, IPV6_V6ONLY, !any);
	if (bind(fd, a->ai_addr, a->ai_addrlen) == 0 && listen(fd, BACKLOG) == 0)
		return fd;
	int r = -errno;
	close(fd);
	return r;
}

static int connect_to(const struct addrinfo *a)
{
	int fd = new_socket(a);
	if (fd < 0)
		return fd;
	if (connect(fd, a->ai_addr, a->ai_addrlen) == 0 || errno == EINPROGRESS)
		return fd;
	int r = -errno;
	close(fd);
	return r;
}

/* Waits until the host answers or refuses, but not for long: another of its addresses may answer. */
static int wait_for_answer(int fd)
{
	struct pollfd waiting = {.fd = fd, .events = POLLOUT};
	int error = 0, n;
	socklen_t size = sizeof error;
	do {
		n = poll(&waiting, 1, ANSWER_MS);
	} while (n < 0 && errno == EINTR);
	if (n <= 0)
		return n < 0 ? -errno : -ETIMEDOUT;
	return getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) < 0 ? -errno : -error;
}

/* Tries one address after the other; the last one is not waited for. */
static int connect_to_one(const struct addrinfo *list)
{
	int fd = -EADDRNOTAVAIL;
	for (const struct addrinfo *a = list; a && fd < 0; a = a->ai_next) {
		fd = connect_to(a);
		int r = fd >= 0 && a->ai_next ? wait_for_answer(fd) : 0;
		if (r < 0) {
			close(fd);
			fd = r;
		}
	}
	return fd;
}

int ow_listen(const char *address, int *ret_fd, struct ow_error *err)
{
	struct place place = {"", ""};
	struct addrinfo *list = NULL;
	int r = split(address, NULL, &place, err);
	if (r == 0)
		r = look_up(address, &place, AI_PASSIVE, tcp, &list, err);
	if (r < 0)
		return r;
	bool any = place.host[0] == '\0';
	int fd = -EADDRNOTAVAIL;
	/* Without a host: IPv6, which also accepts IPv4, before IPv4. */
	for (const struct addrinfo *a = list; a && fd < 0; a = a->ai_next) {
		if (!any || a->ai_family == AF_INET6)
			fd = listen_at(a, any);
	}
	for (const struct addrinfo *a = list; any && a && fd < 0; a = a->ai_next) {
		if (a->ai_family == AF_INET)
			fd = listen_at(a, any);
	}
	freeaddrinfo(list);
	if (fd < 0)
		return ow_error_set(err, -fd, "%s: cannot listen: %s", address, strerror(-fd));
	*ret_fd = fd;
	return 0;
}

bool ow_address_waits(const char *address)
{
	struct place place = {"", ""};
	struct addrinfo hints = {.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV, .ai_socktype = SOCK_STREAM}, *list = NULL;
	if (split(address, NULL, &place, NULL) < 0 || !place.host[0])
		return false; /* the address is wrong, which is known at once */
	int r = getaddrinfo(place.host, place.port, &hints, &list);
	if (r == 0)
		freeaddrinfo(list);
	return r == EAI_NONAME;
}

int ow_connect(const char *address, int *ret_fd, struct ow_error *err)
{
	struct place place = {"", ""};
	struct addrinfo *list = NULL;
	int r = split(address, NULL, &place, err);
	if (r == 0 && (place.host[0] == '\0' || strspn(place.port, "0") == strlen(place.port)))
		r = ow_error_set(err, EINVAL, "'%.80s': a host and a port other than 0 are required to connect",
		                 address);
	if (r == 0)
		r = look_up(address, &place, 0, tcp, &list, err);
	if (r < 0)
		return r;
	int fd = connect_to_one(list);
	freeaddrinfo(list);
	if (fd < 0)
		return ow_error_set(err, -fd, "%s: %s", address, strerror(-fd));
	*ret_fd = fd;
	return 0;
}

int ow_accept(int listener, int *ret_fd)
{
	int fd;
	/* A connection that has ended while it waited is not an error. */
	do {
		fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	} while (fd < 0 && (errno == EINTR || errno == ECONNABORTED));
	if (fd < 0)
		return -errno;
	*ret_fd = fd;
	return 0;
}

void ow_address_text(int fd, char text[OW_ADDRESS_TEXT])
{
	struct sockaddr_storage peer = {0};
	socklen_t size = sizeof peer;
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
	char host[80], port[8]; /* a link-local address contains its interface */
	text[0] = '\0';
	if (getpeername(fd, (struct sockaddr *)&peer, &size) < 0 ||
	    (peer.ss_family != AF_INET && peer.ss_family != AF_INET6) ||
	    getnameinfo((struct sockaddr *)&peer, size, host, sizeof host, port, sizeof port,
	                NI_NUMERICHOST | NI_NUMERICSERV) != 0)
		return;
	bool six = peer.ss_family == AF_INET6;
	/* Only a socket for both families shows IPv4 addresses in this form. */
	if (six && memcmp(&((struct sockaddr_in6 *)&peer)->sin6_addr, mapped, sizeof mapped) == 0 &&
	    strncmp(host, "::ffff:", 7) == 0) {
		snprintf(text, OW_ADDRESS_TEXT, "%s:%s", host + 7, port);
		return;
	}
	snprintf(text, OW_ADDRESS_TEXT, "%s%s%s:%s", six ? "[" : "", host, six ? "]" : "", port);
}
