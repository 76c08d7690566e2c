/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OW_WIRE_MESSAGE_H
#define OW_WIRE_MESSAGE_H

#include <oneway/error.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * The messages between two points, to bytes and back. docs/protocol.md has every byte. Everything is little-endian. A
 * frame is: length of what follows (4), type (1), version (1), flags (2, zero), lane (4), interval (8), body.
 * The codec knows neither sockets nor TLS (wire/session.h does).
 *
 * Who says what, for a lane (a class in one direction of a segment): the receiving point pushes a SYNOPSIS at the end
 * of an interval; the sending point compares, ASKs for another one if needed, and sends NAMES: packets to leave out and
 * packets whose times it wants; the receiving point answers with TIMES; the sending point computes and returns RESULT.
 */
#define OW_WIRE_VERSION   1
#define OW_WIRE_HEADER    20
#define OW_WIRE_FRAME_MAX (66u << 20) /* a synopsis of the largest size and its header */

enum ow_message_type {
	OW_MESSAGE_HELLO = 1, /* who I am: point, epoch, clock, what I offer */
	OW_MESSAGE_OPEN,      /* proposes a lane: segment, class, parameters, t0, length, seed */
	OW_MESSAGE_OPENED,    /* accepted */
	OW_MESSAGE_REFUSED,   /* with the reason */
	OW_MESSAGE_SYNOPSIS,  /* counts of an interval, and an encoded synopsis */
	OW_MESSAGE_ASK,       /* for a (further) synopsis with parameters */
	OW_MESSAGE_NAMES,
	OW_MESSAGE_TIMES,
	OW_MESSAGE_RESULT,
	OW_MESSAGE_NONE, /* I cannot serve that interval, because */
	OW_MESSAGE_PING,
	OW_MESSAGE_BYE,
	OW_MESSAGE_TYPES
};

#endif
