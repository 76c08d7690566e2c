/* SPDX-License-Identifier: Apache-2.0 */
#include "fleet/outbox.h"

#include "result/interval_result.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

struct message {
	struct message *next;
	struct ow_outbox *outbox;
	enum { WAITING, SENT, ARRIVED } state;
	unsigned attempts; /* with this id */
	char id[33];
	char subject[OW_RESULT_NAME + 8]; /* "" = that of the outbox */
	int64_t place;
	size_t size;
	uint8_t bytes[];
};

struct ow_outbox {
	struct ow_outbox_options options;
	char *subject;
	struct message *first, **end;
	size_t count, waiting, bytes;
	struct ow_outbox_counts counts;
};

int ow_outbox_create(const struct ow_outbox_options *options, struct ow_outbox **ret_outbox, struct ow_error *err)
{
	struct ow_outbox *outbox = calloc(1, sizeof *outbox);
	if (!outbox || !(outbox->subject = strdup(options->subject))) {
		free(outbox);
		return ow_error_set(err, ENOMEM, "out of memory");
	}
	outbox->options = *options;
	if (!outbox->options.bytes_max)
		outbox->options.bytes_max = OW_OUTBOX_BYTES;
	outbox->end = &outbox->first;
	*ret_outbox = outbox;
	return 0;
}

void ow_outbox_free(struct ow_outbox *outbox)
{
	if (!outbox)
		return;
	for (struct message *m = outbox->first, *next; m; m = next) {
		next = m->next;
		free(m);
	}
	free(outbox->subject);
	free(outbox);
}

bool ow_outbox_has_room(const struct ow_outbox *outbox)
{
	return outbox->bytes < outbox->options.bytes_max && outbox->count < OW_OUTBOX_MESSAGES;
}

size_t ow_outbox_waiting(const struct ow_outbox *outbox)
{
	return outbox->count;
}

const struct ow_outbox_counts *ow_outbox_counts(const struct ow_outbox *outbox)
{
	return &outbox->counts;
}

static int new_id(struct message *m, struct ow_error *err)
{
	uint64_t random[2];
	if (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random)
		return ow_error_set(err, errno, "no random numbers: %s", strerror(errno));
	snprintf(m->id, sizeof m->id, "%016" PRIx64 "%016" PRIx64, random[0], random[1]);
	m->attempts = 0;
	return 0;
}

int ow_outbox_add_to(struct ow_outbox *outbox, const char *subject, const void *bytes, size_t size, int64_t place,
                     struct ow_error *err)
{
	struct message *m = malloc(sizeof *m + size);
	if (!m)
		return ow_error_set(err, ENOMEM, "out of memory");
	*m = (struct message){.outbox = outbox, .place = place, .size = size};
	int r = new_id(m, err);
	if (r < 0) {
		free(m);
		return r;
	}
	memcpy(m->bytes, bytes, size);
	if (subject)
		snprintf(m->subject, sizeof m->subject, "%s", subject);
	*outbox->end = m;
	outbox->end = &m->next;
	outbox->count++;
	outbox->waiting++;
	outbox->bytes += size;
	return 0;
}

int ow_outbox_add(struct ow_outbox *outbox, const void *bytes, size_t size, int64_t place, struct ow_error *err)
{
	return ow_outbox_add_to(outbox, NULL, bytes, size, place, err);
}

/* Removes what has arrived from the front, and tells how far that is. */
static void advance(struct ow_outbox *outbox)
{
	int64_t place = 0;
	bool moved = false;
	while (outbox->first && outbox->first->state == ARRIVED) {
		struct message *m = outbox->first;
		place = m->place;
		moved = true;
		outbox->first = m->next;
		if (!outbox->first)
			outbox->end = &outbox->first;
		outbox->count--;
		outbox->bytes -= m->size;
		free(m);
	}
	if (moved)
		outbox->options.arrived(outbox->options.arg, place);
}

static void on_published(void *arg, enum ow_bus_outcome outcome, const char *why)
{
	struct message *m = arg;
	struct ow_outbox *outbox = m->outbox;
	bool distrusted = outcome == OW_BUS_DUPLICATE && m->attempts == 1;
	if ((outcome == OW_BUS_STORED || outcome == OW_BUS_DUPLICATE) && !distrusted) {
		m->state = ARRIVED;
		outbox->counts.arrived++;
		outbox->counts.why[0] = '\0';
		advance(outbox);
		return;
	}
	outbox->counts.distrusted += distrusted;
	if (distrusted)
		(void)new_id(m, NULL);
	m->state = WAITING;
	outbox->waiting++;
	snprintf(outbox->counts.why, sizeof outbox->counts.why, "%s", why);
}

static bool send_one(struct ow_outbox *outbox, struct message *m)
{
	struct ow_error err;
	int r = ow_bus_publish(outbox->options.bus, *m->subject ? m->subject : outbox->subject, m->id, m->bytes,
	                       m->size, on_published, m, &err);
	if (r < 0) {
		snprintf(outbox->counts.why, sizeof outbox->counts.why, "%.190s", err.text);
		return false;
	}
	m->state = SENT;
	outbox->waiting--;
	outbox->counts.sent++;
	outbox->counts.bytes += m->size;
	outbox->counts.repeated += m->attempts++ > 0;
	return true;
}

void ow_outbox_send(struct ow_outbox *outbox)
{
	unsigned room = outbox->waiting ? ow_bus_room(outbox->options.bus) : 0;
	for (struct message *m = outbox->first; m && room && outbox->waiting; m = m->next) {
		if (m->state != WAITING)
			continue;
		if (!send_one(outbox, m))
			return;
		room--;
	}
}
