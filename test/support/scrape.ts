import { request } from 'undici';

/** What a daemon exports now. */
export interface Scrape {
  text: string;
  /** Values of a per-compute gauge by compute, as the text has them. */
  byCompute(name: string): Record<string, string>;
  /** The value of a series without labels, or with exactly these. */
  value(name: string, labels?: string): string | undefined;
}

/** Reads `/metrics` of the daemon at this URL, with its token if it has one. */
export async function scrape(url: string, token?: string): Promise<Scrape> {
  const headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
  const text = await (await request(`${url}/metrics`, { headers })).body.text();
  return {
    text,
    byCompute(name) {
      const lines = text.matchAll(new RegExp(`^${name}\\{[^}]*compute="([^"]+)"[^}]*\\} (\\S+)$`, 'gm'));
      return Object.fromEntries([...lines].map(([, compute = '', value = '']) => [compute, value]));
    },
    value: (name, labels) =>
      text
        .split('\n')
        .find((line) => line.startsWith(`${name}${labels === undefined ? '' : `{${labels}}`} `))
        ?.split(' ')
        .at(-1),
  };
}
