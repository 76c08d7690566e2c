/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What most files include of the system, compiled once for each target: a fifth of a compilation is spent on reading these. Every file
 * still includes what it uses: the build with the address sanitizer has no precompiled headers (Makefile).
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
