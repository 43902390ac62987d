import { fileURLToPath } from 'node:url'

/**
 * The words with which Node starts a process of ours, so that SIGUSR1 opens no debugger there. Node 22.14 can be told so and knows
 * it from its first instruction; an older one listens to the signal before it loads anything else.
 */
export const withoutDebugger: readonly string[] = process.allowedNodeEnvironmentFlags.has('--disable-sigusr1')
  ? ['--disable-sigusr1']
  : ['--require', fileURLToPath(new URL('../../../../bin/no-debugger.js', import.meta.url))]
