/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "client.h"

struct attack {
	const char *name;
	bool (*play)(const struct target *target); /* whether the point behaved */
};

/* Attacks of a peer with a good certificate: messages that are well-formed, or nearly, and not true. */
extern const struct attack lies[];
extern const size_t lies_count;
