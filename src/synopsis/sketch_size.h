/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "synopsis/synopsis.h"
#include <oneway/synopsis.h>

/*
 * Creates the synopsis for the parameters of a program (include/oneway/synopsis.h): by shape, by memory or by error.
 * The parameters must be of the library's version (base/versioned.h). -EINVAL, -ERANGE or -ENOMEM with an error text.
 */
int ow_sketch_synopsis(const struct ow_sketch_params *params, struct ow_synopsis **ret_synopsis, struct ow_error *err);

/* Whether sketches of this kind keep records in addition to the synopsis. */
bool ow_sketch_uses_records(enum ow_synopsis_kind kind);
