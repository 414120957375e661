import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { exportJWK, generateKeyPair } from 'jose';
import Provider from 'oidc-provider';

export interface TestLoginProvider {
  issuer: string;
  jwksUrl: string;
  /** The access token (a JWT of an hour) that the provider gives a client, for an audience. */
  tokenFor(client: string, audience?: string): Promise<string>;
  close(): Promise<void>;
}

/** A real OpenID provider on this machine. The groups of each client are a claim of its tokens. */
export async function startLoginProvider(
  groups: Readonly<Record<string, readonly string[]>>,
  {
    issuer: pretended,
    kid = 'key-1',
    moreKeys = [],
  }: { issuer?: string; kid?: string; moreKeys?: readonly string[] } = {},
): Promise<TestLoginProvider> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const issuer = pretended ?? origin;
  const keyOf = async (id: string) => {
    const { privateKey } = await generateKeyPair('RS256', { extractable: true });
    return { ...(await exportJWK(privateKey)), kid: id, alg: 'RS256', use: 'sig' };
  };
  const provider = new Provider(issuer, {
    jwks: { keys: await Promise.all([kid, ...moreKeys].map(keyOf)) },
    clients: Object.keys(groups).map((client_id) => ({
      ...{ client_id, client_secret: 'secret', grant_types: ['client_credentials'], redirect_uris: [] },
      response_types: [],
    })),
    features: {
      devInteractions: { enabled: false },
      clientCredentials: { enabled: true },
      resourceIndicators: {
        enabled: true,
        getResourceServerInfo: (_context, audience) => ({
          ...{ audience, scope: '', accessTokenFormat: 'jwt', accessTokenTTL: 3600 },
          jwt: { sign: { alg: 'RS256' } },
        }),
      },
    },
    extraTokenClaims: (_context, token) => ({ groups: [...(groups[token.clientId ?? ''] ?? [])] }),
  });
  server.on('request', provider.callback());
  return {
    issuer,
    jwksUrl: `${origin}/jwks`,
    async tokenFor(client, audience = 'urn:ebb') {
      const answer = await fetch(`${origin}/token`, {
        method: 'POST',
        headers: { authorization: `Basic ${btoa(`${client}:secret`)}` },
        body: new URLSearchParams({ grant_type: 'client_credentials', resource: audience }),
      });
      const { access_token: token } = (await answer.json()) as { access_token?: string };
      if (token === undefined) throw new Error(`no token for ${client}: ${answer.status}`);
      return token;
    },
    close: () => closed(server),
  };
}

function closed(server: Server): Promise<void> {
  server.closeAllConnections();
  return new Promise((resolve) => server.close(() => resolve()));
}
