const DAYS = ['monday', 'tuesday', 'wednesday', 'thursday', 'friday', 'saturday', 'sunday'];
const CLOCK = /(?<![\w:])(\d{1,2})(?::(\d{2}))?\s*([ap]m)?(?![\w:])/gi;

/** What a time was meant to say, in the words of the language: `9am-5pm` is `09:00-17:00`. Whether that is a time is left to who asks. */
export function timeMeant(text: string): string {
  return text
    .replaceAll(/[A-Za-z]+/g, (word) => dayOf(word) ?? word)
    .replaceAll(CLOCK, (all, hours: string, minutes = '00', half = '') => clockOf(Number(hours), minutes, half) ?? all)
    .replaceAll(/\s+to\s+|\s*–\s*/gi, '-')
    .replaceAll(/,\s+(?=\d)/g, ' ');
}

function dayOf(word: string): string | undefined {
  const lower = word.toLowerCase().replace(/s$/, '');
  const day = lower.length < 3 ? undefined : DAYS.find((name) => name.startsWith(lower));
  return day && `${day.charAt(0).toUpperCase()}${day.slice(1, 3)}`;
}

function clockOf(hours: number, minutes: string, half: string): string | undefined {
  if (half !== '' && (hours < 1 || hours > 12)) return undefined;
  const shown = half === '' ? hours : (hours % 12) + (half.toLowerCase() === 'pm' ? 12 : 0);
  return `${String(shown).padStart(2, '0')}:${minutes}`;
}
