import { spawnSync } from 'node:child_process'
import test from 'ava'
import type { AgentOptions } from '../../../src/agent/main.ts'

const isRoot = process.getuid?.() === 0
/** Only root may become another user. */
export const asRoot: typeof test | typeof test.skip = isRoot ? test : test.skip
/** Requires root and bubblewrap. */
export const boxed: typeof test | typeof test.skip =
  isRoot && spawnSync('bwrap', ['--version']).status === 0 ? test : test.skip

export const anotherUser = { runAs: 'nobody', allowRunAs: ['daemon'] }

/** Users and sandboxes in which every script must behave the same. */
export const modes: readonly [string, Partial<AgentOptions>, typeof test | typeof test.skip][] = [
  ['none, as the agent', {}, test],
  ['none, as another user', anotherUser, asRoot],
  ['user', { ...anotherUser, sandbox: 'user' }, asRoot],
  ['strict, as the agent', { sandbox: 'strict' }, boxed],
  ['strict, as another user', { ...anotherUser, sandbox: 'strict' }, boxed],
]
