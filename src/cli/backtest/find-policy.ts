import { didYouMean } from '../../common/did-you-mean.ts';
import { printable } from '../../common/safe-text.ts';
import type { HeadroomPolicy } from '../../domain/policy/kinds/headroom.ts';
import type { PolicySet, PrometheusSource } from '../../domain/policy/policy.ts';
import { UserError } from '../fail.ts';
import { shortened } from '../printable.ts';

const LONGEST_NAME = 60;

/** The headroom policy of that name; an error that names what there is. */
export function findPolicy({ policies }: PolicySet, name: string): HeadroomPolicy {
  const found = policies.find((policy) => policy.name === name);
  if (found?.kind === 'headroom') return found;
  const headrooms = policies.filter(({ kind }) => kind === 'headroom').map((policy) => policy.name);
  const there = headrooms.length === 0 ? 'no policy is of kind headroom' : `of kind headroom: ${headrooms.join(', ')}`;
  const shown = shortened(printable(name), LONGEST_NAME);
  if (found) throw new UserError(`--policy: ${shown} is of kind ${found.kind}, not headroom; ${there}`);
  throw new UserError(`--policy: no policy is called ${shown}${didYouMean(name, headrooms)}; ${there}`);
}

/** The Prometheus from which counts are taken: that of the policy, or the one that is named. */
export function findSource({ sources }: PolicySet, { connections }: HeadroomPolicy, name?: string): PrometheusSource {
  const source = sources.get(name ?? connections);
  if (source?.from === 'prometheus') return source;
  const names = [...sources.values()].filter(({ from }) => from === 'prometheus').map((one) => one.name);
  const there =
    names.length === 0
      ? 'no source is from prometheus'
      : `from prometheus are ${names.join(', ')}: name one with --source`;
  const shown = shortened(printable(name ?? connections), LONGEST_NAME);
  if (source)
    throw new UserError(`--prometheus: the source ${shown} is from ${source.from}, which remembers nothing; ${there}`);
  throw new UserError(`--source: no source is called ${shown}${didYouMean(name ?? connections, names)}; ${there}`);
}
