import type { Parsed } from './parsed.ts';

export interface ListenAddress {
  /** A name or an address, without brackets. */
  host: string;
  /** 0..65535; 0 lets the system choose. */
  port: number;
}

const HOST_AND_PORT = /^(?:\[(?<ipv6>[0-9a-f:.]+)\]|(?<host>[^:[\]\s/]+)):(?<port>\d{1,5})$/i;

/** Reads `HOST:PORT` or `[IPV6]:PORT`. */
export function parseListenAddress(text: string): Parsed<ListenAddress> {
  const match = HOST_AND_PORT.exec(text.trim());
  const host = match?.groups?.ipv6 ?? match?.groups?.host;
  const port = Number(match?.groups?.port);
  if (host === undefined || !(port <= 65_535)) {
    return { ok: false, problem: `"${text}" is not HOST:PORT; write for example 127.0.0.1:9464 or 0.0.0.0:9464` };
  }
  return { ok: true, value: { host, port } };
}
