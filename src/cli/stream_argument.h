/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "capture/iface/stream.h"
#include "result/interval_result.h"
#include "sandbox/confine.h"

/*
 * Captures that are still being written, as arguments: [NAME=]exec:COMMAND, a named pipe, - or /dev/fd/N; and files that
 * grow. Without a name, the point is called by the host of an ssh command, by the command, or by the pipe.
 */
struct ow_stream_argument {
	char name[OW_RESULT_NAME];
	const char *what;
};

/* Whether the argument is one of these. */
bool ow_stream_is_argument(const char *argument);
int ow_stream_argument(const char *argument, struct ow_stream_argument *ret, struct ow_error *err);
/*
 * Anything else is a file, folder or pattern of files that grow, or several joined by +. program: "oneway live", for the log of
 * commands.
 */
int ow_stream_argument_open(const struct ow_stream_argument *argument, const char *program, int64_t lag_ns,
                            struct ow_streams *ret_streams, struct ow_error *err);
/* Files: for each part a name in the folder that they are in, for the sandbox, and in that which it is a link to; "" = none. */
typedef char ow_stream_place[OW_CONFINE_FOLDER];
void ow_stream_argument_places(const struct ow_stream_argument *argument,
                               ow_stream_place ret_places[2 * OW_STREAM_PARTS]);
