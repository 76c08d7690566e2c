/* SPDX-License-Identifier: Apache-2.0 */
/* oneway web STORE: the page and its interface, over HTTP. */
#include "base/state_file.h"
#include "cli/cli.h"
#include "cli/interrupt.h"
#include "cli/options.h"
#include "cli/web.h"
#include "plane/topology.h"
#include "sandbox/guard.h"
#include "sandbox/privileges.h"
#include "store/postgres.h"
#include "web/server.h"

#include <errno.h>
#include <oneway/oneway.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Of a token, a key, a certificate. */
#define FILE_BYTES ((size_t)256 << 10)

struct arguments {
	const char *listen, *page, *token_file, *certificate_file, *key_file, *client_ca_file;
	struct ow_api_options api;
	uint64_t rate;
	bool no_sandbox, help, version;
};

#define FIELD(name) offsetof(struct arguments, name)

static const struct ow_option options[] = {
	{NULL, 0, NULL, NULL, 0, "What to show:"},
	{"network", 0, "FILE", ow_option_text, FIELD(api.network),
         "The network: a topology as 'oneway plane' reads it (default: what the results show)."},
	{"fleet", 0, "DIR", ow_option_text, FIELD(api.fleet),
         "The folder of a fleet: how its points are, and results of intervals that are still at them."},
	{"flows-from", 0, "FILE", ow_option_text, FIELD(api.flows_from),
         "A recording of flows at one point ('oneway flows record')."},
	{"flows-to", 0, "FILE", ow_option_text, FIELD(api.flows_to), "The recording at the other point."},

	{NULL, 0, NULL, NULL, 0, "Who can see it:"},
	{"listen", 0, "ADDRESS", ow_option_text, FIELD(listen),
         "Where to listen (default: 127.0.0.1:8080). Addresses that others can reach need TLS, and a token or "
         "certificates of clients."},
	{"tls-cert", 0, "FILE", ow_option_text, FIELD(certificate_file), "The server's certificate, in PEM."},
	{"tls-key", 0, "FILE", ow_option_text, FIELD(key_file), "Its key."},
	{"token-file", 0, "FILE", ow_option_text, FIELD(token_file),
         "A file with a token that clients have to send: 'Authorization: Bearer TOKEN', or once ?token=TOKEN."},
	{"client-ca", 0, "FILE", ow_option_text, FIELD(client_ca_file),
         "Certificates that those of clients must follow from."},
	{"rate", 0, "N", ow_option_count, FIELD(rate),
         "Requests a second that an address may make (default: 100, of this host 2000)."},

	{NULL, 0, NULL, NULL, 0, "Other:"},
	{"no-sandbox", 0, NULL, ow_option_flag, FIELD(no_sandbox), "Run without seccomp and landlock."},
	OW_OPTIONS_HELP(struct arguments),
	{0},
};

static void help(void)
{
	fputs("usage: oneway web STORE [OPTION]...\n"
	      "\n"
	      "Serves a page that shows the network, its segments and its events, and the\n"
	      "interface behind it, /api/v1/, until it is interrupted. STORE is the SQLite\n"
	      "file of a point, or a PostgreSQL server (postgresql://...). It is only read;\n"
	      "points may be running. The first line of output is the address.\n",
	      stdout);
	ow_options_help(stdout, options);
	fputs("\n"
	      "Examples:\n"
	      "  oneway web results.db\n"
	      "  oneway web postgresql://reader@db/oneway --fleet /etc/oneway/fleet\n"
	      "  oneway web results.db --listen 0.0.0.0:8443 --tls-cert web.pem \\\n"
	      "    --tls-key web.key --token-file web.token\n"
	      "  curl 'http://127.0.0.1:8080/api/v1/lanes'\n"
	      "  curl 'http://127.0.0.1:8080/api/v1/summary?segment=london-paris&since=-1h'\n",
	      stdout);
}

/* The text of a file; NULL without a name. The caller frees it. */
static int read_text(const char *path, char **ret_text, struct ow_error *err)
{
	size_t size;
	*ret_text = NULL;
	return path ? ow_state_read(path, FILE_BYTES, ret_text, &size, err) : 0;
}

struct texts {
	char *token, *certificate, *key, *client_ca;
};

static int read_texts(const struct arguments *args, struct texts *texts, struct ow_error *err)
{
	int r = read_text(args->token_file, &texts->token, err);
	if (r == 0)
		r = read_text(args->certificate_file, &texts->certificate, err);
	if (r == 0)
		r = read_text(args->key_file, &texts->key, err);
	if (r == 0)
		r = read_text(args->client_ca_file, &texts->client_ca, err);
	/* The line end of the file is not part of the token. */
	if (r == 0 && texts->token)
		texts->token[strcspn(texts->token, "\r\n")] = 0;
	return r;
}

/* From here on it can only read the store and answer. */
static int confine(const struct arguments *args, struct ow_error *err)
{
	bool is_server = ow_postgres_is_url(args->api.store), whole;
	char page[4096], fleet[4096], text[OW_CONFINE_TEXT];
	snprintf(fleet, sizeof fleet, "%s/x", args->api.fleet ? args->api.fleet : "");
	snprintf(page, sizeof page, "%s/x", args->page ? args->page : "");
	struct ow_guard guard = {
		.sandbox = args->no_sandbox ? OW_SANDBOX_OFF : OW_SANDBOX_ON,
		.read = {is_server ? NULL : args->api.store, args->api.network, args->api.truth, args->api.flows_from,
	                 args->api.flows_to, args->page ? page : NULL, args->api.fleet ? fleet : NULL},
		.database = is_server,
	};
	struct ow_postgres_files *files = calloc(1, sizeof *files);
	int r = !files      ? ow_error_set(err, ENOMEM, "not enough memory")
	        : is_server ? ow_postgres_files(args->api.store, files, err)
	                    : 0;
	_Static_assert(OW_POSTGRES_FILES <= OW_GUARD_FILE, "each has a place");
	for (unsigned i = 0; r == 0 && i < OW_POSTGRES_FILES; i++)
		guard.file[i] = files->path[i];
	if (r == 0)
		r = ow_guard_close(&guard, text, &whole, err);
	free(files);
	return r;
}

/* Until it is interrupted. */
static int serve(struct ow_web *web, struct ow_api *api, bool is_told, struct ow_error *err)
{
	int r = ow_api_start(api, err);
	if (r == 0)
		r = ow_web_start(web, api, err);
	if (r < 0)
		return r;
	if (is_told) {
		printf("%s\n", ow_web_url(web));
		fflush(stdout);
	}
	while (!ow_interrupted) {
		nanosleep(&(struct timespec){.tv_sec = 1}, NULL);
		ow_web_tick(web);
	}
	return 0;
}

/* Whether a lab has written the file: simulations have another truth of this name. */
static bool is_of_lab(const char *path)
{
	char text[32] = "";
	FILE *file = fopen(path, "re");
	if (!file)
		return false;
	size_t size = fread(text, 1, sizeof text - 1, file);
	fclose(file);
	text[size] = 0;
	return strstr(text, "\"segments\"") != NULL;
}

/* A lab leaves the truth beside its store. Returns NULL if there is none, else a name to be freed. */
static char *find_truth(const char *store)
{
	char folder[OW_CONFINE_FOLDER], *path = NULL;
	if (ow_postgres_is_url(store))
		return NULL;
	ow_confine_folder(store, folder);
	if (asprintf(&path, "%s/truth.json", folder) < 0)
		return NULL;
	if (is_of_lab(path))
		return path;
	free(path);
	return NULL;
}

/* Each request reads the network again; one that is wrong now is told before the page is served. */
static int check_network(const char *path, struct ow_error *err)
{
	struct ow_topology *topology = NULL;
	int r = path ? ow_topology_read(path, OW_COST_ONE, &topology, err) : 0;
	ow_topology_free(topology);
	return r;
}

static int run(struct arguments *args, struct ow_error *err)
{
	struct texts texts = {0};
	struct ow_api *api = NULL;
	struct ow_web *web = NULL;
	char *truth = find_truth(args->api.store);
	args->api.truth = truth;
	int r = ow_privileges_reduce(NULL, 0, err);
	if (r == 0)
		r = read_texts(args, &texts, err);
	const struct ow_web_options o = {.address = args->listen,
	                                 .page = args->page,
	                                 .token = texts.token,
	                                 .certificate = texts.certificate,
	                                 .key = texts.key,
	                                 .client_ca = texts.client_ca,
	                                 .rate = (unsigned)args->rate};
	if (r == 0)
		r = check_network(args->api.network, err);
	if (r == 0)
		r = ow_api_create(&args->api, &api, err);
	if (r == 0)
		r = ow_web_create(&o, &web, err);
	if (r == 0)
		r = confine(args, err);
	if (r == 0)
		r = serve(web, api, true, err);
	ow_web_free(web);
	ow_api_free(api);
	free(texts.token);
	free(texts.certificate);
	free(texts.key);
	free(texts.client_ca);
	free(truth);
	return r;
}

/* -- beside a point or a lab -------------------------------------------------------------------------------------- */

/* The process that serves: waits for the store, which the point makes. */
static int serve_beside(struct ow_web *web, const struct ow_api_options *shown)
{
	const struct arguments args = {.api = *shown};
	struct ow_error err;
	struct ow_api *api = NULL;
	int r = ow_privileges_reduce(NULL, 0, &err);
	while (r == 0 && !ow_interrupted && ow_api_create(shown, &api, &err) < 0)
		nanosleep(&(struct timespec){.tv_sec = 1}, NULL);
	if (r == 0 && api)
		r = confine(&args, &err);
	if (r == 0 && api)
		r = serve(web, api, false, &err);
	ow_web_free(web);
	ow_api_free(api);
	return r < 0 ? ow_cli_failed("web", &err) : OW_EXIT_OK;
}

/* Ends when the process that started it does. */
static void bind_to(pid_t parent)
{
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != parent)
		_exit(OW_EXIT_FAILED);
}

/* Starts the serving process again when it ends: nobody else looks after it. */
static void watch(struct ow_web *web, const struct ow_api_options *shown)
{
	for (unsigned pause_s = 1; !ow_interrupted; pause_s = pause_s < 60 ? 2 * pause_s : 60) {
		pid_t self = getpid(), pid = fork();
		int status;
		if (pid == 0) {
			bind_to(self);
			_exit(serve_beside(web, shown));
		}
		while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR) {
			if (ow_interrupted)
				kill(pid, SIGTERM);
		}
		for (unsigned i = 0; i < 10 * pause_s && !ow_interrupted; i++)
			nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
	}
}

int ow_cli_web_beside(const char *address, const char *store, const char *truth, pid_t *ret_pid,
                      char ret_url[OW_WEB_URL], struct ow_error *err)
{
	const struct ow_api_options shown = {.store = store, .truth = truth};
	const struct ow_web_options o = {.address = address, .page = getenv("ONEWAY_PAGE")};
	struct ow_web *web = NULL;
	pid_t self = getpid();
	int r = ow_web_create(&o, &web, err);
	if (r < 0)
		return r;
	snprintf(ret_url, OW_WEB_URL, "%s", ow_web_url(web));
	fflush(NULL);
	pid_t pid = fork();
	if (pid == 0) {
		bind_to(self);
		ow_interrupt_catch();
		sigset_t none;
		sigemptyset(&none);
		sigprocmask(SIG_SETMASK, &none, NULL);
		(void)setpriority(PRIO_PROCESS, 0, 19);
		watch(web, &shown);
		_exit(OW_EXIT_OK);
	}
	ow_web_free(web);
	if (pid < 0)
		return ow_error_set(err, errno, "the process of the page: %s", strerror(errno));
	*ret_pid = pid;
	return 0;
}

void ow_cli_web_end(pid_t pid)
{
	if (pid <= 0)
		return;
	kill(pid, SIGTERM);
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		continue;
}

static int check_arguments(const struct arguments *args, int operands, char **operand, struct ow_error *err)
{
	if (operands != 1)
		return ow_error_set(err, EINVAL,
		                    operands ? "unexpected '%.60s'"
		                             : "a store is required: the SQLite file of a point, or postgresql://...",
		                    operands ? operand[1] : "");
	if (!args->api.flows_from != !args->api.flows_to)
		return ow_error_set(err, EINVAL, "--flows-from and --flows-to belong together");
	if (args->rate > 1000000)
		return ow_error_set(err, EINVAL, "--rate is at most 1000000");
	return 0;
}

int ow_cli_web(int argc, char **argv)
{
	struct arguments args = {.listen = "127.0.0.1:8080", .page = getenv("ONEWAY_PAGE")};
	struct ow_error err;
	int operands = ow_options_parse(options, argc, argv, &args, &err);
	if (operands < 0)
		return ow_cli_refused("web", operands, &err);
	if (ow_cli_answered(args.help, args.version, help))
		return OW_EXIT_OK;
	if (check_arguments(&args, operands, argv + 1, &err) < 0)
		return ow_cli_misused("web", &err);
	args.api.store = argv[1];
	ow_interrupt_catch();
	return run(&args, &err) < 0 ? ow_cli_failed("web", &err) : OW_EXIT_OK;
}
