import { inQuotes } from '../../domain/notifications/coming-change.ts';
import { type CommandTree, commandsIn, type Flag, LIST_COMPUTES, type Value } from './words.ts';

/** A script for bash, from 3.2 on: without associative arrays, `mapfile` and the package bash-completion. */
function bashScript(program: CommandTree): string {
  const places = commandsIn(program).map(({ path, tree }) => [path.map((name) => `/${name}`).join(''), tree] as const);
  const cases = places.map(([path, tree]) => bashCase(path, tree));
  return `# Completion of ebb for bash. Made by: ebb completion bash

_ebb_words() { COMPREPLY=($(compgen -W "$1" -- "$cur")); }
_ebb_computes() { _ebb_nothing; _ebb_words "$(${LIST_COMPUTES})"; }
# Nothing is offered, so that readline offers paths.
_ebb_paths() { COMPREPLY=(); }
_ebb_nothing() { COMPREPLY=(); compopt +o default 2>/dev/null; }

_ebb() {
  local cur=\${COMP_WORDS[COMP_CWORD]} prev=\${COMP_WORDS[COMP_CWORD - 1]} place= i
  # bash breaks words at "=".
  if [ "$cur" = = ]; then
    cur=
  elif [ "$prev" = = ]; then
    prev=\${COMP_WORDS[COMP_CWORD - 2]}
  fi
  for ((i = 1; i < COMP_CWORD; i++)); do
    case "$place/\${COMP_WORDS[i]}" in
      ${places
        .map(([path]) => path)
        .filter((path) => path !== '')
        .join(' | ')}) place="$place/\${COMP_WORDS[i]}" ;;
    esac
  done
  case "$place" in
${cases.join('\n')}
  esac
}

complete -o default -F _ebb ebb
`;
}

/** The completions after a command, whose path is written `/keys/create`. */
function bashCase(path: string, { flags, commands, argument }: CommandTree): string {
  const names = flags.flatMap(({ long, short = [] }) => [long, short].flat());
  const valued = flags.filter(({ isValueOptional }) => !isValueOptional).flatMap(bashValueCase);
  const rest = commands.length > 0 ? { kind: 'words' as const, words: commands.map(({ name }) => name) } : argument;
  return `    ${inQuotes(path)})
      case "$prev" in
${[...valued, '        *) case "$cur" in', `          -*) _ebb_words ${inQuotes(names.join(' '))} ;;`, `          *) ${bashOffer(rest)} ;;`, '        esac ;;'].join('\n')}
      esac ;;`;
}

function bashValueCase({ long, value }: Flag): string[] {
  return value === undefined ? [] : [`        ${long}) ${bashOffer(value)} ;;`];
}

function bashOffer(value: Value = { kind: 'other' }): string {
  switch (value.kind) {
    case 'words':
      return `_ebb_words ${inQuotes(value.words.join(' '))}`;
    case 'path':
      return '_ebb_paths';
    case 'compute':
      return '_ebb_computes';
    case 'other':
      return '_ebb_nothing';
  }
}

/** A script for zsh: a file of `$fpath`, or something to evaluate. */
function zshScript(program: CommandTree): string {
  return `#compdef ebb
# Completion of ebb for zsh. Made by: ebb completion zsh

_ebb_computes() {
  local -a computes=(\${(f)"$(${LIST_COMPUTES})"})
  compadd -a computes
}

${zshFunctions(program, '_ebb').join('\n\n')}

if [ "$funcstack[1]" = _ebb ]; then
  _ebb "$@"
else
  compdef _ebb ebb
fi
`;
}

/** One function for each command. */
function zshFunctions(tree: CommandTree, name: string): string[] {
  const { flags, commands, argument } = tree;
  const specs = flags.map(zshFlag);
  if (commands.length === 0) {
    const all = [...specs, ...(argument ? [`*:argument:${zshAction(argument)}`] : [])];
    return [`${name}() {\n  _arguments ${all.map(inQuotes).join(' \\\n    ')}\n}`];
  }
  const described = commands.map((command) => inQuotes(`${command.name}:${command.description}`));
  const cases = commands.map((command) => `    ${command.name}) ${name}_${command.name} ;;`);
  return [
    `${name}() {
  local curcontext=$curcontext state line
  local -a commands=(
    ${described.join('\n    ')}
  )
  _arguments -C ${[...specs, '1: :->command', '*:: :->rest'].map(inQuotes).join(' \\\n    ')}
  case $state in
  command) _describe command commands ;;
  rest)
    case $line[1] in
${cases.join('\n')}
    esac ;;
  esac
}`,
    ...commands.flatMap((command) => zshFunctions(command, `${name}_${command.name}`)),
  ];
}

/** Describes a flag for `_arguments`: `--mode[text]:value:(a b)`; a flag may be given several times. */
function zshFlag({ long, description, value, isValueOptional }: Flag): string {
  const text = description.replace(/[[\]\\:]/g, '\\$&');
  const after = value === undefined ? '' : `${isValueOptional ? '::' : ':'}value:${zshAction(value)}`;
  return `*${long}${value === undefined || isValueOptional ? '' : '='}[${text}]${after}`;
}

function zshAction(value: Value): string {
  switch (value.kind) {
    case 'words':
      return `(${value.words.join(' ')})`;
    case 'path':
      return '_files';
    case 'compute':
      return '_ebb_computes';
    case 'other':
      return ' ';
  }
}

function fishScript(program: CommandTree): string {
  const lines = commandsIn(program).flatMap(({ path, tree }) => fishLines(tree, path));
  return `# Completion of ebb for fish. Made by: ebb completion fish
complete -c ebb -f
${lines.join('\n')}
`;
}

function fishLines({ flags, commands, argument }: CommandTree, path: readonly string[]): string[] {
  const here = path.map((name) => `__fish_seen_subcommand_from ${name}`);
  const names = commands.map(({ name }) => name);
  const noneOf = path.length === 0 ? '__fish_use_subcommand' : `not __fish_seen_subcommand_from ${names.join(' ')}`;
  const noneYet = names.length === 0 ? [] : [noneOf];
  const condition = (parts: readonly string[]) =>
    parts.length === 0 ? '' : ` -n ${quotedForFish(parts.join('; and '))}`;
  const line = (rest: string, parts = [...here, ...noneYet]) => `complete -c ebb${condition(parts)} ${rest}`;
  return [
    ...commands.map(({ name, description }) => line(`-a ${name} -d ${quotedForFish(description)}`)),
    ...flags.map((flag) => line(fishFlag(flag))),
    ...(argument && argument.kind !== 'other' ? [line(fishValue(argument))] : []),
  ];
}

function fishFlag({ long, short, description, value, isValueOptional }: Flag): string {
  const names = [`-l ${long.slice(2)}`, ...(short === undefined ? [] : [`-s ${short.slice(1)}`])];
  const after = value === undefined || isValueOptional ? [] : [value.kind === 'path' ? '-r' : '-x', fishValue(value)];
  return [...names, ...after, `-d ${quotedForFish(description)}`].filter((part) => part !== '').join(' ');
}

function fishValue(value: Value): string {
  switch (value.kind) {
    case 'words':
      return `-a ${quotedForFish(value.words.join(' '))}`;
    case 'path':
      return '-F';
    case 'compute':
      return `-a ${quotedForFish(`(command -q ebb; and ${LIST_COMPUTES})`)}`;
    case 'other':
      return '';
  }
}

/** fish knows two escapes within single quotes. */
function quotedForFish(text: string): string {
  return `'${text.replace(/[\\']/g, '\\$&')}'`;
}

export const SCRIPTS = { bash: bashScript, zsh: zshScript, fish: fishScript };
