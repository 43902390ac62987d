import { string } from '@oclif/core/flags'
import { integer } from './checks.ts'
import { withVariables } from './environment.ts'

/** How long a server keeps things: settings of `server start`, and of `server retention` where no server runs. */
export const retentionFlags = withVariables('RSM_', {
  'task-retention': integer({
    default: 30,
    min: 0,
    max: 36_500,
    helpValue: 'DAYS',
    description: 'days to keep ended tasks and their output, 0 = forever',
  }),
  'recording-retention': integer({
    default: 90,
    min: 0,
    max: 36_500,
    helpValue: 'DAYS',
    description: 'days to keep ended sessions and recordings, 0 = forever',
  }),
  'max-output-bytes': string({
    default: '0',
    helpValue: 'SIZE',
    description: 'remove the oldest tasks if output exceeds SIZE; 0 = no limit',
  }),
})
