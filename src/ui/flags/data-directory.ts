import { string } from '@oclif/core/flags'
import { dataDirectoryHelp } from '../command/directories.ts'

/** Of a server that may run. */
export const dataDirectoryFlag = string({
  env: 'RSM_DATA_DIR',
  helpValue: 'DIR',
  description: `data directory of the server; ${dataDirectoryHelp('server')}`,
})

/** For what a command does itself: a server that runs knows it. */
export const keysFlag = string({
  env: 'RSM_KEYS',
  helpValue: 'DIR',
  description: 'where the keys are if no server runs; keys/ in the data directory by default',
})
