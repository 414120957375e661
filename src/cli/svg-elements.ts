/** Text that is SVG. */
import { printable } from './printable.ts';

/** Its content is markup: text in it must have been escaped. */
export function element(name: string, attributes: Readonly<Record<string, string | number>>, content?: string): string {
  const written = Object.entries(attributes).map(([key, value]) => ` ${key}="${value}"`);
  const start = `<${name}${written.join('')}`;
  return content === undefined ? `${start}/>` : `${start}>${content}</${name}>`;
}

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

export function escaped(text: string): string {
  return printable(text).replace(/[&<>"']/g, (character) => ENTITIES[character] ?? '');
}

export function tenth(value: number): number {
  return Math.round(value * 10) / 10;
}
