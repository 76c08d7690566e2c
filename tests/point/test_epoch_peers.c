/* SPDX-License-Identifier: Apache-2.0 */
/* Two points that copy each other's epochs, over a link that loses messages; answers that lie. */
#include "base/random.h"
#include "base/time.h"
#include "point/epoch_peers.h"
#include "synopsis/colate_plan.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#define BEGIN  INT64_C(1700000040000000000)
#define MINUTE INT64_C(60000000000)
#define STEP   INT64_C(300000000) /* between two ticks */
#define EPOCHS 20

static char folder[] = "/tmp/ow-epoch-peers-XXXXXX";

/* Two ends; a message that is sent waits in the slot of the other one. */
struct end {
	const char *name;
	char file[64], copy[80];
	struct ow_config_flows flows;
	struct ow_epoch_writer *writer;
	struct ow_epoch_peers *peers;
	struct end *other;
	struct ow_random *loss; /* NULL = none */
	uint8_t *frame[4];
	size_t size[4];
	unsigned frames;
	char told[400];
};

static bool send_it(void *arg, const char *peer, const struct ow_message *message)
{
	struct end *end = arg, *other = end->other;
	struct ow_error err;
	assert_string_equal(peer, other->name);
	if (other->frames == 4 || (end->loss && ow_random_unit(end->loss) < .2))
		return false;
	/* It was sent, and the connection broke. */
	if (end->loss && ow_random_unit(end->loss) < .2)
		return true;
	if (ow_message_encode(message, &other->frame[other->frames], &other->size[other->frames], &err) < 0)
		fail_msg("%s", err.text);
	other->frames++;
	return true;
}

static void tell(void *arg, bool warning, const char *line)
{
	struct end *end = arg;
	(void)warning;
	snprintf(end->told, sizeof end->told, "%s", line);
}

static void open_end(struct end *end, const char *name, enum ow_heading heading, struct end *other)
{
	struct ow_colate_plan plan;
	struct ow_error err;
	*end = (struct end){.name = name, .other = other};
	snprintf(end->file, sizeof end->file, "%s/%s.epochs", folder, name);
	snprintf(end->copy, sizeof end->copy, "%s.%s", end->file, heading == OW_HEADING_OUT ? "paris" : "london");
	end->flows = (struct ow_config_flows){.file = end->file,
	                                      .flows_max = 1000,
	                                      .peer = heading == OW_HEADING_OUT ? "paris" : "london",
	                                      .heading = heading,
	                                      .info = {.select = {.by = OW_FLOW_BY_FIVE_TUPLE},
	                                               .level = OW_LEVEL_IP,
	                                               .id_bytes = 64,
	                                               .interval_ns = MINUTE}};
	ow_colate_plan_defaults(&plan);
	plan.counters = 30;
	assert_int_equal(ow_colate_plan_params(&plan, &end->flows.info.params, NULL), 0);
	const struct ow_config config = {.flows = &end->flows, .flows_count = 1};
	if (ow_epoch_writer_create(&config, &end->writer, &err) < 0)
		fail_msg("%s", err.text);
	const struct ow_epoch_peers_sink sink = {send_it, tell, end};
	assert_int_equal(ow_epoch_peers_create(&config, end->writer, &sink, &end->peers), 0);
}

static void close_end(struct end *end)
{
	for (unsigned i = 0; i < end->frames; i++)
		free(end->frame[i]);
	ow_epoch_peers_free(end->peers);
	ow_epoch_writer_free(end->writer);
	unlink(end->file);
	unlink(end->copy);
}

static void add(struct end *end, unsigned n, unsigned packets)
{
	struct ow_epoch epoch;
	assert_int_equal(ow_epoch_init(&end->flows.info, 0, &epoch, NULL), 0);
	for (unsigned i = 0; i < packets; i++)
		ow_colate_add(epoch.colate, &(struct ow_flow_sighting){n + 1, n * 1000 + i + 1, BEGIN + n * MINUTE + i},
		              1);
	epoch.epochs = 1;
	epoch.begin_ns = BEGIN + n * MINUTE;
	epoch.end_ns = epoch.begin_ns + MINUTE;
	ow_epoch_writer_add(end->writer, 0, &epoch);
	ow_epoch_done(&epoch); /* what was not taken */
}

static void deliver(struct end *end, int64_t now_ns)
{
	for (unsigned i = 0; i < end->frames; i++) {
		struct ow_message m;
		struct ow_error err;
		if (ow_message_decode(end->frame[i], end->size[i], &m, &err) < 0)
			fail_msg("%s", err.text);
		ow_epoch_peers_message(end->peers, end->other->name, &m, now_ns);
		ow_message_done(&m);
		free(end->frame[i]);
	}
	end->frames = 0;
}

static size_t epochs_of(const char *path, uint64_t *ret_packets)
{
	struct ow_epochs *epochs;
	struct ow_error err;
	*ret_packets = 0;
	if (ow_epochs_open(path, &epochs, &err) < 0)
		return 0;
	size_t count = ow_epochs_count(epochs);
	for (size_t i = 0; i < count; i++) {
		assert_int_equal(ow_epochs_span(epochs, i).begin_ns, BEGIN + (int64_t)i * MINUTE);
		*ret_packets += ow_epochs_span(epochs, i).packets;
	}
	ow_epochs_close(epochs);
	return count;
}

/* Each point has each epoch of the other one once, in its order, whatever was lost on the way. */
static void copies(void **state)
{
	(void)state;
	struct end end[2];
	struct ow_random loss;
	uint64_t packets, all = 0;
	ow_random_seed(&loss, 7);
	open_end(&end[0], "london", OW_HEADING_OUT, &end[1]);
	open_end(&end[1], "paris", OW_HEADING_IN, &end[0]);
	end[0].loss = end[1].loss = &loss;
	int64_t now_ns = OW_NS_PER_S;
	for (unsigned n = 0; n < EPOCHS; n++) {
		add(&end[0], n, n + 1);
		add(&end[1], n, n + 1);
		all += n + 1;
	}
	for (int i = 0; i < 20000; i++, now_ns += STEP) {
		for (int k = 0; k < 2; k++) {
			ow_epoch_peers_tick(end[k].peers, now_ns);
			deliver(&end[k], now_ns);
		}
		if (epochs_of(end[0].copy, &packets) == EPOCHS && epochs_of(end[1].copy, &packets) == EPOCHS)
			break;
		usleep(500); /* the thread that writes */
	}
	for (int k = 0; k < 2; k++) {
		assert_int_equal(epochs_of(end[k].copy, &packets), EPOCHS);
		assert_int_equal(packets, all);
		assert_non_null(strstr(end[k].told, "gets the epochs of"));
		close_end(&end[k]);
	}
}

static void tell_epoch(struct end *end, const struct ow_message_epoch *epoch)
{
	const struct ow_message m = {.type = OW_MESSAGE_EPOCH, .epoch = *epoch};
	ow_epoch_peers_message(end->peers, "paris", &m, 0);
}

/* An answer that comes after a further question (the link was slow) is not the answer to that one: no epoch is there twice. */
static void slow_answers(void **state)
{
	(void)state;
	struct end end[2];
	uint64_t packets;
	open_end(&end[0], "london", OW_HEADING_OUT, &end[1]);
	open_end(&end[1], "paris", OW_HEADING_IN, &end[0]);
	add(&end[1], 0, 3);
	add(&end[1], 1, 4);
	int64_t now_ns = OW_NS_PER_S;
	/* What paris itself asks is out of the way. */
	ow_epoch_peers_tick(end[1].peers, now_ns);
	deliver(&end[0], now_ns);
	/* London asks twice for the first epoch, and gets it twice. */
	for (int i = 0; i < 2; i++, now_ns += 20 * OW_NS_PER_S) {
		ow_epoch_peers_tick(end[0].peers, now_ns);
		unsigned answers = end[0].frames;
		deliver(&end[1], now_ns);
		for (int k = 0; k < 3000 && end[0].frames == answers; k++, usleep(1000))
			ow_epoch_peers_tick(end[1].peers, 0);
	}
	assert_int_equal(end[0].frames, 2);
	uint8_t *late = end[0].frame[1];
	size_t size = end[0].size[1];
	end[0].frames = 1;
	deliver(&end[0], now_ns);
	for (int k = 0; k < 3000 && epochs_of(end[0].copy, &packets) < 1; k++)
		usleep(1000);
	struct ow_epochs_place place;
	for (int k = 0; k < 3000 && !ow_epoch_writer_place(end[0].writer, 0, &place); k++)
		usleep(1000);
	ow_epoch_peers_tick(end[0].peers, now_ns + OW_NS_PER_S);
	end[0].frame[0] = late;
	end[0].size[0] = size;
	end[0].frames = 1;
	deliver(&end[0], now_ns + OW_NS_PER_S);
	assert_true(ow_epoch_writer_place(end[0].writer, 0, &place));
	assert_int_equal(epochs_of(end[0].copy, &packets), 1);
	assert_int_equal(packets, 3);
	close_end(&end[0]);
	close_end(&end[1]);
}

/* What was not asked for is ignored, of whatever recording; what is no epoch ends the copy, with a line. */
static void lies(void **state)
{
	(void)state;
	struct end end[2];
	struct ow_epochs_place place;
	struct ow_error line = {""};
	const struct ow_message_epoch wrong = {.bytes = (const uint8_t *)"wrong", .size = 5};
	open_end(&end[0], "london", OW_HEADING_OUT, &end[1]);
	open_end(&end[1], "paris", OW_HEADING_IN, &end[0]);
	tell_epoch(&end[0], &wrong);
	tell_epoch(&end[0], &(struct ow_message_epoch){.recording = 7});
	assert_true(ow_epoch_writer_place(end[0].writer, 0, &place));
	ow_epoch_peers_tick(end[0].peers, OW_NS_PER_S);
	struct ow_message m = {.type = OW_MESSAGE_EPOCH, .epoch = wrong};
	ow_epoch_peers_message(end[0].peers, "rome", &m, 0);
	assert_true(ow_epoch_writer_place(end[0].writer, 0, &place));
	tell_epoch(&end[0], &wrong);
	for (int i = 0; i < 3000 && !ow_epoch_writer_news(end[0].writer, &line); i++)
		usleep(10000);
	assert_non_null(strstr(line.text, "it is not copied any more"));
	assert_false(ow_epoch_writer_place(end[0].writer, 0, &place));
	assert_int_equal(place.epochs, 0);
	/* A description that is none, and one that is another. */
	m = (struct ow_message){.type = OW_MESSAGE_WANTED,
	                        .wanted = {.info = (const uint8_t *)"wrong", .info_size = 5}};
	ow_epoch_peers_message(end[1].peers, "london", &m, 0);
	assert_int_equal(end[0].frames, 1);
	deliver(&end[0], 0);
	close_end(&end[0]);
	close_end(&end[1]);
}

/* A recording in the same direction is not that of the same packets. */
static void refuses(void **state)
{
	(void)state;
	struct end end[2];
	open_end(&end[0], "london", OW_HEADING_OUT, &end[1]);
	open_end(&end[1], "paris", OW_HEADING_IN, &end[0]);
	end[1].flows.heading = OW_HEADING_OUT;
	ow_epoch_peers_free(end[1].peers);
	const struct ow_epoch_peers_sink sink = {send_it, tell, &end[1]};
	assert_int_equal(ow_epoch_peers_create(&(struct ow_config){.flows = &end[1].flows, .flows_count = 1},
	                                       end[1].writer, &sink, &end[1].peers),
	                 0);
	ow_epoch_peers_tick(end[0].peers, OW_NS_PER_S);
	deliver(&end[1], OW_NS_PER_S);
	deliver(&end[0], OW_NS_PER_S);
	assert_non_null(strstr(end[0].told, "gets no epochs of paris: it does not record the same packets"));
	close_end(&end[0]);
	close_end(&end[1]);
}

int main(void)
{
	if (!mkdtemp(folder))
		return 1;
	const struct CMUnitTest tests[] = {cmocka_unit_test(copies), cmocka_unit_test(slow_answers),
	                                   cmocka_unit_test(lies), cmocka_unit_test(refuses)};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	rmdir(folder);
	return failed;
}
