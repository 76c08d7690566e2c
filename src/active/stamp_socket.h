/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <oneway/error.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

/*
 * UDP sockets for probes. Datagrams are sent with TTL 255, and received with the timestamp of the kernel (or the card),
 * their TTL and DSCP. The sending time of a datagram is returned later, together with the datagram.
 */
struct ow_stamp_socket_options {
	struct sockaddr_storage local; /* ss_family 0: any */
	struct sockaddr_storage peer;  /* ss_family 0: anybody */
	uint8_t dscp;
	/* The interface whose card should timestamp, if it can; the card's clock must be synchronised with the host's
	 * (phc2sys). Setting it up needs CAP_NET_ADMIN. NULL = the kernel timestamps. */
	const char *hardware;
};
#define OW_STAMP_TTL 255

int ow_stamp_socket_open(const struct ow_stamp_socket_options *options, int *ret_fd, struct ow_error *err);

struct ow_stamp_datagram {
	size_t size;
	bool cut; /* the datagram was longer */
	struct sockaddr_storage peer;
	/* The address that it was sent to, for the reply, as a control message. */
	uint8_t local[64];
	size_t local_size;
	uint8_t ttl, tos; /* 0: unknown */
	int64_t received_ns;
	bool stamped, by_card; /* by the kernel or the card; else the time is when it was read */
};
/* -EAGAIN; -ECONNREFUSED and others: the error of a datagram that was sent. */
int ow_stamp_socket_receive(int fd, uint8_t *buffer, size_t room, struct ow_stamp_datagram *ret_datagram);
/* Sends to the peer of the socket. */
int ow_stamp_socket_send(int fd, const uint8_t *bytes, size_t size);
/* Replies to the sender of `to`, from the address that it was sent to, with its DSCP. */
int ow_stamp_socket_answer(int fd, const struct ow_stamp_datagram *to, const uint8_t *bytes, size_t size);

struct ow_stamp_sent {
	const uint8_t *bytes; /* the datagram that was sent, in the buffer */
	size_t size;
	int64_t sent_ns;
	bool by_card;
};
/* Returns a datagram that has left; -EAGAIN: no more. 1: it was something else. */
int ow_stamp_socket_sent(int fd, uint8_t *buffer, size_t room, struct ow_stamp_sent *ret_sent);

/* How far TAI is ahead of UTC according to the kernel, or the value since 2017 if the kernel does not know. */
int ow_stamp_tai_s(void);
