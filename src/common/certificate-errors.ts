/** Matches Node's error codes for a TLS certificate that can't be verified: OpenSSL's (`X509_V_ERR_…`, without that prefix) and its own. */
export const CERTIFICATE_ERROR =
  /^(ERR_TLS|CERT_|CRL_|DEPTH_ZERO|ERROR_IN_C|HOSTNAME_|INVALID_(CA|PURPOSE)|PATH_LENGTH|SELF_SIGNED|UNABLE_TO)/;
