/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "config/config.h"
#include "doctor/host_facts.h"
#include "doctor/host_judge.h"

struct ow_examine {
	const char *config; /* configuration of a point that is examined as well; NULL = none */
	char **name;        /* interfaces */
	int count;
	bool try; /* capture packets for a moment */
};

struct ow_examination {
	struct ow_config *config;    /* NULL = none was given */
	struct ow_link_facts *links; /* all interfaces; with details where they were examined */
	size_t link_count;
	struct ow_clock_facts clock;
	struct ow_host_facts host;
	struct ow_diagnoses findings;
};

/*
 * Examines the clock, the host, the point of a configuration and interfaces. A named interface that does not exist is
 * an error.
 */
int ow_examine(const struct ow_examine *what, struct ow_examination *ret_examination, struct ow_error *err);
void ow_examination_done(struct ow_examination *examination);
