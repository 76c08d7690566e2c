/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OW_DOCTOR_EXAMINE_H
#define OW_DOCTOR_EXAMINE_H

#include "config/config.h"
#include "doctor/host_facts.h"
#include "doctor/host_judge.h"

struct ow_examine {
	const char *config; /* a configuration whose point is examined, too; NULL = none */
	char **name;        /* interfaces */
	int count;
	bool try; /* look at real packets */
};

struct ow_examination {
	struct ow_config *config;    /* NULL = none was given */
	struct ow_link_facts *links; /* all interfaces; detailed where they were examined */
	size_t link_count;
	struct ow_clock_facts clock;
	struct ow_host_facts host;
	struct ow_diagnoses findings;
};

/* Clock, host, the point of a configuration, interfaces. An interface that is named and not there is an error. */
int ow_examine(const struct ow_examine *what, struct ow_examination *ret_examination, struct ow_error *err);
void ow_examination_done(struct ow_examination *examination);

#endif
