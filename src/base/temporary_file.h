/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Opens a new file in the folder, for reading and writing, that has no name. Returns its descriptor or a negative errno. */
int ow_temporary_file(const char *folder);
