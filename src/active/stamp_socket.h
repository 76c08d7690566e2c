/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OW_ACTIVE_STAMP_SOCKET_H
#define OW_ACTIVE_STAMP_SOCKET_H

#include <oneway/error.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

/*
 * UDP sockets for probes: datagrams are sent with TTL 255 and received with the time at which the kernel (or the card)
 * had them, their TTL and DSCP; the time at which one was sent comes back later, with the datagram.
 */
struct ow_stamp_socket_options {
	struct sockaddr_storage local; /* ss_family 0: any */
	struct sockaddr_storage peer;  /* ss_family 0: anybody */
	uint8_t dscp;
	/* The interface whose card shall stamp, if it can: its clock must be kept with that of the host (phc2sys).
	 * Needs CAP_NET_ADMIN to set it up. NULL = the kernel stamps. */
	const char *hardware;
};
#define OW_STAMP_TTL 255

int ow_stamp_socket_open(const struct ow_stamp_socket_options *options, int *ret_fd, struct ow_error *err);

struct ow_stamp_datagram {
	size_t size;
	bool cut; /* there was more */
	struct sockaddr_storage peer;
	/* The address that it was sent to, for the answer: what a control message takes. */
	uint8_t local[64];
	size_t local_size;
	uint8_t ttl, tos; /* 0: not known */
	int64_t received_ns;
	bool stamped, by_card; /* by the kernel or the card; else when it was read */
};
/* -EAGAIN; -ECONNREFUSED and others: what became of a datagram that was sent. */
int ow_stamp_socket_receive(int fd, uint8_t *buffer, size_t room, struct ow_stamp_datagram *ret_datagram);
/* To whoever the socket is for. */
int ow_stamp_socket_send(int fd, const uint8_t *bytes, size_t size);
/* To where it came from, from where it came to, with its DSCP. */
int ow_stamp_socket_answer(int fd, const struct ow_stamp_datagram *to, const uint8_t *bytes, size_t size);

struct ow_stamp_sent {
	const uint8_t *bytes; /* of a datagram that was sent, in the buffer */
	size_t size;
	int64_t sent_ns;
	bool by_card;
};
/* A datagram that has left; -EAGAIN: none any more. 1: something else was there. */
int ow_stamp_socket_sent(int fd, uint8_t *buffer, size_t room, struct ow_stamp_sent *ret_sent);

/* How far TAI is ahead of UTC, by the kernel, or as it is since 2017 where the kernel does not know. */
int ow_stamp_tai_s(void);

#endif
