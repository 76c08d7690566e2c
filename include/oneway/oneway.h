/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ONEWAY_ONEWAY_H
#define ONEWAY_ONEWAY_H

#include <oneway/error.h>
#include <oneway/match.h>
#include <oneway/result.h>
#include <oneway/synopsis.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The version of the library at run time, "MAJOR.MINOR.PATCH". */
const char *ow_version(void);

#ifdef __cplusplus
}
#endif

#endif
