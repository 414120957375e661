/**
 * The codes of Node for a certificate that can't be verified, with which a TLS handshake fails: those of OpenSSL's verification
 * (`X509_V_ERR_…`, without that prefix), and those of Node's own checks.
 */
export const CERTIFICATE_ERROR =
  /^(ERR_TLS|CERT_|CRL_|DEPTH_ZERO|ERROR_IN_C|HOSTNAME_|INVALID_(CA|PURPOSE)|PATH_LENGTH|SELF_SIGNED|UNABLE_TO)/;
