/* SPDX-License-Identifier: Apache-2.0 */
#include "estimate/reason.h"

#include <string.h>

#define TEXT(name, text) text,
static const char *const texts[OW_REASON_COUNT] = {"", OW_REASONS(TEXT)};

#define FORMER(name, text) {OW_REASON_##name, text},
static const struct {
	enum ow_reason reason;
	const char *text;
} former[] = {OW_FORMER_REASONS(FORMER)};

const char *ow_reason_text(enum ow_reason reason)
{
	return texts[reason];
}

enum ow_reason ow_reason_of(const char *text, enum ow_reason otherwise)
{
	for (int i = OW_NO_REASON + 1; i < OW_REASON_COUNT; i++) {
		if (strcmp(texts[i], text) == 0)
			return (enum ow_reason)i;
	}
	for (size_t i = 0; i < sizeof former / sizeof *former; i++) {
		if (strcmp(former[i].text, text) == 0)
			return former[i].reason;
	}
	return otherwise;
}

static uint32_t hash_of(const char *text)
{
	uint32_t hash = UINT32_C(2166136261);
	for (; *text; text++)
		hash = (hash ^ (uint8_t)*text) * UINT32_C(16777619);
	return hash;
}

uint32_t ow_reason_hash(enum ow_reason reason)
{
	return reason == OW_NO_REASON ? 0 : hash_of(texts[reason]);
}

enum ow_reason ow_reason_of_hash(uint32_t hash, enum ow_reason otherwise)
{
	if (!hash)
		return OW_NO_REASON;
	for (int i = OW_NO_REASON + 1; i < OW_REASON_COUNT; i++) {
		if (hash_of(texts[i]) == hash)
			return (enum ow_reason)i;
	}
	for (size_t i = 0; i < sizeof former / sizeof *former; i++) {
		if (hash_of(former[i].text) == hash)
			return former[i].reason;
	}
	return otherwise;
}
