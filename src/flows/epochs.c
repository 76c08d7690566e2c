/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a file of epochs: its contents, and the sum over any time range. */
#include "flows/epochs.h"

#include "flows/epochs_private.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

int ow_epochs_open(const char *path, struct ow_epochs **ret_epochs, struct ow_error *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return ow_error_set(err, errno, "%.200s: %s", path, strerror(errno));
	int r = ow_epochs_index(path, fd, ret_epochs, err);
	if (r < 0)
		close(fd);
	return r;
}

const char *ow_epochs_path(const struct ow_epochs *epochs)
{
	return epochs->path;
}

const struct ow_epoch_info *ow_epochs_info(const struct ow_epochs *epochs)
{
	return &epochs->info;
}

size_t ow_epochs_count(const struct ow_epochs *epochs)
{
	return epochs->epochs;
}

struct ow_epochs_span ow_epochs_span(const struct ow_epochs *epochs, size_t i)
{
	const struct ow_epochs_frame *frame = &epochs->epoch[i];
	return (struct ow_epochs_span){
		.begin_ns = frame->begin_ns,
		.end_ns = frame->end_ns,
		.packets = frame->packets,
		.bytes = OW_EPOCHS_HEADER + frame->size,
		.count_bytes = frame->count_bytes,
	};
}

struct ow_epochs_span ow_epochs_whole(const struct ow_epochs *epochs)
{
	struct ow_epochs_span whole = {0};
	for (size_t i = 0; i < ow_epochs_count(epochs); i++) {
		struct ow_epochs_span span = ow_epochs_span(epochs, i);
		whole.begin_ns = !i || span.begin_ns < whole.begin_ns ? span.begin_ns : whole.begin_ns;
		whole.end_ns = !i || span.end_ns > whole.end_ns ? span.end_ns : whole.end_ns;
		whole.packets += span.packets;
		whole.bytes += span.bytes;
		whole.count_bytes += span.count_bytes;
	}
	return whole;
}

const char *ow_epochs_damage(const struct ow_epochs *epochs)
{
	return *epochs->damage.text ? epochs->damage.text : NULL;
}

int ow_epochs_comparable(const struct ow_epochs *a, const struct ow_epochs *b, struct ow_error *err)
{
	struct ow_error what;
	int r = ow_epoch_info_comparable(&a->info, &b->info, &what);
	if (r < 0)
		return ow_error_set(err, EINVAL, "%.120s and %.120s cannot be compared: %.200s", a->path, b->path,
		                    what.text);
	return 0;
}

/* The sum of a level that begins with this epoch, or NULL. at: where to continue the search. */
static const struct ow_epochs_frame *sum_from(const struct ow_epochs *epochs, unsigned level, size_t epoch, size_t *at)
{
	while (*at < epochs->sums[level] && epochs->sum[level][*at].from < epoch)
		(*at)++;
	return *at < epochs->sums[level] && epochs->sum[level][*at].from == epoch ? &epochs->sum[level][*at] : NULL;
}

int ow_epochs_sum(const struct ow_epochs *epochs, int64_t since_ns, int64_t until_ns, size_t flows_max,
                  struct ow_epoch *ret_sum, struct ow_error *err)
{
	struct ow_epoch sum;
	size_t at[OW_EPOCHS_LEVELS] = {0};
	int r = ow_epoch_init(&epochs->info, flows_max, &sum, err);
	if (r < 0)
		return r;
	for (size_t i = 0; r == 0 && i < epochs->epochs;) {
		const struct ow_epochs_frame *use = NULL;
		/* The largest sum that is entirely in the wanted range. */
		for (unsigned level = OW_EPOCHS_LEVELS; level-- > 0 && !use;) {
			use = sum_from(epochs, level, i, &at[level]);
			if (use && (use->begin_ns < since_ns || use->end_ns > until_ns))
				use = NULL;
		}
		const struct ow_epochs_frame *one = &epochs->epoch[i];
		if (!use && one->end_ns > since_ns && one->begin_ns < until_ns)
			use = one;
		if (use)
			r = ow_epochs_frame_add(epochs, use, &sum, err);
		i += use ? use->epochs : 1;
	}
	if (r < 0)
		ow_epoch_done(&sum);
	else
		*ret_sum = sum;
	return r;
}
