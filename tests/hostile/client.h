/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "exchange/message.h"

#include <openssl/ssl.h>

/*
 * A client that speaks TLS and the protocol as a point does, and is free to say anything in it. It blocks, with a limit
 * of time, and ends the program with a line where it cannot even try.
 */
struct target {
	const char *folder, *host, *port; /* keys; where the point listens */
};

struct client {
	int fd;
	SSL_CTX *context;
	SSL *ssl; /* NULL = no TLS */
};

/* A plain connection. */
void client_connect(struct client *client, const struct target *target);
/* TLS of this version with this certificate of the folder (NULL = none), without a look at the point's. False if the
 * handshake fails. */
bool client_shake(struct client *client, const struct target *target, const char *certificate, int version);
void client_close(struct client *client);

/* false: the connection is over. Bytes as they are; a frame with its length; a message in a frame. */
bool client_bytes(struct client *client, const void *bytes, size_t size);
bool client_frame(struct client *client, const uint8_t *frame, size_t size);
bool client_say(struct client *client, const struct ow_message *message);
/* The next message, decoded; ow_message_done. False if none comes within so many ms: it is over, or there is none. */
bool client_hear(struct client *client, int ms, struct ow_message *ret_message);
/* Takes in messages until one of this type comes. */
bool client_hear_type(struct client *client, int ms, enum ow_message_type type, struct ow_message *ret_message);
/* Whether the point ends the connection within so many ms. */
bool client_is_closed(struct client *client, int ms);

/* Connected as this point, both HELLOs through. */
bool client_enter(struct client *client, const struct target *target, const char *name);
/* The message as bytes, to be spoilt; to be freed. */
uint8_t *client_encode(const struct ow_message *message, size_t *ret_size);
