import { readlink } from 'node:fs/promises';
import { join, parse, sep } from 'node:path';

/** As many links as the kernel follows in one path. */
const MOST_LINKS = 40;

export interface RealPath {
  /** Without any link; undefined if it can't be resolved. */
  real: string | undefined;
  /** The real place of each link on the way, in order. */
  links: readonly string[];
}

export type ResolveRealPath = (path: string) => Promise<RealPath>;

/** Resolves absolute paths link by link. Each link is read once, so that all answers of one resolver fit together. */
export function realPathResolver(): ResolveRealPath {
  const targets = new Map<string, ReturnType<typeof readTarget>>();
  const targetOf = (place: string) => {
    const known = targets.get(place) ?? readTarget(place);
    targets.set(place, known);
    return known;
  };
  return async (path) => {
    const links: string[] = [];
    let { root: place } = parse(path);
    const segments = segmentsOf(path.slice(place.length));
    for (let segment = segments.shift(); segment !== undefined; segment = segments.shift()) {
      const next = join(place, segment);
      const target = await targetOf(next);
      if (target === null || links.length > MOST_LINKS) return { real: undefined, links };
      if (target === undefined) {
        place = next;
        continue;
      }
      links.push(next);
      const { root } = parse(target);
      place = root || place;
      segments.unshift(...segmentsOf(target.slice(root.length)));
    }
    return { real: place, links };
  };
}

/** The target of a link as it is written there; undefined for what is no link, null if it can't be read. */
async function readTarget(place: string): Promise<string | undefined | null> {
  try {
    return await readlink(place);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EINVAL' ? undefined : null;
  }
}

function segmentsOf(path: string): string[] {
  return path.split(sep).filter((segment) => segment !== '' && segment !== '.');
}

/** True for a folder itself, and for everything below it; both are paths of the same kind. */
export function isWithin(folder: string, path: string): boolean {
  return path === folder || path.startsWith(folder.endsWith(sep) ? folder : folder + sep);
}
