/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OW_RESULT_JSON_READ_H
#define OW_RESULT_JSON_READ_H

#include <jansson.h>
#include <math.h>
#include <stdint.h>

/* Members of a JSON object that may be absent, or something else than they should be. */

/* A whole number from 0 on; else 0. */
static inline uint64_t ow_json_get_count(const json_t *object, const char *name)
{
	const json_t *value = json_object_get(object, name);
	json_int_t count = json_is_integer(value) ? json_integer_value(value) : 0;
	return count > 0 ? (uint64_t)count : 0;
}

/* Any number; else NAN. */
static inline double ow_json_get_number(const json_t *object, const char *name)
{
	const json_t *value = json_object_get(object, name);
	return json_is_number(value) ? json_number_value(value) : NAN;
}

#endif
