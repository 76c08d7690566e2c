/* SPDX-License-Identifier: Apache-2.0 */
/* The truth as JSON: a RESULT for A to B with further members. */
#include "result/json.h"
#include "sim/sim.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The RESULT object without its closing brace, so that members can follow. */
static void put_open_result(FILE *out, const struct ow_result *result)
{
	char *text = NULL;
	size_t size = 0;
	FILE *memory = open_memstream(&text, &size);
	if (!memory)
		return;
	ow_report_result_json(memory, result, 0);
	if (fclose(memory) == 0) {
		size_t end = size;
		while (end > 0 && text[end - 1] != '}')
			end--;
		while (end > 1 && (text[end - 2] == '\n' || text[end - 2] == ' '))
			end--;
		fwrite(text, 1, end ? end - 1 : 0, out);
	}
	free(text);
}

static void put_sides(FILE *out, const char *name, const uint64_t count[OW_SIDES])
{
	fprintf(out, ",\n  \"%s\": {\"a\": %" PRIu64 ", \"b\": %" PRIu64 "}", name, count[OW_SIDE_A], count[OW_SIDE_B]);
}

static void put_truth(FILE *out, const struct ow_sim_truth *truth)
{
	put_open_result(out, &truth->direction[OW_A_TO_B]);
	fputs(",\n  \"reverse\": ", out);
	if (truth->has_direction[OW_B_TO_A])
		ow_report_result_json(out, &truth->direction[OW_B_TO_A], 2);
	else
		fputs("null", out);
	fprintf(out, ",\n  \"seed\": %" PRIu64, truth->seed);
	fprintf(out, ",\n  \"clock\": {\"offset_ns\": %" PRId64 ", \"drift_ppb\": %.17g}", truth->offset_ns,
	        truth->drift_ppb);
	fprintf(out, ",\n  \"first_ns\": %" PRId64 ",\n  \"last_ns\": %" PRId64, truth->first_ns, truth->last_ns);
	put_sides(out, "records", truth->records);
	put_sides(out, "outside", truth->outside);
	put_sides(out, "superframes", truth->superframes);
	fprintf(out, ",\n  \"queue_drops\": %" PRIu64, truth->dropped);
	fprintf(out, ",\n  \"retransmitted\": %" PRIu64 ",\n  \"identical\": %" PRIu64 ",\n  \"fragments\": %" PRIu64,
	        truth->retransmitted, truth->identical, truth->fragments);
	fprintf(out,
	        ",\n  \"drifted\": {\"pre_start\": %" PRIu64 ", \"post_start\": %" PRIu64 ", \"pre_end\": %" PRIu64
	        ", \"post_end\": %" PRIu64 "}\n}\n",
	        truth->drifted[0], truth->drifted[1], truth->drifted[2], truth->drifted[3]);
}

int ow_sim_truth_write(const char *path, const struct ow_sim_truth *truth, struct ow_error *err)
{
	bool standard = strcmp(path, "-") == 0;
	FILE *out = standard ? stdout : fopen(path, "w");
	if (!out)
		return ow_error_set(err, errno, "%s: %s", path, strerror(errno));
	put_truth(out, truth);
	bool bad = ferror(out) || fflush(out) != 0;
	int code = errno;
	if (!standard && fclose(out) != 0 && !bad) {
		bad = true;
		code = errno;
	}
	return bad ? ow_error_set(err, code, "%s: %s", path, strerror(code)) : 0;
}
