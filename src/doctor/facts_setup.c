/* SPDX-License-Identifier: Apache-2.0 */
/* Facts about what a configuration names: store, addresses, certificate, peers. */
#include "base/time.h"
#include "doctor/host_facts.h"
#include "exchange/session.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define PATH      4097
#define ROW_BYTES 670 /* size of a result, a minute, an hour or a day in the store (docs/store.md) */
#define DAY_NS    (24 * 3600 * OW_NS_PER_S)

static void folder_of(const char *path, char folder[PATH])
{
	const char *slash = strrchr(path, '/');
	snprintf(folder, PATH, ".");
	if (slash)
		snprintf(folder, PATH, "%.*s", slash == path ? 1 : (int)(slash - path), path);
}

#define YEAR_DAYS 365.

/* What the rows of all lanes of a segment take, in a day. An interval is not added up to less than itself. */
static double day_bytes(const struct ow_config_segment *s, enum ow_period period)
{
	int64_t length_ns =
		ow_periods[period].length_ns > s->interval_ns ? ow_periods[period].length_ns : s->interval_ns;
	double lanes = 2.0 * (s->class_count ? s->class_count : 1);
	return lanes * (double)DAY_NS / (double)length_ns * ROW_BYTES;
}

void ow_facts_store(const struct ow_config *config, struct ow_store_facts *ret_facts)
{
	struct statvfs disk;
	char folder[PATH];
	*ret_facts = (struct ow_store_facts){.path = config->store};
	folder_of(config->store, folder);
	/* SQLite also creates files next to the store. */
	if ((access(config->store, W_OK) < 0 && errno != ENOENT) || access(folder, W_OK) < 0 ||
	    statvfs(folder, &disk) < 0) {
		ret_facts->error = errno;
		return;
	}
	ret_facts->free_bytes = (uint64_t)disk.f_bavail * disk.f_frsize;
	double bytes = 0;
	for (unsigned i = 0; i < config->segment_count; i++)
		bytes += day_bytes(&config->segments[i], OW_PERIOD_INTERVAL);
	ret_facts->day_bytes = (uint64_t)bytes;
}

/* After a year, within its retention. */
static double days_kept(const struct ow_config *config, enum ow_period period)
{
	double days = (double)config->retention_ns[period] / (double)DAY_NS;
	return days > 0 && days < YEAR_DAYS ? days : YEAR_DAYS;
}

void ow_facts_history(const struct ow_config *config, unsigned segment, struct ow_history_facts *ret_facts)
{
	*ret_facts =
		(struct ow_history_facts){.segment = config->segments[segment].name, .most_bytes = config->store_max};
	for (int p = 0; p < OW_PERIODS; p++) {
		double days = days_kept(config, (enum ow_period)p);
		ret_facts->days[p] = days;
		ret_facts->bytes[p] = (uint64_t)(days * day_bytes(&config->segments[segment], (enum ow_period)p));
		for (unsigned i = 0; i < config->segment_count; i++)
			ret_facts->all_bytes += (uint64_t)(days * day_bytes(&config->segments[i], (enum ow_period)p));
	}
}

void ow_facts_listen(const char *address, struct ow_listen_facts *ret_facts)
{
	struct ow_error err;
	int fd;
	*ret_facts = (struct ow_listen_facts){.address = address};
	int r = ow_listen(address, &fd, &err);
	if (r == 0) {
		close(fd);
		return;
	}
	ret_facts->code = -r;
	snprintf(ret_facts->error, sizeof ret_facts->error, "%.*s", (int)sizeof ret_facts->error - 1, err.text);
}

static double days_to(const ASN1_TIME *time)
{
	int days = 0, seconds = 0;
	if (!ASN1_TIME_diff(&days, &seconds, NULL, time))
		return 0;
	return days + seconds / 86400.0;
}

void ow_facts_certificate(const char *path, struct ow_certificate_facts *ret_facts)
{
	*ret_facts = (struct ow_certificate_facts){.path = path};
	FILE *file = fopen(path, "re");
	if (!file) {
		snprintf(ret_facts->error, sizeof ret_facts->error, "%s", strerror(errno));
		return;
	}
	X509 *certificate = PEM_read_X509(file, NULL, NULL, NULL);
	fclose(file);
	if (certificate) {
		ret_facts->days_left = days_to(X509_get0_notAfter(certificate));
		ret_facts->days_until = days_to(X509_get0_notBefore(certificate));
		X509_free(certificate);
	} else {
		snprintf(ret_facts->error, sizeof ret_facts->error, "is not a certificate");
		ERR_clear_error();
	}
}

/* The result of a connection attempt. */
static void settle(struct ow_peer_facts *peer, int fd)
{
	int code = 0;
	socklen_t size = sizeof code;
	if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &code, &size) < 0)
		code = errno;
	if (code)
		snprintf(peer->error, sizeof peer->error, "%.150s: %s", peer->address, strerror(code));
}

static void wait_for(struct ow_peer_facts *peers, struct pollfd *fds, size_t count, size_t waiting, int64_t start)
{
	while (waiting > 0) {
		int64_t left = start + OW_PROBE_CONNECT_NS - ow_clock_steady_ns();
		int n = left > 0 ? poll(fds, count, (int)(left / OW_NS_PER_MS) + 1) : 0;
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return;
		for (size_t i = 0; i < count; i++) {
			if (fds[i].fd < 0 || !fds[i].revents)
				continue;
			peers[i].took_ns = ow_clock_steady_ns() - start;
			settle(&peers[i], fds[i].fd);
			close(fds[i].fd);
			fds[i].fd = -1;
			waiting--;
		}
	}
}

void ow_facts_peers(struct ow_peer_facts *peers, size_t count)
{
	struct pollfd *fds = calloc(count ? count : 1, sizeof *fds);
	size_t waiting = 0;
	struct ow_error err;
	for (size_t i = 0; i < count; i++) {
		int fd = -1;
		int r = fds ? ow_connect(peers[i].address, &fd, &err) : ow_error_set(&err, ENOMEM, "not enough memory");
		if (r < 0)
			snprintf(peers[i].error, sizeof peers[i].error, "%.*s", (int)sizeof peers[i].error - 1,
			         err.text);
		if (fds)
			fds[i] = (struct pollfd){.fd = r < 0 ? -1 : fd, .events = POLLOUT};
		waiting += r == 0;
	}
	if (!fds)
		return;
	wait_for(peers, fds, count, waiting, ow_clock_steady_ns());
	for (size_t i = 0; i < count; i++) {
		if (fds[i].fd < 0)
			continue;
		snprintf(peers[i].error, sizeof peers[i].error, "%.150s: no answer in %.2g s", peers[i].address,
		         (double)OW_PROBE_CONNECT_NS / 1e9);
		close(fds[i].fd);
	}
	free(fds);
}
