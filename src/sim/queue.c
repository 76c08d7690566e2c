/* SPDX-License-Identifier: Apache-2.0 */
/* FIFO with tail drop, and RED. Times are picoseconds with an exact remainder: no rounding adds up. */
#include "sim/queue.h"

#include <math.h>

#define PS_PER_S UINT64_C(1000000000000)

void ow_queue_init_fifo(struct ow_queue *queue, double rate_bps, double limit_bytes)
{
	double most = OW_QUEUE_MAX_S * rate_bps / 8;
	if (limit_bytes <= 0 || limit_bytes > most)
		limit_bytes = most;
	*queue = (struct ow_queue){.rate_bps = (uint64_t)rate_bps, .limit_bytes = limit_bytes, .count = -1};
}

void ow_queue_init_red(struct ow_queue *queue, double rate_bps)
{
	ow_queue_init_fifo(queue, rate_bps, OW_RED_QUEUE_S * rate_bps / 8);
	queue->red = true;
}

static double age_idle(const struct ow_queue *queue, double idle_ps)
{
	double typical_ps = OW_RED_IDLE_BYTES * 8e12 / (double)queue->rate_bps;
	return queue->average_bytes * pow(1 - OW_RED_WEIGHT, idle_ps / typical_ps);
}

static bool red_drops(struct ow_queue *queue, double backlog_bytes, double idle_ps, struct ow_random *random)
{
	if (backlog_bytes > 0)
		queue->average_bytes += OW_RED_WEIGHT * (backlog_bytes - queue->average_bytes);
	else
		queue->average_bytes = age_idle(queue, idle_ps);
	double min_th = OW_RED_MIN_TH * queue->limit_bytes, max_th = OW_RED_MAX_TH * queue->limit_bytes;
	if (queue->average_bytes < min_th) {
		queue->count = -1;
		return false;
	}
	if (queue->average_bytes >= max_th) {
		queue->count = 0;
		return true;
	}
	queue->count++;
	double p = OW_RED_MAX_P * (queue->average_bytes - min_th) / (max_th - min_th);
	/* p_a = p_b / (1 - count p_b) spreads the drops evenly instead of geometrically. */
	double rest = 1 - (double)queue->count * p;
	if (rest > 0 && ow_random_unit(random) >= p / rest)
		return false;
	queue->count = 0;
	return true;
}

int64_t ow_queue_pass(struct ow_queue *queue, int64_t now_ns, uint32_t len, struct ow_random *random)
{
	__int128 now_ps = (__int128)now_ns * 1000, waiting_ps = queue->free_ps - now_ps;
	double backlog_bytes = waiting_ps > 0 ? (double)waiting_ps * (double)queue->rate_bps / 8e12 : 0;
	if (queue->red && red_drops(queue, backlog_bytes, waiting_ps < 0 ? (double)-waiting_ps : 0, random))
		return -1;
	if (backlog_bytes + len > queue->limit_bytes) {
		queue->count = 0;
		return -1;
	}
	if (waiting_ps <= 0) {
		queue->free_ps = now_ps;
		queue->remainder = 0;
	}
	unsigned __int128 work = (unsigned __int128)len * 8 * PS_PER_S + queue->remainder;
	queue->free_ps += (__int128)(work / queue->rate_bps);
	queue->remainder = (uint64_t)(work % queue->rate_bps);
	return (int64_t)((queue->free_ps - now_ps + 500) / 1000);
}
