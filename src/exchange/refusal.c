/* SPDX-License-Identifier: Apache-2.0 */
/* Names in certificates, and messages about failed handshakes that say what to do. */
#include "exchange/tls.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <string.h>
#include <time.h>

/* false if it is not a name of a point; then it is not printed either. */
static bool name_text(const ASN1_STRING *string, char ret_name[OW_POINT_NAME])
{
	int size = ASN1_STRING_length(string);
	char name[OW_POINT_NAME] = "";
	if (size <= 0 || size >= OW_POINT_NAME)
		return false;
	memcpy(name, ASN1_STRING_get0_data(string), (size_t)size);
	if (strlen(name) != (size_t)size || !ow_point_name_valid(name))
		return false;
	memcpy(ret_name, name, sizeof name);
	return true;
}

static bool common_name(const X509 *certificate, char ret_name[OW_POINT_NAME])
{
	const X509_NAME *subject = X509_get_subject_name(certificate);
	int at = X509_NAME_get_index_by_NID(subject, NID_commonName, -1);
	if (at < 0 || X509_NAME_get_index_by_NID(subject, NID_commonName, at) >= 0)
		return false;
	return name_text(X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at)), ret_name);
}

/* The first DNS name that equals `wanted` (any, if NULL). CN counts only if there is no subjectAltName. */
static bool find_name(const X509 *certificate, const char *wanted, char ret_name[OW_POINT_NAME])
{
	int critical = -1;
	GENERAL_NAMES *names = X509_get_ext_d2i(certificate, NID_subject_alt_name, &critical, NULL);
	char name[OW_POINT_NAME];
	bool found = false;
	/* -1: there is none. Otherwise there is one, even if it could not be read. */
	if (!names && critical == -1)
		found = common_name(certificate, name) && (!wanted || strcmp(name, wanted) == 0);
	for (int i = 0; !found && i < sk_GENERAL_NAME_num(names); i++) {
		const GENERAL_NAME *general = sk_GENERAL_NAME_value(names, i);
		found = general->type == GEN_DNS && name_text(general->d.dNSName, name) &&
		        (!wanted || strcmp(name, wanted) == 0);
	}
	GENERAL_NAMES_free(names);
	ERR_clear_error();
	if (found)
		memcpy(ret_name, name, sizeof name);
	return found;
}

int ow_certificate_name(const X509 *certificate, char ret_name[OW_POINT_NAME], struct ow_error *err)
{
	if (find_name(certificate, NULL, ret_name))
		return 0;
	return ow_error_set(err, EINVAL, "it has no name of a point (a DNS name in subjectAltName)");
}

bool ow_certificate_is_for(const X509 *certificate, const char *name)
{
	char found[OW_POINT_NAME];
	return find_name(certificate, name, found);
}

/* "2026-11-15 10:30 UTC" */
static void date_text(const ASN1_TIME *time, char text[32])
{
	struct tm tm;
	text[0] = '\0';
	if (ASN1_TIME_to_tm(time, &tm) == 1)
		strftime(text, 32, "%Y-%m-%d %H:%M UTC", &tm);
}

int64_t ow_certificate_expiry_s(const STACK_OF(X509) * chain)
{
	int64_t first = INT64_MAX;
	for (int i = 0; i < sk_X509_num(chain); i++) {
		struct tm tm;
		if (ASN1_TIME_to_tm(X509_get0_notAfter(sk_X509_value(chain, i)), &tm) == 1 && timegm(&tm) < first)
			first = timegm(&tm);
	}
	return first;
}

int ow_certificate_wrong(X509_STORE_CTX *verify, const char *whose, struct ow_error *err)
{
	const X509 *leaf = X509_STORE_CTX_get0_cert(verify), *culprit = X509_STORE_CTX_get_current_cert(verify);
	int code = X509_STORE_CTX_get_error(verify);
	char name[OW_POINT_NAME] = "?", date[32];
	/* In the chain above it only the dates can be wrong without a wrong signature. */
	const char *part = culprit && culprit != leaf ? ": a CA above it" : "";
	find_name(leaf, NULL, name);
	switch (code) {
	case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
	case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
	case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
	case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
	case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
	case X509_V_ERR_CERT_UNTRUSTED:
	case X509_V_ERR_CERT_SIGNATURE_FAILURE:
		return ow_error_set(err, EACCES, "%s ('%s') is not signed by this point's CA", whose, name);
	case X509_V_ERR_CERT_HAS_EXPIRED:
		date_text(X509_get0_notAfter(culprit ? culprit : leaf), date);
		return ow_error_set(err, EACCES, "%s ('%s')%s has expired: valid until %s", whose, name, part, date);
	case X509_V_ERR_CERT_NOT_YET_VALID:
		date_text(X509_get0_notBefore(culprit ? culprit : leaf), date);
		return ow_error_set(err, EACCES, "%s ('%s')%s is not yet valid: valid from %s (is a clock wrong?)",
		                    whose, name, part, date);
	case X509_V_ERR_INVALID_PURPOSE:
		return ow_error_set(err, EACCES, "%s ('%s') is not for both clients and servers (extendedKeyUsage)",
		                    whose, name);
	default:
		return ow_error_set(err, EACCES, "%s ('%s'): %s", whose, name, X509_verify_cert_error_string(code));
	}
}

/* The peer's alert. TLS alerts contain little information; the peer's own log has more. */
static int alert_why(const struct ow_handshake *h, int alert, bool done, struct ow_error *err)
{
	switch (alert) {
	case SSL_AD_UNKNOWN_CA:
		return ow_error_set(err, EACCES, "the peer refuses our certificate: not signed by its CA");
	case SSL_AD_CERTIFICATE_EXPIRED:
		return ow_error_set(err, EACCES, "the peer refuses our certificate: expired (or its clock is wrong)");
	case SSL_AD_CERTIFICATE_REVOKED:
		return ow_error_set(err, EACCES, "the peer refuses our certificate: revoked by the fleet");
	case SSL_AD_BAD_CERTIFICATE:
		return ow_error_set(err, EACCES,
		                    "the peer refuses our certificate: not yet valid, or not the name it expects");
	case SSL_AD_UNSUPPORTED_CERTIFICATE:
	case SSL_AD_CERTIFICATE_UNKNOWN:
		return ow_error_set(err, EACCES, "the peer refuses our certificate: %s",
		                    SSL_alert_desc_string_long(alert));
	case SSL_AD_CERTIFICATE_REQUIRED:
		return ow_error_set(err, EACCES, "the peer wants a certificate, but this point has a pre-shared key");
	case SSL_AD_UNRECOGNIZED_NAME:
		return ow_error_set(err, EACCES, "the peer says that it is not '%s'", h->expect);
	case SSL_AD_PROTOCOL_VERSION:
		return ow_error_set(err, EPROTO, "the peer does not speak TLS 1.3");
	case SSL_AD_ILLEGAL_PARAMETER:
	case SSL_AD_DECRYPT_ERROR:
		if (h->tls->psk && !done)
			return ow_error_set(err, EACCES, "the peer's pre-shared key is another one");
		break;
	case SSL_AD_HANDSHAKE_FAILURE:
		if (h->tls->psk)
			return ow_error_set(err, EACCES,
			                    "the peer refuses: it has certificates and no pre-shared key, or expects "
			                    "another name than '%s'",
			                    h->tls->name);
		return ow_error_set(err, EACCES, "the peer refuses: has it a pre-shared key instead of certificates?");
	default:
		break;
	}
	return ow_error_set(err, EPROTO, "the peer ends the connection: %s", SSL_alert_desc_string_long(alert));
}

/* The error of OpenSSL on this side. */
static int reason_why(const struct ow_handshake *h, unsigned long code, bool done, struct ow_error *err)
{
	int reason = ERR_GET_REASON(code);
	if (reason >= SSL_AD_REASON_OFFSET && reason < SSL_AD_REASON_OFFSET + 256)
		return alert_why(h, reason - SSL_AD_REASON_OFFSET, done, err);
	switch (reason) {
	case SSL_R_UNEXPECTED_EOF_WHILE_READING:
		return ow_error_set(err, ECONNRESET, "the peer closed the connection%s",
		                    done ? " without a goodbye" : " during the handshake");
	case SSL_R_UNSUPPORTED_PROTOCOL:
	case SSL_R_BAD_PROTOCOL_VERSION_NUMBER:
	case SSL_R_NO_PROTOCOLS_AVAILABLE:
		return ow_error_set(err, EPROTO, "the peer does not speak TLS 1.3");
	case SSL_R_HTTP_REQUEST:
	case SSL_R_HTTPS_PROXY_REQUEST:
	case SSL_R_WRONG_VERSION_NUMBER:
	case SSL_R_BAD_RECORD_TYPE:
		if (!done)
			return ow_error_set(err, EPROTO,
			                    "what the peer sends is not TLS: plain text, or another service");
		break;
	case SSL_R_BINDER_DOES_NOT_VERIFY:
		return ow_error_set(err, EACCES, "the peer's pre-shared key is another one");
	case SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE:
		return ow_error_set(err, EACCES, "the peer shows no certificate: has it a pre-shared key?");
	case SSL_R_NO_SUITABLE_SIGNATURE_ALGORITHM:
	case SSL_R_NO_SHARED_CIPHER:
	case SSL_R_NO_SUITABLE_KEY_SHARE:
		if (h->tls->psk)
			return ow_error_set(err, EACCES, "the peer offers no pre-shared key: has it certificates?");
		break;
	default:
		break;
	}
	const char *text = ERR_reason_error_string(code);
	return ow_error_set(err, EPROTO, "TLS with the peer failed: %s", text ? text : "unknown error");
}

int ow_tls_why(const struct ow_handshake *handshake, const struct ow_transport *transport, bool done,
               struct ow_error *err)
{
	unsigned long code = ERR_peek_error();
	ERR_clear_error();
	if (handshake->refused.text[0])
		return ow_error_set(err, EACCES, "%s", handshake->refused.text);
	if (code && ERR_GET_LIB(code) == ERR_LIB_SSL)
		return reason_why(handshake, code, done, err);
	if (code && !transport->error) {
		const char *text = ERR_reason_error_string(code);
		return ow_error_set(err, EPROTO, "TLS with the peer failed: %s", text ? text : "unknown error");
	}
	int error = transport->error ? transport->error : ECONNRESET;
	if (error == ECONNRESET || error == EPIPE)
		return ow_error_set(err, ECONNRESET, "the connection was cut%s", done ? "" : " during the handshake");
	return ow_error_set(err, error, "%s", strerror(error));
}
