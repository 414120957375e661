import { describe } from 'vitest';
import { createInProcessTokens } from '../../src/adapters/control-api/in-process-tokens.ts';
import { BUCKET, describeTokenSource } from './token-source.contract.ts';

describe('tokens in this process', () =>
  describeTokenSource(async () => {
    let tokens = createInProcessTokens({ bucket: BUCKET });
    return {
      open: async () => tokens,
      reset: async () => {
        tokens = createInProcessTokens({ bucket: BUCKET });
      },
      close: async () => {},
    };
  }));
