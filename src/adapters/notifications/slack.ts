import { parseJson } from '../../common/result.ts';
import { printable } from '../../common/safe-text.ts';
import { Message } from './message.ts';

/** What Slack takes for the beginning of a mark or a link: https://docs.slack.dev/messaging/formatting-message-text */
const ESCAPES: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;' };

/** A message as Slack shows it: the sentence, whom it concerns, and the command to copy. */
export function slackText(body: string): string {
  const parsed = Message.safeParse(parseJson(body));
  if (!parsed.success) return escaped(body);
  const { text, command, owner, compute, project } = parsed.data;
  const place = [project?.name ?? project?.id, compute]
    .filter((part) => part !== undefined && part !== null)
    .join(' / ');
  const about = [place, owner === null ? '' : `owner ${owner}`].filter((part) => part !== '').join(', ');
  return [
    escaped(about === '' ? text : `${text} (${about})`),
    ...(command === null ? [] : [`\`${escaped(command)}\``]),
  ].join('\n');
}

/** Line breaks stay: a summary has several lines. */
function escaped(text: string): string {
  const shown = text.split('\n').map(printable).join('\n');
  return shown.replaceAll(/[&<>]/g, (character) => ESCAPES[character] ?? character);
}
