import { type Flag, LIST_COMPUTES, placesIn, quoted, type Value, type Words } from './words.ts';

/** A script for bash, from 3.2 on: without associative arrays, `mapfile` and the package bash-completion. */
export function bashScript(program: Words): string {
  const places = placesIn(program).map(({ path, words }) => [path.map((name) => `/${name}`).join(''), words] as const);
  const cases = places.map(([path, words]) => placeCase(path, words));
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

/** What follows a command, whose path is written `/keys/create`. */
function placeCase(path: string, { flags, commands, argument }: Words): string {
  const names = flags.flatMap(({ long, short = [] }) => [long, short].flat());
  const valued = flags.filter(({ optional }) => !optional).flatMap(valueCase);
  const rest = commands.length > 0 ? { kind: 'words' as const, words: commands.map(({ name }) => name) } : argument;
  return `    ${quoted(path)})
      case "$prev" in
${[...valued, '        *) case "$cur" in', `          -*) _ebb_words ${quoted(names.join(' '))} ;;`, `          *) ${offer(rest)} ;;`, '        esac ;;'].join('\n')}
      esac ;;`;
}

function valueCase({ long, value }: Flag): string[] {
  return value === undefined ? [] : [`        ${long}) ${offer(value)} ;;`];
}

function offer(value: Value = { kind: 'other' }): string {
  switch (value.kind) {
    case 'words':
      return `_ebb_words ${quoted(value.words.join(' '))}`;
    case 'path':
      return '_ebb_paths';
    case 'compute':
      return '_ebb_computes';
    case 'other':
      return '_ebb_nothing';
  }
}
