/** What the tests use of the provider, so that types are checked where it is not installed. */
declare module 'oidc-provider' {
  import type { RequestListener } from 'node:http';

  export default class Provider {
    constructor(
      issuer: string,
      configuration: {
        jwks: { keys: object[] };
        clients: object[];
        features: {
          devInteractions: object;
          clientCredentials: object;
          resourceIndicators: {
            enabled: boolean;
            getResourceServerInfo(context: unknown, audience: string): object;
          };
        };
        extraTokenClaims(context: unknown, token: { clientId?: string }): object;
      },
    );
    callback(): RequestListener;
  }
}
