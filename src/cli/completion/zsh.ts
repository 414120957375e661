import { type Flag, LIST_COMPUTES, quoted, type Value, type Words } from './words.ts';

/** A script for zsh: a file of `$fpath`, or something to evaluate. */
export function zshScript(program: Words): string {
  return `#compdef ebb
# Completion of ebb for zsh. Made by: ebb completion zsh

_ebb_computes() {
  local -a computes=(\${(f)"$(${LIST_COMPUTES})"})
  compadd -a computes
}

${functionsOf(program, '_ebb').join('\n\n')}

if [ "$funcstack[1]" = _ebb ]; then
  _ebb "$@"
else
  compdef _ebb ebb
fi
`;
}

/** One function for each command. */
function functionsOf(words: Words, name: string): string[] {
  const { flags, commands, argument } = words;
  const specs = flags.map(flagSpec);
  if (commands.length === 0) {
    const all = [...specs, ...(argument ? [`*:argument:${action(argument)}`] : [])];
    return [`${name}() {\n  _arguments ${all.map(quoted).join(' \\\n    ')}\n}`];
  }
  const described = commands.map((command) => quoted(`${command.name}:${command.description}`));
  const cases = commands.map((command) => `    ${command.name}) ${name}_${command.name} ;;`);
  return [
    `${name}() {
  local curcontext=$curcontext state line
  local -a commands=(
    ${described.join('\n    ')}
  )
  _arguments -C ${[...specs, '1: :->command', '*:: :->rest'].map(quoted).join(' \\\n    ')}
  case $state in
  command) _describe command commands ;;
  rest)
    case $line[1] in
${cases.join('\n')}
    esac ;;
  esac
}`,
    ...commands.flatMap((command) => functionsOf(command, `${name}_${command.name}`)),
  ];
}

/** As `_arguments` reads it: `--mode[text]:value:(a b)`; a flag may be given several times. */
function flagSpec({ long, description, value, optional }: Flag): string {
  const text = description.replace(/[[\]\\:]/g, '\\$&');
  const after = value === undefined ? '' : `${optional ? '::' : ':'}value:${action(value)}`;
  return `*${long}${value === undefined || optional ? '' : '='}[${text}]${after}`;
}

function action(value: Value): string {
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
