/* SPDX-License-Identifier: Apache-2.0 */
#include "craft.h"

#include <stdio.h>
#include <string.h>

struct craft *craft_new(bool big_endian)
{
	struct craft *c = malloc(sizeof *c);

	assert_non_null(c);
	c->big_endian = big_endian;
	c->size = 0;
	return c;
}

void craft_fill(struct craft *c, uint8_t byte, size_t n)
{
	assert_true(n <= CRAFT_MAX - c->size);
	memset(c->bytes + c->size, byte, n);
	c->size += n;
}

static void put(struct craft *c, uint64_t v, int width)
{
	for (int i = 0; i < width; i++)
		craft_fill(c, (uint8_t)(v >> 8 * (c->big_endian ? width - 1 - i : i)), 1);
}

void craft_16(struct craft *c, uint16_t v)
{
	put(c, v, 2);
}

void craft_32(struct craft *c, uint32_t v)
{
	put(c, v, 4);
}

void craft_64(struct craft *c, uint64_t v)
{
	put(c, v, 8);
}

void craft_pcap(struct craft *c, uint32_t magic, uint32_t snaplen, uint32_t linktype)
{
	craft_32(c, magic);
	craft_16(c, 2);
	craft_16(c, 4);
	craft_64(c, 0);
	craft_32(c, snaplen);
	craft_32(c, linktype);
}

void craft_record(struct craft *c, uint32_t s, uint32_t sub, uint32_t caplen, uint32_t len)
{
	craft_32(c, s);
	craft_32(c, sub);
	craft_32(c, caplen);
	craft_32(c, len);
	craft_fill(c, (uint8_t)(0x40 + s), caplen);
}

size_t craft_begin(struct craft *c, uint32_t type)
{
	size_t begin = c->size;

	craft_32(c, type);
	craft_32(c, 0);
	return begin;
}

void craft_end(struct craft *c, size_t begin)
{
	size_t end;

	craft_fill(c, 0, (begin - c->size) % 4);
	end = c->size;
	c->size = begin + 4;
	craft_32(c, (uint32_t)(end + 4 - begin));
	c->size = end;
	craft_32(c, (uint32_t)(end + 4 - begin));
}

void craft_section(struct craft *c)
{
	size_t begin = craft_begin(c, 0x0a0d0d0a);

	craft_32(c, 0x1a2b3c4d);
	craft_16(c, 1);
	craft_16(c, 0);
	craft_64(c, UINT64_MAX);
	craft_end(c, begin);
}

void craft_interface(struct craft *c, uint16_t linktype, uint32_t snaplen, int tsresol)
{
	size_t begin = craft_begin(c, 1);

	craft_16(c, linktype);
	craft_16(c, 0);
	craft_32(c, snaplen);
	craft_16(c, 2); /* if_name, to be skipped */
	craft_16(c, 5);
	craft_fill(c, 'e', 5);
	craft_fill(c, 0, 3);
	if (tsresol >= 0) {
		craft_16(c, 9);
		craft_16(c, 1);
		craft_fill(c, (uint8_t)tsresol, 1);
		craft_fill(c, 0, 3);
	}
	craft_32(c, 0);
	craft_end(c, begin);
}

void craft_statistics(struct craft *c, uint32_t interface, uint64_t ifdrop, uint64_t osdrop)
{
	size_t begin = craft_begin(c, 5);

	craft_32(c, interface);
	craft_64(c, 0);
	craft_16(c, 1); /* a comment, to be skipped */
	craft_16(c, 3);
	craft_fill(c, 'c', 3);
	craft_fill(c, 0, 1);
	craft_16(c, 5);
	craft_16(c, 8);
	craft_64(c, ifdrop);
	craft_16(c, 7);
	craft_16(c, 8);
	craft_64(c, osdrop);
	craft_32(c, 0);
	craft_end(c, begin);
}

static size_t begin_packet(struct craft *c, uint32_t interface, uint64_t ticks, uint32_t caplen, uint32_t len)
{
	size_t begin = craft_begin(c, 6);

	craft_32(c, interface);
	craft_32(c, (uint32_t)(ticks >> 32));
	craft_32(c, (uint32_t)ticks);
	craft_32(c, caplen);
	craft_32(c, len);
	craft_fill(c, (uint8_t)(0x40 + interface), caplen);
	return begin;
}

void craft_packet(struct craft *c, uint32_t interface, uint64_t ticks, uint32_t caplen, uint32_t len)
{
	craft_end(c, begin_packet(c, interface, ticks, caplen, len));
}

void craft_packet_after(struct craft *c, uint64_t drops, uint32_t interface, uint64_t ticks, uint32_t caplen)
{
	size_t begin = begin_packet(c, interface, ticks, caplen, caplen);

	craft_fill(c, 0, (begin - c->size) % 4);
	craft_16(c, 2); /* epb_flags, to be skipped */
	craft_16(c, 4);
	craft_32(c, 1);
	craft_16(c, 4);
	craft_16(c, 8);
	craft_64(c, drops);
	craft_32(c, 0);
	craft_end(c, begin);
}

static void craft_le32(struct craft *c, uint32_t v)
{
	for (int i = 0; i < 4; i++)
		c->bytes[c->size++] = (uint8_t)(v >> 8 * i);
}

void craft_snoop(struct craft *c, uint32_t version, uint32_t link)
{
	memcpy(c->bytes, "snoop\0\0", 8);
	c->size = 8;
	craft_32(c, version);
	craft_32(c, link);
}

void craft_snoop_record(struct craft *c, uint32_t s, uint32_t us, uint32_t caplen, uint32_t len, uint32_t drops)
{
	craft_32(c, len);
	craft_32(c, caplen);
	craft_32(c, 24 + (caplen + 3) / 4 * 4);
	craft_32(c, drops);
	craft_32(c, s);
	craft_32(c, us);
	craft_fill(c, 0x41, caplen);
	craft_fill(c, 0, (0 - caplen) % 4);
}

void craft_erf_record(struct craft *c, uint32_t s, uint32_t fraction, uint8_t type, unsigned extensions, uint16_t lost,
                      uint16_t caplen, uint16_t len)
{
	craft_le32(c, fraction);
	craft_le32(c, s);
	craft_fill(c, (uint8_t)(type | (extensions ? 0x80 : 0)), 1);
	craft_fill(c, 4, 1);
	craft_16(c, (uint16_t)(16 + 8 * extensions + caplen));
	craft_16(c, lost);
	craft_16(c, len);
	for (unsigned i = 0; i < extensions; i++) {
		craft_fill(c, i + 1 < extensions ? 0x85 : 5, 1);
		craft_fill(c, 0, 7);
	}
	craft_fill(c, 0x42, caplen);
}

static void keep(struct outcome *o, const struct ow_frame *frame)
{
	volatile uint8_t touched = 0;

	assert_true(frame->caplen <= frame->len);
	assert_int_equal(frame->number, o->n + 1);
	for (uint32_t i = 0; i < frame->caplen; i++)
		touched ^= frame->data[i];
	if (o->n < sizeof o->frames / sizeof *o->frames) {
		o->frames[o->n] = *frame;
		o->frames[o->n].data = NULL;
		o->first[o->n] = frame->caplen ? frame->data[0] : 0;
	}
	o->n++;
}

struct outcome read_all(const char *path)
{
	struct outcome o = {0};
	struct ow_error err = {""};
	struct ow_reader *reader = NULL;
	struct ow_frame frames[16];

	o.opened = ow_reader_open(path, &reader, &err);
	while (o.opened == 0 && (o.result = ow_reader_read(reader, frames, 16, &err)) > 0) {
		assert_true(o.result <= 16);
		for (int i = 0; i < o.result; i++)
			keep(&o, &frames[i]);
	}
	memcpy(o.text, err.text, sizeof o.text);
	if (o.opened == 0) {
		o.info = *ow_reader_info(reader);
		snprintf(o.format, sizeof o.format, "%s", o.info.format);
		o.damaged = ow_reader_damage(reader);
		if (o.damaged)
			snprintf(o.text, sizeof o.text, "%s", ow_reader_damage(reader));
		assert_int_equal(ow_reader_read(reader, frames, 16, &err), 0); /* the end stays the end */
	}
	ow_reader_close(reader);
	return o;
}

struct outcome read_bytes(struct scratch *s, const void *bytes, size_t size)
{
	return read_all(scratch_save(s, "crafted", bytes, size));
}

struct outcome read_craft(struct scratch *s, const struct craft *c)
{
	return read_bytes(s, c->bytes, c->size);
}
