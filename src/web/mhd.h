/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <microhttpd.h>
#include <oneway/error.h>
#include <stdbool.h>

/* The functions of libmicrohttpd, and one of GnuTLS, that the web server calls. */
struct ow_mhd {
	__typeof__(MHD_start_daemon) *start_daemon;
	__typeof__(MHD_stop_daemon) *stop_daemon;
	__typeof__(MHD_get_connection_info) *get_connection_info;
	__typeof__(MHD_lookup_connection_value) *lookup_connection_value;
	__typeof__(MHD_create_response_from_buffer) *create_response_from_buffer;
	__typeof__(MHD_create_response_from_callback) *create_response_from_callback;
	__typeof__(MHD_add_response_header) *add_response_header;
	__typeof__(MHD_queue_response) *queue_response;
	__typeof__(MHD_destroy_response) *destroy_response;
	int (*verify_peers2)(void *session, unsigned *ret_status); /* gnutls_certificate_verify_peers2 */
};
extern struct ow_mhd ow_mhd;

/* A header of the request; NULL: there is none. */
static inline const char *ow_mhd_header(struct MHD_Connection *connection, const char *name)
{
	return ow_mhd.lookup_connection_value(connection, MHD_HEADER_KIND, name);
}

/* Loads the library, once. */
int ow_mhd_load(bool with_tls, struct ow_error *err);
