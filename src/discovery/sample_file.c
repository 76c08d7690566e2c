/* SPDX-License-Identifier: Apache-2.0 */
/* Samples from files of messages and from captures: sample_file.h. */
#include "discovery/sample_file.h"

#include "base/bytes.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAGIC "OWS"
#define BATCH 256

bool ow_sample_file_is(const char *path)
{
	uint8_t head[8] = {0};
	FILE *file = fopen(path, "rb");
	size_t got = file ? fread(head, 1, sizeof head, file) : 0;
	if (file)
		fclose(file);
	return got == sizeof head && memcmp(head + 4, MAGIC, 3) == 0;
}

static int read_message(FILE *file, const char *path, uint8_t *bytes, ow_sample_handler *handler, void *arg,
                        struct ow_error *err)
{
	struct ow_vantage_sample sample;
	struct ow_error why;
	uint8_t head[4];
	long at = ftell(file);
	size_t got = fread(head, 1, sizeof head, file);
	if (got == 0 && feof(file))
		return 0;
	uint32_t size = got == sizeof head ? ow_load_le32(head) : 0;
	if (got < sizeof head || size > OW_SAMPLE_BYTES_MAX || fread(bytes, 1, size, file) < size)
		return ow_error_set(err, EINVAL, "%.200s: not a file of samples from byte %ld on", path, at);
	int r = ow_vantage_sample_decode(bytes, size, &sample, &why);
	if (r < 0)
		return ow_error_set(err, EINVAL, "%.200s: at byte %ld: %.200s", path, at, why.text);
	r = handler(arg, &sample, err);
	ow_vantage_sample_done(&sample);
	return r < 0 ? r : 1;
}

int ow_sample_file_read(const char *path, ow_sample_handler *handler, void *arg, struct ow_error *err)
{
	FILE *file = fopen(path, "rb");
	uint8_t *bytes = malloc(OW_SAMPLE_BYTES_MAX);
	int r = 1;
	if (!file)
		r = ow_error_set(err, errno, "%.200s: %s", path, strerror(errno));
	else if (!bytes)
		r = ow_error_set(err, ENOMEM, "out of memory");
	while (r > 0)
		r = read_message(file, path, bytes, handler, arg, err);
	if (file)
		fclose(file);
	free(bytes);
	return r;
}

/* -- captures ------------------------------------------------------------------------------------------------------- */

struct taking {
	const struct ow_sample_capture *capture;
	ow_sample_handler *handler;
	void *arg;
	int failed;
	struct ow_error *err;
};

static void take(void *arg, unsigned source, struct ow_vantage_sample *sample)
{
	struct taking *taking = arg;
	(void)source;
	snprintf(sample->point, sizeof sample->point, "%s", taking->capture->point);
	snprintf(sample->interface, sizeof sample->interface, "capture");
	if (taking->failed == 0)
		taking->failed = taking->handler(taking->arg, sample, taking->err);
}

int ow_sample_capture_read(const struct ow_sample_capture *capture, ow_sample_handler *handler, void *arg,
                           struct ow_error *err)
{
	struct taking taking = {.capture = capture, .handler = handler, .arg = arg, .err = err};
	const struct ow_iface_options open = {.kind = OW_IFACE_FILE, .name = capture->path};
	const struct ow_sampler_options options = {.key = capture->key,
	                                           .records = capture->records,
	                                           .epoch_ns = capture->epoch_ns,
	                                           .on_sample = take,
	                                           .arg = &taking};
	struct ow_iface_frame frame[BATCH];
	struct ow_sampler *sampler = NULL;
	struct ow_error end = {.text = ""};
	struct ow_iface *file;
	int r = ow_iface_open(&open, &file, err);
	if (r < 0)
		return r;
	r = ow_sampler_create(&options, 0, false, &sampler, err);
	while (r == 0 && taking.failed == 0) {
		end.text[0] = 0;
		int n = ow_iface_read(file, 1000, frame, BATCH, &end);
		if (n < 0) {
			r = n;
			break;
		}
		ow_sampler_frames(sampler, frame, (size_t)n);
		ow_sampler_pass(sampler, ow_iface_passed_ns(file), 0);
	}
	if (r == -ENODATA) {
		ow_sampler_pass(sampler, INT64_MAX, 0);
		r = end.text[0] ? 1 : 0;
	}
	if (r && sampler && err)
		*err = end;
	ow_sampler_free(sampler);
	ow_iface_close(file);
	return taking.failed ? taking.failed : r;
}
