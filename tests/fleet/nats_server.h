/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

/* A nats-server with JetStream on the loopback interface, with a folder of its own. */
struct nats_server {
	char folder[64];
	int port;
	char url[64];
	pid_t pid; /* 0 = not running */
};

/* false: there is no nats-server on this machine. */
bool nats_server_make(struct nats_server *server);
void nats_server_start(struct nats_server *server);
/* Ends it with a signal; what it has stored stays. */
void nats_server_end(struct nats_server *server, int signal);
/* Ends it and removes its folder. */
void nats_server_remove(struct nats_server *server);
