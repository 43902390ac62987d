import { string } from '@oclif/core/flags'

/** For what a command does itself: a server that runs knows it. */
export const keysFlag = string({
  env: 'RSM_KEYS',
  helpValue: 'DIR',
  description: 'directory of the keys, if no server runs (default: keys/)',
})
