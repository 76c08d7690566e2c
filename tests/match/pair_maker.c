/* SPDX-License-Identifier: Apache-2.0 */
#include "pair_maker.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#define TTL 64

void pair_init(struct pair_maker *p, uint64_t seed)
{
	memset(p, 0, sizeof *p);
	ow_random_seed(&p->random, seed);
	for (unsigned side = 0; side < OW_SIDES; side++)
		snprintf(p->path[side], sizeof p->path[side], "/tmp/oneway-pair-%ld-%c.pcap", (long)getpid(),
		         side ? 'b' : 'a');
}

void pair_done(struct pair_maker *p)
{
	ow_match_free(p->match);
	for (unsigned side = 0; side < OW_SIDES; side++) {
		unlink(p->path[side]);
		free(p->frame[side]);
		p->frame[side] = NULL;
	}
	p->match = NULL;
}

void pair_show(struct pair_maker *p, enum ow_side side, const struct pair_frame *frame)
{
	if (p->frames[side] == p->room[side]) {
		p->room[side] = p->room[side] ? 2 * p->room[side] : 1024;
		p->frame[side] = realloc(p->frame[side], p->room[side] * sizeof *p->frame[side]);
		assert_non_null(p->frame[side]);
	}
	p->frame[side][p->frames[side]++] = *frame;
}

static void add(struct pair_maker *p, unsigned side, int64_t time_ns, const uint8_t ip[36], unsigned hops)
{
	struct pair_frame frame = {.time_ns = time_ns};
	if (side == OW_SIDE_B)
		frame.time_ns += p->offset_ns + llrint(p->drift * (double)time_ns);
	memcpy(frame.ip, ip, sizeof frame.ip);
	frame.ip[8] = (uint8_t)(TTL - hops);
	pair_show(p, side, &frame);
}

static void put(struct pair_maker *p, enum ow_direction way, int64_t sent_ns, int64_t delay_ns, bool lost, uint16_t id,
                uint64_t data)
{
	uint8_t ip[36] = {0x45, 0, 0, 36, 0, 0, 0x40, 0,    TTL, 17,   0, 0, 10,
	                  0,    1, 1, 10, 0, 2, 2,    0x10, 1,   0x20, 2, 0, 16};
	unsigned from = way == OW_A_TO_B ? OW_SIDE_A : OW_SIDE_B;
	if (way == OW_B_TO_A) {
		uint8_t host[4], port[2];
		memcpy(host, ip + 12, 4);
		memcpy(ip + 12, ip + 16, 4);
		memcpy(ip + 16, host, 4);
		memcpy(port, ip + 20, 2);
		memcpy(ip + 20, ip + 22, 2);
		memcpy(ip + 22, port, 2);
	}
	ip[4] = (uint8_t)(id >> 8);
	ip[5] = (uint8_t)id;
	memcpy(ip + 28, &data, sizeof data);
	add(p, from, sent_ns, ip, 0);
	if (!lost)
		add(p, !from, sent_ns + delay_ns, ip, p->hops);
}

void pair_send(struct pair_maker *p, enum ow_direction way, int64_t sent_ns, int64_t delay_ns, bool lost)
{
	p->made++;
	put(p, way, sent_ns, delay_ns, lost, (uint16_t)p->made, p->made);
}

void pair_poll(struct pair_maker *p, enum ow_direction way, uint8_t kind, int64_t sent_ns, int64_t delay_ns, bool lost)
{
	put(p, way, sent_ns, delay_ns, lost, 0, UINT64_MAX - kind);
}

size_t pair_cut(struct pair_maker *p, enum ow_side side, int64_t from_ns, int64_t to_ns)
{
	size_t kept = 0, all = p->frames[side];
	for (size_t i = 0; i < all; i++) {
		int64_t t = p->frame[side][i].time_ns;
		if (t < from_ns || t >= to_ns)
			p->frame[side][kept++] = p->frame[side][i];
	}
	p->frames[side] = kept;
	return all - kept;
}

size_t pair_mirror(struct pair_maker *p, enum ow_side side, double share, int64_t least_ns, int64_t most_ns)
{
	size_t copies = 0, all = p->frames[side];
	for (size_t i = 0; i < all; i++) {
		if (!pair_chance(p, share))
			continue;
		struct pair_frame frame = p->frame[side][i];
		frame.time_ns += pair_between(p, least_ns, most_ns);
		pair_show(p, side, &frame);
		copies++;
	}
	return copies;
}

int64_t pair_between(struct pair_maker *p, int64_t least_ns, int64_t most_ns)
{
	return least_ns + llrint(ow_random_unit(&p->random) * (double)(most_ns - least_ns));
}

int64_t pair_queue(struct pair_maker *p, int64_t floor_ns, int64_t mean_ns)
{
	return floor_ns - llrint(log(1 - ow_random_unit(&p->random)) * (double)mean_ns);
}

bool pair_chance(struct pair_maker *p, double probability)
{
	return ow_random_unit(&p->random) < probability;
}

static int by_time(const void *x, const void *y)
{
	const struct pair_frame *a = x, *b = y;
	return a->time_ns < b->time_ns ? -1 : a->time_ns > b->time_ns;
}

static void write_capture(struct pair_maker *p, unsigned side)
{
	const uint32_t head[6] = {0xa1b23c4d, 2 | 4 << 16, 0, 0, 65535, 101 /* raw IP */};
	FILE *file = fopen(p->path[side], "wb");
	assert_non_null(file);
	fwrite(head, sizeof head, 1, file);
	qsort(p->frame[side], p->frames[side], sizeof *p->frame[side], by_time);
	for (size_t i = 0; i < p->frames[side]; i++) {
		const struct pair_frame *f = &p->frame[side][i];
		int64_t t = f->time_ns + PAIR_START_S * 1000000000;
		const uint32_t record[4] = {(uint32_t)(t / 1000000000), (uint32_t)(t % 1000000000), sizeof f->ip,
		                            sizeof f->ip};
		fwrite(record, sizeof record, 1, file);
		fwrite(f->ip, sizeof f->ip, 1, file);
	}
	assert_int_equal(fclose(file), 0);
}

/* Every packet of both captures is in one count, and in one only. */
static void check_counts(const struct pair_maker *p, const struct ow_match_report *report)
{
	for (unsigned side = 0; side < OW_SIDES; side++) {
		const struct ow_result *sends = &report->direction[side == OW_SIDE_A ? OW_A_TO_B : OW_B_TO_A];
		const struct ow_result *receives = &report->direction[side == OW_SIDE_A ? OW_B_TO_A : OW_A_TO_B];
		assert_int_equal(sends->sent, sends->matched + sends->lost);
		assert_int_equal(sends->received, sends->matched + sends->extra);
		assert_int_equal(sends->sent + receives->received + report->unclassified[side] +
		                         report->outside_overlap[side] + report->skipped[side],
		                 p->frames[side]);
	}
}

const struct ow_match_report *pair_match(struct pair_maker *p, const struct ow_match_options *options)
{
	struct ow_match_options defaults;
	struct ow_error err = {0};
	ow_match_defaults(&defaults);
	write_capture(p, OW_SIDE_A);
	write_capture(p, OW_SIDE_B);
	ow_match_free(p->match);
	p->match = NULL;
	int r = ow_match_files(p->path[OW_SIDE_A], p->path[OW_SIDE_B], options ? options : &defaults, &p->match, &err);
	if (r < 0)
		print_error("%s\n", err.text);
	assert_int_equal(r, 0);
	const struct ow_match_report *report = ow_match_report(p->match);
	check_counts(p, report);
	return report;
}

bool pair_warns(const struct ow_match_report *report, const char *text)
{
	for (size_t i = 0; i < report->warnings; i++) {
		if (strstr(report->warning[i], text))
			return true;
	}
	return false;
}
