/* SPDX-License-Identifier: Apache-2.0 */
/* Traces of the COLATE paper's figures: synthetic traffic like the paper's, and captures. */
#include "papers/figures_colate.h"

#include "base/hash.h"
#include "base/time.h"
#include "sim/models.h"
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LARGEST  20000 /* packets of a synthetic flow */
#define TRAIN    4
#define STEP     1.25 /* of the link's rate */
#define FULLEST  2.5  /* the first link that is tried has this load relative to its rate, times the step */
#define TRIES    120  /* 1.25^120 = 4e11 */
#define HALVINGS 12

const struct ow_colate_paper_trace ow_colate_paper_traces[OW_COLATE_MADE] = {
	{"CHIC",
         37.3e6,
         3.01e6,
         300,
         411,
         {18.66, 10.0},
         40000,
         0.965,
         {OW_NS_PER_MS, 100 * OW_NS_PER_MS},
         {OW_SIM_SIZE_UNIFORM, 64, 762}},
	{"ICSI",
         46.9e6,
         0.387e6,
         147960,
         1.31,
         {17.19, 2.97},
         20000,
         0.609,
         {100 * OW_NS_PER_MS, 100 * OW_NS_PER_S},
         {OW_SIM_SIZE_UNIFORM, 64, 968}},
	{"DC",
         19.9e6,
         0.439e6,
         3888,
         49.6,
         {245.7, 9.06},
         40000,
         0.746,
         {OW_NS_PER_MS, OW_NS_PER_S},
         {OW_SIM_SIZE_UNIFORM, 922, 1500}},
};

static bool is_capture(const char *name)
{
	const char *dot = strstr(name, ".pcap");
	return dot && dot != name;
}

/* Adds the names of the captures in the folder, sorted. */
static int add_captures(const char *folder, struct ow_colate_traces *traces, struct ow_error *err)
{
	struct dirent **entry;
	int count = scandir(folder, &entry, NULL, alphasort);
	if (count < 0)
		return ow_error_set(err, errno, "%s: %s", folder, strerror(errno));
	for (int i = 0; i < count; i++) {
		const char *name = entry[i]->d_name;
		size_t at = traces->count;
		int length = is_capture(name) && at < OW_COLATE_TRACES_MAX
		                     ? snprintf(traces->path[at], sizeof traces->path[at], "%s/%s", folder, name)
		                     : -1;
		if (length > 0 && (size_t)length < sizeof traces->path[at]) {
			int stem = (int)(strstr(name, ".pcap") - name);
			snprintf(traces->name[at], sizeof traces->name[at], "%.*s", stem, name);
			traces->count++;
		}
		free(entry[i]);
	}
	free(entry);
	return 0;
}

int ow_colate_traces_find(const struct ow_figure_run *run, struct ow_colate_traces *ret_traces, struct ow_error *err)
{
	*ret_traces = (struct ow_colate_traces){.count = OW_COLATE_MADE};
	for (size_t i = 0; i < OW_COLATE_MADE; i++)
		snprintf(ret_traces->name[i], sizeof ret_traces->name[i], "like %s", ow_colate_paper_traces[i].name);
	return ow_figure_traces(run) ? add_captures(ow_figure_traces(run), ret_traces, err) : 0;
}

int ow_colate_trace_traffic(const struct ow_figure_run *run, const struct ow_colate_traces *traces, size_t i,
                            struct ow_flow_traffic *ret_traffic, struct ow_error *err)
{
	uint64_t seed = ow_mix64(ow_figure_seed(run) + 1000 * (i + 1));
	if (*traces->path[i]) {
		int r = ow_flow_traffic_read(traces->path[i], 0, seed, ret_traffic, err);
		/* Times count from the first packet, as in the paper: COLATE with a random j adds up whole times. */
		int64_t first_ns = r < 0 ? 0 : ret_traffic->packet[0].time_ns;
		for (size_t p = 0; r == 0 && p < ret_traffic->packets; p++)
			ret_traffic->packet[p].time_ns -= first_ns;
		return r;
	}
	const struct ow_colate_paper_trace *p = &ow_colate_paper_traces[i];
	uint32_t flows = p->made_flows / (ow_figure_quick(run) ? 10 : 1);
	double seconds = flows * p->packets / p->flows * ow_size_mean(&p->size) * 8 / (p->mbps * 1e6);
	return ow_flow_traffic_make(&(struct ow_flow_traffic_params){.flows = flows,
	                                                             .shape = p->shape,
	                                                             .least = 1,
	                                                             .most = LARGEST,
	                                                             .length_ns = (int64_t)(seconds * 1e9),
	                                                             .train = TRAIN,
	                                                             .gap_ns = {p->gap_ns[0], p->gap_ns[1]},
	                                                             .size = p->size,
	                                                             .seed = seed},
	                            ret_traffic, err);
}

int ow_colate_traces_claim(struct ow_figure_run *run, const struct ow_colate_traces *traces)
{
	char text[300] = "synthetic traffic like these";
	size_t length = strlen(text);
	for (size_t i = OW_COLATE_MADE; i < traces->count; i++)
		length += (size_t)snprintf(text + length, sizeof text - length, "%s%.30s",
		                           i == OW_COLATE_MADE ? ", and the captures " : ", ", traces->name[i]);
	if (traces->count == OW_COLATE_MADE)
		snprintf(text + length, sizeof text - length, "; no captures (--traces)");
	return ow_figure_claim(run, "three traces: CHIC (backbone), ICSI (enterprise), DC (data centre)", true, "%s",
	                       text);
}

/*
 * Tries one queue. Returns 1 if it drops at most the share `loss` (the stream is kept), 0 if it drops more, or -errno.
 */
static int try_red(const struct ow_flow_traffic *traffic, double utilisation, double loss, uint64_t seed,
                   struct ow_flow_path *ret_path, struct ow_flow_stream *ret_stream, struct ow_error *err)
{
	struct ow_flow_path path = {.delay = ow_flow_queue(OW_SIM_RED, traffic, utilisation, 0), .seed = seed};
	int r = ow_flow_stream_make(traffic, &path, ret_stream, err);
	if (r < 0)
		return r;
	if ((double)(ret_stream->as - ret_stream->bs) <= loss * (double)ret_stream->as) {
		*ret_path = path;
		return 1;
	}
	ow_flow_stream_done(ret_stream);
	return 0;
}

int ow_colate_red(const struct ow_flow_traffic *traffic, double loss, uint64_t seed, struct ow_flow_path *ret_path,
                  struct ow_flow_stream *ret_stream, struct ow_error *err)
{
	double utilisation = FULLEST;
	int r = 0;
	for (int i = 0; i < TRIES && r == 0; i++) {
		utilisation /= STEP;
		r = try_red(traffic, utilisation, loss, seed, ret_path, ret_stream, err);
	}
	if (r == 0)
		return ow_error_set(err, ERANGE, "no link is fast enough for these packets");
	/* With loss, finer steps get closer to the wanted share. */
	double good = utilisation, bad = utilisation * STEP;
	for (int i = 0; i < HALVINGS && loss > 0 && r == 1; i++) {
		struct ow_flow_stream closer;
		double middle = (good + bad) / 2;
		r = try_red(traffic, middle, loss, seed, ret_path, &closer, err);
		*(r == 1 ? &good : &bad) = middle;
		if (r == 1) {
			ow_flow_stream_done(ret_stream);
			*ret_stream = closer;
		}
		r = r < 0 ? r : 1;
	}
	if (r < 0)
		ow_flow_stream_done(ret_stream);
	return r < 0 ? r : 0;
}

int ow_colate_trace_stream(const struct ow_figure_run *run, const struct ow_colate_traces *traces, size_t i,
                           struct ow_flow_traffic *ret_traffic, struct ow_flow_path *ret_path,
                           struct ow_flow_stream *ret_stream, struct ow_error *err)
{
	int r = ow_colate_trace_traffic(run, traces, i, ret_traffic, err);
	if (r < 0)
		return r;
	r = ow_colate_red(ret_traffic, 0, ow_mix64(ow_figure_seed(run) + 77 * i), ret_path, ret_stream, err);
	if (r < 0)
		ow_flow_traffic_done(ret_traffic);
	return r;
}
