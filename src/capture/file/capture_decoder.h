/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "capture/frame.h"
#include <oneway/error.h>
#include <stdbool.h>
#include <stddef.h>

/*
 * Decodes a capture that is still being written: bytes go in as they come, and the frames that are complete come out. For
 * pipes, remote commands and files that grow, where the next byte may come any time later. pcap (micro- and nanoseconds,
 * both byte orders), pcapng, snoop and ERF (which is known by its first two records), each also compressed
 * (capture/file/unpack.h). Everything else about captures that are complete is in capture/file/reader.h.
 */
struct ow_capture_decoder;

struct ow_capture_decoder_info {
	bool begun;          /* the file header has come */
	const char *packing; /* "gzip", ...; "" if it is not compressed */
	uint16_t linktype;   /* of the first interface; known with the first frame at the latest */
	uint32_t snaplen;    /* the smallest that was declared; 0 = none */
	uint64_t dropped;    /* packets that the capture lost, if it says so */
	uint64_t untimed;    /* packets without a time, which were left out */
};

/* name: for messages; the decoder keeps the pointer. */
int ow_capture_decoder_create(const char *name, struct ow_capture_decoder **ret_decoder);
void ow_capture_decoder_free(struct ow_capture_decoder *decoder);

/* Where the next bytes go, and how many at most; 0 if frames must be read first. */
uint8_t *ow_capture_decoder_room(struct ow_capture_decoder *decoder, size_t *ret_size);
/* `size` bytes have been written there. */
void ow_capture_decoder_fill(struct ow_capture_decoder *decoder, size_t size);
/*
 * Returns the number of complete frames, at most max; 0 if it needs more bytes. They are valid until the next call. -EINVAL, with one line in err: it is no
 * capture of these formats, or it is damaged there.
 */
int ow_capture_decoder_read(struct ow_capture_decoder *decoder, struct ow_frame *frames, size_t max,
                            struct ow_error *err);
/* Whether the bytes end between two records. If not, err says where they are cut off. */
bool ow_capture_decoder_ends_whole(const struct ow_capture_decoder *decoder, struct ow_error *err);
const struct ow_capture_decoder_info *ow_capture_decoder_info(const struct ow_capture_decoder *decoder);
