/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One-way delay and loss of your own records, from two synopses, with liboneway. Each file contains the records that
 * one point saw, one per line in the order of time: nanoseconds, a space, and any text that names the record at both
 * points.
 *
 *     cc sketches.c -o sketches $(pkg-config --cflags --libs oneway)
 *     ./sketches sent.txt received.txt
 */
#include <errno.h>
#include <inttypes.h>
#include <oneway/oneway.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The work of a point: creates an empty sketch and adds every record that it sees. */
static int read_point(const char *path, struct ow_sketch *sketch, struct ow_error *err)
{
	FILE *in = fopen(path, "r");
	if (!in)
		return ow_error_set(err, ENOENT, "%s: cannot be opened", path);
	char line[1000], *name;
	int r = 0;
	while (r == 0 && fgets(line, sizeof line, in)) {
		int64_t time_ns = strtoll(line, &name, 10);
		line[strcspn(line, "\n")] = 0;
		if (name == line || *name++ != ' ')
			r = ow_error_set(err, EINVAL, "%s: not a time and a name: %s", path, line);
		else
			r = ow_sketch_add_bytes(sketch, name, strlen(name), time_ns, err);
	}
	fclose(in);
	return r;
}

/* Encodes the sketch of B and decodes it at A, as if it were sent over a network. */
static int send_to_a(struct ow_sketch *b, uint64_t seed, struct ow_sketch **ret_received, struct ow_error *err)
{
	uint8_t *bytes;
	size_t size;
	int r = ow_sketch_encode(b, true, &bytes, &size, err);
	if (r < 0)
		return r;
	printf("B sends %zu bytes\n", size);
	r = ow_sketch_decode(bytes, size, seed, ret_received, err);
	free(bytes);
	return r;
}

/* Prints a number with its interval, or the reason why there is none. */
static void print_value(const char *name, const struct ow_sketch_value *value)
{
	if (value->status == OW_SKETCH_NONE)
		printf("%-10s - (%s)\n", name, value->reason);
	else if (value->status == OW_SKETCH_EXACT)
		printf("%-10s %.0f\n", name, value->value);
	else
		printf("%-10s %.0f (95 %%: %.0f to %.0f)\n", name, value->value, value->low, value->high);
}

static int compare(const char *path_a, const char *path_b, struct ow_error *err)
{
	struct ow_sketch_params params;
	struct ow_sketch *a = NULL, *b = NULL, *received = NULL;
	struct ow_sketch_estimate estimate = {.size = sizeof estimate};
	ow_sketch_defaults(&params, OW_SKETCH_FOLD);
	params.records = 1e5; /* expected in the interval */
	params.seed = 1;      /* in production: a secret number that both points know */
	int r = ow_sketch_create(&params, &a, err);
	if (r == 0)
		r = ow_sketch_create(&params, &b, err);
	if (r == 0)
		r = read_point(path_a, a, err);
	if (r == 0)
		r = read_point(path_b, b, err);
	if (r == 0)
		r = send_to_a(b, params.seed, &received, err);
	if (r == 0)
		r = ow_sketch_estimate(a, received, &estimate, err);
	if (r == 0) {
		printf("%" PRIu64 " records sent, %" PRIu64 " received\n", estimate.sent, estimate.received);
		print_value("lost", &estimate.lost);
		print_value("extra", &estimate.extra);
		print_value("mean ns", &estimate.mean_ns);
		print_value("stddev ns", &estimate.stddev_ns);
		print_value("median ns", &estimate.quantile_ns[OW_Q50]);
	}
	ow_sketch_free(a);
	ow_sketch_free(b);
	ow_sketch_free(received);
	return r;
}

int main(int argc, char **argv)
{
	struct ow_error err;
	if (argc != 3) {
		fprintf(stderr, "usage: %s SENT RECEIVED\n", argv[0]);
		return 2;
	}
	if (compare(argv[1], argv[2], &err) < 0) {
		fprintf(stderr, "%s: %s\n", argv[0], err.text);
		return 1;
	}
	return 0;
}
