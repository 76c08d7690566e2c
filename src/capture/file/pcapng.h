/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Blocks and options of pcapng (draft-ietf-opsawg-pcapng). */
#define OW_PCAPNG_SECTION    0x0a0d0d0aU
#define OW_PCAPNG_INTERFACE  1U
#define OW_PCAPNG_PACKET     2U /* obsolete */
#define OW_PCAPNG_SIMPLE     3U
#define OW_PCAPNG_STATISTICS 5U
#define OW_PCAPNG_ENHANCED   6U

#define OW_PCAPNG_COMMENT  1U
#define OW_PCAPNG_IFDROP   5U /* dropped by the interface or the capturing program */
#define OW_PCAPNG_OSDROP   7U /* dropped by the system; some programs write the same number to both */
#define OW_PCAPNG_TSRESOL  9U
#define OW_PCAPNG_TSOFFSET 14U
