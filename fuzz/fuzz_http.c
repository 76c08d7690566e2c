/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as requests to the exporter of a point, over a real connection: every answer is HTTP with a status that the
 * exporter uses, and a client that gets no answer does not prevent answers to others.
 */
#include "point/exporter.h"
#include "report/metrics.h"

#include "http_client.h"
#include <signal.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Started once: as in a point, it runs as long as the process. */
static const char *server(void)
{
	static struct ow_exporter *exporter;
	if (!exporter) {
		struct ow_error err;
		char address[] = "127.0.0.1:0";
		struct ow_config config = {.metrics = address, .point = "fuzz"};
		signal(SIGPIPE, SIG_IGN);
		check(ow_exporter_create(&config, &exporter, &err) == 0 && ow_exporter_start(exporter, &err) == 0);
	}
	return ow_exporter_address(exporter);
}

static void check_answer(const char *answer)
{
	static const int meant[] = {100, 200, 400, 404, 405, 411, 413, 414, 431, 501, 503, 505, 0};
	http_check_status(answer, meant);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char health[] = "GET /healthz HTTP/1.0\r\n\r\n";
	char *accept = strndup((const char *)data, size);
	check(accept && ow_metrics_type[ow_metrics_format(accept)] != NULL);
	free(accept);
	const char *answer = http_ask(server(), data, size, HTTP_PATIENCE_MS);
	if (*answer)
		check_answer(answer);
	else
		check_answer(http_ask(server(), (const uint8_t *)health, sizeof health - 1, HTTP_WAIT_MS));
	return 0;
}
