/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <libpq-fe.h>
#include <oneway/error.h>

/* libpq, loaded when a connection is opened: it brings Kerberos, LDAP and GnuTLS along. */
#define OW_LIBPQ_FUNCTIONS(X)  \
	X(PQcancel)            \
	X(PQclear)             \
	X(PQcmdTuples)         \
	X(PQconnectdbParams)   \
	X(PQconninfoFree)      \
	X(PQconninfoParse)     \
	X(PQconsumeInput)      \
	X(PQdb)                \
	X(PQerrorMessage)      \
	X(PQfinish)            \
	X(PQflush)             \
	X(PQfreeCancel)        \
	X(PQfreemem)           \
	X(PQftype)             \
	X(PQgetCancel)         \
	X(PQgetResult)         \
	X(PQgetisnull)         \
	X(PQgetlength)         \
	X(PQgetvalue)          \
	X(PQhost)              \
	X(PQisBusy)            \
	X(PQlibVersion)        \
	X(PQnfields)           \
	X(PQntuples)           \
	X(PQport)              \
	X(PQputCopyData)       \
	X(PQputCopyEnd)        \
	X(PQreset)             \
	X(PQresultErrorField)  \
	X(PQresultStatus)      \
	X(PQsendQuery)         \
	X(PQsendQueryParams)   \
	X(PQsetNoticeReceiver) \
	X(PQsetSingleRowMode)  \
	X(PQsetnonblocking)    \
	X(PQsocket)            \
	X(PQstatus)            \
	X(PQtransactionStatus)

struct ow_libpq {
/* NOLINTNEXTLINE(bugprone-macro-parentheses): a declaration has none */
#define OW_LIBPQ_MEMBER(name) __typeof__(name) *name;
	OW_LIBPQ_FUNCTIONS(OW_LIBPQ_MEMBER)
#undef OW_LIBPQ_MEMBER
};
extern struct ow_libpq ow_pq;

int ow_libpq_load(struct ow_error *err);
