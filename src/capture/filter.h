/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <oneway/error.h>
#include <pcap/pcap.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * Filters of pcap-filter(7), compiled by libpcap. The programs return snaplen for the frames they accept. The caller
 * frees a program with pcap_freecode(). packet/packet_filter.h applies filters to frames, using this module.
 */

/*
 * Compiles for frames of this LINKTYPE_ in memory. name: of the interface or file, for messages; NULL = messages say
 * only what is wrong with the filter. expression: NULL = all frames. -EINVAL: not a filter for this link type;
 * -ENOTSUP: it needs what only the kernel knows (inbound, ifindex).
 */
int ow_filter_compile(const char *name, uint16_t linktype, uint32_t snaplen, const char *expression,
                      struct bpf_program *ret_program, struct ow_error *err);

/*
 * Compiles for the kernel, which stores VLAN tags outside of received frames and inside sent ones. The program accepts
 * every frame that the filter could accept (packet/packet_filter.h). It rejects only frames for which the result is
 * certain: untagged frames, and IP packets whose tag is outside of the frame.
 */
int ow_filter_compile_kernel(const char *interface, uint16_t linktype, uint32_t snaplen, const char *expression,
                             struct bpf_program *ret_program, struct ow_error *err);

/*
 * Changes a program for the kernel so that it accepts at most this many bytes of TCP packets, behind up to two tags in
 * Ethernet: their headers, and some payload if the headers are short. Fragments and packets in tunnels stay whole.
 * snaplen: as the program was compiled with.
 */
#define OW_FILTER_TCP_BYTES  144u /* 14 + 2 * 4 + 60 + 60, and a little more */
#define OW_FILTER_TCP_BEFORE 24u  /* of them at most before the IP header */
int ow_filter_cut_tcp(const char *interface, uint16_t linktype, uint32_t snaplen, struct bpf_program *program,
                      struct ow_error *err);
/* Bytes from the start of a frame on that the program can examine; UINT32_MAX = it computes where to look. */
uint32_t ow_filter_reach(const struct bpf_program *program);

/* Whether the expression mentions the link layer (ether, vlan, mpls, ...), which may differ between two points. */
bool ow_filter_names_link(const char *expression);

/* Some of libpcap's DLT_ values differ from the LINKTYPE_ values of files. */
uint16_t ow_linktype_of_dlt(int dlt);
