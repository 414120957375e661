import { printable } from '../../common/safe-text.ts';
import { shortened } from '../printable.ts';

/** The first three, as they may be shown, and how many more there are. */
export function few(texts: readonly string[]): string {
  const first = texts
    .slice(0, 3)
    .map((text) => shortened(printable(text), 40))
    .join(', ');
  return texts.length > 3 ? `${first} and ${texts.length - 3} more` : first;
}
