/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "result/interval_result.h"
#include "result/period.h"

/*
 * What the fleet asks a point for, on subject ow.q.POINT, and what the point's agent says to that, if a reply is wanted.
 * Both are JSON. The rows themselves go the way of all results: into the stream, and by a collector into the database.
 */
struct ow_question {
	enum ow_period period; /* intervals or minutes */
	int64_t since_ns, until_ns;
	/* The lane; all four "" = all lanes. */
	char segment[OW_RESULT_NAME], class_name[OW_RESULT_NAME], from[OW_RESULT_NAME], to[OW_RESULT_NAME];
};
/* The longest time that can be asked for. */
#define OW_QUESTION_SPAN_NS (25 * 3600 * INT64_C(1000000000))

/* To be freed; NULL = no memory. */
char *ow_question_text(const struct ow_question *question);
/* Anybody may have written it. */
bool ow_question_read(const void *data, size_t size, struct ow_question *ret_question);

struct ow_answer {
	uint64_t rows;    /* that the point has sent, or will */
	int64_t first_ns; /* start of the oldest one that it keeps of the lane; 0 = none */
	char error[160];  /* why there are none; "" = no error */
};
char *ow_answer_text(const struct ow_answer *answer);
bool ow_answer_read(const void *data, size_t size, struct ow_answer *ret_answer);
