/** At most so many characters, the last of them an ellipsis where something is left out. */
export function shortened(text: string, most: number): string {
  const characters = Array.from(text);
  return characters.length <= most ? text : `${characters.slice(0, most - 1).join('')}…`;
}
