/* SPDX-License-Identifier: Apache-2.0 */
#include "point/epoch_peers.h"

#include "base/time.h"
#include "exchange/session.h"
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Epochs that are there already come no faster than this, because they share the link with what is measured. */
#define NEXT_NS (OW_NS_PER_S / 4)
/* When nothing is there yet; less where epochs are so short that the next one would end before. */
#define POLL_NS       OW_NS_PER_S
#define POLLS         4 /* in an epoch */
#define POLL_LEAST_NS (OW_NS_PER_S / 20)
/* When the peer refuses, and when it does not answer. */
#define REFUSED_NS (60 * OW_NS_PER_S)
#define ANSWER_NS  (10 * OW_NS_PER_S)

struct recording {
	char peer[OW_POINT_NAME]; /* "" = none */
	char *file;               /* of the copy */
	enum ow_heading heading;
	struct ow_epoch_info info;
	uint8_t *bytes; /* of the description */
	size_t size;
	bool asked;
	uint64_t epochs; /* that it had when it asked */
	bool copies;     /* the peer has sent epochs, which was told */
	int64_t poll_ns, next_ns;
	enum ow_message_epoch_state told; /* the last refusal that was told; 0 = none */
	/* The last question of the peer, for the answer: the number of its recording, and the epochs that it has. */
	uint8_t theirs;
	uint64_t their_epochs;
};

struct ow_epoch_peers {
	struct ow_epoch_writer *writer;
	struct ow_epoch_peers_sink sink;
	unsigned recordings;
	struct recording recording[OW_CONFIG_FLOWS_MAX];
};

static_assert(OW_CONFIG_FLOWS_MAX <= OW_MESSAGE_RECORDINGS, "a recording has a number in messages");

static int add(struct ow_epoch_peers *peers, const struct ow_config_flows *flows)
{
	struct recording *r = &peers->recording[peers->recordings++];
	if (!flows->peer)
		return 0;
	snprintf(r->peer, sizeof r->peer, "%s", flows->peer);
	r->heading = flows->heading;
	r->info = flows->info;
	r->poll_ns = flows->info.interval_ns / POLLS;
	r->poll_ns = r->poll_ns < POLL_LEAST_NS ? POLL_LEAST_NS : r->poll_ns > POLL_NS ? POLL_NS : r->poll_ns;
	r->file = ow_config_flows_copy(flows);
	return r->file ? ow_epoch_info_encode(&flows->info, &r->bytes, &r->size) : -ENOMEM;
}

int ow_epoch_peers_create(const struct ow_config *config, struct ow_epoch_writer *writer,
                          const struct ow_epoch_peers_sink *sink, struct ow_epoch_peers **ret_peers)
{
	struct ow_epoch_peers *peers = calloc(1, sizeof *peers);
	int r = peers ? 0 : -ENOMEM;
	for (unsigned i = 0; r == 0 && i < config->flows_count; i++)
		r = add(peers, &config->flows[i]);
	if (r < 0) {
		ow_epoch_peers_free(peers);
		return r;
	}
	peers->writer = writer;
	peers->sink = *sink;
	*ret_peers = peers;
	return 0;
}

void ow_epoch_peers_free(struct ow_epoch_peers *peers)
{
	if (!peers)
		return;
	for (unsigned i = 0; i < peers->recordings; i++) {
		free(peers->recording[i].file);
		free(peers->recording[i].bytes);
	}
	free(peers);
}

/* -- the epochs that the peer wants -------------------------------------------------------------------------------- */

static void answer(struct ow_epoch_peers *peers, const char *peer, uint8_t theirs, uint64_t epochs,
                   enum ow_message_epoch_state state, const struct ow_epochs_copy *copy)
{
	struct ow_message m = {.type = OW_MESSAGE_EPOCH,
	                       .epoch = {.recording = theirs, .epochs = epochs, .state = state}};
	if (state == OW_MESSAGE_EPOCH_NEXT) {
		m.epoch.bytes = copy->bytes;
		m.epoch.size = (uint32_t)copy->size;
		m.epoch.count_bytes = copy->count_bytes;
	}
	/* If it cannot be sent, the peer asks again. */
	(void)peers->sink.send(peers->sink.arg, peer, &m);
}

static void on_wanted(struct ow_epoch_peers *peers, const char *peer, const struct ow_message_wanted *m)
{
	struct ow_epoch_info info;
	bool described = ow_epoch_info_decode(m->info, m->info_size, &info, NULL) == 0;
	for (unsigned i = 0; described && i < peers->recordings; i++) {
		struct recording *r = &peers->recording[i];
		if (strcmp(r->peer, peer) != 0 ||
		    !ow_config_flows_fit(r->heading, &r->info, (enum ow_heading)m->heading, &info))
			continue;
		const struct ow_epochs_place place = {.epochs = m->epochs, .check = m->check};
		/* If it cannot be read now, the peer asks again. */
		if (ow_epoch_writer_read(peers->writer, i, &place) == 0) {
			r->theirs = m->recording;
			r->their_epochs = m->epochs;
		}
		return;
	}
	answer(peers, peer, m->recording, m->epochs, OW_MESSAGE_EPOCH_NO_SUCH, NULL);
}

static void tick_answer(struct ow_epoch_peers *peers, unsigned i)
{
	struct recording *r = &peers->recording[i];
	struct ow_epochs_copy copy;
	int code;
	if (!ow_epoch_writer_was_read(peers->writer, i, &code, &copy))
		return;
	enum ow_message_epoch_state state = OW_MESSAGE_EPOCH_FAILED;
	if (code == 0 && copy.size <= OW_MESSAGE_EPOCH_MAX)
		state = OW_MESSAGE_EPOCH_NEXT;
	else if (code > 0)
		state = OW_MESSAGE_EPOCH_NONE;
	else if (code == -ESTALE)
		state = OW_MESSAGE_EPOCH_OTHER;
	answer(peers, r->peer, r->theirs, r->their_epochs, state, &copy);
	free(copy.bytes);
}

/* -- the epochs of the peer ---------------------------------------------------------------------------------------- */

static const char *const refusal[OW_MESSAGE_EPOCH_STATES] = {
	[OW_MESSAGE_EPOCH_NO_SUCH] = "it does not record the same packets in the same way with this point as peer",
	[OW_MESSAGE_EPOCH_OTHER] = "its file begins with other epochs: to copy it, move this file away",
	[OW_MESSAGE_EPOCH_FAILED] = "it cannot read the next epoch, or cannot send one as large",
};

static void tell(struct ow_epoch_peers *peers, const struct recording *r, const char *why)
{
	char line[400];
	if (why)
		snprintf(line, sizeof line, "flows: %.160s gets no epochs of %s: %s", r->file, r->peer, why);
	else
		snprintf(line, sizeof line, "flows: %.160s gets the epochs of %s", r->file, r->peer);
	peers->sink.tell(peers->sink.arg, why != NULL, line);
}

static void on_epoch(struct ow_epoch_peers *peers, const char *peer, const struct ow_message_epoch *m, int64_t now_ns)
{
	struct recording *r = &peers->recording[m->recording];
	if (m->recording >= peers->recordings || strcmp(r->peer, peer) != 0 || !r->asked || m->epochs != r->epochs)
		return; /* it was not asked, or for another one */
	r->asked = false;
	if (refusal[m->state]) {
		r->next_ns = now_ns + REFUSED_NS;
		if (r->told != m->state)
			tell(peers, r, refusal[m->state]);
		r->told = m->state;
		r->copies = false;
		return;
	}
	r->next_ns = now_ns + (m->state == OW_MESSAGE_EPOCH_NEXT && r->poll_ns > NEXT_NS ? NEXT_NS : r->poll_ns);
	r->told = 0;
	if (!r->copies)
		tell(peers, r, NULL);
	r->copies = true;
	/* If there is no memory, it is asked for again. */
	if (m->state == OW_MESSAGE_EPOCH_NEXT)
		(void)ow_epoch_writer_append(peers->writer, m->recording,
		                             &(struct ow_epochs_copy){(uint8_t *)m->bytes, m->size, m->count_bytes});
}

static void tick_ask(struct ow_epoch_peers *peers, unsigned i, int64_t now_ns)
{
	struct recording *r = &peers->recording[i];
	struct ow_epochs_place place;
	if (now_ns < r->next_ns || !ow_epoch_writer_place(peers->writer, i, &place))
		return;
	const struct ow_message m = {.type = OW_MESSAGE_WANTED,
	                             .wanted = {.recording = (uint8_t)i,
	                                        .heading = (uint8_t)r->heading,
	                                        .epochs = place.epochs,
	                                        .check = place.check,
	                                        .info = r->bytes,
	                                        .info_size = (uint32_t)r->size}};
	r->asked = peers->sink.send(peers->sink.arg, r->peer, &m);
	r->epochs = place.epochs;
	r->next_ns = now_ns + (r->asked ? ANSWER_NS : r->poll_ns);
}

/* -- both ---------------------------------------------------------------------------------------------------------- */

void ow_epoch_peers_message(struct ow_epoch_peers *peers, const char *peer, const struct ow_message *message,
                            int64_t now_ns)
{
	if (message->type == OW_MESSAGE_WANTED)
		on_wanted(peers, peer, &message->wanted);
	else
		on_epoch(peers, peer, &message->epoch, now_ns);
}

void ow_epoch_peers_tick(struct ow_epoch_peers *peers, int64_t now_ns)
{
	for (unsigned i = 0; i < peers->recordings; i++) {
		if (!peers->recording[i].peer[0])
			continue;
		tick_answer(peers, i);
		tick_ask(peers, i, now_ns);
	}
}
