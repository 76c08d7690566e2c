/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as a STAMP packet, as a reflector and as a sender receive them. The first byte selects the mode: 1 with a
 * key, 2 with a correct HMAC, so that the code behind it is reached. A reply is as long as its request and can be read;
 * behind the base packet only flags and HMACs differ.
 */
#include "active/stamp.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds)
{
	if (!holds)
		abort();
}

static void check_times(uint64_t time, uint16_t error)
{
	int64_t ns = 0, again = 0;
	bool ptp = ow_stamp_error_ptp(error);
	const int64_t near_ns = INT64_C(1700000000000000000);
	struct ow_clock_state clock;
	ow_stamp_error_read(error, &clock);
	check(clock.error_ns >= 0);
	if (ow_stamp_time_read(time, ptp, 37, near_ns, &ns) < 0)
		return;
	check(ow_stamp_time_read(ow_stamp_time_write(ns, ptp, 37), ptp, 37, near_ns, &again) == 0 && again == ns);
}

static void reflect(const uint8_t *request, size_t size, const struct ow_stamp_probe *probe,
                    const struct ow_stamp_key *key)
{
	struct ow_stamp_reply reply = {.sequence = probe->sequence + 1,
	                               .sent = probe->sent + 2,
	                               .received = probe->sent + 1,
	                               .error = 0x8001,
	                               .session = probe->session,
	                               .probe = *probe,
	                               .probe_ttl = 255},
			      back;
	size_t base = key ? OW_STAMP_BASE_KEYED : OW_STAMP_BASE;
	uint8_t *packet = malloc(size ? size : 1);
	if (!packet)
		return;
	int r = ow_stamp_reply_write(request, size, &reply, key, packet);
	check(r == 0 || (r == -EMSGSIZE && size < base));
	if (r == 0) {
		check(ow_stamp_reply_read(packet, size, key, &back) == 0);
		check(back.sequence == reply.sequence && back.probe.sequence == probe->sequence &&
		      back.probe.sent == probe->sent && back.probe.error == probe->error && back.probe_ttl == 255);
		/* Types and lengths stay the same. */
		for (size_t at = base; at < size && !key; at++)
			check((packet[at] & 0x1f) == (request[at] & 0x1f));
	}
	free(packet);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint8_t secret[16] = {42};
	static const struct ow_stamp_key with = {secret, sizeof secret};
	struct ow_stamp_probe probe;
	struct ow_stamp_reply reply;
	if (size == 0)
		return 0;
	const struct ow_stamp_key *key = data[0] & 1 ? &with : NULL;
	bool seal = data[0] & 2;
	uint8_t *packet = malloc(size);
	if (!packet)
		return 0;
	memcpy(packet, data + 1, --size);
	if (key && seal && size >= OW_STAMP_BASE_KEYED)
		ow_stamp_hmac(key, packet, OW_STAMP_BASE_KEYED - OW_STAMP_HMAC,
		              packet + OW_STAMP_BASE_KEYED - OW_STAMP_HMAC);
	if (ow_stamp_probe_read(packet, size, key, &probe) == 0) {
		check_times(probe.sent, probe.error);
		reflect(packet, size, &probe, key);
	}
	if (ow_stamp_reply_read(packet, size, key, &reply) == 0) {
		check_times(reply.sent, reply.error);
		check_times(reply.received, reply.error);
		check_times(reply.probe.sent, reply.probe.error);
	}
	free(packet);
	return 0;
}
