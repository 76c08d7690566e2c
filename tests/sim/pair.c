/* SPDX-License-Identifier: Apache-2.0 */
#include "pair.h"
#include "base/bytes.h"
#include "capture/file/reader.h"
#include "sim/build.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

static bool checksums_right(const struct ow_packet *packet)
{
	const uint8_t *ip = packet->ip;
	if (packet->truncated)
		return true;
	if (packet->version == 4 && ow_sum_fold(ow_sum_add(0, ip, (size_t)(ip[0] & 15) * 4)) != 0)
		return false;
	if (packet->fragment || !packet->l4)
		return true;
	uint64_t sum = ow_build_pseudo_sum(ip, packet->proto, packet->l4_len);
	return ow_sum_fold(ow_sum_add(sum, packet->l4, packet->l4_len)) == 0;
}

static void add(struct pair *pair, int side, const struct seen *seen)
{
	size_t n = pair->count[side];
	if ((n & (n - 1)) == 0) {
		pair->seen[side] = reallocarray(pair->seen[side], n ? 2 * n : 1, sizeof *seen);
		assert_non_null(pair->seen[side]);
	}
	pair->seen[side][pair->count[side]++] = *seen;
}

/* Clients are 10/8 and 2001:db8:a::, or translated 198.18/15 and 2001:db8:ffff:: */
static bool from_client(const struct ow_packet *packet)
{
	const uint8_t *ip = packet->ip;
	if (packet->version == 4)
		return ip[12] == 10 || ip[12] == 198;
	return ip[8 + 5] == 0x0a || ip[8 + 5] == 0xff;
}

static void read_packet(struct pair *pair, int side, const struct ow_frame *frame, const struct ow_packet *packet,
                        uint32_t mss)
{
	pair->bad_checksums += !checksums_right(packet);
	struct seen seen = {.record = frame->number, .time_ns = frame->time_ns, .reverse = !from_client(packet)};
	seen.ttl = packet->version == 4 ? packet->ip[8] : packet->ip[7];
	seen.class = packet->version == 4 ? packet->ip[1] : (uint8_t)(ow_load_be16(packet->ip) >> 4);
	const uint8_t *payload = packet->l4;
	if (payload)
		payload += packet->proto == 6 ? (size_t)(packet->l4[12] >> 4) * 4 : 8;
	else
		payload = packet->ip + (packet->version == 4 ? 20
		                        : packet->ip[6] == 0 ? 64
		                                             : 48); /* a later fragment */
	do {
		const uint8_t *end =
			mss && packet->proto == 6 && payload + mss < packet->end ? payload + mss : packet->end;
		seen.marker =
			end - payload >= 8 ? (uint64_t)ow_load_be32(payload) << 32 | ow_load_be32(payload + 4) : 0;
		add(pair, side, &seen);
		seen.piece++;
		payload = end;
	} while (payload < packet->end);
}

static void read_side(struct pair *pair, int side, uint32_t mss)
{
	struct ow_reader *reader;
	struct ow_frame frames[64];
	struct ow_error err = {""};
	int n = ow_reader_open(pair->path[side], &reader, &err);
	if (n < 0)
		fail_msg("%s", err.text);
	while ((n = ow_reader_read(reader, frames, 64, &err)) > 0) {
		for (int i = 0; i < n; i++) {
			struct ow_packet packet;
			pair->records[side]++;
			assert_int_equal(ow_packet_decode(&frames[i], true, &packet), OW_DECODE_IP);
			read_packet(pair, side, &frames[i], &packet, mss);
		}
	}
	assert_int_equal(n, 0);
	assert_null(ow_reader_damage(reader));
	ow_reader_close(reader);
}

void pair_make(struct ow_sim_options *options, uint32_t mss, struct pair *ret_pair)
{
	struct ow_error err = {""};
	*ret_pair = (struct pair){0};
	for (int i = 0; i < OW_SIDES; i++) {
		snprintf(ret_pair->path[i], sizeof ret_pair->path[i], "pair.%d.%c.pcap", (int)getpid(), "ab"[i]);
		options->side[i].path = ret_pair->path[i];
	}
	if (ow_sim_run(options, &ret_pair->truth, &err) < 0)
		fail_msg("seed %llu: %s", (unsigned long long)options->seed, err.text);
	for (int i = 0; i < OW_SIDES; i++)
		read_side(ret_pair, i, mss);
}

void pair_done(struct pair *pair)
{
	for (int i = 0; i < OW_SIDES; i++) {
		unlink(pair->path[i]);
		free(pair->seen[i]);
	}
}

static int by_marker(const void *x, const void *y)
{
	const struct seen *a = x, *b = y;
	if (a->marker != b->marker)
		return a->marker < b->marker ? -1 : 1;
	return a->record < b->record ? -1 : a->record > b->record;
}

/* Sent record and time of each arrival that is the first copy; then reordering by comparing with all before. */
static struct seen *sorted(const struct seen *seen, size_t count, bool reverse, size_t *ret_count)
{
	struct seen *copy = calloc(count + 1, sizeof *copy);
	assert_non_null(copy);
	*ret_count = 0;
	for (size_t i = 0; i < count; i++) {
		if (seen[i].reverse == reverse)
			copy[(*ret_count)++] = seen[i];
	}
	qsort(copy, *ret_count, sizeof *copy, by_marker);
	return copy;
}

struct arrival {
	uint64_t record, sent;
};

static int by_record(const void *x, const void *y)
{
	const struct arrival *a = x, *b = y;
	return a->record < b->record ? -1 : a->record > b->record;
}

static uint64_t count_reordered(struct arrival *arrivals, size_t n)
{
	uint64_t reordered = 0, highest = 0, before = 0;
	qsort(arrivals, n, sizeof *arrivals, by_record);
	for (size_t i = 0; i < n; i++) {
		if (i == 0 || arrivals[i].record != arrivals[i - 1].record)
			before = highest;
		reordered += arrivals[i].sent < before;
		highest = arrivals[i].sent > highest ? arrivals[i].sent : highest;
	}
	return reordered;
}

void pair_result(const struct pair *pair, enum ow_direction direction, int64_t offset_ns, struct ow_result *ret_result)
{
	int from = direction == OW_A_TO_B ? OW_SIDE_A : OW_SIDE_B, to = !from;
	size_t sent, received;
	struct seen *s = sorted(pair->seen[from], pair->count[from], direction == OW_B_TO_A, &sent);
	struct seen *r = sorted(pair->seen[to], pair->count[to], direction == OW_B_TO_A, &received);
	struct arrival *arrivals = calloc(received + 1, sizeof *arrivals);
	assert_non_null(arrivals);
	struct ow_result result = {.sent = sent, .received = received};
	long double sum = 0, squares = 0;
	for (size_t i = 0, j = 0; i < sent; i++) {
		assert_true(i == 0 || s[i].marker != s[i - 1].marker);
		while (j < received && r[j].marker < s[i].marker)
			j++, result.extra++;
		if (j == received || r[j].marker != s[i].marker) {
			result.lost++;
			continue;
		}
		int64_t delay = r[j].time_ns - s[i].time_ns - (direction == OW_A_TO_B ? offset_ns : -offset_ns);
		result.delay.min_ns = result.matched && result.delay.min_ns < delay ? result.delay.min_ns : delay;
		result.delay.max_ns = result.matched && result.delay.max_ns > delay ? result.delay.max_ns : delay;
		arrivals[result.matched++] = (struct arrival){r[j].record, s[i].record};
		sum += delay;
		squares += (long double)delay * delay;
		for (j++; j < received && r[j].marker == s[i].marker; j++) {
			result.extra++;
			result.duplicated++;
		}
	}
	result.reordered = count_reordered(arrivals, result.matched);
	result.delay.samples = result.matched;
	result.delay.mean_ns = (double)(sum / (long double)result.matched);
	result.delay.stddev_ns =
		sqrt((double)(squares / (long double)result.matched) - result.delay.mean_ns * result.delay.mean_ns);
	free(s);
	free(r);
	free(arrivals);
	*ret_result = result;
}

void pair_check(const struct pair *pair, enum ow_direction direction, int64_t offset_ns)
{
	const struct ow_result *truth = &pair->truth.direction[direction];
	struct ow_result mine;
	pair_result(pair, direction, offset_ns, &mine);
	assert_int_equal(truth->sent, mine.sent);
	assert_int_equal(truth->received, mine.received);
	assert_int_equal(truth->matched, mine.matched);
	assert_int_equal(truth->lost, mine.lost);
	assert_int_equal(truth->extra, mine.extra);
	assert_int_equal(truth->duplicated, mine.duplicated);
	assert_int_equal(truth->reordered, mine.reordered);
	assert_int_equal(truth->delay.samples, mine.matched);
	assert_int_equal(truth->delay.min_ns, mine.delay.min_ns);
	assert_int_equal(truth->delay.max_ns, mine.delay.max_ns);
	assert_true(fabs(truth->delay.mean_ns - mine.delay.mean_ns) <= 1e-6 * (1 + fabs(mine.delay.mean_ns)));
	assert_true(fabs(truth->delay.stddev_ns - mine.delay.stddev_ns) <= 1e-6 * (1 + fabs(mine.delay.stddev_ns)));
	assert_int_equal(truth->sent, truth->matched + truth->lost);
	assert_int_equal(truth->received, truth->matched + truth->extra);
	assert_int_equal(pair->truth.records[OW_SIDE_A], pair->records[OW_SIDE_A]);
	assert_int_equal(pair->truth.records[OW_SIDE_B], pair->records[OW_SIDE_B]);
}

bool same_bytes(const char *x, const char *y)
{
	FILE *a = fopen(x, "r"), *b = fopen(y, "r");
	assert_true(a && b);
	int c, d;
	do {
		c = getc(a);
		d = getc(b);
	} while (c == d && c != EOF);
	fclose(a);
	fclose(b);
	return c == d;
}
