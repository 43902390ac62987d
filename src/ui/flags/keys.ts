import { string } from '@oclif/core/flags'

/** For what a command does itself: a server that runs knows it. */
export const keysFlag = string({
  env: 'RSM_KEYS',
  helpValue: 'DIR',
  description: 'where the keys are if no server runs; keys/ in the data directory by default',
})
