/** Controls, and marks that turn the direction of text: names come from others, and must not steer a terminal or a page. */
const UNPRINTABLE = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{Noncharacter_Code_Point}]/gu;

/** A name from outside as it may be shown; what can't be is a `?`. */
export function printable(text: string): string {
  return text.replace(UNPRINTABLE, '?');
}

/** At most so many characters, the last of them an ellipsis where something is left out. */
export function shortened(text: string, most: number): string {
  const characters = Array.from(text);
  return characters.length <= most ? text : `${characters.slice(0, most - 1).join('')}…`;
}
