/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OW_CAPTURE_FILTER_H
#define OW_CAPTURE_FILTER_H

#include <oneway/error.h>
#include <pcap/pcap.h>
#include <stdint.h>

/*
 * Filters of pcap-filter(7), compiled by libpcap to be run by the kernel or by pcap_offline_filter(). They return
 * snaplen for the frames they take. The caller frees the program with pcap_freecode().
 */

/* Frames of this LINKTYPE_ as they are in memory. name: of the interface or file, for messages. expression: NULL = all.
 */
int ow_filter_compile(const char *name, uint16_t linktype, uint32_t snaplen, const char *expression,
                      struct bpf_program *ret_program, struct ow_error *err);
/*
 * To be attached to a socket of this interface: the kernel keeps VLAN tags beside the frame, where only such a filter
 * looks for them.
 */
int ow_filter_compile_live(const char *interface, uint16_t linktype, uint32_t snaplen, const char *expression,
                           struct bpf_program *ret_program, struct ow_error *err);

/* libpcap's DLT_ values differ in places from the LINKTYPE_ values of files. */
uint16_t ow_linktype_of_dlt(int dlt);
int ow_dlt_of_linktype(uint16_t linktype);

#endif
