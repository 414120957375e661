import { type Flag, LIST_COMPUTES, placesIn, type Value, type Words } from './words.ts';

/** A script for fish. */
export function fishScript(program: Words): string {
  const lines = placesIn(program).flatMap(({ path, words }) => linesOf(words, path));
  return `# Completion of ebb for fish. Made by: ebb completion fish
complete -c ebb -f
${lines.join('\n')}
`;
}

/** What can follow a command. */
function linesOf({ flags, commands, argument }: Words, path: readonly string[]): string[] {
  const here = path.map((name) => `__fish_seen_subcommand_from ${name}`);
  const names = commands.map(({ name }) => name);
  const noneOf = path.length === 0 ? '__fish_use_subcommand' : `not __fish_seen_subcommand_from ${names.join(' ')}`;
  const noneYet = names.length === 0 ? [] : [noneOf];
  const condition = (parts: readonly string[]) => (parts.length === 0 ? '' : ` -n ${quoted(parts.join('; and '))}`);
  const line = (rest: string, parts = [...here, ...noneYet]) => `complete -c ebb${condition(parts)} ${rest}`;
  return [
    ...commands.map(({ name, description }) => line(`-a ${name} -d ${quoted(description)}`)),
    ...flags.map((flag) => line(flagText(flag))),
    ...(argument && argument.kind !== 'other' ? [line(valueText(argument))] : []),
  ];
}

function flagText({ long, short, description, value, optional }: Flag): string {
  const names = [`-l ${long.slice(2)}`, ...(short === undefined ? [] : [`-s ${short.slice(1)}`])];
  const after = value === undefined || optional ? [] : [value.kind === 'path' ? '-r' : '-x', valueText(value)];
  return [...names, ...after, `-d ${quoted(description)}`].filter((part) => part !== '').join(' ');
}

function valueText(value: Value): string {
  switch (value.kind) {
    case 'words':
      return `-a ${quoted(value.words.join(' '))}`;
    case 'path':
      return '-F';
    case 'compute':
      return `-a ${quoted(`(command -q ebb; and ${LIST_COMPUTES})`)}`;
    case 'other':
      return '';
  }
}

/** fish knows two escapes within single quotes. */
function quoted(text: string): string {
  return `'${text.replace(/[\\']/g, '\\$&')}'`;
}
