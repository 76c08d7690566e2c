/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the seeds of fuzz_sketch into a directory: a small sketch of every kind, with and without records. */
#include <oneway/oneway.h>
#include <stdio.h>
#include <stdlib.h>

#define SEED    1
#define RECORDS 12

static int write_sketch(const char *directory, unsigned kind, bool with_records)
{
	struct ow_sketch_params params;
	struct ow_sketch *sketch;
	uint8_t *bytes;
	size_t size;
	char path[4096];
	ow_sketch_defaults(&params, kind);
	params.seed = SEED;
	params.cells = 4;
	params.stash = kind == OW_SKETCH_FINECOMB ? 2 : 0;
	if (ow_sketch_create(&params, &sketch, NULL) < 0)
		return -1;
	for (uint64_t i = 0; i < RECORDS; i++) /* the last ones are identical */
		ow_sketch_add(sketch, &(struct ow_sketch_record){i < 10 ? i : 10, (int64_t)i * 1000}, 1, NULL);
	if (ow_sketch_encode(sketch, with_records, &bytes, &size, NULL) < 0)
		return -1;
	snprintf(path, sizeof path, "%s/kind-%u%s", directory, kind, with_records ? "-records" : "");
	FILE *out = fopen(path, "wb");
	bool good = out && fwrite(bytes, 1, size, out) == size;
	if (out)
		good = fclose(out) == 0 && good;
	free(bytes);
	ow_sketch_free(sketch);
	return good ? 0 : -1;
}

int main(int argc, char **argv)
{
	for (unsigned kind = OW_SKETCH_LDA; kind <= OW_SKETCH_MINHASH; kind++) {
		for (int with = 0; with < 2; with++) {
			if (argc != 2 || write_sketch(argv[1], kind, with) < 0) {
				fprintf(stderr, "usage: %s DIRECTORY (which must be writable)\n", argv[0]);
				return 1;
			}
		}
	}
	return 0;
}
