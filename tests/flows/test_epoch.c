/* SPDX-License-Identifier: Apache-2.0 */
/* Encoding and decoding of epochs: every form and packing, sums, and what must be refused. */
#include "base/random.h"
#include "synopsis/colate_plan.h"
#include "flows/bits.h"
#include "flows/epoch.h"
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define STAMPS 2000
#define FLOWS  300
#define BEGIN  INT64_C(1700000000000000000)

static struct ow_flow_sighting stamp[STAMPS];
static const struct ow_flow_key *key[STAMPS];
static struct ow_flow_key flow[FLOWS];
static uint64_t own_from = 7; /* flows of so many packets keep a counter of their own */

/* IPv4, IPv6, MACs and classes; addresses that repeat, and some that do not. */
static struct ow_flow_key make_key(struct ow_random *random, size_t i)
{
	static const uint8_t protos[] = {6, 6, 17, 1, 58, 6};
	struct ow_flow_key k = {.version = i % 7 == 0 ? 6 : i % 11 == 0 ? 0 : 4, .proto = protos[i % 6]};
	size_t length = k.version == 4 ? 4 : k.version == 6 ? 16 : 6;
	for (size_t b = 0; b < length; b++) {
		k.src[b] = (uint8_t)(b < length / 2 ? 10 : ow_random_below(random, 3));
		k.dst[b] = (uint8_t)(i % 3 ? ow_random_u64(random) : 9);
	}
	if (k.proto == 6 || k.proto == 17) {
		k.sport = (uint16_t)ow_random_u64(random);
		k.dport = i % 2 ? 443 : (uint16_t)i;
	}
	if (!k.version) {
		k.ethertype = (uint16_t)i;
		k.proto = 0;
	}
	return k;
}

static int setup(void **state)
{
	(void)state;
	struct ow_random random;
	ow_random_seed(&random, 11);
	for (size_t i = 0; i < FLOWS; i++)
		flow[i] = make_key(&random, i);
	for (size_t i = 0; i < STAMPS; i++) {
		key[i] = &flow[i < FLOWS ? i : ow_random_below(&random, FLOWS)];
		stamp[i] = (struct ow_flow_sighting){
			.flow = ow_flow_hash(5, key[i]),
			.id = ow_random_u64(&random),
			.time_ns = BEGIN + (int64_t)i * 1000003,
		};
	}
	return 0;
}

static struct ow_epoch_info make_info(const struct ow_colate_plan *plan)
{
	struct ow_epoch_info info = {
		.select = {.by = OW_FLOW_BY_FIVE_TUPLE}, .level = OW_LEVEL_IP, .id_bytes = 64, .counts = true};
	struct ow_error err;
	if (ow_colate_plan_params(plan, &info.params, &err) < 0)
		fail_msg("%s", err.text);
	return info;
}

static struct ow_epoch_info plain_info(void)
{
	struct ow_colate_plan plan;
	ow_colate_plan_defaults(&plan);
	plan.counters = 100;
	plan.seed = 5;
	return make_info(&plan);
}

static void fill(const struct ow_epoch_info *info, size_t from, size_t to, struct ow_epoch *epoch)
{
	assert_int_equal(ow_epoch_init(info, OW_FLOW_COUNTS_MAX, epoch, NULL), 0);
	ow_colate_add(epoch->colate, stamp + from, to - from);
	if (epoch->counts) {
		ow_flow_counts_add(epoch->counts, stamp + from, key + from, to - from);
		ow_flow_counts_drop_own(epoch->counts, own_from, NULL, 0);
	}
	epoch->epochs = 1;
	epoch->begin_ns = to > from ? stamp[from].time_ns : 0;
	epoch->end_ns = to > from ? stamp[to - 1].time_ns + 1 : 1;
}

static void check_same(const struct ow_epoch *a, const struct ow_epoch *b)
{
	const struct ow_colate_params *params = ow_colate_params(a->colate);
	assert_int_equal(a->begin_ns, b->begin_ns);
	assert_int_equal(a->end_ns, b->end_ns);
	assert_int_equal(ow_colate_packets(a->colate), ow_colate_packets(b->colate));
	assert_int_equal(ow_colate_time_sum(a->colate), ow_colate_time_sum(b->colate));
	if (ow_colate_packets(a->colate)) {
		assert_int_equal(ow_colate_first_ns(a->colate), ow_colate_first_ns(b->colate));
		assert_int_equal(ow_colate_last_ns(a->colate), ow_colate_last_ns(b->colate));
	}
	if (params->repair_cells)
		assert_memory_equal(ow_colate_repair(a->colate), ow_colate_repair(b->colate),
		                    OW_REPAIR_BANKS * params->repair_cells * sizeof(struct ow_repair_cell));
	for (uint32_t i = 0; i < params->layers; i++) {
		size_t counters = params->layer[i].counters;
		assert_int_equal(ow_colate_layer_packets(a->colate, i), ow_colate_layer_packets(b->colate, i));
		assert_memory_equal(ow_colate_counters(a->colate, i), ow_colate_counters(b->colate, i), 8 * counters);
		if (params->layer[i].check_bits)
			assert_memory_equal(ow_colate_checks(a->colate, i), ow_colate_checks(b->colate, i),
			                    4 * counters);
		if (params->layer[i].count_bits)
			assert_memory_equal(ow_colate_counts(a->colate, i), ow_colate_counts(b->colate, i),
			                    4 * counters);
	}
}

static void check_sample(const struct ow_flow_sample *is, const struct ow_flow_sample *should)
{
	assert_int_equal(is->limit, should->limit);
	assert_int_equal(is->count, should->count);
	for (size_t i = 0; i < is->count; i++)
		assert_true(is->packet[i].rank == should->packet[i].rank &&
		            is->packet[i].time_ns == should->packet[i].time_ns);
}

/* Times of flows are rounded outwards, by a 16384th of the time all flows took at most (for each time coded). */
static void check_counts(const struct ow_epoch *is, const struct ow_epoch *should, int64_t tick_ns)
{
	size_t flows = ow_flow_counts_flows(should->counts);
	assert_int_equal(ow_flow_counts_flows(is->counts), flows);
	assert_int_equal(ow_flow_counts_packets(is->counts), ow_flow_counts_packets(should->counts));
	for (size_t i = 0; i < flows; i++) {
		struct ow_flow_count a, b;
		ow_flow_counts_get(should->counts, i, &a);
		ptrdiff_t at = ow_flow_counts_find(is->counts, a.flow);
		assert_true(at >= 0);
		ow_flow_counts_get(is->counts, (size_t)at, &b);
		assert_memory_equal(&a.key, &b.key, sizeof a.key);
		assert_int_equal(a.packets, b.packets);
		assert_true(a.own.packets == b.own.packets && a.own.sum == b.own.sum && a.own.check == b.own.check);
		struct ow_flow_sample x = ow_flow_counts_sample(is->counts, (size_t)at);
		struct ow_flow_sample y = ow_flow_counts_sample(should->counts, i);
		if (a.own.packets)
			check_sample(&x, &y);
		assert_true(b.first_ns <= a.first_ns && b.first_ns >= a.first_ns - tick_ns);
		assert_true(b.last_ns >= a.last_ns && b.last_ns <= a.last_ns + tick_ns);
		for (uint32_t layer = 0; layer < ow_colate_params(is->colate)->layers; layer++)
			assert_int_equal(ow_flow_counts_in_layer(is->counts, (size_t)at, layer),
			                 ow_flow_counts_in_layer(should->counts, i, layer));
	}
}

static void check_round_trip(const struct ow_epoch_info *info, size_t count)
{
	struct ow_epoch epoch, sum, without;
	uint8_t *bytes;
	size_t size;
	struct ow_epoch_cost cost;
	struct ow_error err;
	fill(info, 0, count, &epoch);
	assert_int_equal(ow_epoch_encode(&epoch, &bytes, &size, &cost), 0);
	assert_int_equal(cost.counter_bytes + cost.count_bytes, size);
	assert_int_equal(ow_epoch_init(info, OW_FLOW_COUNTS_MAX, &sum, NULL), 0);
	assert_int_equal(ow_epoch_init(info, 0, &without, NULL), 0);
	if (ow_epoch_decode_add(info, bytes, size, &sum, &err) < 0)
		fail_msg("%s", err.text);
	assert_int_equal(ow_epoch_decode_add(info, bytes, size, &without, NULL), 0);
	check_same(&sum, &epoch);
	check_same(&without, &epoch);
	if (info->counts)
		check_counts(&sum, &epoch, STAMPS * 1000003 / 8192);
	/* Whatever is cut off, it is seen. */
	for (size_t cut = 1; cut <= 40 && cut <= size; cut++) {
		struct ow_epoch part;
		assert_int_equal(ow_epoch_init(info, OW_FLOW_COUNTS_MAX, &part, NULL), 0);
		assert_true(ow_epoch_decode_add(info, bytes, size - cut, &part, NULL) < 0);
		ow_epoch_done(&part);
	}
	free(bytes);
	ow_epoch_done(&epoch);
	ow_epoch_done(&sum);
	ow_epoch_done(&without);
}

static void test_round_trips(void **state)
{
	(void)state;
	static const size_t counts[] = {0, 1, 17, STAMPS};
	static const uint8_t bits[][3] = {{48, 16, 0}, {8, 0, 0}, {64, 32, 32}, {19, 7, 3}};
	for (unsigned form = OW_COLATE_RANDOM; form <= OW_COLATE_BANKS; form++) {
		for (unsigned k = 0; k < 16; k++) {
			struct ow_colate_plan plan;
			ow_colate_plan_defaults(&plan);
			plan.form = form;
			plan.counters = k % 2 ? 90 : 5000;
			plan.vectors = k % 3 == 0 ? 4 : 1;
			plan.repair = k % 2 ? 0 : 50;
			plan.seed = 5;
			plan.bits = bits[k % 4][0];
			plan.check_bits = bits[k % 4][1];
			plan.count_bits = bits[k % 4][2];
			struct ow_epoch_info info = make_info(&plan);
			info.counts = k != 5;
			check_round_trip(&info, counts[k / 4]);
		}
	}
}

static void test_sums(void **state)
{
	(void)state;
	/* Of a sum, a part could be heavy in one epoch only. */
	own_from = 0;
	struct ow_epoch_info info = plain_info();
	struct ow_epoch all, sum, part;
	fill(&info, 0, STAMPS, &all);
	assert_int_equal(ow_epoch_init(&info, OW_FLOW_COUNTS_MAX, &sum, NULL), 0);
	for (size_t i = 0; i < STAMPS; i += 500) {
		uint8_t *bytes;
		size_t size;
		fill(&info, i, i + 500, &part);
		assert_int_equal(ow_epoch_encode(&part, &bytes, &size, NULL), 0);
		assert_int_equal(ow_epoch_decode_add(&info, bytes, size, &sum, NULL), 0);
		free(bytes);
		ow_epoch_done(&part);
	}
	assert_int_equal(sum.epochs, 4);
	check_same(&sum, &all);
	check_counts(&sum, &all, STAMPS * 1000003 / 8192);
	ow_epoch_done(&all);
	ow_epoch_done(&sum);
}

/* Sparse epochs cost what is in them. */
static void test_sparse(void **state)
{
	(void)state;
	struct ow_colate_plan plan;
	ow_colate_plan_defaults(&plan);
	plan.counters = 300000;
	plan.seed = 5;
	struct ow_epoch_info info = make_info(&plan);
	struct ow_epoch epoch;
	struct ow_epoch_cost cost;
	uint8_t *bytes;
	size_t size;
	info.counts = false;
	fill(&info, 0, 100, &epoch);
	assert_int_equal(ow_epoch_encode(&epoch, &bytes, &size, &cost), 0);
	/* 300 rows of 8 bytes, 8 bytes for the 64 around each, a bit for all other 64, and the head */
	size_t counters = 300 * 16 + 300000 / 64 / 8 + 200;
	/* 300 cells for lost packets, and a bit for all of them */
	size_t repair = 300 * sizeof(struct ow_repair_cell) + OW_REPAIR_BANKS * info.params.repair_cells / 8 + 1;
	assert_true(size <= counters + repair);
	free(bytes);
	ow_epoch_done(&epoch);
}

static void test_info(void **state)
{
	(void)state;
	struct ow_epoch_info info = plain_info(), back, other;
	struct ow_error err;
	info.select =
		(struct ow_flow_select){.by = OW_FLOW_BY_CLASS, .classes = 2, .class_name = {"voice", "r\xc3\xa9st"}};
	info.interval_ns = 60000000000;
	info.any_ip_id = true;
	uint8_t *bytes;
	size_t size;
	assert_int_equal(ow_epoch_info_encode(&info, &bytes, &size), 0);
	assert_true(size <= OW_EPOCH_INFO_BYTES_MAX);
	assert_int_equal(ow_epoch_info_decode(bytes, size, &back, NULL), 0);
	assert_int_equal(ow_epoch_info_comparable(&info, &back, NULL), 0);
	assert_int_equal(back.interval_ns, info.interval_ns);
	assert_true(back.counts);
	for (size_t i = 0; i < size; i++)
		assert_true(ow_epoch_info_decode(bytes, i, &back, &err) < 0);
	/*
	 * A changed byte is refused or gives another description, except for fields that do not matter for comparing.
	 */
	for (size_t i = 0; i < size; i++) {
		bytes[i] ^= 1;
		if (ow_epoch_info_decode(bytes, size, &back, &err) == 0)
			assert_true(ow_epoch_info_comparable(&info, &back, &err) < 0 ||
			            back.interval_ns != info.interval_ns || back.counts != info.counts ||
			            back.select.prefix4 || back.select.prefix6);
		bytes[i] ^= 1;
	}
	free(bytes);
	other = info;
	other.level = OW_LEVEL_NAT;
	assert_int_equal(ow_epoch_info_comparable(&info, &other, &err), -EINVAL);
	assert_string_equal(err.text, "levels of identity differ: ip and nat");
	other = info;
	other.params.seed = 6;
	assert_int_equal(ow_epoch_info_comparable(&info, &other, &err), -EINVAL);
	assert_string_equal(err.text, "seeds differ: 5 and 6");
}

static void test_bits(void **state)
{
	(void)state;
	struct ow_random random;
	ow_random_seed(&random, 3);
	for (unsigned round = 0; round < 200; round++) {
		uint64_t value[50];
		unsigned bits[50];
		uint8_t bytes[50 * 8 + 8];
		struct ow_bits_writer writer = {.to = bytes};
		size_t total = 0;
		for (unsigned i = 0; i < 50; i++) {
			bits[i] = 1 + (unsigned)ow_random_below(&random, 64);
			value[i] = ow_random_u64(&random) >> (64 - bits[i]);
			ow_bits_put(&writer, value[i], bits[i]);
			total += bits[i];
		}
		assert_ptr_equal(ow_bits_end(&writer), bytes + (total + 7) / 8);
		struct ow_bits_reader reader = {.from = bytes, .end = bytes + (total + 7) / 8};
		for (unsigned i = 0; i < 50; i++)
			assert_int_equal(ow_bits_get(&reader, bits[i]), value[i]);
		assert_ptr_equal(reader.from, reader.end);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bits), cmocka_unit_test(test_info),   cmocka_unit_test(test_round_trips),
		cmocka_unit_test(test_sums), cmocka_unit_test(test_sparse),
	};
	return cmocka_run_group_tests(tests, setup, NULL);
}
