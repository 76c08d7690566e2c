/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OW_CAPTURE_FILE_MAPPING_H
#define OW_CAPTURE_FILE_MAPPING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * A file in memory, which saves the copy that read(2) makes. Where the file ends before its mapping does, because
 * somebody cut it meanwhile, or where the device fails, the kernel sends SIGBUS: zeros are put there instead, and the
 * mapping is broken from then on. What was read from a broken mapping means nothing.
 *
 * That needs a handler of the process's SIGBUS, so a program must ask for it; a library has no business there.
 */
struct ow_mapping;

/* From now on files may be mapped. Called by a program when it starts, before it has threads. */
void ow_mapping_allow(void);

/* The file's size bytes from offset on. NULL when not allowed, out of address space, or not to be mapped. */
struct ow_mapping *ow_mapping_open(int fd, uint64_t offset, uint64_t size);
/* NULL is fine. */
void ow_mapping_close(struct ow_mapping *mapping);

const uint8_t *ow_mapping_bytes(const struct ow_mapping *mapping);
bool ow_mapping_broken(const struct ow_mapping *mapping);
/* The bytes in front of this place are done with: the memory that they take can go. They can still be read again. */
void ow_mapping_pass(struct ow_mapping *mapping, const uint8_t *place);
void ow_mapping_rewind(struct ow_mapping *mapping);

#endif
