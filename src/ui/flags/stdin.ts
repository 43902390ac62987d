import { string } from '@oclif/core/flags'

/** What a script reads in place of /dev/null (contract §13). */
export const stdinFlag = string({
  helpGroup: 'RUN',
  helpValue: 'FILE|-',
  description: "what the script reads as its stdin on each host; - is rsm's own stdin",
})
