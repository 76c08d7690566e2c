/* SPDX-License-Identifier: Apache-2.0 */
#include "lies.h"

#include "base/bytes.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/time.h"
#include "exchange/message_scope.h"
#include "synopsis/fold.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define LENGTH_NS (100 * OW_NS_PER_MS)
#define WAIT_NS   (500 * OW_NS_PER_MS)
#define SEED      UINT64_C(42)
/* Longer than any answer takes on a slow machine. */
#define PATIENCE_MS 15000

static int64_t now_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	return now.tv_sec * OW_NS_PER_S + now.tv_nsec;
}

static struct ow_message proposal(uint32_t wire, bool sends, const char *class_name)
{
	int64_t soon = now_ns() + OW_NS_PER_S;
	struct ow_message m = {.type = OW_MESSAGE_OPEN,
	                       .lane = wire,
	                       .open = {.sends = sends,
	                                .level = OW_MESSAGE_LEVEL_IP,
	                                .hash_limit = UINT32_MAX,
	                                .identity_seed = SEED,
	                                .synopsis_seed = SEED,
	                                .t0_ns = soon - soon % LENGTH_NS,
	                                .length_ns = LENGTH_NS,
	                                .wait_ns = WAIT_NS,
	                                .horizon = 5,
	                                .buckets = 64,
	                                .sample = 64}};
	snprintf(m.open.segment, sizeof m.open.segment, "theirs");
	snprintf(m.open.class_name, sizeof m.open.class_name, "%s", class_name);
	return m;
}

static int64_t t0_ns; /* of the last lane */

/* A lane of segment `theirs`; waits until it has begun. */
static bool open_scope(struct client *client, bool sends, bool shared)
{
	struct ow_message m = proposal(1, sends, "all"), answer;
	m.open.shared = shared;
	if (!client_say(client, &m) || !client_hear_type(client, PATIENCE_MS, OW_MESSAGE_OPENED, &answer))
		return false;
	t0_ns = answer.opened.t0_ns;
	int64_t left = t0_ns + LENGTH_NS - now_ns();
	struct timespec rest = {.tv_sec = left / OW_NS_PER_S, .tv_nsec = left > 0 ? left % OW_NS_PER_S : 0};
	if (left > 0)
		nanosleep(&rest, NULL);
	return true;
}

static bool open_lane(struct client *client, bool sends)
{
	return open_scope(client, sends, false);
}

static bool say_refused(const struct target *t, struct ow_message *m, const char *why)
{
	struct client client;
	struct ow_message answer;
	if (!client_enter(&client, t, "rome"))
		return false;
	bool refused = client_say(&client, m) && client_hear_type(&client, PATIENCE_MS, OW_MESSAGE_REFUSED, &answer);
	if (refused)
		printf("  %s\n", answer.text.text);
	refused = refused && strstr(answer.text.text, why);
	client_close(&client);
	return refused;
}

/* -- before anything is agreed on --------------------------------------------------------------------------------- */

static bool too_soon(const struct target *t)
{
	struct client client;
	struct ow_message m = proposal(1, true, "all"), answer;
	client_connect(&client, t);
	bool good = client_shake(&client, t, "rome", TLS1_3_VERSION) && client_say(&client, &m) &&
	            !client_hear_type(&client, 300, OW_MESSAGE_OPENED, &answer);
	client_close(&client);
	return good;
}

static bool other_name(const struct target *t)
{
	struct client client;
	struct ow_message hello = {
		.type = OW_MESSAGE_HELLO,
		.hello = {.version_min = OW_WIRE_VERSION, .version_max = OW_WIRE_VERSION, .now_ns = now_ns()}};
	snprintf(hello.hello.point, sizeof hello.hello.point, "london");
	snprintf(hello.hello.software, sizeof hello.hello.software, "hostile");
	client_connect(&client, t);
	bool good = client_shake(&client, t, "rome", TLS1_3_VERSION) && client_say(&client, &hello) &&
	            client_is_closed(&client, PATIENCE_MS);
	client_close(&client);
	return good;
}

static bool foreign_segment(const struct target *t)
{
	struct ow_message m = proposal(1, true, "data");
	snprintf(m.open.segment, sizeof m.open.segment, "honest");
	return say_refused(t, &m, "peer of the segment is 'london'");
}

static bool far_start(const struct target *t)
{
	struct ow_message m = proposal(1, true, "all");
	m.open.t0_ns += 365 * 24 * 3600 * OW_NS_PER_S;
	bool good = say_refused(t, &m, "too far away");
	m = proposal(1, true, "all");
	m.open.t0_ns++;
	return good && say_refused(t, &m, "not a multiple");
}

/* Names would be asked for while all segments wait. */
static bool odd_filter(const struct target *t)
{
	struct ow_message m = proposal(1, true, "all");
	snprintf(m.open.filter, sizeof m.open.filter, "host nobody.invalid");
	bool good = say_refused(t, &m, "may be a name");
	size_t used = (size_t)snprintf(m.open.filter, sizeof m.open.filter, "host ::1");
	for (unsigned i = 0; i < 60; i++)
		used += (size_t)snprintf(m.open.filter + used, sizeof m.open.filter - used, " or 2001:db8::%u", i);
	return good && say_refused(t, &m, "instructions");
}

/* How long the point takes to answer a PING, in ms; below 0 if it does not. */
static double answer_ms(struct client *client)
{
	struct ow_message ping = {.type = OW_MESSAGE_PING, .ping = {.token = 1}}, answer;
	int64_t begin = ow_clock_steady_ns();
	if (!client_say(client, &ping) || !client_hear_type(client, 60000, OW_MESSAGE_PING, &answer))
		return -1;
	return (double)(ow_clock_steady_ns() - begin) / (double)OW_NS_PER_MS;
}

/* Filters as long as they may be, of which libpcap takes seconds each. Other peers wait that long. */
static bool slow_filter(const struct target *t)
{
	struct client client;
	struct ow_message m = proposal(1, true, "all");
	if (!client_enter(&client, t, "rome"))
		return false;
	for (uint32_t k = 0; k < 3; k++) {
		size_t used = (size_t)snprintf(m.open.filter, sizeof m.open.filter, "portrange ");
		for (unsigned i = 1; used + 12 < sizeof m.open.filter; i++)
			used += (size_t)snprintf(m.open.filter + used, sizeof m.open.filter - used, "%s%u-%u",
			                         i > 1 ? "||" : "", i, i + k);
		m.lane = k + 1;
		client_say(&client, &m);
	}
	double ms = answer_ms(&client);
	printf("  answers after %.0f ms\n", ms);
	client_close(&client);
	return ms >= 0 && ms < 2000;
}

/* As many different filters as fit into a connection, each as costly as it may be. */
static bool many_filters(const struct target *t)
{
	struct client client;
	struct ow_message answer;
	unsigned opened = 0, refused = 0;
	if (!client_enter(&client, t, "rome"))
		return false;
	int64_t begin = ow_clock_steady_ns();
	for (uint32_t k = 0; k < 400; k++) {
		char name[20];
		snprintf(name, sizeof name, "f%u", k);
		struct ow_message m = proposal(k + 1, k % 2, name);
		size_t used = 0;
		for (unsigned i = 1; i < 25; i++)
			used += (size_t)snprintf(m.open.filter + used, sizeof m.open.filter - used, "%s(port %u||%u)",
			                         i > 1 ? "&&" : "", i, i + k);
		client_say(&client, &m);
	}
	while (opened + refused < 400 && client_hear(&client, PATIENCE_MS, &answer)) {
		opened += answer.type == OW_MESSAGE_OPENED;
		refused += answer.type == OW_MESSAGE_REFUSED;
		ow_message_done(&answer);
	}
	double ms = (double)(ow_clock_steady_ns() - begin) / (double)OW_NS_PER_MS;
	printf("  %u opened, %u refused in %.0f ms\n", opened, refused, ms);
	client_close(&client);
	return opened + refused == 400 && opened <= 32 && ms < 15000;
}

/* Opens so many lanes with names of their own and ends them. Returns how many there were. */
static unsigned come_and_go(struct client *client, uint32_t first, uint32_t count)
{
	unsigned opened = 0, answered = 0;
	struct ow_message answer;
	for (uint32_t i = first; i < first + count; i++) {
		char name[20];
		snprintf(name, sizeof name, "n%u", i);
		struct ow_message m = proposal(i, i % 2, name);
		m.open.length_ns = i % 4 ? LENGTH_NS : LENGTH_NS / 20;
		if (!client_say(client, &m))
			return opened;
	}
	while (answered < count && client_hear(client, PATIENCE_MS, &answer)) {
		opened += answer.type == OW_MESSAGE_OPENED;
		answered += answer.type == OW_MESSAGE_OPENED || answer.type == OW_MESSAGE_REFUSED;
		ow_message_done(&answer);
	}
	for (uint32_t i = first; i < first + count; i++) {
		struct ow_message bye = {.type = OW_MESSAGE_BYE, .lane = i, .text = {"another name"}};
		client_say(client, &bye);
	}
	return opened;
}

/* Classes with ever new names, of which nothing may stay but some that are unknown. */
static bool new_names(const struct target *t)
{
	struct client client;
	unsigned opened = 0;
	if (!client_enter(&client, t, "rome"))
		return false;
	/* A busy point refuses more of them. */
	for (uint32_t i = 0; i < 60 || (opened <= 100 && i < 600); i++)
		opened += come_and_go(&client, 1 + 50 * i, 50);
	double ms = answer_ms(&client);
	printf("  %u opened, answers after %.0f ms\n", opened, ms);
	client_close(&client);
	return opened > 100 && ms >= 0 && ms < 5000;
}

/* A lane that ends in an interval that no clock can tell. */
static bool far_bye(const struct target *t)
{
	struct client client;
	struct ow_message m = proposal(1, true, "all"), answer;
	struct ow_message bye = {.type = OW_MESSAGE_BYE, .lane = 1, .interval = OW_MESSAGE_INTERVAL_MAX};
	m.open.length_ns = OW_MESSAGE_LENGTH_MAX_NS;
	m.open.t0_ns += m.open.length_ns - m.open.t0_ns % m.open.length_ns;
	if (!client_enter(&client, t, "rome") || !client_say(&client, &m) ||
	    !client_hear_type(&client, PATIENCE_MS, OW_MESSAGE_OPENED, &answer))
		return false;
	bool good = client_say(&client, &bye) && answer_ms(&client) >= 0;
	bye.interval = 0;
	client_say(&client, &bye);
	client_close(&client);
	return good;
}

/* Text that would turn a line of the log around, or end it: bytes that the codec does not write. */
static bool say_odd(struct client *client, const struct ow_message *m)
{
	static const char *const odd[] = {"\xe2\x80\xae", "\xe2\x80\xa8", "\xe2\x81\xa6", "\xe2\x80\x8b"};
	bool sent = true;
	for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
		size_t size;
		uint8_t *frame = client_encode(m, &size), *at = memmem(frame, size, "XXX", 3);
		if (at)
			memcpy(at, odd[i], 3);
		sent = sent && client_frame(client, frame, size);
		free(frame);
	}
	return sent;
}

static bool odd_text(const struct target *t)
{
	struct client client;
	struct ow_message m = proposal(1, true, "XXX"), answer;
	struct ow_message bye = {.type = OW_MESSAGE_BYE, .text = {"good XXX bye"}};
	if (!client_enter(&client, t, "rome"))
		return false;
	bool good = say_odd(&client, &m) && answer_ms(&client) >= 0;
	snprintf(m.open.class_name, sizeof m.open.class_name, "all");
	snprintf(m.open.filter, sizeof m.open.filter, "host XXX");
	good = good && say_odd(&client, &m) && say_odd(&client, &bye) && answer_ms(&client) >= 0;
	/* That may not end it. */
	good = good && !client_hear_type(&client, 300, OW_MESSAGE_BYE, &answer);
	client_close(&client);
	return good;
}

/* Connects again and again, each time as another process with another clock, and leaves with other words. */
static bool restless(const struct target *t)
{
	unsigned entered = 0;
	for (unsigned i = 0; i < 100; i++) {
		struct client client;
		struct ow_message m = proposal(1, i % 2, "all"), bye = {.type = OW_MESSAGE_BYE};
		struct ow_message hello = {.type = OW_MESSAGE_HELLO,
		                           .hello = {.version_min = OW_WIRE_VERSION,
		                                     .version_max = OW_WIRE_VERSION,
		                                     .epoch = i,
		                                     .now_ns = i % 3 ? now_ns() + i * OW_NS_PER_S : i}};
		snprintf(hello.hello.point, sizeof hello.hello.point, "rome");
		snprintf(hello.hello.software, sizeof hello.hello.software, "hostile %u", i);
		snprintf(bye.text.text, sizeof bye.text.text, "reason %u", i);
		client_connect(&client, t);
		entered += client_shake(&client, t, "rome", TLS1_3_VERSION) && client_say(&client, &hello) &&
		           client_say(&client, &m) && client_say(&client, &bye);
		client_close(&client);
	}
	printf("  %u of 100 connections\n", entered);
	return entered > 0;
}

static bool many_lanes(const struct target *t)
{
	struct client client;
	struct ow_message answer;
	unsigned opened = 0, refused = 0;
	char name[20];
	if (!client_enter(&client, t, "rome"))
		return false;
	for (uint32_t i = 0; i < 300; i++) {
		snprintf(name, sizeof name, "c%u", i);
		struct ow_message m = proposal(i + 1, i % 2, name);
		client_say(&client, &m);
	}
	while (opened + refused < 300 && client_hear(&client, PATIENCE_MS, &answer)) {
		opened += answer.type == OW_MESSAGE_OPENED;
		refused += answer.type == OW_MESSAGE_REFUSED;
		ow_message_done(&answer);
	}
	printf("  %u opened, %u refused\n", opened, refused);
	struct ow_message bye = {.type = OW_MESSAGE_BYE, .text = {"enough"}};
	client_say(&client, &bye);
	client_close(&client);
	return opened + refused == 300 && opened <= 128;
}

/* -- a receiving point that lies ---------------------------------------------------------------------------------- */

/* A synopsis of an interval: the largest fold there is, full of noise. */
static struct ow_message synopsis(int64_t interval, uint32_t cells, uint8_t **ret_bytes)
{
	struct ow_fold_params params = {OW_FOLD_BANKS_MAX, cells, 0, false};
	struct ow_synopsis *fold = NULL;
	struct ow_message m = {.type = OW_MESSAGE_SYNOPSIS, .lane = 1, .interval = interval};
	uint64_t state = (uint64_t)interval + 1;
	if (ow_fold_create(&params, SEED, &fold) < 0)
		abort();
	for (uint32_t i = 0; i < cells; i++) {
		struct ow_sighting stamp = {state = ow_mix64(state), (int64_t)(i % LENGTH_NS)};
		fold->ops->add(fold, &stamp, 1);
	}
	size_t size = ow_synopsis_encoded_size(fold);
	*ret_bytes = malloc(size);
	ow_synopsis_encode(fold, *ret_bytes);
	ow_synopsis_free(fold);
	m.synopsis = (struct ow_message_synopsis){.packets = cells,
	                                          .total_packets = cells,
	                                          .total_bytes = 100,
	                                          .clock = {true, 1000},
	                                          .lag_ns = now_ns() - t0_ns - (interval + 1) * LENGTH_NS,
	                                          .synopsis = *ret_bytes,
	                                          .synopsis_size = (uint32_t)size};
	return m;
}

static bool say_synopsis(struct client *client, int64_t interval, uint32_t cells)
{
	uint8_t *bytes;
	struct ow_message m = synopsis(interval, cells, &bytes);
	bool sent = client_say(client, &m);
	free(bytes);
	return sent;
}

/* SYNOPSIS with another number in the place of the byte at this place, and without `cut` bytes at its end. */
static void say_changed(struct client *client, size_t at, const char *number, size_t length, size_t cut)
{
	uint8_t *bytes;
	size_t size;
	struct ow_message m = synopsis(0, 16, &bytes);
	uint8_t *frame = client_encode(&m, &size), *changed = malloc(size + length);
	if (changed) {
		memcpy(changed, frame, at);
		memcpy(changed + at, number, length);
		memcpy(changed + at + length, frame + at + 1, size - at - 1);
		client_frame(client, changed, size - 1 + length - cut);
	}
	free(changed);
	free(frame);
	free(bytes);
}

/* Counts of 2^64 - 1, negative times, numbers without end: from the interval on, by their place in the frame. */
static bool bad_fields(const struct target *t)
{
	static const char most[] = "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01";
	static const char endless[] = "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff";
	struct client client;
	struct ow_message answer;
	if (!client_enter(&client, t, "rome") || !open_lane(&client, false))
		return false;
	for (size_t at = 2; at < 12; at++)
		say_changed(&client, at, at % 2 ? most : endless, at % 2 ? sizeof most - 1 : sizeof endless - 1, 0);
	/* A length in the message that is not its own. */
	for (unsigned i = 0; i < 10; i++)
		say_changed(&client, 6, i % 2 ? "\xff\xff\xff\xff\x0f" : "\x01", i % 2 ? 5 : 1, i % 3 ? 0 : 7);
	bool over = client_hear_type(&client, PATIENCE_MS, OW_MESSAGE_BYE, &answer);
	if (over)
		printf("  %s\n", answer.text.text);
	client_close(&client);
	return over;
}

/* The largest folds for many intervals to come, in falling order, each twice. */
static bool endless_cells(const struct target *t)
{
	struct client client;
	if (!client_enter(&client, t, "rome") || !open_lane(&client, false))
		return false;
	bool sent = true;
	for (int64_t i = 59; i >= 0 && sent; i--)
		sent = say_synopsis(&client, 1000 + i / 2 * 2, OW_FOLD_CELLS);
	struct ow_message ping = {.type = OW_MESSAGE_PING, .ping = {.token = 1}}, answer;
	bool good = sent && client_say(&client, &ping) && client_hear_type(&client, 60000, OW_MESSAGE_PING, &answer);
	client_close(&client);
	return good;
}

/* Times as nobody can have seen them. */
static bool say_times(struct client *client, const struct ow_message_names *names, int64_t interval, unsigned kind)
{
	static int64_t wild[100000];
	static uint8_t sample[8 * OW_MESSAGE_TIMES_MAX];
	struct ow_message m = {.type = OW_MESSAGE_TIMES, .lane = 1, .interval = interval};
	static struct ow_message_bucket bucket[OW_MESSAGE_BUCKETS_MAX];
	static const int64_t value[] = {-1, INT64_MIN, INT64_MAX, LENGTH_NS, 1};
	for (size_t i = 0; i < sizeof wild / sizeof *wild; i++)
		wild[i] = value[kind % 5];
	memset(sample, (int)(kind * 85), sizeof sample);
	for (size_t i = 0; i < OW_MESSAGE_BUCKETS_MAX; i++)
		bucket[i] = (struct ow_message_bucket){UINT64_MAX / 3 * kind, 7, UINT32_MAX};
	m.times = (struct ow_message_times){.sums = names->sums,
	                                    .kept = kind % 2 ? OW_MESSAGE_PACKETS_MAX : 1,
	                                    .time_ns = wild,
	                                    .times = kind * 20000,
	                                    .bucket = bucket,
	                                    .buckets = names->sums ? names->buckets : 0,
	                                    .place = wild,
	                                    .low = names->low,
	                                    .bits = names->bits,
	                                    .width = names->width,
	                                    .sample = sample,
	                                    .samples = names->sums == OW_MESSAGE_SUMS ? names->sample : 0};
	return client_say(client, &m);
}

/* Plays the receiving point for some intervals: each has packets that nobody sent, and times that cannot be. */
static bool wild_times(const struct target *t)
{
	struct client client;
	struct ow_message answer;
	unsigned asked = 0;
	if (!client_enter(&client, t, "rome") || !open_lane(&client, false))
		return false;
	/* TIMES that nobody asked for. */
	struct ow_message_names none = {.sums = OW_MESSAGE_NO_SUMS};
	say_times(&client, &none, 0, 1);
	for (int64_t i = 0; i < 5; i++) {
		if (!say_synopsis(&client, i, i % 2 ? 64 : 2000) || !say_synopsis(&client, i, 64))
			break;
		if (!client_hear(&client, 2000, &answer))
			continue;
		if (answer.type == OW_MESSAGE_NAMES) {
			asked++;
			say_times(&client, &answer.names, answer.interval, (unsigned)i);
			say_times(&client, &answer.names, answer.interval, (unsigned)i + 1);
		} else if (answer.type == OW_MESSAGE_ASK) {
			asked++;
			say_synopsis(&client, answer.interval, 100); /* not what was asked for */
		}
		ow_message_done(&answer);
	}
	client_close(&client);
	printf("  %u questions answered\n", asked);
	return true;
}

/* -- a sending point that lies ------------------------------------------------------------------------------------ */

static struct ow_message result(int64_t interval, uint64_t sent, uint64_t received)
{
	struct ow_message m = {.type = OW_MESSAGE_RESULT, .lane = 1, .interval = interval};
	m.told.result = (struct ow_interval_result){.final = true,
	                                            .sent = sent,
	                                            .received = received,
	                                            .lost = sent,
	                                            .extra = received,
	                                            .reordered = UINT64_MAX,
	                                            .total_sent = sent,
	                                            .total_received = received,
	                                            .clock_from = {true, 1000},
	                                            .clock_to = {true, 1000}};
	struct ow_interval_result *r = &m.told.result;
	struct ow_value none = ow_value_none(OW_REASON_NO_PACKET_SENT);
	r->mean_ns = r->stddev_ns = r->min_ns = r->max_ns = r->loss_ratio = none;
	for (int q = 0; q < OW_QUANTILES; q++)
		r->quantile_ns[q] = none;
	ow_message_choose(&m.told, NULL);
	return m;
}

static bool wild_results(const struct target *t)
{
	struct client client;
	struct ow_message pushed;
	if (!client_enter(&client, t, "rome") || !open_lane(&client, true) ||
	    !client_hear_type(&client, PATIENCE_MS, OW_MESSAGE_SYNOPSIS, &pushed))
		return false;
	int64_t interval = pushed.interval;
	struct ow_message m = result(interval, 5, OW_MESSAGE_PACKETS_MAX);
	client_say(&client, &m); /* more than the point has seen */
	m = result(OW_MESSAGE_INTERVAL_MAX, 1, 0);
	client_say(&client, &m); /* of the far future */
	m = result(interval + 3, 1, 0);
	client_say(&client, &m); /* before anything was pushed */
	m = result(interval, 1, 0);
	m.lane = 7777;
	client_say(&client, &m); /* of a lane that is not ours */
	m = result(interval, 1000000, 0);
	client_say(&client, &m); /* it may say so: it is its own segment */
	client_say(&client, &m); /* replayed */
	struct ow_message wrong = {.type = OW_MESSAGE_TIMES, .lane = 1, .interval = interval};
	client_say(&client, &wrong); /* not its part */
	struct ow_message ping = {.type = OW_MESSAGE_PING, .ping = {.token = 1}}, answer;
	bool good = client_say(&client, &ping) && client_hear_type(&client, PATIENCE_MS, OW_MESSAGE_PING, &answer);
	client_close(&client);
	return good;
}

/* Asks for the largest there is, again and again, and reads nothing of it. */
static bool greedy(const struct target *t)
{
	struct client client;
	struct ow_message pushed, answer;
	if (!client_enter(&client, t, "rome") || !open_lane(&client, true) ||
	    !client_hear_type(&client, PATIENCE_MS, OW_MESSAGE_SYNOPSIS, &pushed))
		return false;
	struct ow_message ask = {.type = OW_MESSAGE_ASK, .lane = 1, .interval = pushed.interval};
	for (unsigned i = 0; i < 1000; i++) {
		static const struct ow_message_ask parts[] = {
			{.part = OW_MESSAGE_SECOND, .order = 1, .cells = OW_FOLD_CELLS},
			{.part = OW_MESSAGE_MINHASH, .cells = OW_MESSAGE_CELLS_MAX},
			{.part = OW_MESSAGE_TABLE, .banks = 8, .cells = OW_MESSAGE_CELLS_MAX},
			{.part = OW_MESSAGE_AGAIN, .sample_shift = OW_MESSAGE_SHIFT_MAX},
		};
		ask.ask = parts[i % 4];
		if (!client_say(&client, &ask))
			break;
	}
	bool over = client_hear_type(&client, 60000, OW_MESSAGE_BYE, &answer);
	client_close(&client);
	return over;
}

/* -- which flows there are ---------------------------------------------------------------------------------------- */

/* The first of many keys, all of them different. */
static struct ow_scope_list keys_from(uint64_t first, size_t count)
{
	struct ow_scope_list list = {calloc(count + 1, sizeof *list.key), count};
	for (size_t k = 0; k < count; k++)
		list.key[k] = first + k * 8000000 / (count / 1000 + 1);
	return list;
}

static bool say_scope(struct client *client, int64_t interval, struct ow_scope_update update, size_t keys)
{
	struct ow_message m = {.type = OW_MESSAGE_SCOPE, .lane = 1, .interval = interval};
	uint8_t *bytes = NULL;
	update.keys = keys_from((uint64_t)interval, keys);
	if (ow_message_of_scope_update(&update, &m.scope, &bytes) < 0)
		abort();
	bool sent = client_say(client, &m);
	free(bytes);
	ow_scope_update_done(&update);
	return sent;
}

static bool is_answered(struct client *client)
{
	struct ow_message ping = {.type = OW_MESSAGE_PING, .ping = {.token = 1}}, answer;
	return client_say(client, &ping) && client_hear_type(client, 60000, OW_MESSAGE_PING, &answer);
}

/* A sketch of keys that nobody has. */
static bool say_sketch(struct client *client, int64_t interval)
{
	struct ow_message m = {.type = OW_MESSAGE_SCOPE, .lane = 1, .interval = interval};
	m.scope.sketch.capacity = OW_KEY_SKETCH_MAX;
	for (unsigned i = 0; i < OW_KEY_SKETCH_MAX; i++)
		m.scope.sketch.sum[i] =
			ow_mix64((uint64_t)interval * OW_KEY_SKETCH_MAX + i) >> (64 - OW_SCOPE_KEY_BITS);
	return client_say(client, &m);
}

/* Announces as many flows as fit, of intervals to come, again and again, in generations that nobody knows. */
static bool flow_flood(const struct target *t)
{
	struct client client;
	if (!client_enter(&client, t, "rome") || !open_scope(&client, true, true))
		return false;
	bool sent = true;
	for (int64_t i = 0; i < 5000 && sent; i++)
		sent = say_scope(&client, 20 + i, (struct ow_scope_update){.reset = true}, 100);
	for (int64_t i = 0; i < 3000 && sent; i++)
		sent = say_sketch(&client, i % 2 ? i / 100 : 3000 + i);
	for (int64_t i = 0; i < 50 && sent; i++)
		sent = say_scope(&client, 6000 + i, (struct ow_scope_update){.reset = true}, OW_SCOPE_UPDATE_MAX);
	for (int64_t i = 0; i < 100 && sent; i++)
		sent = say_scope(&client, 7000 + i / 2, (struct ow_scope_update){.generation = (uint16_t)(7 * i)}, 0);
	sent = sent && say_scope(&client, OW_MESSAGE_INTERVAL_MAX, (struct ow_scope_update){.reset = true}, 1);
	bool good = sent && is_answered(&client);
	client_close(&client);
	return good;
}

/* The answer to SCOPE with a synopsis: of nothing that was announced, and shifts that nobody asked for. */
static bool say_answer(struct client *client, int64_t interval, size_t keys, int64_t shift_ns, int64_t end_shift_ns)
{
	static int8_t change[1000];
	uint8_t *synopsis_bytes, *lists = NULL, seen[100] = {255};
	struct ow_message m = synopsis(interval, 16, &synopsis_bytes);
	struct ow_scope_answer answer = {.digest = (uint64_t)interval,
	                                 .seen = seen,
	                                 .seen_bytes = keys % 100,
	                                 .late = keys_from(1, keys),
	                                 .fine = keys_from(2, 1000),
	                                 .rerouted = keys_from(3, sizeof change),
	                                 .ttl_change = change};
	if (ow_message_of_scope_answer(&answer, &m.synopsis.scope, &lists) < 0)
		abort();
	m.synopsis.shift_ns = shift_ns;
	m.synopsis.end_shift_ns = end_shift_ns;
	m.synopsis.unshared = OW_MESSAGE_PACKETS_MAX;
	bool sent = client_say(client, &m);
	answer.seen = NULL;
	answer.ttl_change = NULL;
	ow_scope_answer_done(&answer);
	free(lists);
	free(synopsis_bytes);
	return sent;
}

static bool flow_answers(const struct target *t)
{
	static const int64_t shift[] = {0, OW_MESSAGE_CUT_MAX_NS, -OW_MESSAGE_CUT_MAX_NS, 1, -LENGTH_NS};
	struct client client;
	if (!client_enter(&client, t, "rome") || !open_scope(&client, false, true))
		return false;
	bool sent = true;
	for (int64_t i = 0; i < 10 && sent; i++)
		sent = say_answer(&client, i, i % 2 ? 0 : 10000, shift[i % 5], shift[(i + 2) % 5]);
	for (int64_t i = 0; i < 100 && sent; i++)
		sent = say_answer(&client, 500 + i, OW_SCOPE_LIVE_MAX, shift[i % 5], shift[i % 3]);
	bool good = sent && is_answered(&client);
	client_close(&client);
	return good;
}

/* Results that move the other point's intervals and its idea of the clocks to where they cannot be. */
static bool wild_clocks(const struct target *t)
{
	static const int64_t wild[] = {INT64_MIN, INT64_MAX, 0, -1, INT64_MAX / 2};
	struct client client;
	struct ow_message pushed;
	if (!client_enter(&client, t, "rome") || !open_lane(&client, true))
		return false;
	unsigned told = 0;
	while (told < 20 && client_hear_type(&client, PATIENCE_MS, OW_MESSAGE_SYNOPSIS, &pushed)) {
		struct ow_message m = result(pushed.interval, 1, 0);
		m.told.result.final = false;
		m.told.cut_shift_ns = told % 2 ? OW_MESSAGE_CUT_MAX_NS : -OW_MESSAGE_CUT_MAX_NS;
		m.told.floor = (struct ow_clock_floor){.samples = UINT32_MAX,
		                                       .impossible = UINT32_MAX,
		                                       .at_ns = told % 3 ? now_ns() : INT64_MAX,
		                                       .low_ns = wild[told % 5],
		                                       .drift_ppb = told % 2 ? 1000000000 : -1000000000};
		m.told.result.clock_offset_ns = ow_value_exact(told % 2 ? 1e300 : -1e300);
		ow_message_choose(&m.told, NULL);
		ow_message_done(&pushed);
		told++;
		if (!client_say(&client, &m))
			break;
		m.told.result.final = true;
		ow_message_choose(&m.told, NULL);
		client_say(&client, &m);
	}
	printf("  %u results\n", told);
	bool good = told > 0 && is_answered(&client);
	client_close(&client);
	return good;
}

static bool pings(const struct target *t)
{
	struct client client;
	if (!client_enter(&client, t, "rome"))
		return false;
	struct ow_message ping = {.type = OW_MESSAGE_PING, .ping = {.token = 1}}, answer;
	size_t size;
	uint8_t *frame = client_encode(&ping, &size), block[29 * 500];
	size_t used = 0;
	for (; used + 4 + size <= sizeof block; used += 4 + size) {
		ow_store_le32(block + used, (uint32_t)size);
		memcpy(block + used + 4, frame, size);
	}
	free(frame);
	bool sent = true;
	for (unsigned i = 0; i < 100 && sent; i++)
		sent = client_bytes(&client, block, used);
	bool good = client_hear_type(&client, PATIENCE_MS, OW_MESSAGE_PING, &answer);
	client_close(&client);
	return good;
}

const struct attack lies[] = {
	{"too-soon", too_soon},
	{"other-name", other_name},
	{"foreign-segment", foreign_segment},
	{"far-start", far_start},
	{"odd-filter", odd_filter},
	{"slow-filter", slow_filter},
	{"many-filters", many_filters},
	{"new-names", new_names},
	{"far-bye", far_bye},
	{"odd-text", odd_text},
	{"restless", restless},
	{"many-lanes", many_lanes},
	{"bad-fields", bad_fields},
	{"endless-cells", endless_cells},
	{"wild-times", wild_times},
	{"wild-results", wild_results},
	{"greedy", greedy},
	{"flow-flood", flow_flood},
	{"flow-answers", flow_answers},
	{"wild-clocks", wild_clocks},
	{"pings", pings},
};
const size_t lies_count = sizeof lies / sizeof *lies;
