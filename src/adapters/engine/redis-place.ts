import { decodeUrlPart } from '../../common/decode.ts';

export type RedisPlace = SinglePlace | SentinelPlace | ClusterPlace;

interface Account {
  username?: string;
  password?: string;
}

interface SinglePlace {
  kind: 'single';
  url: string;
  /** The address for messages, without a password. */
  address: string;
}

/** `redis+sentinel://USER:PASSWORD@HOST:PORT,HOST:PORT/NAME/DB?sentinel_password=…`. User and password are those of Redis. */
interface SentinelPlace extends Account {
  kind: 'sentinel';
  sentinels: readonly Node[];
  name: string;
  db: number;
  sentinelUsername?: string;
  sentinelPassword?: string;
  tls: boolean;
  address: string;
}

/** `redis+cluster://USER:PASSWORD@HOST:PORT,HOST:PORT`: some of the nodes. */
interface ClusterPlace extends Account {
  kind: 'cluster';
  nodes: readonly Node[];
  tls: boolean;
  address: string;
}

interface Node {
  host: string;
  port: number;
}

const SCHEME = /^(rediss?)\+(sentinel|cluster):\/\/(.*)$/is;
const NODE = /^(\[[0-9a-f:.]+\]|[^:[\]]+)(?::(\d{1,5}))?$/i;

export function isRedisUrl(url: string): boolean {
  return /^rediss?(\+sentinel|\+cluster)?:\/\//i.test(url);
}

/** Parses a URL of Redis; undefined if it is invalid. (`URL` can't parse several hosts.) */
export function redisPlace(url: string): RedisPlace | undefined {
  const [, scheme = '', kind = '', rest = ''] = SCHEME.exec(url) ?? [];
  if (kind === '') return singlePlace(url);
  const at = rest.lastIndexOf('@');
  const account = accountOf(rest.slice(0, Math.max(at, 0)));
  const [, hosts = '', path = '', query = ''] = /^([^/?#]*)([^?#]*)(?:\?([^#]*))?/.exec(rest.slice(at + 1)) ?? [];
  const isCluster = kind.toLowerCase() === 'cluster';
  const nodes = nodesOf(hosts, isCluster ? 6379 : 26_379);
  if (nodes === undefined) return undefined;
  const addresses = nodes.map(({ host, port }) => `${host}:${port}`).join(',');
  const tls = scheme.toLowerCase() === 'rediss';
  if (isCluster) {
    return /^\/?$/.test(path) ? { kind: 'cluster', nodes, tls, ...account, address: addresses } : undefined;
  }
  const [, name = '', db = '0'] = /^\/([^/]+)(?:\/(\d+))?\/?$/.exec(path) ?? [];
  if (name === '') return undefined;
  const address = `${addresses}/${decodeUrlPart(name)}`;
  const sentinelAccount = sentinelAccountOf(new URLSearchParams(query));
  return {
    kind: 'sentinel',
    sentinels: nodes,
    name: decodeUrlPart(name),
    db: Number(db),
    tls,
    ...account,
    ...sentinelAccount,
    address,
  };
}

function singlePlace(url: string): SinglePlace | undefined {
  if (!URL.canParse(url)) return undefined;
  const { hostname, port } = new URL(url);
  return { kind: 'single', url, address: `${hostname || '127.0.0.1'}:${port || '6379'}` };
}

function nodesOf(hosts: string, defaultPort: number): Node[] | undefined {
  const nodes: Node[] = [];
  for (const text of hosts.split(',')) {
    const [, host, port] = NODE.exec(text.trim()) ?? [];
    if (host === undefined) return undefined;
    nodes.push({ host: host.replace(/^\[|\]$/g, ''), port: port === undefined ? defaultPort : Number(port) });
  }
  return nodes;
}

function accountOf(user: string): Account {
  const colon = user.indexOf(':');
  const username = decodeUrlPart(colon < 0 ? user : user.slice(0, colon));
  const password = colon < 0 ? '' : decodeUrlPart(user.slice(colon + 1));
  return { ...(username !== '' && { username }), ...(password !== '' && { password }) };
}

function sentinelAccountOf(query: URLSearchParams): Pick<SentinelPlace, 'sentinelUsername' | 'sentinelPassword'> {
  const username = query.get('sentinel_username');
  const password = query.get('sentinel_password');
  return { ...(username && { sentinelUsername: username }), ...(password && { sentinelPassword: password }) };
}
