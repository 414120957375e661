import { describe } from 'vitest';
import { embeddedTestEngine } from '../support/engines.ts';
import { describeStore } from './store.contract.ts';

describe('store on the embedded engine', () => describeStore(embeddedTestEngine));
