/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OW_CAPTURE_FILTER_H
#define OW_CAPTURE_FILTER_H

#include <oneway/error.h>
#include <pcap/pcap.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * Filters of pcap-filter(7), compiled by libpcap. They return snaplen for the frames they take. The caller frees the
 * program with pcap_freecode(). packet/packet_filter.h applies them to frames; this is what lies below.
 */

/*
 * For frames of this LINKTYPE_ in memory. name: of the interface or file, for messages; NULL = they
 * tell only what is wrong with the filter. expression: NULL = all.
 * -EINVAL: not a filter for this link type; -ENOTSUP: it asks for what only the kernel knows (inbound, ifindex).
 */
int ow_filter_compile(const char *name, uint16_t linktype, uint32_t snaplen, const char *expression,
                      struct bpf_program *ret_program, struct ow_error *err);

/*
 * For the kernel, which keeps VLAN tags beside received frames and inside sent ones. The program takes every frame that
 * the filter could take (packet/packet_filter.h), and leaves out what it can be sure of: untagged frames, and IP
 * packets behind a tag that stands beside the frame.
 */
int ow_filter_compile_kernel(const char *interface, uint16_t linktype, uint32_t snaplen, const char *expression,
                             struct bpf_program *ret_program, struct ow_error *err);

/* Whether the expression names the link layer (ether, vlan, mpls, ...), which may differ between two points. */
bool ow_filter_names_link(const char *expression);

/* libpcap's DLT_ values differ in places from the LINKTYPE_ values of files. */
uint16_t ow_linktype_of_dlt(int dlt);
int ow_dlt_of_linktype(uint16_t linktype);

#endif
