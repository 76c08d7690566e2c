/* SPDX-License-Identifier: Apache-2.0 */
/* The table of fields: it has every member, its numbers are in order, JSON comes back in, and docs/json.md names it. */
#include "every_field.h"
#include "result/result_json.h"
#include "result/result_read.h"
#include "store/stored_sum.h"

#include <errno.h>
#include <stdlib.h>

static const char *documentation;

/* Rows overlap nowhere, and what no row covers is padding or stays within the process. */
static void every_member_has_a_row(void **state)
{
	(void)state;
	static bool covered[sizeof(struct ow_interval_result)];
	const struct ow_interval_result *none = NULL;
	memset(covered + offsetof(struct ow_interval_result, waiting), true, sizeof none->waiting);
	memset(covered + offsetof(struct ow_interval_result, missed), true,
	       sizeof none->missed); /* coverage tells it */
	memset(covered + offsetof(struct ow_interval_result, delay_bucket), true, sizeof none->delay_bucket);
	for (size_t i = 0; i < ow_field_count; i++) {
		for (size_t byte = 0; byte < ow_fields[i].size; byte++) {
			assert_false(covered[ow_fields[i].offset + byte]);
			covered[ow_fields[i].offset + byte] = true;
		}
	}
	for (size_t i = 0, gap = 0; i < sizeof covered; i++) {
		gap = covered[i] ? 0 : gap + 1;
		if (gap >= sizeof(uint64_t))
			fail_msg("bytes up to %zu belong to no field", i);
	}
}

static void numbers_are_in_order(void **state)
{
	(void)state;
	unsigned wires = 0, places = 0, counts = 0;
	for (unsigned wire = 1; wire <= ow_field_count; wire++)
		wires += ow_field_wire(wire) != NULL;
	for (unsigned place = 1; place <= ow_field_count; place++)
		places += ow_field_place(place) != NULL;
	for (size_t i = 0; i < ow_field_count; i++) {
		const struct ow_field *field = &ow_fields[i];
		assert_true(!field->wire || ow_field_wire(field->wire) == field);
		assert_true(!field->columns || ow_field_place(field->place) == field);
		/* What is added up, and what has words, is a count; sums of a store have room for all. */
		counts += field->sum == OW_SUM_ADD;
		assert_true(field->type == OW_FIELD_COUNT || field->sum != OW_SUM_ADD);
		assert_true(field->sum == OW_SUM_ADD || !field->words);
		assert_true(field->sum != OW_SUM_ADD || (field->columns && !strchr(field->columns, ',')));
		wires -= field->wire != 0;
		places -= field->columns != NULL;
	}
	assert_int_equal(wires, 0);
	assert_int_equal(places, 0);
	assert_true(counts <= OW_STORED_COUNTS);
}

static void comes_back(const struct ow_interval_result *wrote)
{
	struct ow_interval_result read;
	struct ow_error err;
	char *line;
	size_t size;
	FILE *out = open_memstream(&line, &size);
	ow_result_json(out, wrote);
	assert_int_equal(fclose(out), 0);
	assert_int_equal(ow_result_json_read(line, size, &read, &err), 1);
	for (size_t i = 0; i < ow_field_count; i++)
		every_same(&ow_fields[i], wrote, &read);
	free(line);
}

static void json_comes_back(void **state)
{
	(void)state;
	for (unsigned more = 0; more < 4; more++) {
		struct ow_interval_result r = every_field(more);
		comes_back(&r);
		r.reordered = OW_RESULT_NOT_COUNTED;
		r.clock_to = (struct ow_clock_state){false, OW_CLOCK_UNKNOWN};
		r.active = r.final = r.exact = false;
		r.cause[0] = 0;
		r.status = OW_RESULT_MEASURED;
		for (int q = 0; q < OW_QUANTILES; q++)
			r.quantile_ns[q] = ow_value_none(OW_REASON_SAMPLED);
		comes_back(&r);
	}
}

/* Each part of a name stands in the section of live results, as `code`. */
static void documentation_names_them(void **state)
{
	(void)state;
	FILE *file = fopen(documentation, "r");
	char *text = NULL, part[80];
	size_t size = 0;
	if (!file)
		fail_msg("%s: %s", documentation, strerror(errno));
	assert_true(getdelim(&text, &size, 0, file) > 0);
	const char *section = strstr(text, "## Live results");
	assert_non_null(section);
	for (size_t i = 0; i < ow_field_count; i++) {
		for (const char *at = ow_fields[i].json; *at; at += strcspn(at, "."), at += *at == '.') {
			snprintf(part, sizeof part, "`%.*s`", (int)strcspn(at, "."), at);
			if (!strstr(section, part))
				fail_msg("%s does not name %s of %s", documentation, part, ow_fields[i].json);
		}
	}
	free(text);
	fclose(file);
}

/* Counts add up, durations become means, the worse clock wins, names are those of the first. */
static void sums(void **state)
{
	(void)state;
	struct ow_interval_result a = every_field(0), b = every_field(4), sum = a;
	b.exact = false;
	b.clock_from.synchronised = false;
	ow_fields_add(&sum, &b, ~OW_SUM_BIT(OW_SUM_FIRST));
	assert_int_equal(sum.sent, a.sent + b.sent);
	assert_int_equal(sum.cost.round_trips, a.cost.round_trips + b.cost.round_trips);
	assert_int_equal(sum.reordered, a.reordered + b.reordered);
	assert_int_equal(sum.sample_shift, b.sample_shift > a.sample_shift ? b.sample_shift : a.sample_shift);
	assert_false(sum.exact);
	assert_false(sum.clock_from.synchronised);
	assert_int_equal(sum.clock_from.error_ns, b.clock_from.error_ns);
	assert_string_equal(sum.segment, a.segment);
	assert_string_equal(sum.synopsis, b.synopsis);
	ow_fields_mean(&sum, 2);
	assert_int_equal(sum.cost.ready_ns, (a.cost.ready_ns + b.cost.ready_ns) / 2);
	b.reordered = OW_RESULT_NOT_COUNTED;
	ow_fields_add(&sum, &b, OW_SUM_BIT(OW_SUM_ADD));
	ow_fields_add(&sum, &a, OW_SUM_BIT(OW_SUM_ADD));
	assert_true(sum.reordered == OW_RESULT_NOT_COUNTED);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_member_has_a_row),
		cmocka_unit_test(numbers_are_in_order),
		cmocka_unit_test(json_comes_back),
		cmocka_unit_test(documentation_names_them),
		cmocka_unit_test(sums),
	};
	if (argc != 2)
		return 2;
	documentation = argv[1];
	return cmocka_run_group_tests(tests, NULL, NULL);
}
