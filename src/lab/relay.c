/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lab's wire. One thread serves both directions: it receives frames, decides their fate, and sends those that are
 * due. It sleeps until the next packet is due or arrives. If it wakes up late, the truth contains this delay, because
 * the truth counts what the relay did.
 */
#include "lab/relay.h"

#include "base/bytes.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/side.h"
#include "base/time.h"
#include "lab/relay_port.h"
#include "sim/rewrite.h"
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>

/* A frame may reach the socket this much later than its timestamp: intervals are complete after this time. */
#define SETTLE_NS (20 * OW_NS_PER_MS)
/* The loop checks reports and counters at least this often. */
#define TURN_NS (20 * OW_NS_PER_MS)
/*
 * Length of the sleep after work: waking up for each packet would cost more than forwarding it. The kernel sets the
 * timestamps of arrivals meanwhile.
 */
#define NAP_MIN_NS (20 * OW_NS_PER_US)
#define NAP_MAX_NS (50 * OW_NS_PER_US)
#define NICE       (-15)

struct way {
	struct ow_impair impair;
	struct ow_wiretruth *truth;
	uint64_t number; /* of the packets that came in */
	uint64_t refused, other;
	int64_t latest_ns; /* timestamps of several processors may go backwards a little */
};

struct relay {
	const struct ow_relay_options *options;
	struct ow_relay_port port[OW_SIDES];
	struct way way[OW_DIRECTIONS];
	struct ow_wire_pool *pool;
	struct ow_wire_heap pending;
	int64_t passed_ns; /* all frames with an earlier timestamp have been received */
	struct ow_relay_report unsent;
	bool has_unsent;
};

/* Where the IP packet of an Ethernet frame begins and what it holds; false if there is none. */
static bool find_packet(uint8_t *frame, size_t len, struct ow_rewrite *ret_packet)
{
	if (len < OW_OFFLOAD_ETHER + 20)
		return false;
	uint16_t type = ow_load_be16(frame + 12);
	uint8_t *ip = frame + OW_OFFLOAD_ETHER;
	struct ow_rewrite packet = {.ip = ip, .len = len - OW_OFFLOAD_ETHER};
	if (type == 0x0800 && ip[0] >> 4 == 4) {
		packet.proto = ip[9];
		/* Later fragments have no transport header. */
		if (!(ow_load_be16(ip + 6) & 0x1fff))
			packet.l4 = (size_t)(ip[0] & 15) * 4;
	} else if (type == 0x86dd && ip[0] >> 4 == 6 && packet.len >= 40) {
		packet.proto = ip[6];
		packet.l4 = 40;
	} else {
		return false;
	}
	*ret_packet = packet;
	return true;
}

static uint32_t flow_of(const struct ow_rewrite *packet)
{
	bool v4 = packet->ip[0] >> 4 == 4;
	uint64_t hash = packet->proto;
	for (size_t i = v4 ? 12 : 8; i < (v4 ? 20u : 40u); i += 4)
		hash = ow_mix64(hash ^ ow_load_le32(packet->ip + i));
	if (packet->l4 && packet->l4 + 4 <= packet->len)
		hash = ow_mix64(hash ^ ow_load_le32(packet->ip + packet->l4));
	return (uint32_t)hash;
}

static void translate(const struct ow_relay_options *options, const struct ow_rewrite *packet, enum ow_direction way)
{
	if (packet->ip[0] >> 4 != 4)
		return;
	if (way == OW_A_TO_B && memcmp(packet->ip + 12, options->inside_address, 4) == 0)
		ow_rewrite_endpoint(packet, true, options->outside_address, OW_RELAY_PORT_SHIFT);
	else if (way == OW_B_TO_A && memcmp(packet->ip + 16, options->outside_address, 4) == 0)
		ow_rewrite_endpoint(packet, false, options->inside_address, (uint16_t)-OW_RELAY_PORT_SHIFT);
}

/* One frame of the wire on its way in. */
struct entry {
	struct relay *relay;
	enum ow_direction direction;
	int64_t time_ns;
};

/* Adds the packet to those that wait for their time. -ENOMEM also if there are too many. */
static int wait_until(struct relay *relay, const struct ow_wire *model, const uint8_t *frame, size_t len)
{
	if (relay->pending.count >= OW_RELAY_PENDING_MAX)
		return -ENOMEM;
	struct ow_wire *wire = ow_wire_get(relay->pool);
	if (!wire)
		return -ENOMEM;
	wire->time_ns = model->time_ns;
	wire->stamp_ns = model->stamp_ns;
	wire->number = model->number;
	wire->order = model->order;
	wire->direction = model->direction;
	wire->copy = model->copy;
	int r = ow_wire_fill(wire, frame, (uint32_t)len);
	if (r >= 0)
		r = ow_wire_heap_push(&relay->pending, wire);
	if (r < 0)
		ow_wire_put(relay->pool, wire);
	return r;
}

static int admit(struct entry *entry, struct way *way, const struct ow_rewrite *packet, uint8_t *frame, size_t len)
{
	struct relay *relay = entry->relay;
	int64_t interval;
	int r = ow_wiretruth_in(way->truth, entry->time_ns, (uint32_t)packet->len, &interval);
	if (r < 0)
		return r;
	if (entry->time_ns > way->latest_ns)
		way->latest_ns = entry->time_ns;
	struct ow_impaired fate;
	ow_impair_pass(&way->impair, way->latest_ns, (uint32_t)len, flow_of(packet), &fate);
	if (relay->options->cut && atomic_load(relay->options->cut) >> entry->direction & 1)
		fate.fate = OW_IMPAIR_LOST;
	struct ow_wire model;
	model.time_ns = fate.due_ns;
	model.stamp_ns = entry->time_ns;
	model.number = ++way->number;
	model.order = (uint64_t)interval;
	model.direction = (uint8_t)entry->direction;
	model.copy = false;
	if (fate.fate != OW_IMPAIR_PASSES) {
		ow_wiretruth_lost(way->truth, interval, fate.fate == OW_IMPAIR_QUEUE_FULL);
		return 0;
	}
	if (relay->options->nat)
		translate(relay->options, packet, entry->direction);
	if (wait_until(relay, &model, frame, len) < 0) {
		ow_wiretruth_lost(way->truth, interval, true);
		return 0;
	}
	model.time_ns = fate.copy_ns;
	model.copy = true;
	if (fate.copy_ns)
		(void)wait_until(relay, &model, frame, len);
	return 0;
}

static int take(void *arg, uint8_t *frame, size_t len)
{
	struct entry *entry = arg;
	struct relay *relay = entry->relay;
	struct way *way = &relay->way[entry->direction];
	struct ow_rewrite packet;
	if (find_packet(frame, len, &packet))
		return admit(entry, way, &packet, frame, len);
	way->other++;
	(void)ow_relay_port_send(&relay->port[ow_receiver_of(entry->direction)], frame, len, NULL, 0);
	return 0;
}

/* Receives one batch. Returns the number of frames, or a negative errno. */
static int pull(struct relay *relay, enum ow_direction direction)
{
	struct ow_relay_port *port = &relay->port[ow_sender_of(direction)];
	int count = ow_relay_port_receive(port);
	if (count < 0)
		return count;
	for (int i = 0; i < count; i++) {
		struct received *received = &port->received[i];
		struct entry entry = {relay, direction, received->time_ns};
		int r = ow_offload_cut(&received->header, received->frame, received->len, take, &entry);
		if (r == -EBADMSG)
			relay->way[direction].other++;
		else if (r < 0)
			return r;
	}
	return count;
}

/*
 * Sends the packets that are due. The time of sending is the middle of the call: the receiver's timestamp is taken
 * within it.
 */
static bool push(struct relay *relay, int64_t now_ns)
{
	bool worked = false;
	struct ow_wire *wire;
	int64_t before_ns = ow_clock_real_ns();
	while ((wire = ow_wire_heap_pop(&relay->pending, now_ns))) {
		struct way *way = &relay->way[wire->direction];
		int r = ow_relay_port_send(&relay->port[ow_receiver_of(wire->direction)], wire->head, wire->head_len,
		                           wire->body, wire->body_len);
		int64_t after_ns = ow_clock_real_ns(), interval = (int64_t)wire->order;
		way->refused += r < 0;
		if (r >= 0 && wire->copy)
			ow_wiretruth_copy(way->truth, interval);
		else if (r >= 0)
			ow_wiretruth_out(way->truth, interval, wire->number, wire->stamp_ns,
			                 before_ns + (after_ns - before_ns) / 2);
		else if (!wire->copy)
			ow_wiretruth_lost(way->truth, interval, false);
		before_ns = after_ns;
		ow_wire_put(relay->pool, wire);
		worked = true;
	}
	return worked;
}

static void fill_report(struct relay *relay, enum ow_direction direction, struct ow_relay_report *report)
{
	report->direction = direction;
	report->missed = relay->port[ow_sender_of(direction)].missed;
	report->refused = relay->way[direction].refused;
	report->other = relay->way[direction].other;
}

static bool send_report(struct relay *relay, const struct ow_relay_report *report, int flags)
{
	return send(relay->options->control, report, sizeof *report, flags | MSG_NOSIGNAL) >= 0 || errno != EAGAIN;
}

/* Reports complete intervals; a slow reader does not stop the wire. */
static void tell(struct relay *relay, int64_t passed_ns, int flags)
{
	for (int i = 0; i < OW_DIRECTIONS; i++) {
		for (;;) {
			if (relay->has_unsent && !send_report(relay, &relay->unsent, flags))
				return;
			relay->has_unsent = false;
			struct ow_relay_report report;
			memset(&report, 0, sizeof report);
			if (!ow_wiretruth_next(relay->way[i].truth, passed_ns, &report.truth))
				break;
			fill_report(relay, (enum ow_direction)i, &report);
			relay->unsent = report;
			relay->has_unsent = true;
		}
	}
}

static void tell_totals(struct relay *relay)
{
	/* Packets that have not left when the wire ends are lost. */
	struct ow_wire *wire;
	while ((wire = ow_wire_heap_pop(&relay->pending, INT64_MAX))) {
		if (!wire->copy)
			ow_wiretruth_lost(relay->way[wire->direction].truth, (int64_t)wire->order, false);
		ow_wire_put(relay->pool, wire);
	}
	tell(relay, ow_clock_real_ns() + relay->options->interval_ns, 0);
	for (int i = 0; i < OW_DIRECTIONS; i++) {
		struct ow_relay_report report;
		memset(&report, 0, sizeof report);
		report.total = true;
		ow_wiretruth_total(relay->way[i].truth, &report.truth);
		fill_report(relay, (enum ow_direction)i, &report);
		(void)send_report(relay, &report, 0);
	}
}

/* Until the next packet is due, at most TURN_NS. */
static int64_t time_left(const struct relay *relay)
{
	if (!relay->pending.count)
		return TURN_NS;
	int64_t left_ns = relay->pending.entry[0].time_ns - ow_clock_real_ns();
	return left_ns < 0 ? 0 : left_ns > TURN_NS ? TURN_NS : left_ns;
}

/*
 * Sleeps until a frame arrives (after work: a fixed time), a frame is due, or the control socket is readable. Returns
 * whether it is.
 */
static bool rest(struct relay *relay, bool worked, bool ending)
{
	int64_t sleep_ns = time_left(relay);
	if (worked && sleep_ns > NAP_MAX_NS)
		sleep_ns = NAP_MAX_NS;
	if (worked && sleep_ns < NAP_MIN_NS)
		sleep_ns = NAP_MIN_NS;
	struct pollfd fds[] = {
		{.fd = ending ? -1 : relay->options->control, .events = POLLIN},
		{.fd = relay->port[OW_SIDE_A].fd, .events = POLLIN},
		{.fd = relay->port[OW_SIDE_B].fd, .events = POLLIN},
	};
	struct timespec timeout = {0, sleep_ns};
	int ready = ppoll(fds, worked ? 1 : 3, &timeout, NULL);
	return ready > 0 && fds[0].revents;
}

/* The result of one turn of the loop. */
struct found {
	bool drained; /* no frame waits to be received */
	bool worked;
};

static int turn(struct relay *relay, struct found *ret_found)
{
	int64_t begin_ns = ow_clock_real_ns();
	int a = pull(relay, OW_A_TO_B);
	int b = a < 0 ? a : pull(relay, OW_B_TO_A);
	if (b < 0)
		return b;
	bool sent = push(relay, ow_clock_real_ns());
	*ret_found = (struct found){a < OW_RELAY_BATCH && b < OW_RELAY_BATCH, a || b || sent};
	if (ret_found->drained)
		relay->passed_ns = begin_ns - SETTLE_NS;
	return 0;
}

static int carry(struct relay *relay)
{
	int64_t turn_ns = 0, end_ns = INT64_MAX;
	for (;;) {
		struct found found;
		int r = turn(relay, &found);
		if (r < 0)
			return r;
		int64_t now_ns = ow_clock_real_ns();
		if (now_ns - turn_ns >= TURN_NS) {
			turn_ns = now_ns;
			ow_relay_port_count(&relay->port[OW_SIDE_A]);
			ow_relay_port_count(&relay->port[OW_SIDE_B]);
			tell(relay, relay->passed_ns, MSG_DONTWAIT);
		}
		bool ending = end_ns != INT64_MAX;
		if (ending && ((found.drained && !relay->pending.count) || now_ns >= end_ns))
			return 0;
		if (found.drained && rest(relay, found.worked, ending))
			end_ns = ow_clock_real_ns() + OW_RELAY_DRAIN_S * OW_NS_PER_S;
	}
}

static int set_up(struct relay *relay, struct ow_error *err)
{
	const struct ow_relay_options *options = relay->options;
	int64_t now_ns = ow_clock_real_ns();
	int r = ow_wire_pool_create(&relay->pool);
	for (int i = 0; r >= 0 && i < OW_DIRECTIONS; i++) {
		const struct ow_impair_options *impair =
			i == OW_B_TO_A && options->back ? options->back : &options->impair;
		r = ow_impair_init(&relay->way[i].impair, impair, (enum ow_direction)i, now_ns);
		if (r >= 0)
			r = ow_wiretruth_create(options->interval_ns, now_ns, &relay->way[i].truth);
		relay->way[i].latest_ns = now_ns;
	}
	if (r < 0)
		return ow_error_set(err, -r, "relay: %s", strerror(-r));
	for (int i = 0; r >= 0 && i < OW_SIDES; i++)
		r = ow_relay_port_open(&relay->port[i], options->interface[i], err);
	return r;
}

int ow_relay_run(const struct ow_relay_options *options, struct ow_error *err)
{
	struct relay *relay = calloc(1, sizeof *relay);
	if (!relay)
		return ow_error_set(err, ENOMEM, "relay: out of memory");
	relay->options = options;
	relay->port[OW_SIDE_A].fd = relay->port[OW_SIDE_B].fd = -1;
	/* By default the kernel may wake a thread up to 50 us late. */
	prctl(PR_SET_TIMERSLACK, 1);
	/* The relay gets priority over the hosts if there are few processors. It also works without. */
	(void)setpriority(PRIO_PROCESS, 0, NICE);
	int r = set_up(relay, err);
	if (r >= 0) {
		r = carry(relay);
		if (r < 0)
			ow_error_set(err, -r, "relay: %s", strerror(-r));
		tell_totals(relay);
	}
	for (int i = 0; i < OW_SIDES; i++)
		ow_relay_port_close(&relay->port[i]);
	for (int i = 0; i < OW_DIRECTIONS; i++) {
		ow_impair_done(&relay->way[i].impair);
		ow_wiretruth_free(relay->way[i].truth);
	}
	if (relay->pool)
		ow_wire_heap_done(&relay->pending, relay->pool);
	ow_wire_pool_free(relay->pool);
	free(relay);
	return r;
}
