/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "papers/delay_sampler.h"
#include "synopsis/synopsis.h"

/*
 * A trace for figures: the delays of an interval's packets, on which levels of loss and drift are imposed. Receivers
 * get the packets block by block. Only the delays are stored, so that a figure with a hundred points of 5 million
 * packets takes seconds. (stream.h makes single streams that are kept in memory.)
 */
struct ow_trace {
	size_t packets;
	int64_t gap_ns; /* between packets */
	uint64_t seed;
	struct ow_delay_sampler sampler;
	int32_t *delay_ns; /* cut at 2 s */
};

int ow_trace_make(struct ow_trace *trace, const struct ow_sim_model *model, size_t packets, int64_t gap_ns,
                  uint64_t seed);
void ow_trace_done(struct ow_trace *trace);

struct ow_trace_truth {
	uint64_t common, lost, drifted; /* drifted: packets of the neighbouring intervals that B counts in this one */
	double mean_ns, stddev_ns;      /* over the common packets */
};

struct ow_trace_faults {
	struct ow_sim_loss loss;
	uint64_t lost; /* if not 0: exactly this many packets at random, instead of the above */
	/* Packets of the neighbouring intervals that B counts in this one: sent before its start, and after its end. */
	uint64_t start, end;
};

struct ow_trace_watcher {
	/* In order of time at each point. */
	void (*sent)(void *arg, const struct ow_sighting *sightings, size_t count);
	void (*received)(void *arg, const struct ow_sighting *sightings, size_t count);
	void *arg;
	uint8_t *missing; /* set for lost packets; may be NULL */
};

/* The same seed imposes the same losses. */
void ow_trace_pass(const struct ow_trace *trace, const struct ow_trace_faults *faults, uint64_t seed,
                   const struct ow_trace_watcher *watcher, struct ow_trace_truth *ret_truth);
