/* SPDX-License-Identifier: Apache-2.0 */
/* Loads libmicrohttpd when a web server is created. */
#include "web/mhd.h"

#include "base/library.h"

struct ow_mhd ow_mhd;

int ow_mhd_load(bool with_tls, struct ow_error *err)
{
	static const struct ow_library_function functions[] = {
		{"MHD_start_daemon", &ow_mhd.start_daemon},
		{"MHD_stop_daemon", &ow_mhd.stop_daemon},
		{"MHD_get_connection_info", &ow_mhd.get_connection_info},
		{"MHD_lookup_connection_value", &ow_mhd.lookup_connection_value},
		{"MHD_create_response_from_buffer", &ow_mhd.create_response_from_buffer},
		{"MHD_create_response_from_callback", &ow_mhd.create_response_from_callback},
		{"MHD_add_response_header", &ow_mhd.add_response_header},
		{"MHD_queue_response", &ow_mhd.queue_response},
		{"MHD_destroy_response", &ow_mhd.destroy_response},
	};
	static const struct ow_library_function verify[] = {
		{"gnutls_certificate_verify_peers2", &ow_mhd.verify_peers2},
	};
	int r = ow_library_load("libmicrohttpd.so.12", functions, sizeof functions / sizeof *functions, err);
	return r < 0 || !with_tls ? r : ow_library_load("libgnutls.so.30", verify, 1, err);
}
