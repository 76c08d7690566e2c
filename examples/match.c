/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One-way delay and loss from two captures, with liboneway.
 *
 *     cc match.c -o match $(pkg-config --cflags --libs oneway)
 *     ./match a.pcap b.pcap
 */
#include <oneway/oneway.h>
#include <stdio.h>

int main(int argc, char **argv)
{
	struct ow_match_options options;
	struct ow_match *match;
	struct ow_error err;

	if (argc != 3) {
		fprintf(stderr, "usage: %s A B\n", argv[0]);
		return 2;
	}
	ow_match_defaults(&options);
	if (ow_match_files(argv[1], argv[2], &options, &match, &err) < 0) {
		fprintf(stderr, "%s: %s\n", argv[0], err.text);
		return 1;
	}
	const struct ow_result *result = &ow_match_report(match)->direction[OW_A_TO_B];
	printf("%llu packets sent, %llu lost\n", (unsigned long long)result->sent, (unsigned long long)result->lost);
	if (result->delay.samples)
		printf("delay: mean %.0f ns, min %lld ns, max %lld ns\n", result->delay.mean_ns,
		       (long long)result->delay.min_ns, (long long)result->delay.max_ns);
	ow_match_free(match);
	return 0;
}
