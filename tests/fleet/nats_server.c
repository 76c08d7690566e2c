/* SPDX-License-Identifier: Apache-2.0 */
#include "nats_server.h"

#include <arpa/inet.h>
#include <assert.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static int connected_to(int port)
{
	struct sockaddr_in to = {
		.sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int r = connect(fd, (struct sockaddr *)&to, sizeof to);
	close(fd);
	return r == 0;
}

static int free_port(void)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof at;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (bind(fd, (struct sockaddr *)&at, sizeof at) < 0 || getsockname(fd, (struct sockaddr *)&at, &size) < 0)
		abort();
	close(fd);
	return ntohs(at.sin_port);
}

bool nats_server_make(struct nats_server *server)
{
	*server = (struct nats_server){.folder = "/tmp/oneway-nats-XXXXXX"};
	if (system("command -v nats-server >/dev/null") != 0) {
		fputs("no nats-server: skipped\n", stderr);
		return false;
	}
	assert(mkdtemp(server->folder));
	server->port = free_port();
	snprintf(server->url, sizeof server->url, "nats://127.0.0.1:%d", server->port);
	return true;
}

static void run(const struct nats_server *server)
{
	char port[16], log[100];
	int null = open("/dev/null", O_RDWR);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	snprintf(port, sizeof port, "%d", server->port);
	snprintf(log, sizeof log, "%s/log", server->folder);
	dup2(null, 0);
	dup2(null, 1);
	dup2(null, 2);
	execlp("nats-server", "nats-server", "-a", "127.0.0.1", "-p", port, "-js", "-sd", server->folder, "-l", log,
	       NULL);
	_exit(127);
}

void nats_server_start(struct nats_server *server)
{
	server->pid = fork();
	if (server->pid == 0)
		run(server);
	for (int i = 0; i < 500 && !connected_to(server->port); i++)
		usleep(20000);
}

void nats_server_end(struct nats_server *server, int signal)
{
	if (!server->pid)
		return;
	kill(server->pid, signal);
	waitpid(server->pid, NULL, 0);
	server->pid = 0;
}

void nats_server_remove(struct nats_server *server)
{
	char command[100];
	nats_server_end(server, SIGKILL);
	snprintf(command, sizeof command, "rm -rf %s", server->folder);
	if (system(command) != 0)
		abort();
}
