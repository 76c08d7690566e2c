/* SPDX-License-Identifier: Apache-2.0 */
#include "fleet/membership.h"

#include "base/clock.h"
#include "base/time.h"
#include "fleet/desired.h"
#include "fleet/revocation.h"
#include "fleet/streams.h"
#include <errno.h>
#include <string.h>
#include <unistd.h>

#define PAUSE_LEAST_NS (1 * OW_NS_PER_S)
#define PAUSE_MOST_NS  (30 * OW_NS_PER_S)
/* How often the certificate's time is looked at. This costs a look at a file. */
#define ENROL_NS (2 * OW_NS_PER_S)
/* A change comes by itself; this is for what was missed. */
#define ASK_NS (30 * OW_NS_PER_S)

/* A problem that stays is said once. */
static void complain(struct ow_membership *m, const char *what, const struct ow_error *err)
{
	struct ow_error line;
	ow_error_set(&line, EINVAL, "fleet: %s%.400s", what, err->text);
	if (strcmp(line.text, m->said.text) == 0)
		return;
	m->said = line;
	m->log(m->arg, true, line.text);
}

/* 1: there is a new certificate. */
static int enrol(struct ow_membership *m, int64_t now_ns)
{
	struct ow_error err;
	int r = ow_enrol(m->config, m->refused, &err);
	if (r < 0) {
		complain(m, "", &err);
		m->pause_ns = m->pause_ns == 0                  ? PAUSE_LEAST_NS
		              : m->pause_ns * 2 < PAUSE_MOST_NS ? m->pause_ns * 2
		                                                : PAUSE_MOST_NS;
		m->enrol_next_ns = now_ns + m->pause_ns;
		return r;
	}
	m->pause_ns = 0;
	m->enrol_next_ns = now_ns + ENROL_NS;
	if (r > 0) {
		m->said.text[0] = 0;
		m->log(m->arg, false, "fleet: a new certificate for this point");
	}
	return r;
}

int ow_membership_begin(struct ow_membership *m, volatile int *stop)
{
	for (;;) {
		int64_t now_ns = ow_clock_steady_ns();
		if (*stop)
			return -EINTR;
		if (now_ns >= m->enrol_next_ns && enrol(m, now_ns) >= 0)
			return 0;
		usleep(100000);
	}
}

/* -- desired state ------------------------------------------------------------------------------------------------- */

/* Nothing has been published yet. */
static bool is_empty(const struct ow_bus_message *message)
{
	return message->status ||
	       (message->size == strlen(OW_DESIRED_NONE) && memcmp(message->data, OW_DESIRED_NONE, message->size) == 0);
}

static void take(void *arg, const struct ow_bus_message *message)
{
	struct ow_membership *m = arg;
	struct ow_error err;
	char line[100];
	if (is_empty(message))
		return;
	int r = ow_desired_take(m->config->fleet.state, m->config->point, message->data, message->size, &err);
	if (r < 0 && r != -ESTALE)
		complain(m, "desired state refused: ", &err);
	if (r == 1) {
		struct ow_desired_head head;
		if (ow_desired_head(message->data, message->size, &head, &err) == 0) {
			snprintf(line, sizeof line, "fleet: desired state, version %ju", (uintmax_t)head.version);
			m->log(m->arg, false, line);
		}
	}
}

/* The point sees by the file that keys of others are revoked. */
static void take_revoked(void *arg, const struct ow_bus_message *message)
{
	struct ow_membership *m = arg;
	struct ow_error err;
	if (is_empty(message))
		return;
	int r = ow_revocation_take(m->config->fleet.state, message->data, message->size, &err);
	if (r < 0)
		complain(m, "list of revoked keys refused: ", &err);
	if (r == 1)
		m->log(m->arg, false, "fleet: keys of other points are revoked");
}

int ow_membership_join(struct ow_membership *m, struct ow_bus *bus, struct ow_error *err)
{
	char subject[OW_BUS_SUBJECT];
	m->bus = bus;
	snprintf(subject, sizeof subject, OW_BUCKET_CONFIG ".%s", m->config->point);
	int r = ow_bus_subscribe(bus, subject, take, m, err);
	return r < 0 ? r : ow_bus_subscribe(bus, OW_BUCKET_CONFIG "." OW_REVOCATION_KEY, take_revoked, m, err);
}

static void ask(struct ow_membership *m, int64_t now_ns)
{
	char key[OW_BUS_SUBJECT / 2], subject[OW_BUS_SUBJECT];
	struct ow_error ignored;
	snprintf(key, sizeof key, "$KV." OW_BUCKET_CONFIG ".%s", m->config->point);
	ow_bus_get_subject("KV_" OW_BUCKET_CONFIG, key, subject);
	int r = ow_bus_request(m->bus, subject, NULL, 0, take, m, &ignored);
	ow_bus_get_subject("KV_" OW_BUCKET_CONFIG, "$KV." OW_BUCKET_CONFIG "." OW_REVOCATION_KEY, subject);
	if (r == 0)
		r = ow_bus_request(m->bus, subject, NULL, 0, take_revoked, m, &ignored);
	if (r == 0)
		m->ask_next_ns = now_ns + ASK_NS;
}

void ow_membership_tick(struct ow_membership *m, int64_t now_ns)
{
	bool connected = ow_bus_connected(m->bus);
	if (now_ns >= m->enrol_next_ns && enrol(m, now_ns) > 0)
		ow_bus_reconnect(m->bus);
	if (connected && (!m->was_connected || now_ns >= m->ask_next_ns))
		ask(m, now_ns);
	m->was_connected = connected;
}
