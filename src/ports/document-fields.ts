/** Fields of documents: instants are ISO 8601 in UTC. */
import { z } from 'zod';

export const instant = z.string().meta({ format: 'date-time', description: 'In UTC.' });
export const text = z.string();
/** The expected value, and an interval of 80 %. */
export const estimate = z.object({ low: z.number(), mid: z.number(), high: z.number() });
