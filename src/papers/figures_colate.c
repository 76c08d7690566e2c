/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Figures of the COLATE paper (Shahzad and Liu, SIGMETRICS 2014) about traces, sizes and storage: 2 to 5, 10 and the
 * tables; and the list of all its figures.
 */
#include "papers/figures_colate.h"

#include "base/hash.h"
#include "base/random.h"
#include "flows/colate_size.h"
#include "papers/rli.h"
#include "papers/spread.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

/*
 * The paper's example: 1 MB, alpha 0.95, beta 0.05 give b = 19, m = 20, n = 455334, T = 8e10. The paper does not name
 * t_min and t_max; these values follow from equations 22 and 15. An epoch of the ICSI trace then lasts 24.6 hours, so a
 * unit of time is T / (packets of an epoch) / (half an epoch).
 */
#define T_MIN       8.5e4
#define T_MAX       3.5e6
#define PAPER_T     8e10
#define PAPER_N     455334.
#define PAPER_B     19
#define MEGABYTE    (8. * 1024 * 1024)
#define ICSI_EPOCH  (24.6 * 3600)
#define ICSI        1
#define HIGH_ALPHA  0.99
#define HIGH_BETA   0.01
#define WINDOW_NS   100000000 /* over which RLI measures utilisation */
#define PROBE_BYTES 64

/* -- figure 2 ----------------------------------------------------------------------------------------------------- */

/* Draws the CDF of the ratios of a flow's part of a counter to one m-th of the sum of its times. */
static int ratio_points(struct ow_figure_run *run, const char *series, struct ow_colate_errors *ratios)
{
	int r = 0;
	for (int i = 0; i <= 60 && r == 0 && ratios->count; i++) {
		double x = i / 20., share = ow_colate_errors_within(ratios, x);
		r = ow_figure_point(run, series, x, share, share, share);
	}
	return r;
}

/* Adds the ratios of all counters of the flows with `least` to `most` packets. */
static int add_ratios(const struct ow_flow_traffic *traffic, uint64_t seed, uint64_t least, uint64_t most,
                      struct ow_colate_errors *ratios, struct ow_spread *mean)
{
	size_t cells = (size_t)traffic->flows * OW_COLATE_SPREAD;
	double *sum = calloc(cells, sizeof *sum);
	uint64_t *packets = calloc(traffic->flows, sizeof *packets);
	struct ow_random random;
	ow_random_seed(&random, seed);
	int r = sum && packets ? 0 : -ENOMEM;
	for (size_t i = 0; r == 0 && i < traffic->packets; i++) {
		const struct ow_flow_packet *p = &traffic->packet[i];
		sum[p->flow * (size_t)OW_COLATE_SPREAD + ow_random_below(&random, OW_COLATE_SPREAD)] +=
			(double)(p->time_ns - traffic->packet[0].time_ns);
		packets[p->flow]++;
	}
	for (uint32_t f = 0; r == 0 && f < traffic->flows; f++) {
		const double *cell = &sum[(size_t)f * OW_COLATE_SPREAD];
		double all = 0;
		for (int j = 0; j < OW_COLATE_SPREAD; j++)
			all += cell[j];
		for (int j = 0; r == 0 && all > 0 && packets[f] >= least && packets[f] < most && j < OW_COLATE_SPREAD;
		     j++) {
			double ratio = cell[j] * OW_COLATE_SPREAD / all;
			ow_spread_add(mean, ratio);
			r = ow_colate_errors_add(ratios, ratio);
		}
	}
	free(sum);
	free(packets);
	return r;
}

static int figure_2(struct ow_figure_run *run, struct ow_error *err)
{
	static const struct {
		const char *name;
		uint64_t least, most;
	} classes[] = {{"flows of 1-15 packets", 1, 16},
	               {"flows of 16-255 packets", 16, 256},
	               {"flows of 256 packets and more", 256, UINT64_MAX},
	               {"all flows", 1, UINT64_MAX}};
	enum { CLASSES = sizeof classes / sizeof *classes };
	struct ow_colate_traces traces;
	struct ow_flow_traffic traffic;
	int r = ow_colate_traces_find(run, &traces, err);
	if (r == 0)
		r = ow_colate_trace_traffic(run, &traces, ICSI, &traffic, err);
	if (r < 0)
		return r;
	double median[CLASSES] = {0};
	struct ow_spread mean[CLASSES] = {{0}};
	for (int c = 0; c < CLASSES && r == 0; c++) {
		struct ow_colate_errors ratios = {0};
		r = add_ratios(&traffic, ow_figure_seed(run) + 2, classes[c].least, classes[c].most, &ratios, &mean[c]);
		if (r == 0)
			r = ratio_points(run, classes[c].name, &ratios);
		median[c] = ow_colate_errors_quantile(&ratios, 0.5);
		ow_colate_errors_done(&ratios);
		ow_figure_progress(run, (c + 1.) / CLASSES);
	}
	ow_flow_traffic_done(&traffic);
	return r < 0 ? r
	             : ow_figure_claim(
			       run, "C_f / E[C_f]: mean and median are both 1",
			       fabs(ow_spread_mean(&mean[3]) - 1) < 0.01 && fabs(median[3] - 1) < 0.05,
			       "mean %.3f; median %.2f for flows of 256 packets and more, %.2f for 16-255, %.2f for "
			       "1-15, %.2f over all",
			       ow_spread_mean(&mean[3]), median[2], median[1], median[0], median[3]);
}

/* -- figures 3, 4 and 10: sizes ----------------------------------------------------------------------------------- */

static int size_for(double megabytes, double alpha, double beta, struct ow_colate_size *ret_size, double *ret_t_min,
                    struct ow_error *err)
{
	struct ow_colate_need need = {.memory_bits = megabytes * MEGABYTE,
	                              .alpha = alpha,
	                              .beta = beta,
	                              .t_min = T_MIN,
	                              .t_max = T_MAX,
	                              .ratio = 1,
	                              .m_min = OW_COLATE_SPREAD};
	/* Only larger flows can meet a stricter requirement: t_min is chosen so that equation 22 can hold. */
	int r;
	while ((r = ow_colate_size(&need, ret_size, err)) == -ERANGE && need.t_min < 1e3 * need.t_max)
		need.t_min *= 1.01, need.t_max = fmax(need.t_max, need.t_min);
	*ret_t_min = need.t_min;
	return r;
}

/* Packets per second of a trace of the paper. */
static double rate_of(const struct ow_colate_paper_trace *trace)
{
	return trace->packets / trace->seconds;
}

/* Seconds per unit of time, so that an epoch of T units lasts as long as the paper says. */
static double unit_s(void)
{
	return rate_of(&ow_colate_paper_traces[ICSI]) * ICSI_EPOCH * ICSI_EPOCH / 2 / PAPER_T;
}

/* Packets of an epoch if times count from its start: rate d^2 / 2 = T units. */
static double epoch_packets(const struct ow_colate_paper_trace *trace, double T)
{
	return rate_of(trace) * sqrt(2 * T * unit_s() / rate_of(trace));
}

static int figure_3(struct ow_figure_run *run, struct ow_error *err)
{
	const struct ow_colate_paper_trace *icsi = &ow_colate_paper_traces[ICSI];
	double origin[2] = {0}, start[2] = {0}, t_min;
	int r = 0;
	for (int i = 0; i <= 8 && r == 0; i++) {
		double megabytes = exp2(i - 2);
		struct ow_colate_size size;
		r = size_for(megabytes, 0.95, 0.05, &size, &t_min, err);
		if (r < 0)
			break;
		/* If times count from the start of the trace, the sum of all times is fixed, and it is cut every T. */
		double times = icsi->packets * icsi->seconds / unit_s() / 2, megabytes_a = megabytes * times / size.T;
		double megabytes_b = megabytes * icsi->packets / epoch_packets(icsi, size.T);
		origin[i > 0] = megabytes_a;
		start[i > 0] = megabytes_b;
		r = ow_figure_point(run, "times since the start of the trace", megabytes, megabytes_a, megabytes_a,
		                    megabytes_a);
		if (r == 0)
			r = ow_figure_point(run, "times since the start of the epoch", megabytes, megabytes_b,
			                    megabytes_b, megabytes_b);
	}
	return r < 0 ? r
	             : ow_figure_claim(
			       run, "more RAM needs less permanent storage",
			       origin[1] < 0.9 * origin[0] || start[1] < 0.9 * start[0],
			       "0.25 to 64 MB: %.3g to %.3g MB with times since the trace's start, %.3g to %.3g MB "
			       "since the epoch's",
			       origin[0], origin[1], start[0], start[1]);
}

static int figure_4(struct ow_figure_run *run, struct ow_error *err)
{
	double T[2] = {0}, t_min;
	struct ow_colate_size one = {0};
	int r = 0;
	for (int i = 0; i <= 8 && r == 0; i++) {
		struct ow_colate_size size;
		r = size_for(exp2(i - 2), 0.95, 0.05, &size, &t_min, err);
		if (r == 0)
			r = ow_figure_point(run, "T", exp2(i - 2), size.T, size.T, size.T);
		if (r == 0)
			T[i > 0] = size.T;
		if (i == 2)
			one = size;
	}
	if (r < 0)
		return r;
	r = ow_figure_claim(run, "T increases with RAM", T[1] > T[0], "%.2g at 0.25 MB, %.2g at 64 MB: in proportion",
	                    T[0], T[1]);
	if (r == 0)
		r = ow_figure_claim(
			run, "1 MB, 0.95, 0.05: b = 19, m = 20, n = 455334, T = 8e10",
			ceil(one.b) == PAPER_B && fabs(one.n / PAPER_N - 1) < 0.02 && fabs(one.T / PAPER_T - 1) < 0.05,
			"b = %.2f, m = %.0f, n = %.0f, T = %.2g (t_min %.2g, t_max %.2g, beta of the times)", one.b,
			one.m, one.n, one.T, T_MIN, T_MAX);
	return r < 0 ? r
	             : ow_figure_claim(run, "microsecond latencies", unit_s() < 1e-3,
	                               "T = 8e10 in the 24.6 h of an ICSI epoch makes a unit %.1f s", unit_s());
}

static int figure_10(struct ow_figure_run *run, struct ow_error *err)
{
	static const double megabytes[] = {1, 10, 100};
	double high[OW_COLATE_MADE][3] = {{0}}, least = INFINITY, most = 0, t_min = 0;
	int r = 0;
	for (int i = 0; i < 3 && r == 0; i++) {
		struct ow_colate_size size;
		r = size_for(megabytes[i], HIGH_ALPHA, HIGH_BETA, &size, &t_min, err);
		for (int t = 0; t < OW_COLATE_MADE && r == 0; t++) {
			const struct ow_colate_paper_trace *trace = &ow_colate_paper_traces[t];
			double bits = megabytes[i] * MEGABYTE / epoch_packets(trace, size.T);
			high[t][i] = bits;
			least = fmin(least, bits);
			most = fmax(most, bits);
			r = ow_figure_point(run, trace->name, megabytes[i], bits, bits, bits);
		}
	}
	if (r < 0)
		return r;
	r = ow_figure_claim(run, "less than 0.1 bit a packet for all traces and sizes (0.99, 0.01)", most < 0.1,
	                    "%.2g to %.2g bits, for flows with %.1f times the t_min of (0.95, 0.05)", least, most,
	                    t_min / T_MIN);
	if (r == 0)
		r = ow_figure_claim(run, "the bits a packet decrease with RAM", high[ICSI][2] < high[ICSI][0],
		                    "ICSI %.2g, %.2g, %.2g bits at 1, 10, 100 MB", high[ICSI][0], high[ICSI][1],
		                    high[ICSI][2]);
	double packets = rate_of(&ow_colate_paper_traces[ICSI]) * ICSI_EPOCH;
	if (r == 0)
		r = ow_figure_claim(run, "ICSI, 1 MB, 0.95, 0.05: an epoch of 24.6 hours, 0.1 bit a packet",
		                    PAPER_N * PAPER_B / packets < 0.1,
		                    "455334 counters of 19 bits over %.3g packets: %.2f bit", packets,
		                    PAPER_N * PAPER_B / packets);
	double ours = OW_COLATE_OURS * (48 + 16) / 100;
	return r < 0 ? r
	             : ow_figure_claim(run, "12.8 bits a packet for MAPLE, 0.1 for COLATE", ours < 12.8,
	                               "banks+cg with 0.5 counters a flow of 48 bits, and 16 of check: %.2f bit at 100 "
	                               "packets a flow, times in ns",
	                               ours);
}

/* -- figure 5, tables 2 and 3: traces ----------------------------------------------------------------------------- */

/* Writes the number of packets of each flow into ret_sizes. */
static int flow_sizes(const struct ow_flow_traffic *traffic, struct ow_colate_errors *ret_sizes)
{
	uint64_t *packets = calloc(traffic->flows, sizeof *packets);
	int r = packets ? 0 : -ENOMEM;
	for (size_t i = 0; r == 0 && i < traffic->packets; i++)
		packets[traffic->packet[i].flow]++;
	for (uint32_t f = 0; r == 0 && f < traffic->flows; f++)
		r = ow_colate_errors_add(ret_sizes, (double)packets[f]);
	free(packets);
	return r;
}

static int figure_5(struct ow_figure_run *run, struct ow_error *err)
{
	struct ow_colate_traces traces;
	int r = ow_colate_traces_find(run, &traces, err);
	char text[400] = "";
	size_t length = 0;
	for (size_t i = 0; r == 0 && i < traces.count; i++) {
		struct ow_flow_traffic traffic;
		struct ow_colate_errors sizes = {0};
		r = ow_colate_trace_traffic(run, &traces, i, &traffic, err);
		if (r < 0)
			break;
		r = flow_sizes(&traffic, &sizes);
		for (int x = 0; x <= 50 && r == 0; x++) {
			double packets = pow(10, x / 10.), share = ow_colate_errors_within(&sizes, packets);
			r = ow_figure_point(run, traces.name[i], packets, share, share, share);
		}
		length +=
			(size_t)snprintf(text + length, sizeof text - length, "%s%.30s: %.0f %% below 16, largest %.0f",
		                         i ? "; " : "", traces.name[i], 100 * ow_colate_errors_within(&sizes, 15),
		                         ow_colate_errors_quantile(&sizes, 1));
		length = length < sizeof text ? length : sizeof text - 1;
		ow_colate_errors_done(&sizes);
		ow_flow_traffic_done(&traffic);
		ow_figure_progress(run, (double)(i + 1) / (double)traces.count);
	}
	if (r == 0)
		r = ow_colate_traces_claim(run, &traces);
	return r < 0 ? r : ow_figure_claim(run, "the traces contain both mice and elephant flows", true, "%s", text);
}

static int table_2(struct ow_figure_run *run, struct ow_error *err)
{
	struct ow_colate_traces traces;
	int r = ow_colate_traces_find(run, &traces, err);
	for (size_t i = 0; r == 0 && i < traces.count; i++) {
		struct ow_flow_traffic traffic;
		r = ow_colate_trace_traffic(run, &traces, i, &traffic, err);
		if (r < 0)
			break;
		double packets = (double)traffic.packets, flows = traffic.flows;
		double mbps = ow_flow_traffic_bps(&traffic) / 1e6;
		double row[] = {(double)ow_flow_traffic_length(&traffic) / 1e9, packets, flows, mbps};
		for (int x = 0; x < 4 && r == 0; x++)
			r = ow_figure_point(run, traces.name[i], x + 1, row[x], row[x], row[x]);
		char paper[160] = "not in the paper";
		bool agrees = true;
		if (i < OW_COLATE_MADE) {
			const struct ow_colate_paper_trace *p = &ow_colate_paper_traces[i];
			snprintf(paper, sizeof paper,
			         "%s: %.0f s, %.1f M packets, %.3g M flows (%.1f a flow), %.3g Mbit/s", p->name,
			         p->seconds, p->packets / 1e6, p->flows / 1e6, p->packets / p->flows, p->mbps);
			/* Sizes are heavy-tailed, so the mean of few flows varies a lot. */
			agrees = fabs(packets / flows / (p->packets / p->flows) - 1) < 0.25 &&
			         fabs(mbps / p->mbps - 1) < 0.3;
		}
		if (r == 0)
			r = ow_figure_claim(run, paper, agrees,
			                    "%.40s: %.0f s, %.3f M packets, %.4f M flows (%.1f a flow), %.3g Mbit/s",
			                    traces.name[i], row[0], packets / 1e6, flows / 1e6, packets / flows, mbps);
		ow_flow_traffic_done(&traffic);
		ow_figure_progress(run, (double)(i + 1) / (double)traces.count);
	}
	return r;
}

/* The number of regular packets for each probe, for both pairs of limits. */
static int per_probe(const struct ow_flow_traffic *traffic, uint64_t seed, double ret_per_probe[2],
                     struct ow_error *err)
{
	static const struct ow_rli_params limits[2] = {{1. / 300, 1. / 10, PROBE_BYTES, WINDOW_NS},
	                                               {1. / 10, 1. / 2, PROBE_BYTES, WINDOW_NS}};
	struct ow_flow_path path;
	struct ow_flow_stream stream = {0};
	int r = ow_colate_red(traffic, 0, seed, &path, &stream, err);
	if (r < 0)
		return r;
	ow_flow_stream_done(&stream);
	for (int i = 0; i < 2 && r == 0; i++) {
		struct ow_rli rli;
		r = ow_rli_run(traffic, &path, &limits[i], &rli, err);
		if (r < 0)
			break;
		ret_per_probe[i] = rli.probes ? (double)rli.packets / (double)rli.probes : INFINITY;
		ow_rli_done(&rli);
	}
	return r;
}

static int table_3(struct ow_figure_run *run, struct ow_error *err)
{
	struct ow_colate_traces traces;
	int r = ow_colate_traces_find(run, &traces, err);
	for (size_t i = 0; r == 0 && i < traces.count; i++) {
		struct ow_flow_traffic traffic;
		double ours[2] = {0};
		r = ow_colate_trace_traffic(run, &traces, i, &traffic, err);
		if (r < 0)
			break;
		r = per_probe(&traffic, ow_figure_seed(run) + i, ours, err);
		ow_flow_traffic_done(&traffic);
		char paper[120] = "not in the paper", text[200];
		if (i < OW_COLATE_MADE)
			snprintf(paper, sizeof paper,
			         "%s: a probe every %.4g packets (1:300 to 1:10), %.4g (1:10 to 1:2)",
			         ow_colate_paper_traces[i].name, ow_colate_paper_traces[i].per_probe[0],
			         ow_colate_paper_traces[i].per_probe[1]);
		snprintf(text, sizeof text, "%.40s: %.4g and %.4g", traces.name[i], ours[0], ours[1]);
		for (int x = 0; x < 2 && r == 0; x++)
			r = ow_figure_point(run, traces.name[i], x + 1, ours[x], ours[x], ours[x]);
		/* The rates of the paper's links are not known, so only the limits can be checked. */
		if (r == 0)
			r = ow_figure_claim(run, paper,
			                    ours[0] >= 9.9 && ours[0] <= 301 && ours[1] >= 1.99 && ours[1] <= 10.1,
			                    "%s", text);
		ow_figure_progress(run, (double)(i + 1) / (double)traces.count);
	}
	return r;
}

#define CDF      "share of the flows"
#define OBSERVED "relative error of a flow's mean"

const struct ow_figure ow_figures_colate[] = {
	{"colate-2", "COLATE 2: a flow's part of a counter, over its expectation", "C_f / E[C_f]",
         "share of the counters", false, false, figure_2},
	{"colate-3", "COLATE 3: permanent storage and RAM (0.95, 0.05; ICSI)", "RAM, MB", "storage, MB", true, true,
         figure_3},
	{"colate-4", "COLATE 4: threshold T and RAM (alpha 0.95, beta 0.05)", "RAM, MB", "T, units of time", true, true,
         figure_4},
	{"colate-5", "COLATE 5: sizes of the traces' flows", "packets of a flow", CDF, true, false, figure_5},
	{"colate-6a", "COLATE 6(a): errors of the mean, low (0.90, 0.10)", OBSERVED, CDF, true, false,
         ow_figure_colate_6, 0},
	{"colate-6b", "COLATE 6(b): errors of the mean, medium (0.95, 0.05)", OBSERVED, CDF, true, false,
         ow_figure_colate_6, 1},
	{"colate-6c", "COLATE 6(c): errors of the mean, high (0.99, 0.01)", OBSERVED, CDF, true, false,
         ow_figure_colate_6, 2},
	{"colate-7", "COLATE 7: errors of the standard deviation", "relative error of a flow's standard deviation", CDF,
         true, false, ow_figure_colate_7},
	{"colate-8a", "COLATE 8(a): a triangle of six links, low (0.90, 0.10)", OBSERVED, CDF, true, false,
         ow_figure_colate_8, 0},
	{"colate-8b", "COLATE 8(b): a triangle of six links, medium (0.95, 0.05)", OBSERVED, CDF, true, false,
         ow_figure_colate_8, 1},
	{"colate-8c", "COLATE 8(c): a triangle of six links, high (0.99, 0.01)", OBSERVED, CDF, true, false,
         ow_figure_colate_8, 2},
	{"colate-9", "COLATE 9: deviations within 5 % and virtual repetitions", "virtual repetitions",
         "share of the flows within 5 %", true, false, ow_figure_colate_9},
	{"colate-10", "COLATE 10: bits of storage a packet (alpha 0.99, beta 0.01)", "RAM, MB", "bits a packet", true,
         true, figure_10},
	{"colate-11", "COLATE 11: errors of the mean beside RLI's", OBSERVED, CDF, true, false, ow_figure_colate_11},
	{"colate-countmin", "COLATE section 6.5: errors of the mean beside Count-Min's", OBSERVED, CDF, true, false,
         ow_figure_colate_countmin},
	{"colate-sizes", "COLATE and ours by size of flow, half a counter a flow", "packets of a flow",
         "median relative error of the mean", true, true, ow_figure_colate_sizes},
	{"colate-loss", "COLATE and ours: packets that the RED queue drops", "share of the packets dropped",
         "median relative error of the mean", true, true, ow_figure_colate_loss},
	{"colate-table-2", "COLATE Table 2: the traces", "1 seconds, 2 packets, 3 flows, 4 Mbit/s", "", false, true,
         table_2},
	{"colate-table-3", "COLATE Table 3: packets for each probe of RLI", "1: 1:300 to 1:10, 2: 1:10 to 1:2",
         "packets for each probe", false, true, table_3},
	{0},
};
