/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "capture/file/reader.h"
#include "scratch.h"

/* Capture files put together byte by byte, good and bad, and what the reader makes of them. */
#define CRAFT_MAX ((size_t)4 << 20)

struct craft {
	bool big_endian;
	size_t size;
	uint8_t bytes[CRAFT_MAX];
};

struct craft *craft_new(bool big_endian); /* the caller frees it */
void craft_16(struct craft *craft, uint16_t v);
void craft_32(struct craft *craft, uint32_t v);
void craft_64(struct craft *craft, uint64_t v);
void craft_fill(struct craft *craft, uint8_t byte, size_t n);

/* classic pcap */
void craft_pcap(struct craft *craft, uint32_t magic, uint32_t snaplen, uint32_t linktype);
void craft_record(struct craft *craft, uint32_t s, uint32_t sub, uint32_t caplen, uint32_t len);

/* pcapng; a body is put between begin and end */
size_t craft_begin(struct craft *craft, uint32_t type);
void craft_end(struct craft *craft, size_t begin);
void craft_section(struct craft *craft);
void craft_interface(struct craft *craft, uint16_t linktype, uint32_t snaplen, int tsresol); /* -1: no option */
/* With drops of the interface and of the system. */
void craft_statistics(struct craft *craft, uint32_t interface, uint64_t ifdrop, uint64_t osdrop);
void craft_packet(struct craft *craft, uint32_t interface, uint64_t ticks, uint32_t caplen, uint32_t len);
/* The capture says that it dropped so many before it. */
void craft_packet_after(struct craft *c, uint64_t drops, uint32_t interface, uint64_t ticks, uint32_t caplen);

/* snoop, big-endian; drops: so far */
void craft_snoop(struct craft *craft, uint32_t version, uint32_t link);
void craft_snoop_record(struct craft *craft, uint32_t s, uint32_t us, uint32_t caplen, uint32_t len, uint32_t drops);
/* ERF, big-endian; caplen with the two bytes before those of Ethernet */
void craft_erf_record(struct craft *craft, uint32_t s, uint32_t fraction, uint8_t type, unsigned extensions,
                      uint16_t lost, uint16_t caplen, uint16_t len);

/* All of a file. text is the error or the damage. */
struct outcome {
	int opened; /* result of open */
	int result; /* of the last read: 0 or negative */
	bool damaged;
	char text[512];
	size_t n;
	struct ow_frame frames[64]; /* the first ones, without data */
	uint8_t first[64];          /* first byte of each */
	struct ow_reader_info info; /* after the last read; path and format must not be used */
	char format[32];
};

struct outcome read_all(const char *path);
struct outcome read_craft(struct scratch *scratch, const struct craft *craft);
struct outcome read_bytes(struct scratch *scratch, const void *bytes, size_t size);
