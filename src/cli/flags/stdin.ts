import { string } from '@oclif/core/flags'

/** What a script reads in place of /dev/null (contract §13). */
export const stdinFlag = string({
  helpGroup: 'RUN',
  helpValue: 'FILE|-',
  description: "file for the script's stdin on each host; - = rsm's own",
})
