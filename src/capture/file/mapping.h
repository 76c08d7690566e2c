/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/*
 * Maps a file, which saves the copy that read(2) makes. If the file is truncated meanwhile, or the device fails, the
 * kernel sends SIGBUS. The handler then maps zeros there, and the mapping is broken from then on. Data read from a
 * broken mapping is invalid.
 *
 * This needs a SIGBUS handler for the process. A library must not install one by itself, so the program has to ask for
 * it.
 */
struct ow_mapping;

/* Allows files to be mapped. A program calls it at its start, before it creates threads. */
void ow_mapping_allow(void);

/* Maps `size` bytes of the file from offset on. NULL if not allowed, out of address space, or not possible. */
struct ow_mapping *ow_mapping_open(int fd, uint64_t offset, uint64_t size);
/* mapping may be NULL. */
void ow_mapping_close(struct ow_mapping *mapping);

const uint8_t *ow_mapping_bytes(const struct ow_mapping *mapping);
bool ow_mapping_broken(const struct ow_mapping *mapping);
/*
 * The caller needs the bytes before this place no more, so their memory can be released. They can still be read again.
 */
void ow_mapping_pass(struct ow_mapping *mapping, const uint8_t *place);
void ow_mapping_rewind(struct ow_mapping *mapping);
