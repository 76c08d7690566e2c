/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "web/api.h"
#include "web/mhd.h"

/* What the server sends, with the headers of every answer: no cache of numbers, no foreign code, no frames. */

/* Frees the body. */
enum MHD_Result ow_answer_json(struct MHD_Connection *connection, struct ow_api_answer *answer);
/* {"error": "..."} */
enum MHD_Result ow_answer_error(struct MHD_Connection *connection, unsigned status, const char *why);
/* A file of the page. folder: where files are read from, for tests; NULL: the embedded ones. */
enum MHD_Result ow_answer_file(struct MHD_Connection *connection, const char *path, const char *folder);
/* 401 with a form for the token. */
enum MHD_Result ow_answer_sign_in(struct MHD_Connection *connection);
enum MHD_Result ow_answer_redirect(struct MHD_Connection *connection, const char *to, const char *cookie);
/* An endless answer of text/event-stream; `reader` and `done` as in MHD_create_response_from_callback. */
enum MHD_Result ow_answer_stream(struct MHD_Connection *connection, MHD_ContentReaderCallback reader,
                                 MHD_ContentReaderFreeCallback done, void *arg);
